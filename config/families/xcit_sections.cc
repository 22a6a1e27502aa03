// SPDX-License-Identifier: Apache-2.0
#include "config/families/xcit_sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "config/families/layer_sections.h"
#include "config/families/model_section.h"

namespace abl::config {
namespace {

bool not_over_channels(const models::XcitChoice& block) {
  return block.attention != models::XcitAttention::kChannels;
}

}  // namespace

const std::vector<Field<models::XcitChoice>>& block_fields() {
  using B = models::XcitChoice;
  static const std::vector<Field<B>> kFields{
      {.name = "attention",
       .member = choice<&B::attention>(),
       .sentence = "What the attention runs over: channels (XCA), tokens, or no attention branch at all."},
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
      {.name = "lpi",
       .member = &B::local_patch_interaction,
       .sentence = "Whether there is a branch of local patch interaction."},
  };
  return kFields;
}

namespace {

enum class CodesOf { kModel, kBlock };

constexpr std::string_view name_of(CodesOf codes) {
  switch (codes) {
    case CodesOf::kModel:
      return "model";
    case CodesOf::kBlock:
      return "block";
  }
  return {};
}

bool is_linear(const EmbeddingSpelling& e) { return e.kind == EmbeddingKind::kLinear; }

bool has_no_hidden_layer(const EmbeddingSpelling& e) { return is_linear(e) || e.depth == 1; }

bool has_no_codes(const EmbeddingSpelling& e) { return is_linear(e) || !shares_first_layer(e); }

}  // namespace

const std::vector<Field<EmbeddingSpelling>>& embedding_fields() {
  using E = EmbeddingSpelling;
  static const std::vector<Field<E>> kFields{
      {.name = "kind",
       .member = choice<&E::kind>(),
       .sentence =
           "How queries, keys and values are made: by one linear layer, or by small networks. These say "
           "what `shared` is by default; the kind that agrees with `shared` is the one that counts."},
      {.name = "depth",
       .member = &E::depth,
       .sentence = "Number of layers of the networks; 1: a linear layer for each role.",
       .range = {1, kMostEmbeddingLayers},
       .inert = is_linear,
       .inert_when = "kind is linear"},
      {.name = "width",
       .member = &E::width,
       .sentence = "Width of the hidden layers.",
       .range = {1, 65536},
       .derived_text = "required where depth is above 1, unless `widths` says it",
       .inert = has_no_hidden_layer,
       .inert_when = "kind is linear or depth is 1"},
      {.name = "widths",
       .member = &E::listed_widths,
       .sentence = "Width of each hidden layer, from the first, where they differ.",
       .range = {1, 65536},
       .inert = has_no_hidden_layer,
       .inert_when = "kind is linear or depth is 1"},
      {.name = "shared",
       .member = &E::shared_layers,
       .sentence = "The layers, from 1, that queries, keys and values share: `2`, `1-2` or `none`.",
       .form = shared_error,
       .derived = [](const E& e) { return Json(shared_by_kind(e)); },
       .derived_text = "none for sne, the last for p-sne, all for f-sne",
       .inert = is_linear,
       .inert_when = "kind is linear"},
      {.name = "code_size",
       .member = &E::code_size,
       .sentence = "Size of the codes that tell the roles apart.",
       .range = {0, 65536},
       .derived_text = "required where layer 1 is shared",
       .inert = has_no_codes,
       .inert_when = "layer 1 is not shared"},
      {.name = "codes",
       .member = Choice<E>{
           .names = abl::names_of<CodesOf>,
           .get = [](const E& e) { return name_of(e.codes_over_blocks ? CodesOf::kModel : CodesOf::kBlock); },
           .set = [](E& e,
                     std::string_view name) { e.codes_over_blocks = name == name_of(CodesOf::kModel); }},
       .sentence = "Codes of the whole model, or of each block.",
       .inert = has_no_codes,
       .inert_when = "layer 1 is not shared"},
      {.name = "code_deviation",
       .member = &E::code_deviation,
       .sentence = "Standard deviation of the codes' initial values.",
       .inert = has_no_codes,
       .inert_when = "layer 1 is not shared"},
      {.name = "bias",
       .member = &E::bias,
       .sentence = "Whether the layers have biases.",
       .inert = is_linear,
       .inert_when = "kind is linear"},
  };
  return kFields;
}

std::string shared_error(const std::string& shared) {
  std::string message;
  parse_layers(shared, kMostEmbeddingLayers, message, "an embedding");
  return message;
}

std::string shared_by_kind(const EmbeddingSpelling& embedding) {
  std::vector<bool> shared(static_cast<std::size_t>(embedding.depth), embedding.kind == EmbeddingKind::kFSne);
  if (embedding.kind == EmbeddingKind::kPSne) shared.back() = true;
  return layers_text(shared);
}

bool shares_first_layer(const EmbeddingSpelling& embedding) { return shared_layers(embedding).front(); }

namespace {

/// The one form of embeddings that are the same: the shared layers in their shortest text, and the kind that
/// stands for them (p-sne where none does). Leaves alone what names layers that do not exist.
void settle_sharing(EmbeddingSpelling& embedding) {
  std::string message;
  const auto shared = parse_layers(embedding.shared_layers, embedding.depth, message);
  if (embedding.kind == EmbeddingKind::kLinear || !shared) return;
  embedding.shared_layers = layers_text(*shared);
  const auto count = std::ranges::count(*shared, true);
  embedding.kind = count == 0                 ? EmbeddingKind::kSne
                   : count == embedding.depth ? EmbeddingKind::kFSne
                                              : EmbeddingKind::kPSne;
}

std::size_t hidden_layers(const EmbeddingSpelling& embedding) {
  return static_cast<std::size_t>(embedding.depth - 1);
}

std::vector<int> hidden_widths(const EmbeddingSpelling& embedding) {
  if (!embedding.listed_widths.empty()) return embedding.listed_widths;
  return std::vector<int>(hidden_layers(embedding), embedding.width);
}

/// The one form of embeddings that are the same: equal widths as `width`. Leaves alone what is wrong.
void settle_widths(EmbeddingSpelling& embedding) {
  auto& widths = embedding.listed_widths;
  if (widths.empty() || embedding.width != 0 || widths.size() != hidden_layers(embedding)) return;
  if (std::ranges::adjacent_find(widths, std::not_equal_to{}) != widths.end()) return;
  embedding.width = widths.front();
  widths.clear();
}

}  // namespace

void settle_embedding(EmbeddingSpelling& embedding) {
  settle_widths(embedding);
  settle_sharing(embedding);
  embedding.widths.clear();
  embedding.shared.clear();
  if (is_linear(embedding)) return;
  const auto widths = hidden_widths(embedding);
  embedding.widths.assign(widths.begin(), widths.end());
  embedding.shared = shared_layers(embedding);
}

void check_widths(const EmbeddingSpelling& embedding, const std::string& path,
                  std::vector<Problem>& problems) {
  const auto expected = hidden_layers(embedding), given = embedding.listed_widths.size();
  if (expected == 0) return;
  if (embedding.width == 0 && given == 0) {
    problems.push_back({path + ".width",
                        fmt::format("missing; expected the width of the hidden layers, at least 1, for an "
                                    "embedding of {} layers",
                                    embedding.depth),
                        {}});
  } else if (embedding.width != 0 && given != 0) {
    problems.push_back({path + ".widths",
                        fmt::format("given beside width {}; expected one of the two", embedding.width),
                        {}});
  } else if (given != 0 && given != expected) {
    problems.push_back(
        {path + ".widths",
         fmt::format("{} entries for an embedding of {} layers; expected one for each of its {} "
                     "hidden layers",
                     given, embedding.depth, expected),
         {}});
  }
}

}  // namespace abl::config
