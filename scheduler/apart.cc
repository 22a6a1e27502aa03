// SPDX-License-Identifier: Apache-2.0
#include "scheduler/apart.h"

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace abl::scheduler {

std::optional<std::string> make_apart(storage::Database& db, const std::function<void()>& change) {
  try {
    storage::Transaction part{db, storage::Transaction::kSavepoint};
    change();
    part.commit();
  } catch (const Error& error) {
    if (error.code() != Code::kInvalidArgument && error.code() != Code::kNotFound) throw;
    return error.what();
  } catch (const nlohmann::json::exception& error) {
    return error.what();
  }
  return std::nullopt;
}

}  // namespace abl::scheduler
