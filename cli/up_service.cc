// SPDX-License-Identifier: Apache-2.0
#include "cli/up_service.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <string_view>
#include <thread>

#include "base/child_process.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/named_path.h"
#include "base/nearest_name.h"
#include "base/plugin_library.h"
#include "cli/client.h"
#include "cli/port.h"
#include "cli/stop_signals.h"
#include "config/data/data_sets.h"
#include "config/recipe/recipes.h"
#include "launchers/local.h"
#include "webhooks/webhook_file.h"

namespace abl::cli {
namespace {

using namespace ablate::v1;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

constexpr auto kTick = 100ms;
constexpr auto kReadyPatience = 60s;
constexpr std::size_t kRoomToStart = 1 << 20;  // an empty store, the logs and the records of the start

void expect_programs() {
  for (const char* name : {launchers::kSchedulerProgram, launchers::kWorkerProgram})
    if (const fs::path program = program_folder() / name; ::access(program.c_str(), X_OK) != 0)
      throw Error{Code::kNotFound, fmt::format("program {} not found: 'ablate up' runs it from its own "
                                               "folder; build or install ablate as a whole",
                                               program.string())};
}

launchers::LocalOptions local_options(const Context& context, const UpOptions& options, std::uint16_t port) {
  return {.programs = program_folder(),
          .home = context.home(),
          .store = context.default_store(),
          .socket = context.socket(),
          .http_port = port,
          .slots = options.slots,
          .threads = options.threads,
          .data = parse_named_paths(kDataFlag, options.data),
          .weights = parse_named_paths(kWeightsFlag, options.weights),
          .plugins = parse_named_paths(kPluginFlag, options.plugins),
          .webhooks = options.webhooks.empty() ? fs::path{} : fs::absolute(options.webhooks),
          .allow_commands = options.allow_commands,
          .log_format = log_format()};
}

/// A line of this program's log, of which people are the readers unless they asked for JSON.
void say(const Context& context, const std::string& happened) {
  if (log_format() == LogFormat::kJson)
    log_info("{}", happened);
  else
    context.err.line(happened);
}

/// The two programs and the signals, as one thing to wait with.
class Machine {
 public:
  Machine(const Context& context, const launchers::LocalOptions& options)
      : context_{context}, programs_{options} {}
  ~Machine() {
    programs_.stop([this] { return signals_.wait(0ms); });  // a second Ctrl-C
  }

  void start_scheduler() { programs_.start_scheduler(clock_.steady()); }
  void start_worker() { programs_.start_worker(clock_.steady()); }

  /// Keeps the programs running until `done` says so. False: a stop signal came first.
  /// Throws: Error when `done` has not said so in time.
  bool keep_until(const std::function<bool()>& done, const std::string& what,
                  std::optional<Milliseconds> patience) {
    const Time start = clock_.steady();
    while (!done()) {
      if (signals_.wait(kTick)) return false;
      programs_.tick(clock_.steady(), [this](const std::string& happened) { say(context_, happened); });
      if (patience && clock_.steady() - start > *patience)
        throw Error{Code::kUnavailable, fmt::format("{} within {} s: see {}", what, patience->count() / 1000,
                                                    (context_.home() / "logs").string())};
    }
    return true;
  }

