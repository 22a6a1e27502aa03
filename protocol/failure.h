// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/enum_names.h"

/// Why a run did not complete, and what a sweep wants to become of its trial then.
namespace abl::protocol {

/// Whose failure it is.
enum class FailureClass {
  kInfrastructure,  ///< the machine's, its worker's or the network's: it fails no trial
  kResources,       ///< memory or a disk had no room: another machine may have more
  kTrial,           ///< the trial's own
  kData,            ///< the trial asks of the right data what they do not have
};
constexpr std::string_view name_of(FailureClass failure) {
  switch (failure) {
    case FailureClass::kInfrastructure:
      return "infrastructure";
    case FailureClass::kResources:
      return "resources";
    case FailureClass::kTrial:
      return "trial";
    case FailureClass::kData:
      return "data";
  }
  return {};
}

/// What a rule is about, as sweep files write it: "log NCCL error .*", "exit 75", "signal SEGV" or the name
/// of a class.
struct FailureKind {
  enum class By { kLog, kExit, kSignal, kClass };
  By by = By::kClass;
  std::string pattern;                              ///< of kLog: a regular expression (base/pattern.h)
  int number = 0;                                   ///< of kExit the code, of kSignal its number
  FailureClass of = FailureClass::kInfrastructure;  ///< of kClass

  /// Nothing for a text that is none of these.
  static std::optional<FailureKind> read(std::string_view text);
  /// As it is stored and shown: "signal SEGV", also where "signal SIGSEGV" or "signal 11" was written.
  std::string text() const;
  bool operator==(const FailureKind&) const = default;
};

/// What becomes of a trial after failures of one kind: so many further attempts, or that of another class.
struct RetryRule {
  FailureKind kind;
  int attempts = 0;
  std::optional<FailureClass> counts_as;  ///< then `attempts` says nothing
  bool operator==(const RetryRule&) const = default;
};
using RetryRules = std::vector<RetryRule>;  ///< in the order of the file

/// As it is stored: a JSON list of [kind, attempts or class]; empty for no rules.
std::string to_text(const RetryRules& rules);
/// What of a stored text is understood.
RetryRules retry_rules(const std::string& text);
/// The patterns of rules that are about logs.
std::vector<std::string> log_patterns(const RetryRules& rules);

/// How a run failed, as its worker says it.
struct Failure {
  FailureClass of = FailureClass::kTrial;
  std::optional<int> exit_code, signal;
  std::vector<std::string> log_patterns{};  ///< of the rules' patterns, those that the end of its log has
};

/// What rules say of a failure.
struct Verdict {
  FailureClass of = FailureClass::kTrial;  ///< as which it counts
  /// The rule that counts further attempts, by its place; nothing: the sweep's `retry.max` does.
  std::optional<std::size_t> rule;
  std::string decided_by;  ///< the kind that the most specific rule names, or empty
  bool specific = false;   ///< a rule names this exit code, this signal or these words, not only the class
};

/// The most specific rule decides: that of a log (of several, the first), of an exit code or a signal, of a
/// class. An exit code of 128 + N is signal N too, as shells say it, where no rule names the code. What
/// counts as another class goes by that class's rule.
Verdict judge(const RetryRules& rules, const Failure& failure);

}  // namespace abl::protocol
