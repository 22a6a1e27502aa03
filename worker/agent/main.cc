// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <netdb.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/child_process.h"
#include "base/command_line.h"
#include "base/duration.h"
#include "base/error.h"
#include "base/fail_point.h"
#include "base/file.h"
#include "base/file_lock.h"
#include "base/log.h"
#include "base/made_paths.h"
#include "base/manual_page.h"
#include "base/named_path.h"
#include "base/plugin_library.h"
#include "base/utf8.h"
#include "protocol/command_line.h"
#include "protocol/embedded_data.h"
#include "protocol/trainer_program.h"
#include "worker/agent/agent.h"
#include "worker/agent/confinement.h"
#include "worker/agent/data_look.h"
#include "worker/agent/join.h"
#include "worker/agent/leftovers.h"
#include "worker/agent/run_group.h"

namespace {

using namespace abl;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

constexpr const char* kFooter =
    "Example:\n"
    "  ablate-worker --scheduler gpu-head:7071 --data cifar10=/data/cifar10\n\n"
    "Exit codes:\n"
    "  0    stopped by SIGTERM, SIGINT or SIGHUP\n"
    "  1    internal error\n"
    "  2    bad input\n"
    "  3    file unavailable, or the home is in use by another worker\n";
constexpr auto kTick = 100ms;
constexpr auto kTrainerPatience = 60s;  // with a question that the trainer answers at once
constexpr auto kLastWords = 5s;         // for the scheduler to acknowledge what is left

struct Flags {
  std::string scheduler, name, trainer, address;
  fs::path home, runs_root, ca, join_token;
  access::TlsFiles own;
  int slots = 0, threads = 0, grace_ms = 5000;
  std::uint64_t slot_memory_mib = 0, log_limit_mib = 64, spool_limit_mib = 128, data_limit_mib = 10 << 10;
  std::vector<std::string> data, weights, plugins, formats, labels;
  std::string run_as;
  fs::path run_groups;
  std::uint64_t run_open_files = 0, run_file_size_mib = 0, run_processes = 0, run_memory_mib = 0;
  std::vector<std::string> pass_env;
  bool allow_commands = false, shared_runs = false, verbose = false, check = false;
  std::optional<std::chrono::seconds> time_limit;
};

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0)
    throw system_error("cannot read the host's name", errno);
  return name.data();
}

/// Throws: Error{kInvalidArgument} where nothing can listen at this address here.
void require_own_address(const std::string& address) {
  addrinfo wanted{}, *found = nullptr;
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_PASSIVE;
  if (const int failed = ::getaddrinfo(address.c_str(), "0", &wanted, &found); failed != 0)
    throw Error{Code::kInvalidArgument, fmt::format("--address {}: {}", address, ::gai_strerror(failed))};
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses{found, &::freeaddrinfo};
  const int socket = ::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool bound = socket >= 0 && ::bind(socket, found->ai_addr, found->ai_addrlen) == 0;
  if (socket >= 0) ::close(socket);
  if (!bound)
    throw Error{Code::kInvalidArgument,
                fmt::format("--address {}: expected an address of this machine", address)};
}

std::string default_scheduler() {
  const char* address = std::getenv("ABLATE_SCHEDULER");
  return address && *address ? address : "unix:" + (home_folder() / "run" / "scheduler.sock").string();
}

/// The paths behind the names, all of them there, as the trainers' own folders need them.
NamedPaths absolute_paths(const NamedPathFlag& flag, const std::vector<std::string>& given) {
  NamedPaths paths = parse_named_paths(flag, given);
  for (auto& [name, path] : paths) path = fs::absolute(path);
  expect_there(flag, paths);
  return paths;
}

/// When its runs are asked to stop, so that they have written a checkpoint before the time of this program is
/// over: by its flag, and by what Slurm says of its job.
std::optional<std::chrono::steady_clock::time_point> end_of(const Flags& flags) {
  std::optional<std::chrono::seconds> left = flags.time_limit;
  if (const char* text = std::getenv("SLURM_JOB_END_TIME")) {
    const std::string_view digits = text;
    std::int64_t end = 0;
    const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), end);
    const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
    if (error == std::errc{} && stop == digits.data() + digits.size() && end > 0)
      left = std::min(left.value_or(std::chrono::seconds::max()),
                      std::chrono::sys_seconds{std::chrono::seconds{end}} - now);
  }
  if (!left) return std::nullopt;
  const auto margin = std::clamp(flags.time_limit.value_or(*left) / 10, 10s, 60s);  // as launchers count on
  return std::chrono::steady_clock::now() + *left - margin;
}

