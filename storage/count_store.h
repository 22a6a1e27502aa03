// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>

#include "storage/database.h"

namespace abl::storage {

/// Counts of an architecture by mode ("params.weights" -> 16596480), cached by the SHA-256 of its canonical
/// model document and the version of the counter.
/// Thread: the connection's.
class CountStore {
 public:
  explicit CountStore(Database& db) : db_{db} {}
  std::optional<std::map<std::string, double>> find(const std::string& model_document) const;
  void insert(const std::string& model_document, const std::map<std::string, double>& counts);

 private:
  Database& db_;
};

}  // namespace abl::storage
