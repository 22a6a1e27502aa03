// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "worker/metrics/found.h"

namespace abl::metrics {

/// Keeps all that is found.
class Collected final : public Found {
 public:
  using Point = std::tuple<std::string, std::uint32_t, double>;
  void seen(std::uint32_t step) override { steps.push_back(step); }
  void point(const std::string& name, std::uint32_t step, double value) override {
    points.emplace_back(name, step, value);
  }
  void refuse(std::string_view text, const std::string& problem) override {
    refused.push_back(std::string{text} + ": " + problem);
  }
  void note(const std::string& text) override { notes.push_back(text); }
  bool is_full() const override { return points.size() >= most_points; }

  std::vector<std::uint32_t> steps;
  std::vector<Point> points;
  std::vector<std::string> refused, notes;
  std::size_t most_points = std::numeric_limits<std::size_t>::max();  ///< that it takes at once
};

}  // namespace abl::metrics