/// What goes to the scheduler must be UTF-8, and paths and names do.
void require_utf8(const std::string& what, const std::string& text) {
  if (valid_utf8(text) != text)
    throw Error{Code::kInvalidArgument, fmt::format("{} is not valid UTF-8: {}", what, valid_utf8(text))};
}

/// What sweeps may ask for. Every worker has the labels `host` and `name` by itself.
std::map<std::string, std::string> parse_labels(const std::vector<std::string>& given) {
  std::map<std::string, std::string> labels;
  for (const auto& text : given) {
    require_utf8("--label", text);
    const auto equals = text.find('=');
    const auto refuse = [&](const char* why) {
      throw Error{Code::kInvalidArgument, fmt::format("--label {}: {}", text, why)};
    };
    if (equals == 0 || equals == std::string::npos || equals + 1 == text.size() || text[equals + 1] == '!')
      refuse("expected KEY=VALUE, such as gpu=h100");
    const std::string key = text.substr(0, equals);
    if (key == "host" || key == "name") refuse("every worker has this label by itself; expected another");
    if (!labels.emplace(key, text.substr(equals + 1)).second) refuse("duplicate label");
  }
  return labels;
}

/// 0 where there is no trainer, or one that does not start.
std::uint32_t trainer_result_version(const fs::path& trainer) {
  if (trainer.empty()) return 0;
  try {
    const auto argv = protocol::with_program(trainer, protocol::VersionCommand{.json = true}.arguments());
    const auto answer = nlohmann::json::parse(run_program(argv, "", kTrainerPatience));
    return answer.at("result_version").get<std::uint32_t>();
  } catch (const std::exception& error) {
    if (const auto* own = dynamic_cast<const Error*>(&error); own && own->code() == Code::kResourceExhausted)
      throw;  // the machine's trouble, which passes: not a worker without a trainer
    log_warning("{} cannot be used: {}", trainer.string(), error.what());
    return 0;
  }
}

/// Whether what the data's names stand for is of a format that the trainer knows. An empty folder is one in
/// which nothing is mounted yet. Programs of other people read what they like.
void check_data(const agent::AgentOptions& options) {
  if (options.runs.trainer.empty()) return;
  for (const auto& [name, place] : options.runs.data) {
    std::error_code unreadable;
    if (place.empty() || fs::is_empty(place, unreadable)) continue;
    try {
      agent::expect_data(options.runs.trainer, place, agent::DataLook::kFormat, kTrainerPatience);
    } catch (const Error& error) {
      const std::string why = fmt::format("--data {}: {}", name, error.what());
      if (error.code() == Code::kInvalidArgument && !options.allow_commands)
        throw Error{Code::kInvalidArgument, why};
      log_warning("{}", why);
    }
  }
}

/// What commands may do here; in which groups is found when the worker has its lock.
agent::Confinement confinement_from(const Flags& flags) {
  agent::Confinement confinement;
  confinement.passed = flags.pass_env;
  confinement.open_files = flags.run_open_files;
  confinement.file_size = flags.run_file_size_mib << 20;
  confinement.bounds = {.memory = flags.run_memory_mib << 20, .processes = flags.run_processes};
  for (const std::string& name : flags.pass_env)
    if (name.empty() || name == "*" || name.find('=') != std::string::npos)
      throw Error{Code::kInvalidArgument,
                  fmt::format("--pass-env {}: expected the name of a variable, such as WANDB_API_KEY or "
                              "'SLURM_*'",
                              name.substr(0, name.find('=')))};
  if (!flags.allow_commands)
    for (const auto& [flag, given] : {std::pair{"--run-memory", flags.run_memory_mib > 0},
                                      {"--run-processes", flags.run_processes > 0},
                                      {"--run-open-files", flags.run_open_files > 0},
                                      {"--run-file-size", flags.run_file_size_mib > 0},
                                      {"--run-groups", !flags.run_groups.empty()}})
      if (given)
        throw Error{Code::kInvalidArgument,
                    fmt::format("{} needs --allow-commands: it bounds commands, not the trainer", flag)};
  if (flags.run_as.empty()) {
    if (!flags.pass_env.empty())
      throw Error{Code::kInvalidArgument,
                  "--pass-env needs --run-as: without it commands get every variable"};
    return confinement;
  }
  if (!flags.allow_commands)
    throw Error{Code::kInvalidArgument,
                "--run-as needs --allow-commands: only commands run as that user, not the trainer"};
  confinement.user = agent::find_run_user(flags.run_as);
  const fs::path home = fs::weakly_canonical(flags.home), root = fs::weakly_canonical(flags.runs_root);
  if (std::mismatch(home.begin(), home.end(), root.begin(), root.end()).first == home.end())
    throw Error{Code::kInvalidArgument,
                fmt::format("--run-as needs a --runs-root outside of {}, which only the worker may enter; "
                            "expected a folder such as /var/lib/ablate-runs",
                            home.string())};
  return confinement;
}

