// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <utility>

#include "base/error.h"
#include "base/fail_point.h"
#include "base/file.h"
#include "base/log.h"
#include "base/pattern.h"
#include "base/pieces.h"
#include "base/unasked_stop.h"
#include "base/utf8.h"
#include "protocol/checkpoint_files.h"
#include "worker/agent/leftovers.h"
#include "worker/agent/pipes.h"

namespace abl::agent {
using ablate::v1::RunEnded;
namespace {

using namespace std::chrono_literals;

constexpr int kMostPieces = 64;                       // read after the program's end: two full pipes and more
constexpr int kCannotExecute = 126, kNotFound = 127;  // what shells and loaders end with

/// The same machine would meet these again; anything else may pass.
bool retryable(Code code) {
  return code != Code::kNotFound && code != Code::kPermissionDenied && code != Code::kInvalidArgument;
}

RunEnded failure(const std::string& reason, bool retryable) {
  RunEnded ended;
  ended.set_failure(ablate::v1::FAILURE_CLASS_TRIAL);
  ended.set_status(RunEnded::STATUS_FAILED);
  ended.set_reason(valid_utf8(reason));
  ended.set_retryable(retryable);
  return ended;
}

bool is_goodbye(int signal) { return signal == SIGTERM || signal == SIGINT || signal == SIGHUP; }

/// By a signal that asks programs to go, or as shells and many programs say that they got one: 128 + it.
bool was_told_to_go(const ChildExit& exit) {
  return exit.signal != 0 ? is_goodbye(exit.signal) : is_goodbye(exit.code - 128);
}

constexpr int kOfShells = 128;  // they end with this and the number of the signal that ended their command
constexpr std::size_t kLogEnd = 64 << 10;  // of a log, that the patterns of its sweep are looked for in

ablate::v1::FailureClass to_proto(protocol::FailureClass failure) {
  switch (failure) {
    case protocol::FailureClass::kInfrastructure:
      return ablate::v1::FAILURE_CLASS_INFRASTRUCTURE;
    case protocol::FailureClass::kResources:
      return ablate::v1::FAILURE_CLASS_RESOURCES;
    case protocol::FailureClass::kTrial:
      return ablate::v1::FAILURE_CLASS_TRIAL;
    case protocol::FailureClass::kData:
      return ablate::v1::FAILURE_CLASS_DATA;
  }
  return ablate::v1::FAILURE_CLASS_UNSPECIFIED;
}

/// Whose failure a program's end is that the worker is not to blame for. SIGKILL that nobody here sent is
/// what the kernel does where memory runs out.
protocol::FailureClass class_of(const ChildExit& exit, const TrainerOutput& output, bool killed_here,
                                bool met_limit) {
  using protocol::FailureClass;
  const auto& said = output.said_end();
  if (said && said->failure) return *said->failure;
  if (said && said->fault == protocol::Fault::Part::kData) return FailureClass::kData;
  const int signal = exit.signal != 0 ? exit.signal : exit.code - kOfShells;
  if (!killed_here && (signal == SIGKILL || met_limit || output.speaks_of_exhaustion()))
    return FailureClass::kResources;
  return FailureClass::kTrial;
}

std::string duration_text(std::uint32_t seconds) {
  for (const auto& [unit, length] : {std::pair{'d', 86'400U}, std::pair{'h', 3600U}, std::pair{'m', 60U}})
    if (seconds % length == 0) return fmt::format("{}{}", seconds / length, unit);
  return fmt::format("{}s", seconds);
}

}  // namespace

/// A file was not fetched, for what says nothing of it: to begin without it would throw the trial's work
/// away.
class Run::Unfetched final : public Error {
 public:
  Unfetched(const Error& error, std::uint64_t needed) : Error{error}, bytes{needed} {}
  const std::uint64_t bytes;
};

Run::Run(ablate::v1::Assign assign, std::vector<Slot> slots, const RunSettings& settings, RunOwner& owner,
         const Clock& clock, Crew& crew, std::string store)
    : assign_{std::move(assign)},
      store_{std::move(store)},
      slots_{std::move(slots)},
      settings_{settings},
      owner_{owner},
      clock_{clock},
      grace_{assign_.grace_ms() > 0 ? Milliseconds{assign_.grace_ms()} : settings.grace},
      log_{assign_.log_limit_bytes() > 0 ? std::min(settings.log_limit, assign_.log_limit_bytes())
                                         : settings.log_limit},
      wake_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)} {
  if (wake_ < 0) throw system_error(fmt::format("cannot start run {}", assign_.run()), errno);
  try {
    crew.take_on([this, over = over_] {
      execute();
      over->release();
    });
  } catch (...) {
    ::close(wake_);
    throw;
  }
}

Run::~Run() {
  kill();
  over_->acquire();
  ::close(wake_);
}

void Run::stop(const std::string& reason, bool lost) {
  {
    auto orders = orders_.lock();
    if (orders->stop) return;
    orders->stop = true;
    orders->stop_reason = reason;
    orders->lost = lost;
  }
  wake();
}

void Run::kill() {
  orders_.lock()->kill = true;
  wake();
}

void Run::wake() { ::eventfd_write(wake_, 1); }

void Run::execute() {
  RunEnded how;
  std::optional<TrainerOutput> output;
  // here, and not where the run is taken: the folder's disk may hang
  if (const std::string lacking = lacks_folder(assign_); !lacking.empty() && !orders().kill)
    return owner_.refused(assign_.run(), lacking);
  try {
    if (const std::string why = owner_.fault(assign_, RunOwner::Asked::kBefore); !why.empty()) {
      how = lost(why);
    } else if (const std::string lacking = lacks_sources(assign_, settings_); !lacking.empty()) {
      return owner_.refused(assign_.run(), lacking);
    } else {
      directory_ = create_run_directory(settings_.runs_root, assign_);
      if (!store_.empty()) protocol::sign_folder(directory_, store_);
      if (const std::string absent = get_pushed_data(); !absent.empty() && !orders().stop && !orders().kill) {
        std::error_code gone;
        std::filesystem::remove_all(directory_, gone);  // just made
        return owner_.refused(assign_.run(), absent);
      }
      std::vector<std::string> notes;
      const FetchFile fetch = [this](const auto&... file) { return fetch_file(file...); };
      if (const std::string absent = fetch_sources(assign_, settings_, directory_, fetch, notes);
          !absent.empty() && !orders().stop && !orders().kill) {
        std::error_code gone;
        std::filesystem::remove_all(directory_, gone);  // just made
        return owner_.refused(assign_.run(), absent);
      }
      Resume resume = choose_checkpoint(assign_, settings_, directory_, fetch);
      resume.notes.insert(resume.notes.begin(), notes.begin(), notes.end());
      resume.data = data_.file;
      CommandPlaces places;
      std::string unreadable;
      try {
        places = command_places(assign_);
      } catch (const Error& error) {
        unreadable = error.what();
      }
      output.emplace(RunFacts{.directory = directory_,
                              .host = settings_.host,
                              .resume_run = resume.checkpoint ? resume.checkpoint->run() : 0,
                              .resume_step = resume.checkpoint ? resume.checkpoint->step() : 0,
                              .log_end = assign_.log_patterns().empty() ? 0 : kLogEnd,
                              .sources = std::move(places.metrics)},
                     clock_);
      files_.emplace(directory_, std::move(places.checkpoint));
      metrics_file_.emplace(directory_, metrics_options(resume));
      how = unreadable.empty() ? run_program(*output, resume) : failure(unreadable, /*retryable=*/false);
    }
  } catch (const Unfetched& file) {
    how = lost(file);
  } catch (const std::exception& error) {  // of the worker's own: its disk, its memory, its descriptors
    how = lost(Trouble{.reason = error.what()});
  }
  if (!directory_.empty() && !cleared_) end_rest(directory_);  // an exception left the program's supervision
  if (confined_) confined_->end();
  if (!output) output.emplace(RunFacts{}, clock_);
  // a trainer that was killed while it wrote one leaves what it had of it; nobody reads that
  if (assign_.argv().empty()) protocol::remove_unfinished_checkpoints(directory_);
  const auto asked = output->speaks_of_full_disk() ? RunOwner::Asked::kFailedFull : RunOwner::Asked::kFailed;
  if (how.status() == RunEnded::STATUS_FAILED && !orders().kill) {
    if (const std::string why = owner_.fault(assign_, asked); !why.empty()) {
      const std::string reason = fmt::format("{} ({})", why, how.reason());
      how = lost(reason);
    } else if (found_another_file(*output)) {  // which is the right one again by now
      how = lost(how.reason());
    }
  }
  if (!directory_.empty()) {  // what it went on from: the next attempt has it from where this one had it
    std::error_code gone;
    for (const auto& checkpoint : assign_.checkpoints()) {
      const std::filesystem::path file = directory_ / fetched_checkpoint(checkpoint.path());
      std::filesystem::remove(file, gone);
      std::filesystem::remove(part_of(file), gone);
    }
  }
  if (!orders().kill) say_last_checkpoint(how, *output);
  if (!orders().kill) bring_checkpoint(how, *output);
  if (orders().kill) return owner_.finished(assign_.run(), std::nullopt);
  note_patterns(how, *output);
  end_metrics_file(*output);
  owner_.finished(assign_.run(), last_batch(output->take_last(std::move(how))));
}

/// Where the points up to the checkpoint are, if it was written on this machine.
MetricsFile::Options Run::metrics_options(const Resume& resume) const {
  MetricsFile::Options options{.root = settings_.runs_root};
  if (!resume.checkpoint) return options;
  // <root>/<trial>/<attempt>/…
  const auto below = std::filesystem::path{resume.checkpoint->path()}.lexically_relative(settings_.runs_root);
  auto part = below.begin();
  if (std::distance(part, below.end()) < 3 || *part == "..") return options;
  const auto trial = *part++, attempt = *part;
  if (const auto before = settings_.runs_root / trial / attempt; before != directory_) {
    options.before = before;
    options.before_step = resume.checkpoint->step();
  }
  return options;
}

/// What the last batch has goes there too.
void Run::end_metrics_file(TrainerOutput& output) {
  if (!metrics_file_) return;
  for (const std::string& said : {metrics_file_->append(output.batch()), metrics_file_->finish()})
    if (!said.empty()) output.note(said);
}

/// Returns: why it is lacking, or empty.
std::string Run::get_pushed_data() {
  if (assign_.data_sha256().empty() || settings_.data.contains(assign_.data())) return {};
  say(fmt::format("the data '{}' ({}) come from the scheduler's depot, where they are not here yet",
                  assign_.data(), size_text(assign_.data_bytes())));
  data_ = owner_.fetch_data(assign_, [this] {
    const Orders now = orders();
    return !now.stop && !now.kill;
  });
  return data_.why.empty() ? "" : fmt::format("data '{}' were not fetched: {}", assign_.data(), data_.why);
}

std::string Run::fetch_file(const std::string& sha256, std::uint64_t bytes,
                            const std::filesystem::path& file) {
  say(fmt::format("fetching {} from the scheduler's depot", size_text(bytes)));
  try {
    return owner_.fetch(assign_.run(), sha256, bytes, file, [this] {
      const Orders now = orders();
      return !now.stop && !now.kill;
    });
  } catch (const Error& error) {
    throw Unfetched{error, bytes};
  }
}

/// In the run's log, which people follow while it waits.
void Run::say(const std::string& text) {
  ablate::v1::RunBatch says;
  says.set_log(log_.admit(fmt::format("[worker] {}\n", text)));
  try {
    owner_.append(assign_.run(), says);
  } catch (const Error&) {  // no room for that: what follows says so
  }
}

/// What was written since the last look, for the next attempt. A program that a signal ended, or that failed,
/// may have been in the middle of it.
void Run::say_last_checkpoint(const RunEnded& how, TrainerOutput& output) {
  if (!files_ || how.status() == RunEnded::STATUS_COMPLETED) return;
  const bool was_killed = how.status() != RunEnded::STATUS_STOPPED || how.has_signal() || overstayed_;
  files_->say_last_checkpoint(output, was_killed, how.status() != RunEnded::STATUS_FAILED && owner_.brings());
}

/// Before the scheduler hears of the end, and gives the trial to another machine.
void Run::bring_checkpoint(const RunEnded& how, TrainerOutput& output) {
  constexpr const char* kCancelled = "cancelled";
  const bool goes_on_elsewhere =
      (how.status() == RunEnded::STATUS_STOPPED && !how.reason().starts_with(kCancelled)) ||
      how.status() == RunEnded::STATUS_LOST;
  const bool wanted = how.status() == RunEnded::STATUS_COMPLETED && assign_.weights_wanted();
  if ((!goes_on_elsewhere && !wanted) || took_ == Milliseconds{0} || !owner_.brings()) return;
  owner_.vacated(assign_.run());  // its slots need not wait for that
  try {
    keep(output);
    owner_.bring(assign_.run(), wanted, [this] { return !orders().kill; });
  } catch (const std::exception& error) {  // of a full disk: then the depot has an older one
    log_warning({{"run", assign_.run()}}, "run {}: its checkpoint was not brought to the scheduler: {}",
                assign_.run(), error.what());
  }
}

/// Of a failed run, which of its sweep's patterns the end of its log has.
void Run::note_patterns(RunEnded& ended, const TrainerOutput& output) const {
  if (ended.status() != RunEnded::STATUS_FAILED) return;
  for (const std::string& pattern : assign_.log_patterns())
    if (Pattern{pattern}.is_in(output.log_end())) ended.add_log_patterns(pattern);
}

/// With the end of the log, which goes ahead where it is long.
ablate::v1::RunBatch Run::last_batch(ablate::v1::RunBatch last) {
  const std::string log = unkept_.log() + log_.admit(last.log());
  const std::uint32_t refused = unkept_.refused_lines() + last.refused_lines();
  const std::string example =
      unkept_.refused_lines() > 0 ? unkept_.refused_example() : last.refused_example();
  const std::uint32_t repeated = unkept_.repeated_points() + last.repeated_points();
  unkept_.MergeFrom(last);
  last.Swap(&unkept_);
  last.set_repeated_points(repeated);
  last.set_refused_lines(refused);
  last.set_refused_example(example);
  last.set_log(log);
  ablate::v1::RunBatch rest;
  rest.set_log(log_.rest());
  if (rest.log().empty()) return last;
  rest.set_log(last.log() + rest.log());
  try {
    owner_.append(assign_.run(), rest);
    last.clear_log();
  } catch (const Error&) {  // no room: it is kept in memory with the end
    *last.mutable_log() = rest.log();
  }
  return last;
}

RunEnded Run::lost(const std::string& why) const {
  RunEnded ended;
  ended.set_status(RunEnded::STATUS_LOST);
  ended.set_reason(valid_utf8("worker unhealthy: " + why));
  ended.set_retryable(true);
  ended.set_worker_trouble(true);
  return ended;
}

RunEnded Run::lost(const Trouble& trouble) {
  owner_.troubled(trouble);
  return lost(trouble.reason);
}

/// Another attempt may have it, from the same copy.
RunEnded Run::lost(const Unfetched& file) {
  const std::string why = fmt::format("what it begins from was not fetched: {}", file.what());
  if (file.code() != Code::kUnavailable) {
    const bool full = file.code() == Code::kResourceExhausted;
    return lost(Trouble{.reason = why, .room = full ? std::optional{file.bytes} : std::nullopt});
  }
  RunEnded ended = lost(why);
  ended.set_reason(valid_utf8(why));
  ended.set_worker_trouble(false);  // the scheduler's, if anybody's
  return ended;
}

/// The trainer says that weights or a plugin had another digest than the trial wants.
bool Run::found_another_file(const TrainerOutput& output) const {
  const auto& said = output.said_end();
  return assign_.argv().empty() && said && said->fault == protocol::Fault::Part::kFile;
}

/// Nothing where the program's end says nothing of the machine.
std::optional<Trouble> Run::trouble_of(const ChildExit& exit, const TrainerOutput& output) const {
  const auto& said = output.said_end();
  const bool has_fault = said && said->status == RunEnded::STATUS_FAILED && said->fault && exit.signal == 0;
  if (has_fault && said->fault != protocol::Fault::Part::kFile) {
    Trouble trouble{.reason = said->reason.empty() ? exit.describe() : said->reason};
    if (said->fault == protocol::Fault::Part::kDisk) trouble.room = said->needed_bytes;
    trouble.gpus = said->fault == protocol::Fault::Part::kDevice;
    if (said->fault != protocol::Fault::Part::kData) return trouble;
    if (assign_.data().empty()) return std::nullopt;  // it was given none
    trouble.data = assign_.data();
    trouble.trainer = assign_.argv().empty();
    return trouble;
  }
  const bool cannot_start = exit.signal == 0 && (exit.code == kCannotExecute || exit.code == kNotFound);
  if (!assign_.argv().empty() || !cannot_start || output.heard()) return std::nullopt;
  std::string reason = fmt::format("{} does not start: {}", settings_.trainer.string(), exit.describe());
  if (const std::string last = output.last_lines(); !last.empty()) reason += "; last output: " + last;
  return Trouble{.reason = reason, .trainer = true};
}

/// Of a trainer's run as whole as its checkpoints, which are used with them. A command's is for the command:
/// the scheduler has the document, and after a crash of the machine the run has another folder.
void Run::keep_document() {
  if (!assign_.argv().empty()) return write_file(directory_ / "config.json", assign_.config_json());
  write_file_atomically(directory_ / "config.json", assign_.config_json());
  write_file_atomically(directory_ / "launch.json", launch_record(assign_, settings_, data_.file));
}

RunEnded Run::run_program(TrainerOutput& output, const Resume& resume) {
  for (const auto& text : resume.notes) output.note(text);
  if (const Orders now = orders(); now.stop) {
    RunEnded ended;
    ended.set_status(now.lost ? RunEnded::STATUS_LOST : RunEnded::STATUS_STOPPED);
    ended.set_reason(now.stop_reason);
    ended.set_retryable(true);
    ended.set_asked(true);
    return ended;
  }
  keep_document();
  Launch launch;
  try {
    launch = plan_launch(assign_, slots_, settings_, directory_, resume);
  } catch (const Error& error) {
    if (error.code() != Code::kInvalidArgument) throw;
    return failure(error.what(), /*retryable=*/false);  // every worker would meet it
  }
  Pipes pipes;
  ChildOptions options;
  options.argv = std::move(launch.argv);
  options.environment = std::move(launch.environment);
  options.working_directory = launch.folder;
  options.stdout_fd = pipes.child_out();
  options.stderr_fd = pipes.child_err();
  options.grace = 0ms;  // whoever leaves here early has no time to ask
  if (!assign_.argv().empty())
    confined_.emplace(settings_.confinement, assign_.run(), directory_,
                      resume.checkpoint ? resume.checkpoint->path() : "", options);
  fail_point(FailPoint::kBeforeProgram);
  owner_.starts(assign_.run(), directory_, std::nullopt);
  std::optional<ChildProcess> child;
  try {
    child.emplace(options);
  } catch (const Error& error) {
    if (assign_.argv().empty()) return lost(Trouble{.reason = error.what(), .trainer = true});
    if (error.code() == Code::kResourceExhausted) throw;
    const auto& user = settings_.confinement.user;  // who may not be able to reach it
    return failure(error.what() + (user ? fmt::format(" (as {}, --run-as, in {})", user->name,
                                                      options.working_directory.string())
                                        : ""),
                   retryable(error.code()));  // the command that it names is not there
  }
  const auto began = std::chrono::steady_clock::now();
  output.launched(clock_.now());
  fail_point(FailPoint::kAfterProgram);
  owner_.starts(assign_.run(), directory_, child->pid());
  pipes.child_has_started();
  watch_ = owner_.watch(sampled(child->pid()));
  const ChildExit exit = supervise(*child, pipes, output);
  watch_.reset();
  took_ = std::chrono::duration_cast<Milliseconds>(std::chrono::steady_clock::now() - began);
  const bool left_any = end_rest(directory_);
  if (confined_) confined_->end();
  cleared_ = true;
  // What is still in the pipes: hardly anybody is left to write more.
  for (int pieces = 0; pieces < kMostPieces && pipes.read_some(output); ++pieces) keep_if_due(output);
  CommandFiles::read_to_end(output, [&] {
    keep_if_due(output);
    return !orders().kill;
  });
  output.close();
  while (output.has_more() && !orders().kill) keep(output);
  const bool not_finite = assign_.nan_fails() && !output.not_finite().empty();
  const bool says_done = output.said_end() && output.said_end()->status == RunEnded::STATUS_COMPLETED;
  if (not_finite && exceeded_.limit.empty() && (says_done || !orders().stop))  // said with its last words
    exceeded_ = exceeded_limit(SteadyTime::max(), SteadyTime::max(), output);
  if (output.trained() && !says_done && !not_finite) return ended_while_probing(exit, output);
  if (const auto trouble = trouble_of(exit, output)) return lost(*trouble);
  const auto& said = output.said_end();
  if (was_told_to_go(exit) || (said && said->status == RunEnded::STATUS_STOPPED))
    await_order(settings_.afterthought);
  else if (!said && exit.ok() && (left_any || !exit.unheeding || took_ > settings_.brief))
    await_order(settings_.afterthought / 5);  // nothing but the order would say so
  return ended(exit, output);
}

SampledRun Run::sampled(pid_t program) const {
  SampledRun run{.run = assign_.run(), .token = assign_.token(), .leader = program, .directory = directory_};
  for (const Slot& slot : slots_)
    if (!slot.visible.empty()) run.gpus.push_back(slot.visible);
  if (confined_) run.group = confined_->group();
  return run;
}

/// Its model is trained, and can be looked into later: whatever ended that, a limit, an order or the machine.
RunEnded Run::ended_while_probing(const ChildExit& exit, TrainerOutput& output) {
  const std::string why = !exceeded_.limit.empty() ? exceeded_.limit
                          : orders().stop          ? orders().stop_reason
                                                   : exit.describe();
  output.note(
      fmt::format("the model is trained, but probing ended early: {}; run 'ablate probe' for the rest", why));
  RunEnded ended;
  ended.set_status(RunEnded::STATUS_COMPLETED);
  if (exit.signal != 0)
    ended.set_signal(exit.signal);
  else
    ended.set_exit_code(exit.code);
  ended.set_took_ms(static_cast<std::uint64_t>(took_.count()));
  return ended;
}

/// A machine that goes down asks the worker and its programs at once, and so does who stops a whole service:
/// a program may be the first to heed it. Its slots need not wait for that.
void Run::await_order(Milliseconds patience) {
  owner_.vacated(assign_.run());
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (!orders().stop && !orders().kill && std::chrono::steady_clock::now() < deadline) {
    pollfd woken{wake_, POLLIN, 0};
    ::poll(&woken, 1, static_cast<int>(kLook.count()));
    eventfd_t ignored = 0;
    if (woken.revents != 0) ::eventfd_read(wake_, &ignored);
  }
}

/// Hands over what the program has said for a while, its log within the limit.
void Run::keep_if_due(TrainerOutput& output) {
  if (output.due()) keep(output);
}

void Run::keep(TrainerOutput& output) {
  ablate::v1::RunBatch batch = output.batch();
  output.clear();
  std::string log = batch.log();
  if (metrics_file_)
    if (const std::string said = metrics_file_->append(batch); !said.empty())
      log += fmt::format("[worker] {}\n", said);
  batch.set_log(log_.admit(log));
  if (batch.ByteSizeLong() == 0) return output.read_more();
  try {
    owner_.append(assign_.run(), batch);
  } catch (const Error&) {
    unkept_ = std::move(batch);  // goes into the last one, which is kept in memory where it has to be
    throw;
  }
  output.read_more();
}

/// Whether the program has to wait: the scheduler is away, or slower than the program speaks. One that is to
/// stop has some room beyond, for its last words.
bool Run::held_back(bool stopping) {
  const std::uint64_t limit = settings_.spool_limit * (stopping ? 2 : 1);
  const bool holds = owner_.backlog(assign_.run()) >= limit;
  if (holds && !holds_back_)
    log_warning({{"run", assign_.run()}, {"trial", assign_.trial()}, {"attempt", assign_.attempt()}},
                "run {} paused: {} MiB of its output await acknowledgement", assign_.run(), limit >> 20);
  if (!holds && holds_back_)
    log_info({{"run", assign_.run()}, {"trial", assign_.trial()}, {"attempt", assign_.attempt()}},
             "run {} resumed", assign_.run());
  holds_back_ = holds;
  return holds;
}

/// The limit of its sweep that it has exceeded, if any.
Run::Exceeded Run::exceeded_limit(SteadyTime began, SteadyTime heard, const TrainerOutput& output) const {
  const SteadyTime now = std::chrono::steady_clock::now();
  const std::chrono::seconds time{assign_.time_limit_s()}, stall{assign_.stall_limit_s()};
  if (time.count() > 0 && now - began >= time)
    return {fmt::format("ran for longer than {}, its limits.time", duration_text(assign_.time_limit_s())),
            true};
  if (stall.count() > 0 && now - heard >= stall)
    return {fmt::format("printed nothing for {}, its limits.stall", duration_text(assign_.stall_limit_s()))};
  if (assign_.nan_fails() && !output.not_finite().empty())
    return {output.not_finite() + ", its limits.nan", true};
  return {};
}

ChildExit Run::supervise(ChildProcess& child, Pipes& pipes, TrainerOutput& output) {
  std::optional<SteadyTime> deadline;
  bool asked = false;
  const SteadyTime began = std::chrono::steady_clock::now();
  SteadyTime heard = began;
  for (;;) {
    const bool has_to_wait = held_back(asked);
    const bool printed = pipes.read(output, wake_, child.end_descriptor(), has_to_wait);
    const bool wrote = !has_to_wait && files_->look(output);
    if (printed || wrote || has_to_wait) heard = std::chrono::steady_clock::now();
    if (watch_) watch_->waited(output.take_data_wait());
    keep_if_due(output);
    const Orders now = orders();
    if (now.kill) child.kill();
    if (!asked && !now.stop) exceeded_ = exceeded_limit(began, heard, output);
    if ((now.stop || !exceeded_.limit.empty()) && !asked) {
      child.terminate();
      asked = true;
      deadline = std::chrono::steady_clock::now() + grace_;
    }
    // a program that has said its end and stays is not waited for longer than one that was asked to go
    if (output.said_end() && !deadline) deadline = std::chrono::steady_clock::now() + grace_;
    if (deadline && !overstayed_ && std::chrono::steady_clock::now() >= *deadline) {
      child.kill();
      overstayed_ = true;
    }
    if (const auto exit = child.poll()) return *exit;
  }
}

RunEnded Run::ended(const ChildExit& exit, TrainerOutput& output) {
  const Orders now = orders();
  const auto& said = output.said_end();
  RunEnded ended;
  if (exit.signal != 0)
    ended.set_signal(exit.signal);
  else
    ended.set_exit_code(exit.code);
  ended.set_took_ms(static_cast<std::uint64_t>(took_.count()));
  ended.set_retryable(true);
  const std::string how =
      overstayed_ ? fmt::format("killed {} ms after it was to end", grace_.count()) : exit.describe();

  const int signal = exit.signal != 0 ? exit.signal : exit.code - kOfShells;
  const std::string limit = confined_ && !exit.ok() ? confined_->limit_met(signal, output) : "";
  ended.set_failure(to_proto(class_of(exit, output, overstayed_ || now.stop, !limit.empty())));
  const bool says_nan = assign_.nan_fails() && !output.not_finite().empty();
  const bool completed = said && said->status == RunEnded::STATUS_COMPLETED && exit.signal == 0 && !says_nan;
  if (!exceeded_.limit.empty() &&
      !completed) {  // it may have written a checkpoint: 'ablate retry' continues there
    ended.set_status(RunEnded::STATUS_FAILED);
    ended.set_reason(fmt::format("{} ({})", exceeded_.limit, how));
    ended.set_retryable(!exceeded_.for_good);
    ended.set_failure(ablate::v1::FAILURE_CLASS_TRIAL);
    return ended;
  }
  const bool our_signal = overstayed_ || (now.stop && is_goodbye(exit.signal));
  if (said && said->status == RunEnded::STATUS_STOPPED && !now.stop) {
    ended.set_status(RunEnded::STATUS_FAILED);
    ended.set_reason(unasked_stop(said->reason));
    ended.set_retryable(said->retryable);
  } else if (said && (exit.signal == 0 || our_signal)) {
    ended.set_status(said->status);
    ended.set_reason(said->reason);
    if (said->status == RunEnded::STATUS_STOPPED && now.stop) ended.set_reason(now.stop_reason);
    ended.set_retryable(said->retryable);
  } else if (now.stop) {
    ended.set_status(RunEnded::STATUS_STOPPED);
    ended.set_reason(fmt::format("{} ({} without an end event)", now.stop_reason, how));
  } else if (exit.ok() && !overstayed_ && !assign_.argv().empty()) {
    ended.set_status(RunEnded::STATUS_COMPLETED);  // what every program means by it; our trainer says its end
  } else {
    std::string reason = exit.ok() ? "ended with exit code 0 but without an end event" : how;
    if (!limit.empty())
      reason += "; " + limit;
    else if (exit.signal == SIGKILL)
      reason += "; perhaps out of memory";
    if (const std::string last = output.last_lines(); !last.empty()) reason += "; last output: " + last;
    ended.set_status(RunEnded::STATUS_FAILED);
    ended.set_reason(reason);
  }
  const std::string lacking =
      ended.status() == RunEnded::STATUS_COMPLETED ? output.lacks_metrics() : std::string{};
  if (!lacking.empty() && output.went_on()) {
    output.note(
        fmt::format("command.metrics: {}; it went on from a checkpoint, so this fails nothing", lacking));
  } else if (!lacking.empty()) {
    ended.set_status(RunEnded::STATUS_FAILED);
    ended.set_reason(valid_utf8("command.metrics: " + lacking));
    ended.set_retryable(false);
    ended.set_failure(ablate::v1::FAILURE_CLASS_TRIAL);
  }
  if (ended.status() == RunEnded::STATUS_FAILED && ended.reason().empty()) ended.set_reason(how);
  if (ended.status() == RunEnded::STATUS_STOPPED && now.lost) ended.set_status(RunEnded::STATUS_LOST);
  if (ended.status() == RunEnded::STATUS_STOPPED) ended.set_asked(true);
  if (ended.status() != RunEnded::STATUS_FAILED) ended.clear_failure();
  return ended;
}

}  // namespace abl::agent
