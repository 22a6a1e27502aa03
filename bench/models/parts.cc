// SPDX-License-Identifier: Apache-2.0
#include "bench/models/parts.h"

#include "models/attention/manifold_key.h"
#include "models/attention/shared_attention.h"
#include "models/attention/token_attention.h"
#include "models/attention/window_attention.h"
#include "models/attention/window_cosine_attention.h"
#include "models/attention/xcit_attention.h"
#include "models/backbones/efficient_net.h"
#include "models/backbones/reg_net.h"
#include "models/backbones/resnet.h"
#include "models/backbones/swin.h"
#include "models/backbones/vit.h"
#include "models/backbones/xcit.h"
#include "models/embedding/patches.h"
#include "models/layers/conv_norm_act.h"
#include "models/layers/mlp.h"
#include "models/projection/qkv_projection.h"

namespace abl::bench {
namespace {

using namespace abl::models;
using torch::Tensor;

Tensor noise(torch::IntArrayRef shape) { return torch::randn(shape, torch::requires_grad()); }

template <class Holder>
Subject part(Holder holder, torch::IntArrayRef shape) {
  return {holder.ptr(), noise(shape), [holder](const Tensor& x) { return holder(x); }};
}
/// Of tokens that lie in a map of 14 x 14.
template <class Holder>
Subject part_of_map(Holder holder, torch::IntArrayRef shape) {
  return {holder.ptr(), noise(shape), [holder](const Tensor& x) { return holder(x, 14, 14); }};
}

Subject attention(const AttentionChoice& choice) {
  return part(SharedAttention{AttentionOptions{.dim = 384, .heads = 6, .choice = choice}}, {8, 196, 384});
}
AttentionChoice mean_shift(const std::string& share, std::int64_t groups = 1,
                           Layout layout = Layout::kInterleaved) {
  return {.kernel = Kernel::kGaussian,
          .probe = Probe::kInside,
          .share = share,
          .groups = groups,
          .layout = layout};
}
Subject key(KeyMethod method) {
  return part(ManifoldKey{ManifoldKeyOptions{.dim = 384, .tokens = 197, .choice = {.method = method}}},
              {4, 197, 384});
}
Subject embedding(const EmbeddingChoice& choice) {
  const Codes codes = choice.code_size > 0 ? Codes{choice} : Codes{nullptr};
  return part(NonLinearQkv{192, choice, codes}, {16, 196, 192});
}

/// Windows without a mask: 64 in each of 8 images.
Subject windows(const std::shared_ptr<WindowAttentionImpl>& attention, std::int64_t tokens) {
  return {attention, noise({8 * 64, tokens, 96}),
          [attention](const Tensor& x) { return attention->forward(x, Tensor{}); }};
}
template <class Kind, class... Choice>
Subject swin_windows(const Choice&... choice) {
  const WindowAttentionOptions options{.dim = 96, .heads = 3, .window = 7};
  return windows(std::make_shared<Kind>(options, choice...), options.tokens());
}
template <class Kind, class... Choice>
Subject swin_v2_windows(const Choice&... choice) {
  const WindowAttentionOptions options{.dim = 96, .heads = 3, .window = 8};
  return windows(std::make_shared<Kind>(options, choice...), options.tokens());
}

/// The second block of Swin-T, whose windows are shifted.
Subject swin_block() {
  const Swin model{SwinOptions{.depths = {2}, .heads = {3}, .attention = {2, QkvChoice{}}}};
  const auto block = std::dynamic_pointer_cast<SwinBlockImpl>(model->named_modules()["layers.0.blocks.1"]);
  return {block, noise({4, 56, 56, 96}), [block](const Tensor& map) { return block->forward(map); }};
}
Subject bottleneck(std::int64_t width, std::int64_t groups) {
  return part(ResNetBlock{ResNetBlockOptions{.in = 256, .width = width, .out = 256, .groups = groups}},
              {4, 256, 56, 56});
}

}  // namespace

const std::map<std::string, std::function<Subject()>>& parts() {
  static const std::map<std::string, std::function<Subject()>> kParts{
      {"attention-original", [] { return attention({}); }},
      {"attention-original-eager", [] { return attention({}); }},  // the same; Python's side is another
      {"attention-original-groups-2", [] { return attention({.groups = 2}); }},
      {"attention-msf", [] { return attention(mean_shift("QKVPW")); }},
      {"attention-msf-qkkkw", [] { return attention(mean_shift("QKKKW")); }},
      {"attention-msf-groups-2", [] { return attention(mean_shift("QKVPW", 2)); }},
      {"attention-msf-groups-2-block", [] { return attention(mean_shift("QKVPW", 2, Layout::kBlock)); }},
      {"key-spatialk", [] { return key(KeyMethod::kSpatialK); }},
      {"key-kua", [] { return key(KeyMethod::kKua); }},
      {"key-simplek", [] { return key(KeyMethod::kSimpleK); }},
      {"key-vanillak", [] { return key(KeyMethod::kVanillaK); }},
      {"embedding-sne",
       [] {
         return embedding({.widths = {96}, .shared = {false, false}});
       }},
      {"embedding-p-sne",
       [] {
         return embedding({.widths = {144}, .shared = {false, true}});
       }},
      {"embedding-f-sne-8",
       [] {
         return embedding({.widths = {192}, .shared = {true, true}, .code_size = 8});
       }},
      {"xca",
       [] {
         const CrossCovarianceOptions options{.dim = 192, .heads = 4};
         return part(CrossCovariance{options}, {16, 196, 192});
       }},
      {"lpi",
       [] {
         return part_of_map(LocalPatchInteraction{192}, {16, 196, 192});
       }},
      {"class-attention",
       [] {
         return part(ClassAttention{192, 4}, {16, 197, 192});
       }},
      {"self-attention",
       [] {
         return part(TokenAttention{QkvOptions{.dim = 384}, 6}, {8, 197, 384});
       }},
      {"window-attention", [] { return swin_windows<WindowQkvAttentionImpl>(); }},
      {"window-attention-msf", [] { return swin_windows<WindowSharedAttentionImpl>(mean_shift("QKVPW")); }},
      {"window-attention-key",
       [] { return swin_windows<WindowKeyAttentionImpl>(KeyChoice{.method = KeyMethod::kSpatialK}); }},
      {"window-cosine-attention", [] { return swin_v2_windows<WindowCosineAttentionImpl>(); }},
      {"window-cosine-attention-key",
       [] {
         return swin_v2_windows<WindowCosineKeyAttentionImpl>(KeyChoice{.method = KeyMethod::kSpatialK});
       }},
      {"patch-embedding",
       [] {
         return part(PatchEmbed{224, 16, 384}, {8, 3, 224, 224});
       }},
      {"conv-patches",
       [] {
         return part(ConvPatches{192, 16, PatchProjection::kConvolutions}, {8, 3, 224, 224});
       }},
      {"patch-merging",
       [] {
         return part(SwinPatchMerging{96, NormPlace::kBefore}, {8, 56, 56, 96});
       }},
      {"mlp",
       [] {
         return part(Mlp{384, 1536}, {8, 197, 384});
       }},
      {"squeeze-excite",
       [] {
         return part(SqueezeExcite{SqueezeExciteOptions{.channels = 144, .reduced = 36}}, {8, 144, 56, 56});
       }},
      {"resnet-bottleneck", [] { return bottleneck(64, 1); }},
      {"resnext-bottleneck", [] { return bottleneck(128, 32); }},
      {"mbconv",
       [] {
         const EfficientNetStageOptions options{.width = 40, .kernel = 5};
         return part(MobileBottleneck{40, options}, {8, 40, 28, 28});
       }},
      {"regnet-block",
       [] {
         const RegNetBlockOptions options{.in = 224, .width = 224, .stride = 1, .group_width = 112};
         return part(RegNetBlock{options}, {2, 224, 56, 56});
       }},
      {"vit-block",
       [] {
         return part(VitBlock{VitOptions{}}, {8, 197, 384});
       }},
      {"swin-block", swin_block},
      {"xcit-block",
       [] {
         const XcitBlockOptions options{.dim = 192, .heads = 4, .mlp_dim = 768};
         return part_of_map(XcitBlock{options}, {16, 196, 192});
       }},
      {"class-attention-block",
       [] {
         const ClassAttentionBlockOptions options{.dim = 192, .heads = 4, .mlp_dim = 768};
         return part(ClassAttentionBlock{options}, {16, 197, 192});
       }},
  };
  return kParts;
}

}  // namespace abl::bench
