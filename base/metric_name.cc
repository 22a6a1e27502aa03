// SPDX-License-Identifier: Apache-2.0
#include "base/metric_name.h"

#include <algorithm>
#include <optional>
#include <span>

namespace abl {
namespace {

using Words = std::span<const std::string_view>;

constexpr std::string_view kRates[] = {"per", "throughput"};
constexpr std::string_view kTimesAndSizes[] = {"time", "seconds", "ms", "latency", "memory"};
constexpr std::string_view kLow[] = {"loss", "error",      "err", "nll", "mae", "mse",    "rmse",
                                     "ppl",  "perplexity", "fid", "wer", "cer", "params", "flops"};
constexpr std::string_view kNeither[] = {"lr"};

bool is_one_of(std::string_view word, Words words) { return std::ranges::find(words, word) != words.end(); }

/// The first of the name's words, as in "val/loss" or "step_time", of which `decide` says something.
template <class Decide>
auto first_of(std::string_view name, Decide decide) -> decltype(decide(name)) {
  while (!name.empty()) {
    const std::size_t end = std::min(name.find_first_of("/_-. "), name.size());
    if (const auto decided = decide(name.substr(0, end))) return decided;
    name.remove_prefix(std::min(end + 1, name.size()));
  }
  return std::nullopt;
}

}  // namespace

Better better_by_name(std::string_view metric) {
  const auto decided = first_of(metric, [](std::string_view word) -> std::optional<Better> {
    if (is_one_of(word, kRates)) return Better::kHigher;  // images_per_s, but not time_per_image
    if (is_one_of(word, kTimesAndSizes) || is_one_of(word, kLow)) return Better::kLower;
    if (is_one_of(word, kNeither)) return Better::kNone;
    return std::nullopt;
  });
  return decided.value_or(Better::kHigher);
}

std::string_view to_text(Better better) {
  switch (better) {
    case Better::kHigher:
      return "higher";
    case Better::kLower:
      return "lower";
    case Better::kNone:
      return "none";
  }
  return {};
}

bool tells_of_the_machine(std::string_view metric) {
  return first_of(metric,
                  [](std::string_view word) -> std::optional<bool> {
                    if (is_one_of(word, kRates) || is_one_of(word, kTimesAndSizes)) return true;
                    return std::nullopt;
                  })
      .value_or(false);
}

}  // namespace abl