/// Gives commands groups of their own where the worker was handed a part of the tree, and says what holds.
/// Throws: Error for a bound that nothing here can hold, and for a folder of --run-groups that is none.
void divide_group(agent::Confinement& confinement, const Flags& flags) {
  const auto folder = flags.run_groups.empty() ? agent::delegated_group() : flags.run_groups;
  std::string why_not = "this worker was handed no cgroup v2";
  try {
    if (folder) confinement.groups = std::make_shared<agent::RunGroups>(*folder);
    if (folder) why_not = folder->string() + " has no such controller";
  } catch (const Error& error) {
    if (!flags.run_groups.empty()) throw Error{error.code(), fmt::format("--run-groups: {}", error.what())};
    why_not = error.what();
  }
  const auto& groups = confinement.groups;
  const std::string expected = "expected a service with Delegate=yes, or --run-groups";
  if (confinement.bounds.memory > 0 && !(groups && groups->bounds_memory()))
    throw Error{Code::kInvalidArgument, fmt::format("--run-memory: {}; {}", why_not, expected)};
  if (confinement.bounds.processes > 0 && !confinement.user && !(groups && groups->bounds_processes()))
    throw Error{Code::kInvalidArgument,
                fmt::format("--run-processes: {}; {}, or --run-as", why_not, expected)};
  log_info("commands run as {}, {}",
           confinement.user ? confinement.user->name : "this user, who is not kept from anything of its own",
           groups ? fmt::format("each in a group beneath {}{}", folder->string(),
                                groups->bounds_memory() ? "" : ", which cannot bound memory")
                  : "without cgroups: " + why_not);
}

agent::AgentOptions options_from(const Flags& flags) {
  agent::AgentOptions options;
  options.scheduler = flags.scheduler;
  options.spool = flags.home / "spool";
  options.fingerprints = flags.home / "data.json";
  if (flags.data_limit_mib > 0) options.pushed_data = flags.home / "data";
  options.data_limit = flags.data_limit_mib << 20;
  options.name = flags.name;
  options.version = ABLATE_VERSION;
  options.allow_commands = flags.allow_commands;
  options.shared_runs = flags.shared_runs;
  options.ends = end_of(flags);
  options.slots = agent::plan_slots(agent::look_at_machine(), flags.slots, flags.threads);
  if (flags.slot_memory_mib > 0)
    for (agent::Slot& slot : options.slots) slot.memory = flags.slot_memory_mib << 20;
  options.runs.confinement = confinement_from(flags);
  options.runs.runs_root = flags.runs_root;
  options.runs.data = absolute_paths(kDataFlag, flags.data);
  options.labels = parse_labels(flags.labels);
  options.runs.weights = absolute_paths(kWeightsFlag, flags.weights);
  for (auto& [name, file] : absolute_paths(kPluginFlag, flags.plugins))
    options.runs.weights.emplace(plugin_key(name), file);
  options.runs.host = host_name();
  options.runs.address = flags.address;
  if (!flags.address.empty()) require_own_address(flags.address);
  options.runs.grace = Milliseconds{flags.grace_ms};
  options.runs.log_limit = flags.log_limit_mib << 20;
  options.runs.spool_limit = flags.spool_limit_mib << 20;
  options.runs.trainer = protocol::find_trainer(flags.trainer);
  if (!options.runs.trainer.empty() && !fs::exists(options.runs.trainer))
    throw Error{Code::kNotFound, (flags.trainer.empty() ? "$ABLATE_TRAINER " + options.runs.trainer.string()
                                                        : "--trainer " + flags.trainer) +
                                     ": no such file"};
  options.result_version = trainer_result_version(options.runs.trainer);
  if (options.result_version == 0)
    options.runs.trainer.clear();
  else
    for (const auto drawn : protocol::kEmbeddedData) options.runs.data.emplace(drawn, fs::path{});
  check_data(options);
  return options;
}

