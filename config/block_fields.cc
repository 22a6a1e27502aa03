// SPDX-License-Identifier: Apache-2.0
#include "config/fields.h"

namespace abl::config {
namespace {

bool not_over_channels(const BlockConfig& block) { return block.attention != "channels"; }

}  // namespace

const std::vector<Field<BlockConfig>>& block_fields() {
  using B = BlockConfig;
  static const std::vector<Field<B>> kFields{
      {.name = "attention",
       .member = &B::attention,
       .sentence = "What the attention runs over: channels (XCA), tokens, or no attention branch at all.",
       .choices = {"channels", "tokens", "none"}},
      {.name = "l2_norm",
       .member = &B::l2_norm,
       .sentence = "Whether queries and keys are normalised.",
       .inert = not_over_channels,
       .inert_when = "attention is not channels"},
      {.name = "learned_temperature",
       .member = &B::learned_temperature,
       .sentence = "Whether the temperature is learned; else it stays as it starts.",
       .inert = not_over_channels,
       .inert_when = "attention is not channels"},
      {.name = "temperature",
       .member = &B::temperature,
       .sentence = "Initial value of the temperature; it multiplies the scores (1/τ).",
       .range = kPositive,
       .inert = not_over_channels,
       .inert_when = "attention is not channels"},
      {.name = "lpi", .member = &B::lpi, .sentence = "Whether there is a branch of local patch interaction."},
  };
  return kFields;
}

}  // namespace abl::config
