// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <torch/nn/module.h>
#include <torch/utils.h>

#include <cmath>

#include "base/error.h"
#include "models/attention/xcit_attention.h"
#include "models/layers/part.h"
#include "probes/probe.h"

namespace abl::probes {
namespace {

/// What each layer of one kind attends to while one image passes.
class AttentionTap final : public models::Observer {
 public:
  /// `of_class`: class attention, in place of attention between tokens. `joint`: through the layers before.
  AttentionTap(bool of_class, bool joint) : of_class_{of_class}, joint_{joint} {}

  void enter(const torch::nn::Module& part) override { within_.push_back(&part); }
  void leave(const torch::nn::Module&, const torch::Tensor&) override { within_.pop_back(); }
  bool wants_attention() const override { return true; }
  void attention(const torch::Tensor& weights) override {
    const auto* part = within_.empty() ? nullptr : within_.back();
    if ((dynamic_cast<const models::ClassAttentionImpl*>(part) != nullptr) != of_class_) return;
    windows_.push_back(weights.size(0));
    // of windows none is kept: their queries see a part of the image
    maps_.push_back(weights.size(0) == 1 ? map_of(joint_ ? joined(weights) : weights) : torch::Tensor{});
  }

  std::size_t layers() const { return maps_.size(); }
  /// Shape: [heads, rows, columns]. Throws: Error{kFailedPrecondition} where there is none.
  torch::Tensor map(std::size_t layer, const std::string& probe) const {
    for (std::size_t i = joint_ ? 0 : layer; i <= layer; ++i)
      if (windows_[i] != 1)
        throw Error{
            Code::kFailedPrecondition,
            fmt::format("{}: layer {} of {} attends within {} windows of an image; expected layers whose "
                        "attention sees all of it",
                        probe, i + 1, layers(), windows_[i])};
    if (!maps_[layer].defined())
      throw Error{
          Code::kFailedPrecondition,
          fmt::format("{}: layer {} of {} attends to tokens that are no square of patches with at most a "
                      "class and a distillation token",
                      probe, layer + 1, layers())};
    return maps_[layer];
  }

 private:
  /// Of the class token's query where there is one, otherwise the mean over all queries; undefined where the
  /// tokens are no square. Shape: [1, heads, queries, keys] -> [heads, rows, columns].
  static torch::Tensor map_of(const torch::Tensor& weights) {
    const auto keys = weights.size(-1);
    const auto side = static_cast<std::int64_t>(std::sqrt(static_cast<double>(keys)));
    const auto others = keys - side * side;  // a class token, a distillation token behind it, or none
    if (others > 2) return {};
    const bool one_asks = others > 0 || weights.size(2) == 1;
    const auto asked = one_asks ? weights.select(2, 0) : weights.mean(2);  // [1, heads, keys]
    return asked[0]
        .narrow(-1, others, side * side)
        .unflatten(-1, {side, side})
        .to(torch::kCPU, torch::kDouble);
  }

  /// A ← ½(A + 1) A of the layers before, in each head.
  torch::Tensor joined(const torch::Tensor& weights) {
    const auto one = torch::eye(weights.size(-1), weights.options().dtype(torch::kDouble));
    const auto with_residual = (weights.to(torch::kDouble) + one) / 2;
    if (before_.defined() && before_.sizes() != with_residual.sizes())
      throw Error{Code::kFailedPrecondition,
                  "joint attention: layers differ in their heads or tokens; expected as many in each"};
    before_ = before_.defined() ? with_residual.matmul(before_) : with_residual;
    return before_;
  }

  const bool of_class_, joint_;
  std::vector<const torch::nn::Module*> within_;
  std::vector<std::int64_t> windows_;  ///< of each layer
  std::vector<torch::Tensor> maps_;
  torch::Tensor before_;
};

/// Mean over images and heads of -Σ p ln p, p the map brought to a sum of 1.
double entropy(const torch::Tensor& maps) {
  const auto flat = maps.flatten(2);
  const auto p = flat / flat.sum(-1, /*keepdim=*/true).clamp_min(1e-300);
  return -torch::special_xlogy(p, p).sum(-1).mean().item<double>();
}

Findings attention_maps(const Subject& subject, const protocol::ProbeRequest& request, bool of_class,
                        bool joint, const char* what) {
  const auto shown = subject.images(request.number("images"));
  const auto wanted = static_cast<std::size_t>(request.number("layer"));
  std::vector<torch::Tensor> maps;
  std::size_t layer = 0;
  for (std::int64_t image = 0; image < shown.input.size(0);
       ++image) {  // one at a time: N × N weights a layer
    AttentionTap tap{of_class, joint};
    {
      const models::Observation observation{tap};
      subject.model.forward(shown.input.narrow(0, image, 1));
    }
    if (tap.layers() == 0)
      throw Error{Code::kFailedPrecondition, fmt::format("{}: the model has no {}", request.name, what)};
    if (wanted > tap.layers())
      throw Error{Code::kInvalidArgument,
                  fmt::format("{}.layer: invalid value {}; the model has {} such {}", request.name, wanted,
                              tap.layers(), tap.layers() == 1 ? "layer" : "layers")};
    layer = (wanted == 0 ? tap.layers() : wanted) - 1;
    maps.push_back(tap.map(layer, request.name));
    subject.progress(static_cast<double>(image + 1) / static_cast<double>(shown.input.size(0)));
  }
  const auto all = torch::stack(maps);  // [images, heads, rows, columns]
  return {.values = {{"entropy", entropy(all)}},
          .arrays = {{"map",
                      {.axes = {{.name = "image", .places = shown.names},
                                {.name = "head", .places = counted(all.size(1))},
                                {.name = "row", .places = counted(all.size(2))},
                                {.name = "column", .places = counted(all.size(3))}},
                       .values = all.to(torch::kFloat32)}}},
          .pictures = {{"maps", draw_maps(shown.pixels, all)}},
          .notes = {fmt::format("layer {}{}", layer + 1, joint ? ", joint with those before it" : "")}};
}

}  // namespace

/// The weights of a layer's softmax, which sum to 1 over the keys: what the class token asks of the patches,
/// and without such a token the mean over what all patches ask. `joint`: of the product of all layers up to
/// it, each as ½(A + 1), which follows the residuals.
/// Source: manifold key section 6.2, Figure 2; joint attention: Abnar and Zuidema, attention rollout, by
/// head.
Findings attention(const Subject& subject, const protocol::ProbeRequest& request) {
  return attention_maps(subject, request, /*of_class=*/false, request.flag("joint"),
                        "attention between tokens");
}

/// What the class token of XCiT asks of the patches where features are gathered, head by head. Its own share
/// is left out. Source: XCiT section 4.1 (Class attention visualization), Figure 4.
Findings class_attention(const Subject& subject, const protocol::ProbeRequest& request) {
  return attention_maps(subject, request, /*of_class=*/true, /*joint=*/false, "blocks of class attention");
}

}  // namespace abl::probes