int work(Flags flags) {
  add_formats(flags.formats);  // for the trainers that this program starts
  flags.home = fs::absolute(flags.home);
  flags.runs_root = flags.runs_root.empty() ? flags.home / "runs" : fs::absolute(flags.runs_root);
  // Before anything is made, so that a start that is refused leaves nothing; and while signals still end this
  // program: its trainer may be slow to answer.
  agent::AgentOptions options = options_from(flags);
  if (flags.check) return kExitOk;
  MadePaths made;
  made.add(make_folder(flags.home));
  const fs::path lock_file = flags.home / "worker.lock";
  if (!fs::exists(lock_file)) made.add({lock_file});
  const auto lock = FileLock::try_lock(lock_file);
  if (!lock)
    throw Error{Code::kUnavailable, lock_file.parent_path().string() +
                                        " is in use by another worker: stop it, or pass another --home"};
  const auto told = FileLock::try_lock(lock_file, FileLock::Kind::kOpenFile);  // for who asks `is_held`
  made.add(make_folder(flags.runs_root));
  if (const auto& user = options.runs.confinement.user) {
    fs::permissions(flags.home, fs::perms::owner_all);
    agent::open_runs_root(flags.runs_root, *user);
  }
  if (flags.allow_commands) divide_group(options.runs.confinement, flags);
  made.keep();

  // blocked before any thread starts, so that every thread inherits it; waited for below
  std::vector<int> goodbyes{SIGTERM, SIGINT};
  if (struct sigaction now{}; sigaction(SIGHUP, nullptr, &now) == 0 && now.sa_handler != SIG_IGN)
    goodbyes.push_back(SIGHUP);  // its terminal has gone; under nohup it stays
  sigset_t goodbye;
  sigemptyset(&goodbye);
  for (const int number : goodbyes) sigaddset(&goodbye, number);
  pthread_sigmask(SIG_BLOCK, &goodbye, nullptr);
  std::signal(SIGPIPE, SIG_IGN);

  agent::adopt_orphans();
  const SystemClock clock;
  options.access = agent::join_fleet({.scheduler = options.scheduler,
                                      .name = options.name,
                                      .home = flags.home,
                                      .ca = flags.ca,
                                      .join_token = flags.join_token,
                                      .own = flags.own,
                                      .wait = [&goodbye](std::chrono::seconds time) {
                                        const timespec patience{.tv_sec = time.count(), .tv_nsec = 0};
                                        return ::sigtimedwait(&goodbye, nullptr, &patience) < 0;
                                      }});
  log_info("worker {} with {} slot{} ({}, {}){}", options.name, options.slots.size(),
           options.slots.size() == 1 ? "" : "s", options.slots.front().device, options.slots.front().name,
           options.runs.trainer.empty() ? ", without a trainer" : "");
  const auto ends = options.ends;
  agent::Agent agent{std::move(options), clock};
  const timespec tick{.tv_sec = 0, .tv_nsec = std::chrono::nanoseconds{kTick}.count()};
  const auto is_over = [&] { return ends && std::chrono::steady_clock::now() >= *ends; };
  while (!is_over() && sigtimedwait(&goodbye, nullptr, &tick) < 0) agent.tick();

  log_info("{}: runs write a checkpoint; a second signal ends at once",
           is_over() ? "its time is nearly over" : "stopping");
  for (const int number : goodbyes) std::signal(number, SIG_DFL);
  pthread_sigmask(SIG_UNBLOCK, &goodbye, nullptr);
  agent.stop("worker is stopping");
  const auto pause = [&] {
    agent.tick();
    std::this_thread::sleep_for(20ms);
  };
  while (agent.busy()) pause();
  const auto deadline = std::chrono::steady_clock::now() + kLastWords;
  while (!agent.settled() && std::chrono::steady_clock::now() < deadline) pause();
  if (!agent.settled())
    log_warning("the scheduler has not acknowledged everything: the next start sends the rest");
  return kExitOk;
}

