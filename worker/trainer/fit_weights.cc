// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/fit_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "base/error.h"

namespace abl::trainer {
namespace {

/// The first of some lines as one, and how many follow.
std::string first_of(const std::string& lines) {
  constexpr std::int64_t kShown = 3;
  const auto count = 1 + std::ranges::count(lines, '\n');
  std::istringstream rest{lines};
  std::string line, text;
  for (std::int64_t shown = 0; shown < kShown && std::getline(rest, line); ++shown)
    text += (shown == 0 ? "" : "; ") + line;
  if (count > kShown) text += fmt::format("; … and {} more", count - kShown);
  return fmt::format("{} {}: {}", count, count == 1 ? "tensor" : "tensors", text);
}

}  // namespace

models::LoadedWeights fit_weights(models::Classifier& model, const models::State& state,
                                  const std::string& what, const models::WeightsOptions& options) {
  try {
    return models::load_weights(model, state, options);
  } catch (const Error& error) {
    if (error.code() != Code::kInvalidArgument) throw;
    throw Error{error.code(), fmt::format("{} does not fit the model in {}", what, first_of(error.what()))};
  }
}

}  // namespace abl::trainer
