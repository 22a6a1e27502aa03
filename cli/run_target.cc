// SPDX-License-Identifier: Apache-2.0
#include "cli/run_target.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/nearest_name.h"
#include "cli/words.h"

namespace abl::cli {
namespace {

template <class Number>
std::optional<Number> number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// "SWEEP/ROW/SEED" taken apart.
struct Target {
  std::string sweep, row, seed;
};

Target split(const std::string& text) {
  const auto last = text.rfind('/');
  const auto middle = last == std::string::npos || last == 0 ? std::string::npos : text.rfind('/', last - 1);
  if (middle == std::string::npos)
    throw Error{Code::kInvalidArgument,
                fmt::format("invalid run '{}'; expected a number, or SWEEP/ROW/SEED", text)};
  return {text.substr(0, middle), text.substr(middle + 1, last - middle - 1), text.substr(last + 1)};
}

/// The newest run of a trial. Throws: Error{kNotFound} naming the nearest row, or the seeds that there are.
std::uint32_t newest_run(Source& source, const Target& target) {
  const auto detail = source.sweep(target.sweep);
  std::vector<std::string> rows;
  std::string seeds;
  for (const auto& trial : detail.trials()) {
    if (rows.empty() || rows.back() != trial.row()) rows.push_back(trial.row());
    if (trial.row() != target.row) continue;
    const std::string seed = fmt::format("{}", trial.seed());
    seeds += (seeds.empty() ? "" : ", ") + seed;
    if (seed != target.seed) continue;
    if (trial.run() != 0) return trial.run();
    throw Error{Code::kFailedPrecondition,
                fmt::format("{}/{}/{} has no run yet: it is {}{}", target.sweep, target.row, target.seed,
                            word(trial.state()), trial.reason().empty() ? "" : ", " + trial.reason())};
  }
  if (seeds.empty())
    throw Error{Code::kNotFound, fmt::format("sweep {} has no row '{}'{}", target.sweep, target.row,
                                             did_you_mean(target.row, rows))};
  throw Error{Code::kNotFound, fmt::format("row {} of sweep {} has no seed '{}': it has {}", target.row,
                                           target.sweep, target.seed, seeds)};
}

}  // namespace

std::uint32_t run_of(Source& source, const std::string& text) {
  const auto given = number<std::uint32_t>(text);
  return given ? *given : newest_run(source, split(text));
}

}  // namespace abl::cli
