// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sweeps/sweep_spec.h"

namespace abl::sweeps {

/// A row that both have, and that is another configuration here: its trials are others.
struct ReplacedRow {
  std::string why;                     ///< "recipe.epochs: 10 here, 5 in the store"
  std::optional<std::string> version;  ///< where `command.version` is all that changed: the one in the store
  bool longer = false;  ///< the same training for more epochs: it goes on where the stored one ended
};

/// What a file would make of the stored sweep of its name. An extension adds: rows, seeds, other
/// configurations of rows; what is printed (columns, labels, headings, the baseline) and what trials get
/// (resources, retry, limits) may be another. It takes nothing out, and changes nothing that results were to
/// be judged by.
struct Growth {
  std::vector<std::string> changes;             ///< for people, a line each; none: it is the same sweep
  std::vector<std::string> refused;             ///< what no extension does, with what to do instead
  std::map<std::string, ReplacedRow> replaced;  ///< by row id
  bool resources = false;                       ///< what trials get changed
};

Growth growth(const SweepSpec& here, const std::string& canonical_stored);

}  // namespace abl::sweeps
