// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "storage/database.h"

namespace abl::storage {

/// A sweep of an attached archive (`arc`) whose name is here with another content.
struct Namesake {
  std::string name;
  int there = 1, here = 1;  ///< revisions
  bool grown = false;       ///< the archive's was once what is here
  bool older = false;       ///< what is here was once the archive's
  int common = 0;           ///< the last revision that both had; 0: none
};
std::vector<Namesake> namesakes(Database& db);

/// Throws: Error{kAlreadyExists} with a line for each thing of the archive that cannot be beside what is
/// here.
void refuse_conflicts(Database& db);

}  // namespace abl::storage
