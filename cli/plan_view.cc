// SPDX-License-Identifier: Apache-2.0
#include "cli/plan_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "cli/format.h"
#include "cli/grid.h"

namespace abl::cli {
namespace {

using ablate::v1::PlanRow;
using ablate::v1::SweepPlan;

std::string count_text(const PlanRow& row, const char* mode, std::string (*format)(double)) {
  const auto found = row.counts().find(mode);
  return found == row.counts().end() ? "–" : format(found->second);
}

/// Whether "0.00" would be all that billions of multiply-adds have to say.
bool are_small(const SweepPlan& plan) {
  double largest = 0;
  for (const auto& row : plan.rows())
    if (const auto found = row.counts().find("flops.macs"); found != row.counts().end())
      largest = std::max(largest, found->second);
  return largest > 0 && largest < 0.1e9;
}

/// "share=QKKPW groups=2": the last word of each key, since labels repeat in many tables.
std::string settings_of(const PlanRow& row) {
  std::string text;
  for (const auto& [key, value] : std::map<std::string, std::string>{row.set().begin(), row.set().end()})
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", key.substr(key.rfind('.') + 1), value);
  return text;
}

}  // namespace

std::string plan_text(const SweepPlan& plan, const Terminal& terminal) {
  const bool shares = plan.under_way() > 0;
  const bool repeats =
      std::ranges::any_of(plan.rows(), [](const PlanRow& row) { return !row.same_as().empty(); });
  const bool small = are_small(plan);
  std::vector<Grid::Column> columns{
      {"row"},          {"label"},       {"params (M)", true}, {small ? "FLOPs (M)" : "FLOPs (G)", true},
      {"trials", true}, {"stored", true}};
  if (shares) columns.push_back({"under way", true});
  if (repeats) columns.push_back({"same as"});
  columns.push_back({"settings"});
  Grid grid{columns};
  for (const auto& row : plan.rows()) {
    std::vector<std::string> cells{row.id(),
                                   row.label(),
                                   count_text(row, "params.weights", format_millions),
                                   count_text(row, "flops.macs", small ? format_millions : format_billions),
                                   fmt::format("{}", row.trials()),
                                   fmt::format("{}", row.stored())};
    if (shares) cells.push_back(fmt::format("{}", row.under_way()));
    if (repeats) cells.push_back(row.same_as());
    cells.push_back(settings_of(row));
    grid.add(std::move(cells));
  }

  const auto rows = static_cast<std::uint32_t>(plan.rows_size());
  std::string text = terminal.paint(Style::kBold, plan.sweep()) + "\n\n";
  for (const auto& line : grid.lines(&terminal))
    text += (terminal.width() > 0 ? fit(line, terminal.width()) : line) + "\n";
  text += "\n";
  text += fmt::format("{} × {}: {}, {} stored", plural(rows, "row"), plural(plan.seeds(), "seed"),
                      plural(plan.trials(), "distinct trial"), plan.stored());
  if (shares) text += fmt::format(", {} under way for other sweeps", plan.under_way());
  text +=
      fmt::format(", {} to run\n", plan.trials() - std::min(plan.trials(), plan.stored() + plan.under_way()));
  if (std::ranges::any_of(plan.rows(),
                          [](const PlanRow& row) { return row.counts().contains("flops.macs"); }))
    text += "FLOPs are multiply-adds for one image\n";
  if (!plan.counts_missing().empty())
    text += fmt::format("– params and FLOPs are not known: {}\n", plan.counts_missing());
  for (const auto& note : plan.notes()) text += "note: " + note + "\n";
  return text;
}

}  // namespace abl::cli
