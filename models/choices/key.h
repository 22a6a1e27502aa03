// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "base/enum_names.h"

namespace abl::models {

/// How the key is made; of a manifold key, how its charts become one key.
enum class KeyMethod {
  kLinear,    ///< by a linear layer: no manifold key
  kSpatialK,  ///< a linear layer over all charts of a token
  kKua,       ///< the same, with context broadcasting before it
  kSimpleK,   ///< the convolution itself: it is dense and leaves no charts
  kVanillaK,  ///< the mean over the charts, with context broadcasting before it
};

constexpr std::string_view name_of(KeyMethod method) {
  switch (method) {
    case KeyMethod::kLinear:
      return "linear";
    case KeyMethod::kSpatialK:
      return "spatialk";
    case KeyMethod::kKua:
      return "kua";
    case KeyMethod::kSimpleK:
      return "simplek";
    case KeyMethod::kVanillaK:
      return "vanillak";
  }
  return {};
}

/// What context broadcasting adds to the charts.
enum class Broadcasting {
  kNone,
  kOverAll,     ///< the mean over charts and tokens: eq. 4. The same for every token, so softmax removes it.
  kOverCharts,  ///< the mean over the charts at each token: what the paper's prose says
};

constexpr std::string_view name_of(Broadcasting broadcasting) {
  switch (broadcasting) {
    case Broadcasting::kNone:
      return "none";
    case Broadcasting::kOverAll:
      return "all";
    case Broadcasting::kOverCharts:
      return "charts";
  }
  return {};
}

/// How N tokens in H charts become the H·N channels of the convolution.
enum class ChartOrder {
  kChartMajor,    ///< chart after chart: a group of the convolution is a chart, as the text says
  kPlainReshape,  ///< token after token: what Algorithm 1 prints; groups then cut across charts
};

constexpr std::string_view name_of(ChartOrder order) {
  switch (order) {
    case ChartOrder::kChartMajor:
      return "chart-major";
    case ChartOrder::kPlainReshape:
      return "plain-reshape";
  }
  return {};
}

/// The ablated choices of one layer's key; all but the method are a manifold key's.
struct KeyChoice {
  KeyMethod method = KeyMethod::kLinear;
  std::int64_t charts = 8;
  std::optional<Broadcasting> broadcasting{};  ///< nothing: the method's own
  ChartOrder order = ChartOrder::kChartMajor;
  double gamma = 1.0;     ///< initial value of Γ
  double gamma_cb = 1.0;  ///< initial value of γ', where there is broadcasting

  bool operator==(const KeyChoice&) const = default;
};

/// A method's own broadcasting: over all for KUA and VanillaK, else none.
constexpr Broadcasting broadcasting_of(KeyMethod method) {
  switch (method) {
    case KeyMethod::kKua:
    case KeyMethod::kVanillaK:
      return Broadcasting::kOverAll;
    case KeyMethod::kLinear:
    case KeyMethod::kSpatialK:
    case KeyMethod::kSimpleK:
      return Broadcasting::kNone;
  }
  return {};
}

/// The broadcasting that was chosen, or else the method's.
constexpr Broadcasting broadcasting_of(const KeyChoice& choice) {
  return choice.broadcasting.value_or(broadcasting_of(choice.method));
}

}  // namespace abl::models
