// SPDX-License-Identifier: Apache-2.0
#include "config/fields.h"

#include "config/sharing.h"

namespace abl::config {
namespace {

bool no_attention(const AttentionConfig& a) { return a.kernel == "none"; }

bool weight_is_free(const AttentionConfig& a) { return !is_shared(a.share, kWeight); }

}  // namespace

const std::vector<Field<AttentionConfig>>& attention_fields() {
  using A = AttentionConfig;
  static const std::vector<Field<A>> kFields{
      {.name = "kernel",
       .member = &A::kernel,
       .sentence = "What compares queries with keys: their product, a Gaussian of their distance (MSF), or "
                   "no attention branch at all.",
       .choices = {"dot", "gaussian", "none"}},
      {.name = "probe",
       .member = &A::probe,
       .sentence = "Where the PROBE is subtracted: before WEIGHT (MSF eq. 12), as a matrix of its own after "
                   "WEIGHT (eq. 14), or nowhere.",
       .choices = {"none", "inside", "outside"},
       .inert = no_attention,
       .inert_when = "kernel is none"},
      {.name = "share",
       .member = &A::share,
       .sentence = "The matrix of QUERY, KEY, VALUE, PROBE and WEIGHT, a letter each in this order; equal "
                   "letters share one matrix; `-` = no PROBE.",
       .form = share_error,
       .derived = [](const A& a) { return Json(a.probe == "none" ? "QKV-W" : "QKVPW"); },
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
       .member = &A::layout,
       .sentence = "How the outputs of the groups fill the heads (MSF Figure 2): in turns, in blocks of each "
                   "projection, or in blocks over all projections side by side (the release).",
       .choices = {"interleaved", "block", "fused-block"},
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

}  // namespace abl::config
