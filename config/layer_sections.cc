// SPDX-License-Identifier: Apache-2.0
#include "config/layer_sections.h"

#include "config/embedding_sharing.h"
#include "config/embedding_widths.h"
#include "config/layer_rules.h"
#include "config/sharing.h"

namespace abl::config {
namespace {

template <class Layer>
void leave(Layer&) {}

void settle_embedding(EmbeddingConfig& embedding) {
  settle_widths(embedding);
  settle_sharing(embedding);
}

void accept(const BlockConfig&, const LayerShape&, const std::string&, std::vector<Problem>&) {}

}  // namespace

const LayerSection<AttentionConfig>& attention_section() {
  static const LayerSection<AttentionConfig> kSection{
      .name = "attention",
      .sentence = "How attention is computed, and which of its matrices are one (MSF).",
      .families = {"simple-vit", "swin"},
      .member = &ModelConfig::attention,
      .fields = attention_fields,
      .settle = [](AttentionConfig& attention) { attention.share = canonical_share(attention.share); },
      .check = check_attention};
  return kSection;
}

const LayerSection<KeyConfig>& key_section() {
  static const LayerSection<KeyConfig> kSection{.name = "key",
                                                .sentence = "How the key is made (manifold key).",
                                                .families = {"key-vit", "swin", "swin-v2"},
                                                .member = &ModelConfig::key,
                                                .fields = key_fields,
                                                .settle = leave<KeyConfig>,
                                                .check = check_key};
  return kSection;
}

const LayerSection<EmbeddingConfig>& embedding_section() {
  static const LayerSection<EmbeddingConfig> kSection{
      .name = "embedding",
      .sentence = "How queries, keys and values are made (SNE).",
      .families = {"xcit"},
      .member = &ModelConfig::embedding,
      .fields = embedding_fields,
      .settle = settle_embedding,
      .check = check_embedding};
  return kSection;
}

const LayerSection<BlockConfig>& block_section() {
  static const LayerSection<BlockConfig> kSection{.name = "block",
                                                  .sentence = "What a block consists of (XCiT).",
                                                  .families = {"xcit"},
                                                  .member = &ModelConfig::block,
                                                  .fields = block_fields,
                                                  .settle = leave<BlockConfig>,
                                                  .check = accept};
  return kSection;
}

void add_new(const std::vector<Problem>& found, std::vector<Problem>& problems) {
  const std::size_t before = problems.size();
  for (const Problem& problem : found) {
    const auto end = problems.begin() + static_cast<std::ptrdiff_t>(before);
    const bool is_told =
        std::any_of(problems.begin(), end, [&](const Problem& told) { return told.path == problem.path; });
    if (!is_told && !is_misspelt(problem.path, problems)) problems.push_back(problem);
  }
}

}  // namespace abl::config
