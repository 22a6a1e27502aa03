// SPDX-License-Identifier: Apache-2.0
// Linear attention (Katharopoulos et al., ICML 2020, eq. 6): φ(Q) (φ(K)ᵀ V) in each head, normalised by φ(Q)
// Σ φ(K).

#include "models/layers/layers.h"
#include "models/plugins/plugin.h"

namespace {

using abl::models::AttentionSite;
using abl::models::Linear;
using abl::models::PluginSettings;

class LinearAttentionImpl : public abl::models::TokenMixer {
 public:
  LinearAttentionImpl(const AttentionSite& site, const PluginSettings& settings)
      : heads_{site.heads}, uses_elu_{settings.text("feature_map") == "elu"}, eps_{settings.number("eps")} {
    qkv_ = register_module("qkv", Linear{site.dim, 3 * site.dim, site.device});
    proj_ = register_module("proj", Linear{site.dim, site.dim, site.device});
  }

  // x [B, N, dim] -> [B, N, dim]
  torch::Tensor forward(const torch::Tensor& x) override {
    const auto B = x.size(0), N = x.size(1), D = x.size(2), d = D / heads_;
    const auto qkv = qkv_(x).view({B, N, 3, heads_, d}).permute({2, 0, 3, 1, 4});  // [3, B, h, N, d]
    const auto Q = positive(qkv[0]), K = positive(qkv[1]), V = qkv[2];
    const auto mixed = Q.matmul(K.mT().matmul(V));                                 // [B, h, N, d]
    const auto norm = Q.matmul(K.sum(-2, /*keepdim=*/true).mT()).clamp_min(eps_);  // [B, h, N, 1]
    return proj_((mixed / norm).transpose(1, 2).reshape({B, N, D}));
  }

 private:
  torch::Tensor positive(const torch::Tensor& x) const {
    return uses_elu_ ? torch::elu(x) + 1 : torch::relu(x);
  }

  const std::int64_t heads_;
  const bool uses_elu_;
  const double eps_;
  Linear qkv_{nullptr}, proj_{nullptr};
};

}  // namespace

ABLATE_PLUGIN(abl::models::Plugin{
    .sentence = "Linear attention: cost linear in the number of tokens",
    .keys = {{.name = "feature_map",
              .sentence = "What makes queries and keys positive.",
              .value = std::string{"elu"},
              .choices = {"elu", "relu"}},
             {.name = "eps", .sentence = "Least value of the normaliser.", .value = 1e-6, .low = 0}},
    .attention = [](const AttentionSite& site, const PluginSettings& settings) {
      return std::make_shared<LinearAttentionImpl>(site, settings);
    }})
