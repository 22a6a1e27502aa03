// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <functional>

#include "config/model/family.h"
#include "config/model/layer_sections.h"
#include "config/model/shape_rules.h"

namespace abl::config {
namespace {

constexpr std::string_view kXcitKeys[] = {"dim", "depth", "heads", "mlp_ratio", "patch"};
constexpr std::string_view kXcitSections[] = {"embedding", "block"};

/// Source: XCiT Table 1 and its release; named as in timm.
std::vector<Preset> xcit_presets() {
  return {
      {"xcit_nano_12_p16_224", "XCiT-N12/16", {.dim = 128, .depth = 12, .heads = 4, .tokens_norm = false}},
      {"xcit_nano_12_p8_224",
       "XCiT-N12/8",
       {.dim = 128, .depth = 12, .heads = 4, .patch = 8, .tokens_norm = false}},
      {"xcit_tiny_12_p16_224", "XCiT-T12/16", {.dim = 192, .depth = 12, .heads = 4}},
      {"xcit_tiny_12_p8_224", "XCiT-T12/8", {.dim = 192, .depth = 12, .heads = 4, .patch = 8}},
      {"xcit_tiny_24_p16_224", "XCiT-T24/16", {.dim = 192, .depth = 24, .heads = 4, .eta = 1e-5}},
      {"xcit_tiny_24_p8_224", "XCiT-T24/8", {.dim = 192, .depth = 24, .heads = 4, .patch = 8, .eta = 1e-5}},
      {"xcit_small_12_p16_224", "XCiT-S12/16", {.dim = 384, .depth = 12, .heads = 8}},
      {"xcit_small_12_p8_224", "XCiT-S12/8", {.dim = 384, .depth = 12, .heads = 8, .patch = 8}},
      {"xcit_small_24_p16_224", "XCiT-S24/16", {.dim = 384, .depth = 24, .heads = 8, .eta = 1e-5}},
      {"xcit_small_24_p8_224", "XCiT-S24/8", {.dim = 384, .depth = 24, .heads = 8, .patch = 8, .eta = 1e-5}},
      {"xcit_medium_24_p16_224", "XCiT-M24/16", {.dim = 512, .depth = 24, .heads = 8, .eta = 1e-5}},
      {"xcit_medium_24_p8_224", "XCiT-M24/8", {.dim = 512, .depth = 24, .heads = 8, .patch = 8, .eta = 1e-5}},
      {"xcit_large_24_p16_224", "XCiT-L24/16", {.dim = 768, .depth = 24, .heads = 16, .eta = 1e-5}},
      {"xcit_large_24_p8_224", "XCiT-L24/8", {.dim = 768, .depth = 24, .heads = 16, .patch = 8, .eta = 1e-5}},
  };
}

const std::vector<Field<ModelConfig>>& xcit_fields() {
  using M = ModelConfig;
  static const std::vector<Field<M>> kFields{
      {.name = "patches",
       .member = choice<&M::patches>(),
       .sentence = "What makes tokens of patches: convolutions of stride 2, or one linear layer."},
      {.name = "eta", .member = &M::eta, .sentence = "Initial value of LayerScale.", .range = kPositive},
      {.name = "tokens_norm",
       .member = &M::tokens_norm,
       .sentence = "Whether class attention normalises all tokens, or the class token alone."},
      {.name = "class_blocks",
       .member = &M::class_blocks,
       .sentence = "Number of blocks of class attention.",
       .range = {1, 100}},
  };
  return kFields;
}

bool not_over_channels(const models::XcitChoice& block) {
  return block.attention != models::XcitAttention::kChannels;
}

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

constexpr int kMostEmbeddingLayers = 4;

/// For each layer of an embedding whether queries, keys and values share it. None does where the text is
/// wrong.
std::vector<bool> shared_layers(const EmbeddingSpelling& embedding) {
  std::string message;
  const auto shared = parse_layers(embedding.shared_layers, embedding.depth, message);
  return shared.value_or(std::vector<bool>(static_cast<std::size_t>(embedding.depth), false));
}

/// What is wrong with a text that should name the shared layers of an embedding; empty where nothing is.
std::string shared_error(const std::string& shared) {
  std::string message;
  parse_layers(shared, kMostEmbeddingLayers, message, "an embedding");
  return message;
}

/// The shared layers that the kind stands for: none, the last, all.
std::string shared_by_kind(const EmbeddingSpelling& embedding) {
  std::vector<bool> shared(static_cast<std::size_t>(embedding.depth), embedding.kind == EmbeddingKind::kFSne);
  if (embedding.kind == EmbeddingKind::kPSne) shared.back() = true;
  return layers_text(shared);
}

/// Whether queries, keys and values share layer 1, where only codes tell them apart.
bool shares_first_layer(const EmbeddingSpelling& embedding) { return shared_layers(embedding).front(); }

bool is_linear(const EmbeddingSpelling& e) { return e.kind == EmbeddingKind::kLinear; }

bool has_no_hidden_layer(const EmbeddingSpelling& e) { return is_linear(e) || e.depth == 1; }

bool has_no_codes(const EmbeddingSpelling& e) { return is_linear(e) || !shares_first_layer(e); }

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

/// Of each hidden layer, whether they were given by `width` or by `widths`.
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

/// One form for embeddings that are the same, and from it what is computed. Leaves alone what is wrong.
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

/// A problem where the widths of the hidden layers are not known, or are given twice.
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

void check_embedding(const EmbeddingSpelling& embedding, const LayerShape&, const std::string& path,
                     std::vector<Problem>& problems) {
  if (embedding.kind == EmbeddingKind::kLinear) return;
  std::string message;
  if (!parse_layers(embedding.shared_layers, embedding.depth, message, "the embedding"))
    problems.push_back({path + ".shared", message, {}});
  check_widths(embedding, path, problems);
  if (shares_first_layer(embedding) && embedding.code_size == 0) {
    problems.push_back(
        {path + ".code_size",
         "no codes, but queries, keys and values share layer 1, where only codes tell them apart; "
         "expected at least 1",
         {}});
  }
}

/// XCiT halves the image with each convolution, and starts with as many channels as end in `dim`.
void check_convolutions(const ModelConfig& model, std::vector<Problem>& problems) {
  if (model.patch < 2 || !std::has_single_bit(static_cast<unsigned>(model.patch))) {
    complain(problems, "patch", "{} is not a power of two above 1, which convolutions of stride 2 need",
             model.patch);
  } else if (model.dim % (model.patch / 2) != 0) {
    complain(problems, "dim", "{} is not a multiple of {}, which the convolutions of patches of {} need",
             model.dim, model.patch / 2, model.patch);
  }
}

/// Embeddings of attention that is not there have no effect.
void settle_xcit(ModelConfig& model) {
  for (std::size_t i = 0; i < std::min(model.block.size(), model.embedding.size()); ++i) {
    if (model.block[i].attention == models::XcitAttention::kNone) model.embedding[i] = EmbeddingSpelling{};
  }
}

bool uses_codes_of_model(const EmbeddingSpelling& embedding) {
  return embedding.code_size > 0 && embedding.codes_over_blocks;
}

/// Blocks that use the codes of the model use the same.
void check_same_codes(const ModelConfig& model, std::vector<Problem>& problems) {
  const auto first = std::ranges::find_if(model.embedding, uses_codes_of_model);
  const auto other = std::find_if(first, model.embedding.end(), [&](const EmbeddingSpelling& embedding) {
    return uses_codes_of_model(embedding) &&
           (embedding.code_size != first->code_size || embedding.code_deviation != first->code_deviation);
  });
  if (other == model.embedding.end()) return;
  problems.push_back(
      {"model.embedding",
       fmt::format("blocks {} and {} use the codes of the model but differ in code_size or code_deviation; "
                   "expected the same, or codes: block",
                   first - model.embedding.begin() + 1, other - model.embedding.begin() + 1),
       {}});
}

void check_xcit_sizes(const ModelConfig& model, int image_size, std::vector<Problem>& problems) {
  check_patches(model, image_size, problems);
  if (model.patches == models::PatchProjection::kConvolutions) check_convolutions(model, problems);
  check_heads(model, problems);
}

}  // namespace

const LayerSection<EmbeddingSpelling>& embedding_section() {
  static const LayerSection<EmbeddingSpelling> kSection{
      .name = "embedding",
      .sentence = "How queries, keys and values are made (SNE).",
      .member = &ModelConfig::embedding,
      .fields = embedding_fields,
      .settle = settle_embedding,
      .check = check_embedding};
  return kSection;
}

const LayerSection<models::XcitChoice>& block_section() {
  static const LayerSection<models::XcitChoice> kSection{
      .name = "block",
      .sentence = "What a block consists of (XCiT).",
      .member = &ModelConfig::block,
      .fields = block_fields,
  };
  return kSection;
}

extern constinit const Family kXcitFamily{
    .place = 6,
    .name = "xcit",
    .sentence = "XCiT: attention over channels, local patch interaction, class attention at the end",
    .keys = kXcitKeys,
    .sections = kXcitSections,
    .adds_positions = true,
    .maps = MapsOf::kLayers,
    .describes_images = true,
    .presets = xcit_presets,
    .own_fields = xcit_fields,
    .layers = [](const ModelConfig& model) { return model.depth; },
    .has_batch_norm =
        [](const ModelConfig& model) {
          return model.patches == models::PatchProjection::kConvolutions ||
                 std::ranges::any_of(model.block, &models::XcitChoice::local_patch_interaction);
        },
    .settle = settle_xcit,
    .check_layers = check_same_codes,
    .check_sizes = check_xcit_sizes,
};

}  // namespace abl::config
