// SPDX-License-Identifier: Apache-2.0
#include "cli/plan_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "cli/format.h"
#include "printing/grid.h"
#include "printing/row_names.h"
#include "printing/sheet.h"
#include "storage/table.h"

namespace abl::cli {
namespace {

using ablate::v1::PlanRow;
using ablate::v1::SweepPlan;

/// A count that is shown: one that the sweep's table has, or what stands in for none of its kind.
struct ShownCount {
  std::string heading, mode;
  std::optional<protocol::Unit> unit;
  std::optional<int> digits = std::nullopt;
  bool cut = false;
};

/// A count that the table has no column of, in a unit in which there is something to see.
ShownCount stand_in(const SweepPlan& plan, std::string_view name, const char* mode, protocol::Unit unit) {
  double largest = 0;
  for (const auto& row : plan.rows())
    if (const auto found = row.counts().find(mode); found != row.counts().end())
      largest = std::max(largest, found->second);
  ShownCount shown{.mode = mode, .unit = storage::fitting_unit(unit, largest)};
  shown.heading = shown.unit ? fmt::format("{} ({})", name, name_of(shown.unit)) : std::string{name};
  return shown;
}

bool asks_for(const SweepPlan& plan, std::string_view kind) {
  return std::ranges::any_of(plan.columns(),
                             [&](const auto& column) { return column.source().starts_with(kind); });
}

/// The columns of the sweep's own table that count, as the table will show them; weights and multiply-adds
/// where it has none of parameters, or of operations.
std::vector<ShownCount> shown_counts(const SweepPlan& plan) {
  std::vector<ShownCount> shown;
  if (!asks_for(plan, "params."))
    shown.push_back(stand_in(plan, "params", "params.weights", protocol::Unit::kMillion));
  for (const auto& column : plan.columns())
    shown.push_back({printing::heading_of(column), column.source(), printing::unit_of(column),
                     column.has_digits() ? std::optional{static_cast<int>(column.digits())} : std::nullopt,
                     column.cut()});
  if (!asks_for(plan, "flops."))
    shown.push_back(stand_in(plan, "FLOPs", "flops.macs", protocol::Unit::kBillion));
  return shown;
}

std::string count_text(const PlanRow& row, const ShownCount& count) {
  const auto found = row.counts().find(count.mode);
  if (found == row.counts().end()) return "–";
  const bool is_whole = !count.unit && found->second == std::floor(found->second);
  return storage::format_cell(found->second, {}, is_whole ? std::optional{0} : count.digits, count.unit,
                              count.cut);
}

/// What the counts are, where the sweep does not choose them.
std::string counts_legend(const SweepPlan& plan) {
  if (std::ranges::none_of(plan.rows(),
                           [](const PlanRow& row) { return row.counts().contains("flops.macs"); }))
    return "";
  const bool params = asks_for(plan, "params."), flops = asks_for(plan, "flops.");
  if (params && flops) return "";
  if (params) return "FLOPs are multiply-adds for one image: the table has no column of them\n";
  if (flops) return "params are of weight matrices alone: the table has no column of them\n";
  return "params are of weight matrices alone, FLOPs multiply-adds for one image\n";
}

/// Likewise of bytes: whether "0.02" would be all that GiB have to say.
bool needs_little_memory(const SweepPlan& plan) {
  return plan.has_memory_bytes() && plan.memory_bytes() < (1 << 30);
}

/// "4.1", "0.02": hours with two digits that say something.
std::string hours_text(double hours) {
  const int digits = hours >= 9.95 ? 0 : hours >= 0.995 ? 1 : hours >= 0.0995 ? 2 : 3;
  return fmt::format("{:.{}f}", hours, digits);
}

/// How long what is left takes, what that follows from, and why some of it is missing.
std::string time_text(const SweepPlan& plan) {
  std::string text;
  if (!plan.resources().empty()) text += fmt::format("a trial takes {}\n", plan.resources());
  if (plan.has_gpu_hours()) {
    const auto& hours = plan.gpu_hours();
    text += fmt::format("what is left takes {} GPU hours ({} to {}){}\n", hours_text(hours.value()),
                        hours_text(hours.low()), hours_text(hours.high()),
                        plan.gpus() == 0 ? "; a slot without a GPU counts as one" : "");
  }
  for (const auto& line : plan.time_from()) text += line + "\n";
  if (!plan.time_missing().empty()) text += fmt::format("– time is not known: {}\n", plan.time_missing());
  return text;
}

std::string between_text(const ablate::v1::PredictedTime& time) {
  return fmt::format("{} to {}", format_duration(time.low()), format_duration(time.high()));
}

/// What the column of memory means and its largest value; and why some of it is missing.
std::string memory_text(const SweepPlan& plan, std::string (*format)(double), const char* unit) {
  std::string text;
  if (plan.has_memory_bytes()) {
    const auto where = plan.memory_device() == "cpu" ? std::string{"the process of a trial"}
                       : plan.gpus() > 1 ? fmt::format("a trial on each of its {} GPUs", plan.gpus())
                                         : "a trial on its GPU";
    text += fmt::format("memory is what {} takes at most, as predicted: {} {}\n", where,
                        format(plan.memory_bytes()), unit);
  }
  if (!plan.memory_missing().empty() && plan.memory_missing() != plan.counts_missing())
    text += fmt::format("– memory is not known: {}\n", plan.memory_missing());
  return text;
}

/// The rows by themselves: what tells them apart is the same here and in the sweep's table.
printing::RowNames rows_of(const SweepPlan& plan) {
  ablate::v1::Table rows;
  for (const auto& row : plan.rows()) {
    auto& named = *rows.add_rows();
    named.set_id(row.id());
    named.set_label(row.label());
  }
  return printing::RowNames{rows};
}

/// "share=QKKPW groups=2": the last word of each key, since labels repeat in many tables.
std::string settings_of(const PlanRow& row) {
  std::string text;
  for (const auto& [key, value] : std::map<std::string, std::string>{row.set().begin(), row.set().end()})
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", key.substr(key.rfind('.') + 1), value);
  return text;
}

/// "a", "a (last, seed 0)", "a, teacher t": whose weights a row takes.
std::string sources_of(const PlanRow& row) {
  std::string text;
  for (const auto& source : row.sources()) {
    std::vector<std::string> more;
    if (source.take() != "best") more.push_back(source.take());
    if (source.has_seed()) more.push_back(fmt::format("seed {}", source.seed()));
    text += fmt::format("{}{}{}", text.empty() ? "" : ", ", source.role() == "teacher" ? "teacher " : "",
                        source.row());
    if (!more.empty()) text += fmt::format(" ({})", fmt::join(more, ", "));
  }
  return text;
}

/// How many trials of the longest chain run one after the other; 0: there are no chains.
std::size_t longest_chain(const SweepPlan& plan) {
  std::map<std::string, const PlanRow*> rows;
  for (const auto& row : plan.rows()) rows.emplace(row.id(), &row);
  std::map<std::string, std::size_t> lengths;
  const std::function<std::size_t(const std::string&)> length_of = [&](const std::string& id) -> std::size_t {
    if (const auto known = lengths.find(id); known != lengths.end()) return known->second;
    std::size_t length = 1;
    lengths[id] = length;  // an answer of a scheduler that has circles ends all the same
    if (const auto found = rows.find(id); found != rows.end())
      for (const auto& source : found->second->sources())
        length = std::max(length, 1 + length_of(source.row()));
    return lengths[id] = length;
  };
  std::size_t longest = 0;
  for (const auto& row : plan.rows()) longest = std::max(longest, length_of(row.id()));
  return longest > 1 ? longest : 0;
}

/// A line for each reason why rows are not trained.
std::string not_trained_text(const SweepPlan& plan) {
  std::vector<std::pair<std::string, std::vector<std::string>>> reasons;  // -> rows
  for (const auto& row : plan.rows()) {
    if (row.not_trained().empty()) continue;
    auto known =
        std::ranges::find(reasons, row.not_trained_why(), [](const auto& reason) { return reason.first; });
    if (known == reasons.end()) known = reasons.insert(known, {row.not_trained_why(), {}});
    known->second.push_back(row.id());
  }
  std::string text;
  for (const auto& [why, rows] : reasons)
    text += fmt::format("– not trained: {} (row{} {})\n", why, rows.size() == 1 ? "" : "s",
                        fmt::join(rows, ", "));
  return text;
}

/// Whether the settings of some row are more than the levels that its id is made of.
bool settings_say_more(const SweepPlan& plan) {
  return std::ranges::any_of(plan.rows(), [](const PlanRow& row) {
    return std::ranges::any_of(row.set(), [&](const auto& setting) {
      const auto& [key, value] = setting;
      const std::string level = fmt::format(",{}={},", key.substr(key.rfind('.') + 1), value);
      return fmt::format(",{},", row.id()).find(level) == std::string::npos;
    });
  });
}

}  // namespace

std::string plan_text(const SweepPlan& plan, const Terminal& terminal) {
  const bool is_search = plan.seeds() == 0 && plan.has_tuning();
  const bool shares = plan.under_way() > 0;
  const bool repeats =
      std::ranges::any_of(plan.rows(), [](const PlanRow& row) { return !row.same_as().empty(); });
  const bool little = needs_little_memory(plan), mended = plan.before_mend() > 0;
  // of a command nothing is known, nor where there is no trainer
  const bool has_counts =
      std::ranges::any_of(plan.rows(), [](const PlanRow& row) { return !row.counts().empty(); });
  const std::vector<ShownCount> counts = has_counts ? shown_counts(plan) : std::vector<ShownCount>{};
  const bool has_memory =
      std::ranges::any_of(plan.rows(), [](const PlanRow& row) { return row.has_memory_bytes(); });
  const auto format_memory = little ? format_mib : format_gib;
  const char* memory_unit = little ? "MiB" : "GiB";
  enum Rank {
    kSameAs = 1,
    kCount,
    kMemory,
    kHours,
    kBetween
  };  // what a narrow terminal leaves out, the last of these first
  const printing::RowNames names = rows_of(plan);
  const bool settings = !names.are_factors() || settings_say_more(plan);
  std::vector<printing::Grid::Column> columns = names.columns();
  for (const ShownCount& count : counts)
    columns.push_back({.heading = count.heading, .right_aligned = true, .rank = kCount});
  if (has_memory)
    columns.push_back(
        {.heading = fmt::format("memory ({})", memory_unit), .right_aligned = true, .rank = kMemory});
  const bool has_time = std::ranges::any_of(plan.rows(), [](const PlanRow& row) { return row.has_time(); });
  if (has_time) {
    columns.push_back({"a trial takes", true});
    columns.push_back({.heading = "between", .right_aligned = true, .rank = kBetween});
    columns.push_back({.heading = "GPU hours left", .right_aligned = true, .rank = kHours});
  }
  columns.push_back({"trials", true});
  columns.push_back({"stored", true});
  if (mended) columns.push_back({"before a correction", true});
  if (shares) columns.push_back({"under way", true});
  if (repeats) columns.push_back({.heading = "same as", .rank = kSameAs});
  const std::size_t chain = longest_chain(plan);
  if (chain > 0) columns.push_back({.heading = "weights of"});
  if (settings) columns.push_back({.heading = "settings", .least = 8});
  printing::Grid grid{columns};
  for (int index = 0; index < plan.rows_size(); ++index) {
    const PlanRow& row = plan.rows(index);
    if (row.group() != (index > 0 ? plan.rows(index - 1).group() : "")) grid.add_heading(row.group());
    std::vector<std::string> cells = names.cells(index);
    for (const ShownCount& count : counts) cells.push_back(count_text(row, count));
    if (has_memory) cells.push_back(row.has_memory_bytes() ? format_memory(row.memory_bytes()) : "–");
    if (has_time) {
      cells.push_back(row.has_time() ? format_duration(row.time().value()) : "–");
      cells.push_back(row.has_time() ? between_text(row.time()) : "–");
      cells.push_back(row.has_gpu_hours() ? hours_text(row.gpu_hours().value()) : "–");
    }
    const bool counts_trials = row.not_trained().empty() && !is_search;  // a row of a search is none of it
    cells.push_back(counts_trials ? fmt::format("{}", row.trials()) : "–");
    cells.push_back(counts_trials ? fmt::format("{}", row.stored()) : "–");
    if (mended) cells.push_back(fmt::format("{}", row.before_mend()));
    if (shares) cells.push_back(fmt::format("{}", row.under_way()));
    if (repeats) cells.push_back(row.same_as());
    if (chain > 0) cells.push_back(sources_of(row));
    if (settings) cells.push_back(settings_of(row));
    grid.add(std::move(cells));
  }
  std::vector<std::string> left_out;
  for (const auto& column : grid.fit_to(terminal.width())) left_out.push_back(column.heading);

  const auto rows = static_cast<std::uint32_t>(plan.rows_size());
  std::string text = terminal.paint(Style::kBold, plan.sweep()) + "\n\n";
  for (const auto& line : grid.lines(&terminal))
    text += (terminal.width() > 0 ? fit(line, terminal.width()) : line) + "\n";
  text += "\n";
  if (!left_out.empty())
    text += fmt::format("no room for: {} (a wider terminal has them)\n", fmt::join(left_out, ", "));
  const std::string untrained = not_trained_text(plan);
  const auto trained = static_cast<std::uint32_t>(
      std::ranges::count_if(plan.rows(), [](const PlanRow& row) { return row.not_trained().empty(); }));
  const SweepPlan& counted = is_search ? plan.tuning() : plan;
  text += is_search ? fmt::format("a search: {} of its points", plural(counted.trials(), "distinct trial"))
                    : fmt::format("{} × {}: {}",
                                  untrained.empty() ? plural(rows, "row")
                                                    : fmt::format("{} of {}", trained, plural(rows, "row")),
                                  seeds_text(plan.seeds(), plan.seeds_min()),
                                  plural(plan.trials(), "distinct trial"));
  text += fmt::format(", {} stored", counted.stored());
  if (shares || counted.under_way() > 0)
    text += fmt::format(", {} under way{}", counted.under_way(), plan.submitted() ? "" : " for other sweeps");
  if (counted.held() > 0) text += fmt::format(", {} held", counted.held());
  const auto left =
      counted.trials() - std::min(counted.trials(), counted.stored() + counted.under_way() + counted.held());
  if (!plan.submitted())
    text += fmt::format(", {} to run\n", left);
  else
    text += fmt::format("{}\nsubmitted already: 'ablate submit' queues nothing{}\n",
                        left > 0 ? fmt::format(", {} failed or cancelled", left) : "",
                        left > 0 ? fmt::format(", 'ablate retry {}' what failed", plan.sweep()) : "");
  if (plan.has_forecast())
    text +=
        forecast_line(plan.forecast(), plan.submitted() ? "complete in" : "submitted now, it is complete in",
                      SystemClock{}.now());
  text += time_text(plan);
  if (plan.has_tuning()) {
    const SweepPlan& tuning = plan.tuning();
    std::string line;
    if (!is_search)
      line = fmt::format("before these the rows are tuned: {}, {} stored",
                         plural(tuning.trials(), "tuning trial"), tuning.stored());
    if (tuning.has_gpu_hours())
      line += fmt::format("{} takes {} GPU hours ({} to {})",
                          is_search ? "what is left of its points" : "; what is left of them",
                          hours_text(tuning.gpu_hours().value()), hours_text(tuning.gpu_hours().low()),
                          hours_text(tuning.gpu_hours().high()));
    if (!line.empty()) text += line + "\n";
  }
  if (chain > 0)
    text += fmt::format("each trial waits for those whose weights it takes: at most {} one after the other\n",
                        plural(static_cast<std::uint32_t>(chain), "training"));
  text += untrained;
  text += counts_legend(plan);
  text += memory_text(plan, format_memory, memory_unit);
  if (!plan.counts_missing().empty())
    text += fmt::format(
        "– {} are not known: {}\n",
        plan.memory_missing() == plan.counts_missing() ? "params, FLOPs and memory" : "params and FLOPs",
        plan.counts_missing());
  for (const auto& note : plan.notes()) text += "note: " + note + "\n";
  return text;
}

}  // namespace abl::cli
