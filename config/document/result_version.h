// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

#include <span>
#include <string>
#include <vector>

namespace abl::config {

/// A change of the trainer by which some trials give other numbers than before.
struct ResultChange {
  int version;       ///< one more than the change before it
  const char* what;  ///< one sentence for people: what was wrong, and what is done now
  /// Whether a trial gives other numbers. The document is a canonical one, of this release or of an earlier
  /// one: keys equal to their default are left out, and it may hold keys that are gone by now. The seed may
  /// be missing.
  bool (*touches)(const nlohmann::json& document);
  /// Of a change that corrects what a document should have said: makes of a document of before the one that
  /// the same file gives today. Null where the same document gives other numbers.
  void (*correct)(nlohmann::json& document) = nullptr;
};
using ResultChanges = std::span<const ResultChange>;

/// What trials had before the first of the changes.
inline constexpr int kFirstResultVersion = 6;

/// Every change there was, in order. To change what a trial gives: mend the trainer, add a line in
/// result_version.cc, and a case in its test.
ResultChanges result_changes();

/// The version of a trial's results, part of its identity: the newest change that touches its document. So a
/// change makes new trials of those that it touches, and of no others.
int result_version(const nlohmann::json& document, ResultChanges changes = result_changes());

/// A document of a trial of `version` as the file that it came from gives it today.
nlohmann::json corrected(nlohmann::json document, int version, ResultChanges changes = result_changes());

/// The newest of all, which a trainer has and says. It trains a trial as its version demands when it has that
/// version or a newer one that is known not to touch the trial.
int newest_result_version(ResultChanges changes = result_changes());

/// What has changed for a trial since results of `version`, a sentence for each.
std::vector<std::string> changes_since(int version, const nlohmann::json& document,
                                       ResultChanges changes = result_changes());

/// The sentence of one change; what there is to say where this release does not know it.
std::string what_changed(int version, ResultChanges changes = result_changes());

}  // namespace abl::config
