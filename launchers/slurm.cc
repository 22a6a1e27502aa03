// SPDX-License-Identifier: Apache-2.0
#include "launchers/slurm.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "base/child_process.h"
#include "base/error.h"
#include "base/file.h"
#include "base/new_file.h"
#include "base/printable.h"

namespace abl::launchers {
namespace {

using std::chrono::seconds;
namespace fs = std::filesystem;

constexpr const char* kPasses = ".join";  // a queue's name has no dot

/// Constant: whatever differs is an argument, which no shell reads.
constexpr std::string_view kScript =
    "#!/bin/sh\n"
    "# One worker of ablate as a job of Slurm: QUEUE HOME PROGRAM ARGUMENT...\n"
    "name=$1-$SLURM_JOB_ID\n"
    "home=$2/$name\n"
    "shift 2\n"
    "umask 077\n"
    "mkdir -p \"$home\" || exit 1\n"
    "exec \"$@\" --name \"$name\" --home \"$home\" >>\"$home/worker.log\" 2>&1\n";

std::vector<std::string_view> split(std::string_view text, char at,
                                    std::size_t most = std::string_view::npos) {
  std::vector<std::string_view> parts;
  while (parts.size() + 1 < most) {
    const auto end = text.find(at);
    if (end == std::string_view::npos) break;
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  parts.push_back(text);
  return parts;
}

std::optional<long> whole(std::string_view text) {
  long value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size() || value < 0)
    return std::nullopt;
  return value;
}

/// A job's own id: neither of an array ("7_1", "7_[1-9]") nor of a part of one ("7+0").
bool is_job_id(std::string_view text) { return text.size() <= 18 && whole(text).value_or(0) > 0; }

/// "1-02:03:04", "02:03:04", "03:04" or "INVALID".
seconds elapsed(std::string_view text) {
  long days = 0, total = 0;
  if (const auto dash = text.find('-'); dash != std::string_view::npos) {
    days = whole(text.substr(0, dash)).value_or(0);
    text.remove_prefix(dash + 1);
  }
  for (const std::string_view part : split(text, ':')) {
    const auto value = whole(part);
    if (!value) return seconds{0};
    total = total * 60 + *value;
  }
  return seconds{days * 24 * 3600 + total};
}

struct Standing {
  PilotState state = PilotState::kRunning;
  bool failed = false;
};

/// Slurm's states by both of their names. One that is not known is of a job that is there.
Standing standing_of(std::string_view state) {
  struct Known {
    std::string_view name, code;
    Standing standing;
  };
  constexpr Standing kWaits{PilotState::kWaiting, false}, kEnded{PilotState::kEnded, false},
      kFailed{PilotState::kEnded, true};
  static constexpr std::array kStates{
      Known{"PENDING", "PD", kWaits},      Known{"CONFIGURING", "CF", kWaits},
      Known{"REQUEUED", "RQ", kWaits},     Known{"REQUEUE_HOLD", "RH", kWaits},
      Known{"REQUEUE_FED", "RF", kWaits},  Known{"RESV_DEL_HOLD", "RD", kWaits},
      Known{"SPECIAL_EXIT", "SE", kWaits}, Known{"COMPLETED", "CD", kEnded},
      Known{"COMPLETING", "CG", kEnded},   Known{"CANCELLED", "CA", kEnded},
      Known{"PREEMPTED", "PR", kEnded},    Known{"TIMEOUT", "TO", kEnded},
      Known{"DEADLINE", "DL", kEnded},     Known{"REVOKED", "RV", kEnded},
      Known{"NODE_FAIL", "NF", kEnded},    Known{"FAILED", "F", kFailed},
      Known{"BOOT_FAIL", "BF", kFailed},   Known{"OUT_OF_MEMORY", "OOM", kFailed}};
  const std::string_view word = state.substr(0, state.find_first_of(" +"));  // "CANCELLED by 0"
  for (const Known& known : kStates)
    if (word == known.name || word == known.code) return known.standing;
  return {};
}

/// Of what Slurm's programs said.
bool nobody_answers(std::string_view message) {
  constexpr std::array<std::string_view, 8> kSigns{"Unable to contact slurm controller",
                                                   "Socket timed out",
                                                   "Connection refused",
                                                   "Unable to establish controller machine",
                                                   "Slurm backup controller in standby mode",
                                                   "Zero Bytes were transmitted or received",
                                                   "Transport endpoint is not connected",
                                                   "temporarily unable to accept job"};
  return std::ranges::any_of(kSigns,
                             [&](std::string_view sign) { return message.find(sign) != message.npos; });
}

fs::path pass_file(const QueueConfig& queue, const std::string& id) {
  return fs::path{queue.home} / kPasses / id;
}
fs::path authorities_file(const QueueConfig& queue) { return fs::path{queue.home} / kPasses / "ca.crt"; }

/// Written as a whole, for this user alone.
void write_private(const fs::path& file, std::string_view text) {
  make_folder(file.parent_path());
  NewFile secret{file, {.ending = unfinished_ending(), .mode = 0600}};
  secret.append(text);
  secret.publish();
}

void hand_over(const QueueConfig& queue, const Pass& pass) {
  if (!pass.authorities.empty()) {
    const fs::path file = authorities_file(queue);
    if (!fs::exists(file) || read_file(file) != pass.authorities) write_private(file, pass.authorities);
  }
  write_private(pass_file(queue, pass.id), pass.token + "\n");
}

}  // namespace

std::string job_name(const std::string& store_id, const std::string& queue) {
  return fmt::format("ablate-{}-{}", store_id, queue);
}

std::vector<std::string> sbatch_argv(const QueueConfig& queue, const SlurmOptions& options,
                                     const std::optional<Pass>& pass) {
  std::vector<std::string> argv{"sbatch", "--parsable",
                                "--job-name=" + job_name(options.store_id, queue.name), "--nodes=1",
                                "--ntasks=1", "--no-requeue", "--chdir=/", "--output=/dev/null",
                                "--export=HOME,USER,LANG,PATH,LD_LIBRARY_PATH,ABLATE_TRAINER",
                                // whole minutes, which is what Slurm counts in
                                fmt::format("--time={}", (queue.time_limit.count() + 59) / 60)};
  // the worker ends by itself then, and by this where its clock is wrong; Slurm may say it a minute early
  if (queue.time_limit >= std::chrono::minutes{20})
    argv.push_back(fmt::format("--signal=B:TERM@{}", ends_early(queue.time_limit).count()));
  if (queue.cpus > 0) argv.push_back(fmt::format("--cpus-per-task={}", queue.cpus));
  if (!queue.memory.empty()) argv.push_back("--mem=" + queue.memory);
  for (const auto& [flag, value] :
       {std::pair{"--partition=", &queue.partition}, std::pair{"--account=", &queue.account},
        std::pair{"--qos=", &queue.qos}, std::pair{"--constraint=", &queue.constraint}})
    if (!value->empty()) argv.push_back(flag + *value);
  if (!queue.gres.empty())
    argv.push_back("--gres=" + queue.gres);
  else if (queue.gpus > 0)
    argv.push_back(fmt::format("--gres=gpu:{}", queue.gpus));
  argv.insert(argv.end(), queue.arguments.begin(), queue.arguments.end());
  argv.push_back(options.script.string());

  argv.insert(argv.end(), {queue.name, queue.home, queue.program, "--scheduler", options.scheduler, "--slots",
                           std::to_string(queue.slots), "--runs-root", queue.home + "/runs", "--time-limit",
                           fmt::format("{}s", queue.time_limit.count())});
  const auto add_all = [&](const char* flag, const std::map<std::string, std::string>& named) {
    for (const auto& [name, value] : named)
      argv.insert(argv.end(), {flag, fmt::format("{}={}", name, value)});
  };
  add_all("--label", queue.labels);
  argv.insert(argv.end(), {"--label", "queue=" + queue.name});
  add_all("--data", queue.data);
  add_all("--weights", queue.weights);
  if (pass)
    argv.insert(argv.end(), {"--ca", pass->authorities.empty() ? kSystem : authorities_file(queue).string(),
                             "--join-token-file", pass_file(queue, pass->id).string()});
  if (queue.allow_commands) argv.push_back("--allow-commands");
  argv.insert(argv.end(), queue.worker_arguments.begin(), queue.worker_arguments.end());
  return argv;
}

std::string parse_job_id(std::string_view text) {
  for (const std::string_view line : split(text, '\n'))  // a site's own words may stand around it
    if (const auto id = split(line, ';').front(); is_job_id(id)) return std::string{id};
  throw Error{Code::kInternal, fmt::format("sbatch named no job; expected a number, got '{}'",
                                           printable(text.substr(0, 200)))};
}

std::vector<Pilot> parse_squeue(std::string_view text,
                                const std::map<std::string, std::string>& queue_of_job_name) {
  std::vector<Pilot> pilots;
  for (const std::string_view line : split(text, '\n')) {
    const auto fields = split(line, '|', 6);  // a reason may have one in it
    if (fields.size() < 6 || !is_job_id(fields[0])) continue;
    const auto queue = queue_of_job_name.find(std::string{fields[3]});
    if (queue == queue_of_job_name.end()) continue;
    const Standing standing = standing_of(fields[1]);
    Pilot pilot{.id = std::string{fields[0]},
                .queue = queue->second,
                .state = standing.state,
                .failed = standing.failed};
    pilot.ran = elapsed(fields[2]);
    if (standing.state == PilotState::kRunning) pilot.machine = printable(fields[4]);
    const std::string reason = fields[5] == "None" ? std::string{} : printable(fields[5]);
    if (standing.state == PilotState::kWaiting)
      pilot.said = reason;
    else if (standing.state == PilotState::kEnded || fields[1] != "RUNNING")
      pilot.said = printable(fields[1]);
    pilots.push_back(std::move(pilot));
  }
  return pilots;
}

std::map<std::string, Pilot> parse_sacct(std::string_view text) {
  std::map<std::string, Pilot> ended;
  for (const std::string_view line : split(text, '\n')) {
    const auto fields = split(line, '|');
    if (fields.size() < 3 || !is_job_id(fields[0])) continue;
    const Standing standing = standing_of(fields[1]);
    if (standing.state != PilotState::kEnded) continue;
    ended[std::string{fields[0]}] = {.id = std::string{fields[0]},
                                     .queue = {},
                                     .state = PilotState::kEnded,
                                     .said = printable(fields[1]),
                                     .failed = standing.failed,
                                     .ran = seconds{whole(fields[2]).value_or(0)}};
  }
  return ended;
}

SlurmLauncher::SlurmLauncher(SlurmOptions options, const std::vector<QueueConfig>& queues)
    : options_{std::move(options)} {
  for (const QueueConfig& queue : queues)
    queue_of_job_name_.emplace(job_name(options_.store_id, queue.name), queue.name);
  write_file_atomically(options_.script, kScript);
}

/// Throws: Error{kUnavailable} where nobody answers.
std::string SlurmLauncher::run(const std::vector<std::string>& argv, const std::stop_token& stop) const {
  try {
    return run_program(argv, "", options_.time_limit, stop);
  } catch (const Error& error) {
    if (error.code() == Code::kDeadlineExceeded || error.code() == Code::kCancelled ||
        nobody_answers(error.what()))
      throw Error{Code::kUnavailable, error.what()};
    throw;
  }
}

std::vector<Pilot> SlurmLauncher::list(const std::stop_token& stop) {
  std::vector<std::string> names;
  for (const auto& [name, queue] : queue_of_job_name_) names.push_back(name);
  std::string text;
  try {
    text = run({"squeue", "--noheader", "--states=all", fmt::format("--user={}", ::getuid()),
                fmt::format("--name={}", fmt::join(names, ",")), fmt::format("--format={}", kSqueueFormat)},
               stop);
  } catch (const Error& error) {  // whatever it is: nothing was said of the pilots
    throw Error{Code::kUnavailable, error.what()};
  }
  std::vector<Pilot> pilots = parse_squeue(text, queue_of_job_name_);
  std::map<std::string, Pilot> live;
  for (const Pilot& pilot : pilots) {
    if (pilot.state != PilotState::kEnded) live.emplace(pilot.id, pilot);
    live_.erase(pilot.id);
  }
  std::vector<Pilot> gone;  // longer ago than Slurm keeps jobs in mind
  for (auto& [id, pilot] : std::exchange(live_, std::move(live))) gone.push_back(std::move(pilot));
  ask_how_they_ended(gone, stop);
  pilots.insert(pilots.end(), gone.begin(), gone.end());
  std::erase_if(asked_to_end_, [&](const std::string& id) { return !live_.contains(id); });
  return pilots;
}

void SlurmLauncher::ask_how_they_ended(std::vector<Pilot>& pilots, const std::stop_token& stop) {
  if (pilots.empty()) return;
  std::vector<std::string> ids;
  for (const Pilot& pilot : pilots) ids.push_back(pilot.id);
  std::map<std::string, Pilot> known;
  try {
    known =
        parse_sacct(run({"sacct", "--noheader", "--parsable2", "--allocations",
                         fmt::format("--jobs={}", fmt::join(ids, ",")), "--format=JobIDRaw,State,ElapsedRaw"},
                        stop));
  } catch (const Error&) {  // many sites keep no accounts
  }
  for (Pilot& pilot : pilots) {
    pilot.state = PilotState::kEnded;
    pilot.said = "squeue does not know it any more";
    pilot.machine.clear();
    if (const auto ended = known.find(pilot.id); ended != known.end()) {
      pilot.said = ended->second.said;
      pilot.failed = ended->second.failed;
      pilot.ran = std::max(pilot.ran, ended->second.ran);
    }
  }
}

std::string SlurmLauncher::submit(const QueueConfig& queue, const std::optional<Pass>& pass,
                                  const std::stop_token& stop) {
  if (pass) hand_over(queue, *pass);
  return parse_job_id(run(sbatch_argv(queue, options_, pass), stop));
}

void SlurmLauncher::remove(const QueueConfig& queue, const Leftovers& leftovers, const std::stop_token&) {
  std::string trouble;
  const auto go = [&](const fs::path& path) {
    std::error_code error;
    fs::remove_all(path, error);
    if (error) trouble = fmt::format("cannot remove {}: {}", path.string(), error.message());
  };
  for (const std::string& pass : leftovers.passes) go(pass_file(queue, pass));
  for (const std::string& worker : leftovers.workers)
    if (worker.starts_with(queue.name + "-") && worker.find('/') == std::string::npos)
      go(fs::path{queue.home} / worker);
  if (!trouble.empty()) throw Error{Code::kUnavailable, trouble};
}

void SlurmLauncher::cancel(const std::vector<Pilot>& pilots, const std::stop_token& stop) {
  std::vector<std::string> names, ask, insist;
  for (const auto& [name, queue] : queue_of_job_name_) names.push_back(name);
  for (const Pilot& pilot : pilots)
    (pilot.state == PilotState::kRunning && asked_to_end_.insert(pilot.id).second ? ask : insist)
        .push_back(pilot.id);
  const auto scancel = [&](std::vector<std::string> flags, const std::vector<std::string>& ids) {
    if (ids.empty()) return;
    std::vector<std::string> argv{"scancel", "--quiet", fmt::format("--user={}", ::getuid())};
    argv.insert(argv.end(), flags.begin(), flags.end());
    argv.insert(argv.end(), ids.begin(), ids.end());
    try {
      run(argv, stop);
    } catch (const Error& error) {  // the others of one call are ended all the same
      if (std::string_view{error.what()}.find("Invalid job id") == std::string_view::npos) throw;
    }
  };
  scancel({"--batch", "--signal=TERM"}, ask);  // the worker itself, which then ends by itself
  scancel({}, insist);
}

}  // namespace abl::launchers
