// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "storage/database.h"

namespace abl::scheduler {

/// Makes a change that follows from what is stored, all of it or nothing, within the transaction that is
/// open: what else that one has to store (what a worker says, leases that end) does not depend on it.
/// Returns: why it could not be made, where what is stored makes no sense: an archive that somebody has
/// changed, say. Throws: what else goes wrong, such as a full disk.
std::optional<std::string> make_apart(storage::Database& db, const std::function<void()>& change);

}  // namespace abl::scheduler