 private:
  const Context& context_;
  StopSignals signals_;
  SystemClock clock_;
  launchers::LocalMachine programs_;
};

std::optional<ListWorkersResponse> ask_for_workers(const Context& context) {
  try {
    Client client{"unix:" +
                  context.socket().string()};  // a new one: gRPC waits seconds after a refused connection
    return client.call(&Workers::Stub::ListWorkers, ListWorkersRequest{}, 2s);
  } catch (const Error&) {
    return std::nullopt;  // not there yet
  }
}

}  // namespace

void make_home(const Context& context) {
  const auto socket = context.socket().string();
  if (constexpr std::size_t kLongest = sizeof(sockaddr_un::sun_path) - 1; socket.size() > kLongest)
    throw Error{
        Code::kInvalidArgument,
        fmt::format("the socket's path {} has {} bytes, at most {} are possible: choose a shorter --home",
                    socket, socket.size(), kLongest)};
  std::error_code failure;
  make_folder(context.home());
  fs::permissions(context.home(), fs::perms::owner_all, failure);
  if (failure) throw system_error("cannot protect " + context.home().string(), failure.value());
  for (const fs::path& folder : {context.home() / "run", context.home() / "logs"}) make_folder(folder);
  fs::permissions(context.home() / "run", fs::perms::owner_all, failure);
  if (failure) throw system_error("cannot protect " + (context.home() / "run").string(), failure.value());
}

/// A name that no sweep will ask for is likely a known one, misspelt.
void doubt_names(const Context& context, const NamedPathFlag& flag, const NamedPaths& paths,
                 const std::vector<std::string>& known) {
  for (const auto& [name, path] : paths)
    if (const std::string meant = nearest_name(name, known); !meant.empty() && meant != name)
      context.note(fmt::format("{} {}={}: trials that name {} will not find it; did you mean '{}'?",
                               flag.flag, name, path.string(), meant, meant));
}

std::vector<std::string> known_data() {
  std::vector<std::string> known;
  for (const auto& data : config::data_sets()) known.emplace_back(data.name);
  return known;
}

/// What the recipes call theirs; a sweep may call its own otherwise.
std::vector<std::string> known_weights() {
  std::set<std::string> known;
  for (const auto& recipe : config::recipes())
    for (const auto& [name, sha256] : config::named_weights(config::recipe_for(recipe, {})))
      known.insert(name);
  return {known.begin(), known.end()};
}

/// What a worker with these flags would refuse: its trainer knows what can be data. Nothing is made.
void ask_worker(const Context& context, const UpOptions& options) {
  if (options.data.empty()) return;
  auto argv = launchers::worker_argv(local_options(context, options, 0));
  argv.emplace_back("--check");
  try {
    run_program(argv, "", kReadyPatience);
  } catch (const Error& error) {
    const auto why = own_words(error, launchers::kWorkerProgram);
    if (!why) throw;
    const bool is_bad_input = std::string_view{error.what()}.find("exit code 2") != std::string_view::npos;
    throw Error{is_bad_input ? Code::kInvalidArgument : Code::kUnavailable, *why};
  }
}

void check_up(const Context& context, const UpOptions& options) {
  add_formats(options.formats);  // for the programs that this one starts
  const auto data = parse_named_paths(kDataFlag, options.data);
  const auto weights = parse_named_paths(kWeightsFlag, options.weights);
  doubt_names(context, kDataFlag, data, known_data());
  doubt_names(context, kWeightsFlag, weights, known_weights());
  expect_there(kDataFlag, data);
  expect_there(kWeightsFlag, weights);
  expect_there(kPluginFlag, parse_named_paths(kPluginFlag, options.plugins));
  if (!options.webhooks.empty()) webhooks::read_webhook_file(read_file(options.webhooks), options.webhooks);
  expect_programs();
  ask_worker(context, options);
  make_home(context);
}

namespace {

/// Who listens on a Unix socket; nothing: nobody.
std::optional<ucred> listener_of(const fs::path& socket) {
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  if (socket.native().size() >= sizeof address.sun_path) return std::nullopt;
  std::ranges::copy(socket.native(), std::begin(address.sun_path));
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) throw system_error("cannot make a socket", errno);
  ucred peer{};
  socklen_t size = sizeof peer;
  const bool there = ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
                     ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0;
  ::close(fd);
  return there ? std::optional{peer} : std::nullopt;
}

/// "process 812 (ablate-scheduler)".
std::string process_text(pid_t process) {
  std::string name;
  std::getline(std::ifstream{fmt::format("/proc/{}/cmdline", process)}, name, '\0');
  name = fs::path{name}.filename();
  return fmt::format("process {}{}", process, name.empty() ? "" : fmt::format(" ({})", name));
}

/// The process that has the results file; 0: none, or it does not say.
pid_t holder_of(const fs::path& store) {
  const fs::path file = store.string() + ".lock";
  std::error_code unknown;
  if (!fs::exists(file, unknown) || FileLock::try_lock(file)) return 0;
  pid_t holder = 0;
  std::ifstream{file} >> holder;
  return holder;
}

}  // namespace

void expect_no_scheduler(const Context& context, const FileLock&) {
  constexpr auto kPatience = 3s;  // one that an 'up' left behind that was killed is about to end
  for (auto waited = 0ms;; waited += kTick) {
    const auto peer = listener_of(context.socket());
    const pid_t process = peer ? peer->pid : holder_of(context.default_store());
    if (process == 0) return;
    if (waited >= kPatience)
      throw Error{
          Code::kUnavailable,
          fmt::format("a scheduler that 'ablate up' did not start has {}: {}; stop it first (kill {}), "
                      "{}",
                      peer ? context.socket().string() : context.default_store().string(),
                      process_text(process), process,
                      peer
                          ? "or give it a worker: ablate-worker --scheduler unix:" + context.socket().string()
                          : "or pass another --home")};
    std::this_thread::sleep_for(kTick);
  }
}

void check_room(const Context& context, const FileLock&) { try_to_write(context.home(), kRoomToStart); }

void run_up(const Context& context, const UpOptions& options, const FileLock&,
            const std::function<void(const UpRecord&, const WorkerSummary&)>& ready) {
  const std::uint16_t port = choose_port(options.port ? std::optional{options.port} : std::nullopt);
  std::error_code ignored;
  fs::remove(context.up_file(), ignored);  // of one that was killed
  Machine machine{context, local_options(context, options, port)};
  WorkerSummary worker;
  const auto answers = [&] { return ask_for_workers(context).has_value(); };
  const auto connected = [&] {
    const auto list = ask_for_workers(context);
    if (!list) return false;
    const auto found =
        std::ranges::find_if(list->workers(), [](const WorkerSummary& known) { return known.connected(); });
    if (found != list->workers().end()) worker = *found;
    return found != list->workers().end();
  };

  machine.start_scheduler();
  if (!machine.keep_until(answers, "ablate-scheduler did not answer", kReadyPatience)) return;
  machine.start_worker();
  if (!machine.keep_until(connected, "ablate-worker did not connect", kReadyPatience)) return;

  const UpRecord record{.pid = getpid(),
                        .url = fmt::format("http://127.0.0.1:{}/", port),
                        .store = context.default_store().string(),
                        .socket = context.socket().string()};
  write_up_record(context, record);
  ready(record, worker);
  const auto forget = [&] { fs::remove(context.up_file(), ignored); };
  try {
    machine.keep_until([] { return false; }, "", std::nullopt);
  } catch (...) {
    forget();
    throw;
  }
  say(context, "stopping; again to hurry");
  forget();
}

}  // namespace abl::cli
