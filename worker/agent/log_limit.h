// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace abl::agent {

/// "64 MiB", as people read it.
std::string size_text(std::uint64_t bytes);

/// Bounds a run's log: its beginning passes as it comes, of what follows the end is kept and passes last,
/// after a line that says how much was left out between them.
/// Thread: one.
class LogLimit {
 public:
  explicit LogLimit(std::uint64_t limit);

  /// Returns: what of these bytes passes now.
  std::string admit(std::string_view bytes);
  /// Returns: what of the rest passes at the run's end.
  std::string rest();

 private:
  const std::uint64_t limit_;
  const std::size_t tail_limit_;
  std::uint64_t head_left_;
  bool at_line_start_ = true;  ///< of what has passed
  std::string tail_;
  std::uint64_t left_out_ = 0;
};

}  // namespace abl::agent
