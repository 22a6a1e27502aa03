// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "launchers/bounded_call.h"

namespace abl::launchers::ssh {

// What a machine's /bin/sh is sent. Constant: whatever differs is a word (shell_script.h). Below HOME, which
// may be relative to the home of who logs in, everything lies in a folder of the store: `bundles/DIGEST`,
// `pilots/QUEUE-ID`; HOME/runs is all stores'. A pilot's folder has
//   pilot.pid     its worker's process: PID, when it began (/proc/PID/stat), the boot's id, seconds since
//   1970.
//                 A PID alone may be another's by now, or of before the machine was started anew.
//   pilot.exit    how it ended: exit code, or `gone`; seconds since 1970
//   pilot.bundle  what it was started from

/// HOME STORE. Says `ablate-machine SECONDS`, and `ablate-pilot NAME|STATE|SINCE|UNTIL|CODE|ITS LAST LINE`
/// for each.
extern const std::string_view kList;
/// HOME STORE DIGEST PART. Says `ablate-bundle ready` or `ablate-bundle SIZE`, of what is there of it.
extern const std::string_view kPrepare;
/// HOME STORE DIGEST PART KEEP...: checks and unpacks PART, and removes bundles that nobody needs.
extern const std::string_view kUnpack;
/// HOME STORE PILOT DIGEST PROGRAM TOKEN AUTHORITIES RUNS OUTER INNER WORD...: starts a worker of its own
/// session. Says `ablate-started`, also where it was started before.
extern const std::string_view kStart;
extern const std::string_view kOuter, kInner;  ///< words of it: what waits for the worker, what becomes it
/// HOME STORE SIGNAL PILOT...
extern const std::string_view kSignal;
/// HOME STORE PILOT... "" PILOT...: join tokens of the first, folders of the others that have ended.
extern const std::string_view kRemove;

/// The last line of a text that is others', for a message.
std::string last_words(const std::string& text);
/// What a machine said to a script.
/// Throws: Error{kUnavailable} where it did not answer, {kCancelled} where nobody waits for it any more,
/// {kFailedPrecondition} where it did, and could not do what it was asked.
std::string heard(const CallAnswer& answer, const std::stop_token& stop);

enum class Life { kStarting, kRunning, kExited, kKilled, kRebooted };
struct FoundPilot {
  std::string name;
  Life life = Life::kStarting;
  std::chrono::seconds ran{0};
  std::optional<int> code;  ///< of one that has exited
  std::string said;         ///< the last line of its log, where that is not 0
};

/// What a machine says of its pilots. Nothing where it said something else. Lines that are not understood are
/// left out, and so is what comes behind `kMostPilots`: what logs in there may say anything.
std::optional<std::vector<FoundPilot>> parse_list(std::string_view text);
inline constexpr std::size_t kMostPilots = 10'000;

/// Of kPrepare's answer: how much of a bundle is there. Nothing: all of it, unpacked.
/// Throws: Error{kUnavailable} for anything else.
std::optional<std::uint64_t> parse_prepared(std::string_view text);

}  // namespace abl::launchers::ssh
