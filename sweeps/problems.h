// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sweeps/sweep_spec.h"

namespace abl::sweeps {

/// What is wrong with one file, gathered while the rest of it is read. The same problem at the same place
/// counts once.
class Problems {
 public:
  explicit Problems(std::string file) : file_{std::move(file)} {}

  void add(Place place, const std::string& field, const std::string& message,
           const std::string& nearest = {});
  /// What is allowed and hardly meant: told, and no reason to refuse the file.
  void doubt(Place place, const std::string& field, const std::string& message);
  /// A line each, in the order of the file.
  std::vector<std::string> doubts() const;
  bool has(const std::string& field) const;  ///< a problem
  bool empty() const { return problems_.empty(); }
  std::size_t size() const { return problems_.size(); }
  /// Throws: SweepFileError when there are any.
  void throw_if_any() const;

 private:
  std::string file_;
  std::vector<Problem> problems_, doubts_;
  std::set<std::string> seen_;
};

/// "base" and "model" -> "base.model"; an empty first part is left out.
std::string dotted(std::string_view parent, std::string_view key);

/// "4,194,304".
std::string with_thousands(std::int64_t count);

}  // namespace abl::sweeps
