// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "base/enum_names.h"
#include "models/choices/embedding.h"

namespace abl::models {

/// What the attention of a block runs over.
enum class XcitAttention {
  kChannels,  ///< cross-covariance attention: XCiT's own
  kTokens,    ///< the usual attention
  kNone,      ///< no attention: its branch is left out of the block, with its norm and scale
};

constexpr std::string_view name_of(XcitAttention attention) {
  switch (attention) {
    case XcitAttention::kChannels:
      return "channels";
    case XcitAttention::kTokens:
      return "tokens";
    case XcitAttention::kNone:
      return "none";
  }
  return {};
}

/// The ablated choices of one block, by default XCiT's.
struct XcitChoice {
  XcitAttention attention = XcitAttention::kChannels;
  std::optional<EmbeddingChoice> embedding;  ///< of queries, keys and values; none: one linear layer
  bool l2_norm = true;                       ///< of queries and keys, of attention over channels
  bool learned_temperature = true;           ///< of attention over channels; else it stays as it starts
  double temperature = 1.0;             ///< of attention over channels: factor of the scores, at the start
  bool local_patch_interaction = true;  ///< else its branch is left out, with its norm and scale

  bool operator==(const XcitChoice&) const = default;
};

/// How a patch becomes a token.
enum class PatchProjection {
  kConvolutions,  ///< 3 x 3 convolutions of stride 2, as many as halvings make up the patch
  kLinear,        ///< one linear map of the patch's pixels
};

constexpr std::string_view name_of(PatchProjection projection) {
  switch (projection) {
    case PatchProjection::kConvolutions:
      return "convolutions";
    case PatchProjection::kLinear:
      return "linear";
  }
  return {};
}

}  // namespace abl::models
