// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "config/model/layer_sections.h"
#include "config/model/sharing.h"

namespace abl::config {
namespace {

bool no_attention(const models::AttentionChoice& a) { return a.kernel == models::Kernel::kNone; }

bool weight_is_free(const models::AttentionChoice& a) { return !is_shared(a.share, models::kWeight); }

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

}  // namespace

const LayerSection<models::AttentionChoice>& attention_section() {
  static const LayerSection<models::AttentionChoice> kSection{
      .name = "attention",
      .sentence = "How attention is computed, and which of its matrices are one (MSF).",
      .member = &ModelConfig::attention,
      .fields = attention_fields,
      .settle =
          [](models::AttentionChoice& attention) { attention.share = canonical_share(attention.share); },
      .check = check_attention};
  return kSection;
}

}  // namespace abl::config
