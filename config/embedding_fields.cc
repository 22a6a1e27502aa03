// SPDX-License-Identifier: Apache-2.0
#include "config/fields.h"

#include "config/embedding_sharing.h"

namespace abl::config {
namespace {

bool is_linear(const EmbeddingConfig& e) { return e.kind == "linear"; }

bool has_no_hidden_layer(const EmbeddingConfig& e) { return is_linear(e) || e.layers == 1; }

bool has_no_codes(const EmbeddingConfig& e) { return is_linear(e) || !shares_first_layer(e); }

}  // namespace

const std::vector<Field<EmbeddingConfig>>& embedding_fields() {
  using E = EmbeddingConfig;
  static const std::vector<Field<E>> kFields{
      {.name = "kind",
       .member = &E::kind,
       .sentence =
           "How queries, keys and values are made: by one linear layer, or by small networks. These say "
           "what `shared` is by default; the kind that agrees with `shared` is the one that counts.",
       .choices = {"linear", "sne", "p-sne", "f-sne"}},
      {.name = "depth",
       .member = &E::layers,
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
       .member = &E::widths,
       .sentence = "Width of each hidden layer, from the first, where they differ.",
       .range = {1, 65536},
       .inert = has_no_hidden_layer,
       .inert_when = "kind is linear or depth is 1"},
      {.name = "shared",
       .member = &E::shared,
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
       .member = &E::codes,
       .sentence = "Codes of the whole model, or of each block.",
       .choices = {"model", "block"},
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

}  // namespace abl::config
