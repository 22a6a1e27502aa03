// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "config/model/layer_sections.h"

namespace abl::config {
namespace {

bool is_linear(const models::KeyChoice& key) { return key.method == models::KeyMethod::kLinear; }

const std::vector<Field<models::KeyChoice>>& key_fields() {
  using K = models::KeyChoice;
  static const std::vector<Field<K>> kFields{
      {.name = "method",
       .member = choice<&K::method>(),
       .sentence = "How the key is made: by a linear layer, or by one of the manifold key paper's methods."},
      {.name = "charts",
       .member = &K::charts,
       .sentence = "Number of charts.",
       .range = {1, 1024},
       .inert = is_linear,
       .inert_when = "method is linear"},
      {.name = "broadcasting",
       .member = choice<&K::broadcasting>(),
       .sentence = "What context broadcasting adds: the mean over charts and tokens (eq. 4; softmax removes "
                   "it), the mean over the charts at each token, or nothing.",
       .derived = [](const K& k) { return Json(std::string{name_of(models::broadcasting_of(k.method))}); },
       .derived_text = "all for kua and vanillak, else none",
       .inert = is_linear,
       .inert_when = "method is linear"},
      {.name = "chart_order",
       .member = choice<&K::order>(),
       .sentence = "How tokens and charts become the convolution's channels: chart after chart, as the text "
                   "says, or token after token, as Algorithm 1 is printed.",
       .inert = is_linear,
       .inert_when = "method is linear"},
      {.name = "gamma",
       .member = &K::gamma,
       .sentence = "Initial value of Γ, the scale of the charts.",
       .inert = is_linear,
       .inert_when = "method is linear"},
      {.name = "gamma_cb",
       .member = &K::gamma_cb,
       .sentence = "Initial value of γ', the scale of what is broadcast.",
       .inert =
           [](const K& k) {
             return is_linear(k) || models::broadcasting_of(k) == models::Broadcasting::kNone;
           },
       .inert_when = "broadcasting is none"},
  };
  return kFields;
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

}  // namespace

const LayerSection<models::KeyChoice>& key_section() {
  static const LayerSection<models::KeyChoice> kSection{.name = "key",
                                                        .sentence = "How the key is made (manifold key).",
                                                        .member = &ModelConfig::key,
                                                        .fields = key_fields,
                                                        .check = check_key};
  return kSection;
}

}  // namespace abl::config
