// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace abl::metrics {

/// Who takes what is found.
class Found {
 public:
  virtual ~Found() = default;
  /// A number was found at this step; its point may come later.
  virtual void seen(std::uint32_t step) = 0;
  virtual void point(const std::string& name, std::uint32_t step, double value) = 0;
  /// `text` has something in the place of a number that is none, or of a step: a point is lacking.
  virtual void refuse(std::string_view text, const std::string& problem) = 0;
  /// For the run's log.
  virtual void note(const std::string& text) = 0;
  /// It has as much as it takes at once.
  virtual bool is_full() const = 0;
};

/// The step that a pattern has found last in the log. Steps in files are none: files are read at other times
/// than the log, so that a value would get one or another step, as it happens.
using LastStep = std::optional<std::uint32_t>;

}  // namespace abl::metrics
