// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>

#include "config/families/layer_sections.h"
#include "config/families/model_section.h"
#include "config/families/sharing.h"
#include "config/families/xcit_sections.h"

namespace abl::config {
namespace {

bool no_attention(const models::AttentionChoice& a) { return a.kernel == models::Kernel::kNone; }

bool weight_is_free(const models::AttentionChoice& a) { return !is_shared(a.share, models::kWeight); }

}  // namespace

const std::vector<Field<models::AttentionChoice>>& attention_fields() {
  using A = models::AttentionChoice;
  static const std::vector<Field<A>> kFields{
      {.name = "kernel",
       .member = choice<&A::kernel>(),
       .sentence = "What compares queries with keys: their product, a Gaussian of their distance (MSF), or "
                   "no attention branch at all."},
      {.name = "probe",
       .member = choice<&A::probe>(),
       .sentence = "Where the PROBE is subtracted: before WEIGHT (MSF eq. 12), as a matrix of its own after "
                   "WEIGHT (eq. 14), or nowhere.",
       .inert = no_attention,
       .inert_when = "kernel is none"},
      {.name = "share",
       .member = &A::share,
       .sentence = "The matrix of QUERY, KEY, VALUE, PROBE and WEIGHT, a letter each in this order; equal "
                   "letters share one matrix; `-` = no PROBE.",
       .form = share_error,
       .derived = [](const A& a) { return Json(a.probe == models::Probe::kNone ? "QKV-W" : "QKVPW"); },
       .derived_text = "QKVPW with a PROBE, QKV-W without",
       .inert = no_attention,
       .inert_when = "kernel is none"},
      {.name = "groups",
       .member = &A::groups,
       .sentence = "Groups of QUERY, KEY, VALUE and an inside PROBE; WEIGHT stays full.",
       .range = {1, 65536},
       .inert = no_attention,
       .inert_when = "kernel is none"},
      {.name = "layout",
       .member = choice<&A::layout>(),
       .sentence = "How the outputs of the groups fill the heads (MSF Figure 2): in turns, in blocks of each "
                   "projection, or in blocks over all projections side by side (the release).",
       .inert = [](const A& a) { return no_attention(a) || a.groups == 1; },
       .inert_when = "groups is 1"},
      {.name = "tied_weight_scale",
       .member = &A::tied_weight_scale,
       .sentence = "The factor before a WEIGHT that is tied to another role (MSF eq. 9 and 11).",
       .range = kPositive,
       .inert = [](const A& a) { return no_attention(a) || weight_is_free(a); },
       .inert_when = "WEIGHT has a matrix of its own"},
  };
  return kFields;
}

namespace {

std::string probe_error(const models::AttentionChoice& attention) {
  const std::string& share = attention.share;
  const bool has_probe = attention.probe != models::Probe::kNone;
  if (has_probe && share[models::kProbe] == '-') {
    return fmt::format(
        "{} has no PROBE but probe is {}; put a letter in the fourth place, or set probe to none", share,
        name_of(attention.probe));
  }
  if (!has_probe && share[models::kProbe] != '-') {
    return fmt::format("{} has a PROBE but probe is none; put - in the fourth place, or set probe to inside",
                       share);
  }
  if (attention.probe == models::Probe::kOutside && is_shared(share, models::kProbe)) {
    return fmt::format("{} shares the PROBE, which is a separate matrix where probe is outside", share);
  }
  return {};
}

std::string division_error(std::int64_t groups, const LayerShape& shape) {
  if (shape.dim % groups != 0)
    return fmt::format("{} groups do not divide the embedding dimension {}", groups, shape.dim);
  if (shape.heads * shape.dim_head % groups != 0) {
    return fmt::format("{} groups do not divide the width of all heads, {} × {}", groups, shape.heads,
                       shape.dim_head);
  }
  return {};
}

/// Layers of Swin in which both the key and the attention are chosen: an attention has one ablation or the
/// other.
void check_one_ablation(const ModelConfig& model, std::vector<Problem>& problems) {
  const std::size_t count = std::min(model.key.size(), model.attention.size());
  std::vector<bool> both(count, false);
  for (std::size_t i = 0; i < count; ++i)
    both[i] =
        model.key[i].method != models::KeyMethod::kLinear && model.attention[i] != models::AttentionChoice{};
  if (std::ranges::find(both, true) == both.end()) return;
  problems.push_back(
      {"model.key",
       fmt::format("in layers {} model.key asks for a key that is not linear, and model.attention for an "
                   "attention that is not the original; one of them must be left as it is",
                   layers_text(both)),
       {}});
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

}  // namespace

void check_attention(const models::AttentionChoice& attention, const LayerShape& shape,
                     const std::string& path, std::vector<Problem>& problems) {
  if (attention.kernel == models::Kernel::kNone) return;
  if (const std::string error = probe_error(attention); !error.empty())
    problems.push_back({path + ".share", error, {}});
  if (const std::string error = division_error(attention.groups, shape); !error.empty())
    problems.push_back({path + ".groups", error, {}});
  if (attention.groups > 1 && is_shared(attention.share, models::kWeight)) {
    problems.push_back(
        {path + ".groups",
         fmt::format("{} groups cannot be combined with a shared WEIGHT ({}); WEIGHT is never grouped",
                     attention.groups, attention.share),
         {}});
  }
}

void check_key(const models::KeyChoice& key, const LayerShape&, const std::string& path,
               std::vector<Problem>& problems) {
  const auto broadcasting = models::broadcasting_of(key);
  if (key.method != models::KeyMethod::kSimpleK || broadcasting == models::Broadcasting::kNone) return;
  problems.push_back(
      {path + ".broadcasting",
       fmt::format("{} is not supported with simplek, whose convolution leaves no charts; expected "
                   "none",
                   name_of(broadcasting)),
       {}});
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

void check_layers(const ModelConfig& model, std::vector<Problem>& problems) {
  check_one_ablation(model, problems);
  check_same_codes(model, problems);
}

}  // namespace abl::config
