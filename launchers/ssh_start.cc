// SPDX-License-Identifier: Apache-2.0
// How a worker is started: its bundle is copied where it is not there yet.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/sha256.h"
#include "launchers/bounded_call.h"
#include "launchers/pilot_id.h"
#include "launchers/shell_script.h"
#include "launchers/ssh.h"
#include "launchers/ssh_scripts.h"

namespace abl::launchers {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kDigestDigits = 16, kMostNothing = 5;
constexpr Milliseconds kStartLimit{60'000}, kUnpackLimit{1'800'000}, kCopyLimit{4 * 3'600'000};

}  // namespace

std::string SshLauncher::submit(const QueueConfig& queue, const std::optional<Pass>& pass,
                                const std::stop_token&) {
  auto state = state_.lock();
  Machine* chosen = nullptr;
  for (const auto& machine : state->machines)
    if (machine->queue->name == queue.name && is_free(*machine) &&
        (!chosen || machine->refused.times < chosen->refused.times))
      chosen = machine.get();
  if (!chosen) throw Error{Code::kUnavailable, "no machine is free: " + room_of(*state, queue.name).why};
  const Pilot pilot{.id = pass ? pass->id : new_pilot_id(), .queue = queue.name};
  if (!is_pilot_id(pilot.id)) throw Error{Code::kInternal, "a pass is called otherwise than passes are"};
  chosen->start = Start{.pilot = pilot};
  chosen->job =
      std::jthread{[this, chosen, pilot, pass](const std::stop_token& stop) {  // the last one is over
        run_start(*chosen, pilot, pass, stop);
      }};
  return pilot.id;
}

std::vector<std::string> SshLauncher::words_for(const Machine& machine, const Pilot& pilot,
                                                const std::optional<Pass>& pass,
                                                const std::string& bundle) const {
  const QueueConfig& queue = *machine.queue;
  const auto& own = queue.worker_arguments;
  const bool says_where = std::ranges::any_of(
      own, [](const std::string& word) { return word == "--runs-root" || word.starts_with("--runs-root="); });
  std::vector<std::string> words = place(
      machine, {pilot.worker(), bundle, queue.program, pass ? pass->token : "", pass ? pass->authorities : "",
                says_where ? "" : "runs", std::string{ssh::kOuter}, std::string{ssh::kInner}, "--scheduler",
                options_.scheduler, "--name", pilot.worker(), "--slots", std::to_string(machine.host.slots)});
  const auto add = [&](std::initializer_list<std::string> more) { words.insert(words.end(), more); };
  const auto add_all = [&](const char* flag, const std::map<std::string, std::string>& named) {
    for (const auto& [name, value] : named) add({flag, fmt::format("{}={}", name, value)});
  };
  add_all("--label", queue.labels);
  add({"--label", "queue=" + queue.name});
  add_all("--data", machine.host.data);
  add_all("--weights", machine.host.weights);
  if (queue.time_limit.count() > 0) add({"--time-limit", fmt::format("{}s", queue.time_limit.count())});
  if (pass && pass->authorities.empty()) add({"--ca", kSystem});
  if (queue.allow_commands) add({"--allow-commands"});
  words.insert(words.end(), own.begin(), own.end());
  return words;
}

void SshLauncher::run_start(Machine& machine, Pilot pilot, const std::optional<Pass>& pass,
                            const std::stop_token& stop) {
  std::optional<Error> failure;
  try {
    const std::string bundle = machine.queue->bundle.empty() ? "" : copy_bundle(machine, stop);
    const std::string said = ssh::heard(
        ask(machine, ssh::kStart, words_for(machine, pilot, pass, bundle), kStartLimit, stop), stop);
    if (said.find("ablate-started") == std::string::npos)
      throw Error{Code::kUnavailable,
                  fmt::format("expected that a worker starts; it said '{}'", ssh::last_words(said))};
  } catch (const Error& error) {
    failure = error;
  } catch (const std::exception& error) {
    failure = Error{Code::kInternal, error.what()};
  }
  auto state = state_.lock();
  ++machine.starts;
  machine.hurry = true;
  if (!failure) {
    pilot.state = PilotState::kRunning;
    pilot.machine = machine.host.name;
    machine.pilots.push_back(pilot);
  } else {
    pilot.state = PilotState::kEnded;
    pilot.said = fmt::format("{}: {}", machine.host.name, failure->what());
    // it may be there all the same, where the answer was lost
    machine.to_end.insert(pilot.worker());
    if (failure->code() == Code::kUnavailable) {
      silent(*state, machine, failure->what());
    } else if (failure->code() != Code::kCancelled) {
      pilot.failed = true;
      refused(*state, machine, failure->what());
    }
    machine.nothing.push_back(pilot);
    if (machine.nothing.size() > kMostNothing) machine.nothing.erase(machine.nothing.begin());
  }
  machine.start->over = true;  // from here on this thread touches nothing
}

/// Of a file as it is now.
std::string SshLauncher::digest_of(const std::string& bundle) {
  std::error_code error;
  const Digest now{.size = fs::file_size(bundle, error), .changed = fs::last_write_time(bundle, error)};
  if (error) throw Error{Code::kNotFound, fmt::format("the bundle {}: {}", bundle, error.message())};
  auto digests = digests_.lock();  // who wants it meanwhile waits for the same
  Digest& known = (*digests)[bundle];
  if (known.hex.empty() || known.size != now.size || known.changed != now.changed) {
    known = now;
    known.hex = sha256_file(bundle);
  }
  return known.hex;
}

/// Returns: the name of its folder on the machine.
std::string SshLauncher::copy_bundle(Machine& machine, const std::stop_token& stop) {
  const QueueConfig& queue = *machine.queue;
  const std::string digest = digest_of(queue.bundle), folder = digest.substr(0, kDigestDigits);
  const std::string part = queue.name + "+" + folder;
  const auto there = ssh::parse_prepared(ssh::heard(
      ask(machine, ssh::kPrepare, place(machine, {folder, part}), options_.call_limit, stop), stop));
  if (!there) return folder;

  const OpenFile file = OpenFile::to_read(queue.bundle);
  const auto all = static_cast<std::uint64_t>(::lseek(file.fd(), 0, SEEK_END));
  ::lseek(file.fd(), static_cast<off_t>(std::min(*there, all)), SEEK_SET);
  if (*there < all) {
    {
      auto state = state_.lock();
      machine.start->copied_from = file.fd();
      machine.start->all = all;
      say(*state, machine,
          fmt::format("copies the bundle {} to {}: {} MiB{}", folder, machine.host.name, all >> 20,
                      *there > 0 ? ", of which some are there" : ""));
    }
    const std::string target = fmt::format("{}/{}/bundles/.{}.part", queue.home, options_.store_id, part);
    const std::string command =
        "exec /bin/sh -c " + shell_word("umask 077; exec cat >>\"$1\"") + " sh " + shell_word(target);
    CallAnswer copied;
    try {
      copied = call_(ssh_argv(machine, command), file, kCopyLimit, stop);
    } catch (const Error& error) {
      copied = {.code = -1, .ended = error.what()};
    }
    {
      auto state = state_.lock();
      machine.start->copied_from = -1;
    }
    ssh::heard(copied, stop);
  }
  std::vector<std::string> words{digest, part};
  for (const QueueConfig& other : queues_) try {
      if (!other.bundle.empty()) words.push_back(digest_of(other.bundle).substr(0, kDigestDigits));
    } catch (const Error&) {  // what is not there need not stay
    }
  ssh::heard(ask(machine, ssh::kUnpack, place(machine, words), kUnpackLimit, stop), stop);
  return folder;
}

}  // namespace abl::launchers
