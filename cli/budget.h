// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>

#include <optional>
#include <string>

#include "ablate/v1/sweeps.pb.h"
#include "base/clock.h"

namespace abl::cli {

/// `--max-gpu-hours X --until TIME`.
struct BudgetFlags {
  std::optional<double> max_gpu_hours;
  std::string until;

  bool given() const { return max_gpu_hours.has_value() || !until.empty(); }
  /// Throws: Error{kInvalidArgument} for a time that is none.
  ablate::v1::Budget message(Time now) const;
};
void add_budget(CLI::App& app, BudgetFlags& flags);

/// The moment that "18:00" means: the next time that a clock here shows that, today or tomorrow; or
/// "2026-11-24 18:00". By the time zone of this machine. An hour that the clocks skip is the same time by the
/// old clocks, as an hour later; of one that they show twice it is the first that is still to come.
/// Throws: Error{kInvalidArgument} for another text, and for a date that is past.
Time moment_of(const std::string& text, Time now);

/// "3.2 of 8 GPU hours, until 18:00"; empty without a budget.
std::string budget_text(const ablate::v1::SweepSummary& sweep);

}  // namespace abl::cli
