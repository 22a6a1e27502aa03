// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/enum_names.h"

namespace abl::models {

/// How a query weighs the keys, before the softmax with temperature √d.
enum class Kernel {
  kDot,       ///< q·k: the original transformer (MSF eq. 1)
  kGaussian,  ///< -½‖k-q‖²: mean shift (MSF eq. 11 and 12)
  kNone,      ///< no attention: the branch is left out of the layer, the MLP stays
};

constexpr std::string_view name_of(Kernel kernel) {
  switch (kernel) {
    case Kernel::kDot:
      return "dot";
    case Kernel::kGaussian:
      return "gaussian";
    case Kernel::kNone:
      return "none";
  }
  return {};
}

/// Where the PROBE acts.
enum class Probe {
  kNone,
  kInside,   ///< subtracted before WEIGHT (MSF eq. 12)
  kOutside,  ///< one dense dim × dim matrix on the normalised tokens, subtracted after WEIGHT (MSF eq. 14)
};

constexpr std::string_view name_of(Probe probe) {
  switch (probe) {
    case Probe::kNone:
      return "none";
    case Probe::kInside:
      return "inside";
    case Probe::kOutside:
      return "outside";
  }
  return {};
}

/// Which outputs a group feeds.
/// Source: MSF section 2.3, Figure 2.
enum class Layout {
  kInterleaved,  ///< output j belongs to group j mod G: every head is filled from all groups
  kBlock,        ///< output j belongs to group j div (out/G): a head is filled from one group
  kFusedBlock,   ///< as kBlock, over the outputs of all projections side by side, as MSF's release has them
};

constexpr std::string_view name_of(Layout layout) {
  switch (layout) {
    case Layout::kInterleaved:
      return "interleaved";
    case Layout::kBlock:
      return "block";
    case Layout::kFusedBlock:
      return "fused-block";
  }
  return {};
}

/// The ablated choices of one layer's attention. The papers' points: original = dot + none, MSF = gaussian +
/// inside, residual = gaussian + outside, Gauss-Orig = gaussian + none.
struct AttentionChoice {
  Kernel kernel = Kernel::kDot;
  Probe probe = Probe::kNone;
  /// The matrix of QUERY, KEY, VALUE, PROBE and WEIGHT, in this order; equal letters share it; '-' = no
  /// PROBE.
  std::string share = "QKV-W";
  std::int64_t groups = 1;               ///< of QUERY, KEY, VALUE and an inside PROBE; WEIGHT stays full
  Layout layout = Layout::kInterleaved;  ///< without effect when groups = 1
  double tied_weight_scale = 1.0;        ///< before a WEIGHT that is tied to another role (MSF eq. 9 and 11)

  bool operator==(const AttentionChoice&) const = default;
};

/// The places of the roles in `AttentionChoice::share`.
enum Role { kQuery, kKey, kValue, kProbe, kWeight };

}  // namespace abl::models
