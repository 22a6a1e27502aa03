// SPDX-License-Identifier: Apache-2.0
#include <torch/utils.h>

#include <algorithm>

#include "base/error.h"
#include "models/layers/part.h"
#include "probes/probe.h"

namespace abl::probes {
namespace {

constexpr std::int64_t kAtOnce = 16;  // images

/// Adds up the norms of the tokens of all images that pass.
class NormsByBlock final : public models::Observer {
 public:
  void enter(const torch::nn::Module&) override {}
  void leave(const torch::nn::Module&, const torch::Tensor&) override {}
  void block(const torch::Tensor& input, const torch::Tensor& output, std::int64_t channels) override {
    if (place_ == 0) add(input, channels);
    add(output, channels);
  }
  void next_batch() { place_ = 0; }
  const std::vector<double>& sums() const { return sums_; }

 private:
  /// Of each image the mean over its tokens.
  void add(const torch::Tensor& x, std::int64_t channels) {
    const auto norms = torch::linalg_vector_norm(x, 2, /*dim=*/{channels}, /*keepdim=*/false, torch::kDouble);
    if (place_ == sums_.size()) sums_.push_back(0);
    sums_[place_++] += norms.flatten(1).mean(1).sum().item<double>();
  }

  std::vector<double> sums_;
  std::size_t place_ = 0;
};

}  // namespace

/// (1/m) Σ_i ‖x_i‖ over the m tokens, class token included, averaged over images: after the embedding with
/// its positions (what the first block gets), and after each block. Of a convolutional network a token is a
/// pixel of the map. Blocks of class attention are none of the trunk. Source: MSF section 3.2, Figure 4.
Findings feature_norms(const Subject& subject, const protocol::ProbeRequest& request) {
  const auto input = subject.images(request.number("images")).input;
  NormsByBlock norms;
  const auto images = input.size(0);
  for (std::int64_t first = 0; first < images; first += kAtOnce) {
    {
      const models::Observation observation{norms};
      subject.model.forward(input.narrow(0, first, std::min(kAtOnce, images - first)));
    }
    norms.next_batch();
    subject.progress(static_cast<double>(std::min(images, first + kAtOnce)) / static_cast<double>(images));
  }
  if (norms.sums().empty())
    throw Error{Code::kFailedPrecondition, "feature-norms: the model has no blocks to look behind"};
  const auto means = torch::tensor(norms.sums(), torch::kDouble) / static_cast<double>(images);
  auto layers = counted(means.size(0) - 1);
  layers.insert(layers.begin(), "embedding");
  return {.values = {{"embedding", means[0].item<double>()},
                     {"last", means[-1].item<double>()},
                     {"largest", means.max().item<double>()}},
          .arrays = {{"norm", {.axes = {{.name = "layer", .places = layers}}, .values = means}}},
          .pictures = {},
          .notes = {}};
}

}  // namespace abl::probes