int run(int argc, char** argv) {
  CLI::App app{
      "Runs trials on this machine for a scheduler: one slot for each GPU, or shares of the processor cores.",
      "ablate-worker"};
  Flags flags;
  app.footer(kFooter);
  app.set_version_flag("--version", ABLATE_VERSION);
  add_manual_flag(app);
  app.add_option("--scheduler", flags.scheduler,
                 "unix:/… or host:port [$ABLATE_SCHEDULER, or the socket in $ABLATE_HOME/run]");
  app.add_option(
         "--ca", flags.ca,
         "Speak TLS with the scheduler, whose certificate this authority has signed: ca.crt of 'ablate "
         "init-fleet', or 'system' for those that this machine knows")
      ->type_name("FILE");
  app.add_option("--join-token-file", flags.join_token,
                 "Join token for the first start ('ablate token create --role join'); later starts use the "
                 "worker's own")
      ->type_name("FILE");
  app.add_option(
         "--certificate", flags.own.certificate,
         "Show the scheduler this certificate (PEM), where it asks for one: 'ablate init-fleet --client "
         "NAME' makes it; read again for each connection")
      ->type_name("FILE");
  app.add_option("--key", flags.own.key, "Its key, which nobody else may read")->type_name("FILE");
  app.add_option("--home", flags.home, "The worker's own folder: lock and spool [$ABLATE_HOME/worker]");
  app.add_option("--runs-root", flags.runs_root, "Artefacts go to <root>/<trial>/<attempt>/ [<home>/runs]");
  app.add_option(
         "--address", flags.address,
         "Take part in trials of several workers: address or name of this machine at which theirs reach it. "
         "What they say to each other is neither encrypted nor authenticated [none: take no part]")
      ->type_name("HOST");
  app.add_option("--name", flags.name, "Unique name of this worker [host name]");
  app.add_option("--slots", flags.slots, "Trials to run at once [one per GPU, or one per two cores]")
      ->check(whole_number(1, 1024))
      ->type_name("N");
  app.add_option("--threads", flags.threads, "CPU threads per slot [cores / slots]")
      ->check(whole_number(1, 1024))
      ->type_name("N");
  app.add_option(
         "--slot-memory", flags.slot_memory_mib,
         "Memory of each slot in MiB, which trials with resources.pack share [what the driver says of a "
         "GPU; a CPU slot is not shared]")
      ->check(whole_number(1, 1 << 24))
      ->type_name("N");
  app.add_option("--weights", flags.weights, "Location of weights that recipes name (repeatable)");
  app.add_option(
         kPluginFlag.flag, flags.plugins,
         "NAME=FILE: where a plugin lies that models name (repeatable). Its code runs in their trainings")
      ->allow_extra_args(false);
  app.add_option("--format", flags.formats,
                 "A data format of your own, a shared library (docs/plugins.md); repeatable. Its code runs "
                 "in trainings")
      ->type_name("FILE")
      ->allow_extra_args(false);
  app.add_option("--data", flags.data,
                 "NAME=FOLDER: where a data set lies, of a format that the trainer knows (repeatable)")
      ->allow_extra_args(false);
  app.add_option("--label", flags.labels,
                 "KEY=VALUE that resources.where of sweep files may ask for, such as gpu=h100 (repeatable)")
      ->allow_extra_args(false);
  app.add_flag("--allow-commands", flags.allow_commands,
               "Run trials that use command:, that is, programs named in sweep files");
  app.add_option("--run-as", flags.run_as,
                 "Run commands as this user, who owns nothing else; for a worker that root starts");
  app.add_option(
         "--pass-env", flags.pass_env,
         "With --run-as: variable of the worker's environment that commands get beside the usual ones, "
         "such as WANDB_API_KEY or 'SLURM_*' (repeatable)")
      ->type_name("NAME")
      ->allow_extra_args(false);
  app.add_option("--run-groups", flags.run_groups,
                 "Folder of cgroup v2 that was handed over to this worker [its own, where systemd has "
                 "delegated that]")
      ->type_name("FOLDER");
  app.add_option("--run-memory", flags.run_memory_mib,
                 "Memory in MiB that a command and what it starts may have; needs cgroup v2 [no limit]")
      ->check(whole_number(1, 1 << 30))
      ->type_name("N");
  app.add_option("--run-processes", flags.run_processes,
                 "Processes and threads that a command may have; without cgroup v2, those that all commands "
                 "together may have [16384 with --run-as]")
      ->check(whole_number(1, 1 << 22))
      ->type_name("N");
  app.add_option("--run-open-files", flags.run_open_files,
                 "Files that a process of a command may have open [as many as the worker]")
      ->check(whole_number(16, 1 << 30))
      ->type_name("N");
  app.add_option("--run-file-size", flags.run_file_size_mib,
                 "Size in MiB of the largest file that a command may write [no limit]")
      ->check(whole_number(1, 1 << 30))
      ->type_name("N");
  app.add_option("--trainer", flags.trainer,
                 "The trainer's program [$ABLATE_TRAINER, or ablate-trainer beside this one]");
  app.add_option_function<std::string>(
         "--time-limit",
         [&flags](const std::string& text) {
           flags.time_limit = parse_duration(text);
           if (!flags.time_limit || *flags.time_limit < 30s)
             throw CLI::ValidationError(
                 "--time-limit",
                 fmt::format("invalid duration '{}'; expected 30s or more, such as 8h", text));
         },
         "This machine is the worker's for so long: it takes only trials that fit, and its runs write a "
         "checkpoint before the end [none; in a job of Slurm, its end]")
      ->type_name("DURATION");
  app.add_flag("--shared-runs-root", flags.shared_runs,
               "Other machines see the runs root too: checkpoints need no copy in the scheduler's depot");
  app.add_option("--grace-ms", flags.grace_ms, "Time from SIGTERM to SIGKILL, unless the scheduler sets it")
      ->check(whole_number(0, 3600000))
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--log-limit-mib", flags.log_limit_mib,
                 "Keep at most N MiB of a run's log: its head and tail")
      ->check(whole_number(1, 1 << 20))
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--spool-limit-mib", flags.spool_limit_mib,
                 "Pause a run whose unacknowledged output exceeds N MiB")
      ->check(whole_number(1, 1 << 20))
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--data-limit-mib", flags.data_limit_mib,
                 "Keep at most N MiB of data sets that were pushed ('ablate data push'); 0: take none")
      ->check(whole_number(0, 1 << 30))
      ->type_name("N")
      ->capture_default_str();
  add_log_format(app);
  app.add_flag("--verbose", flags.verbose, "Log more");
  app.add_flag("--check", flags.check)->group("");  // hidden: what a start would refuse, for `ablate up`
  check_spelling(app, argc, argv);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    throw Error{Code::kInvalidArgument, complaint(app, error)};
  }
  if (flags.verbose) set_log_level(LogLevel::kDebug);
  if (flags.scheduler.empty()) flags.scheduler = default_scheduler();
  if (flags.home.empty()) flags.home = home_folder() / "worker";
  if (flags.name.empty()) flags.name = host_name();
  if (flags.allow_commands && flags.run_as.empty() && !flags.scheduler.starts_with("unix:"))
    log_warning(
        "--allow-commands with the scheduler at {}: whoever may submit there runs programs as this user; "
        "--run-as gives them another",
        flags.scheduler);
  require_utf8("--name", flags.name);
  require_utf8("--runs-root", flags.runs_root);
  require_utf8("--home", flags.home);
  for (const auto& data : flags.data) require_utf8("--data", data);
  return work(std::move(flags));
}

}  // namespace

int main(int argc, char** argv) {
  ::setenv("GRPC_VERBOSITY", "NONE", 0);  // what goes wrong is said in our words, once
  try {
    read_fail_points();
    return run(argc, argv);
  } catch (const Error& error) {
    std::cerr << "ablate-worker: " << error.what() << '\n';
    return exit_code(error.code());
  } catch (const std::exception& error) {
    std::cerr << "ablate-worker: " << error.what() << '\n';
    return kExitFailed;
  }
}
