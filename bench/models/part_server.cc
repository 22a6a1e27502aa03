// SPDX-License-Identifier: Apache-2.0
// The C++ side of bench/models/bench.py. Reads "PART DTYPE REPEATS" from stdin, runs forward and backward of
// that part so often, and answers with the seconds it took; "nothing" for a part that it does not know.
#include <ATen/autocast_mode.h>
#include <torch/torch.h>

#include <chrono>
#include <functional>
#include <iostream>
#include <map>
#include <string>

#include "models/attention/class_attention.h"
#include "models/attention/cross_covariance.h"
#include "models/attention/manifold_key.h"
#include "models/attention/shared_attention.h"
#include "models/attention/token_attention.h"
#include "models/attention/window_attention.h"
#include "models/attention/window_shared_attention.h"
#include "models/local_patch_interaction.h"
#include "models/projection/nonlinear_qkv.h"

namespace {

using namespace abl::models;
using torch::Tensor;

struct Subject {
  std::shared_ptr<torch::nn::Module> module;
  Tensor input;
  std::function<Tensor(const Tensor&)> forward;
};

template <class Holder>
Subject part(Holder holder, torch::IntArrayRef shape) {
  return {holder.ptr(), torch::randn(shape, torch::requires_grad()),
          [holder](const Tensor& x) { return holder(x); }};
}

// The shapes are ViT-S's (384 wide, 6 heads, 196 tokens), XCiT-T12's and the first stage of Swin-T's.
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
Subject window(const std::shared_ptr<WindowAttentionImpl>& attention) {
  return {attention, torch::randn({8 * 64, 49, 96}, torch::requires_grad()),
          [attention](const Tensor& x) { return attention->forward(x, Tensor{}); }};
}
constexpr WindowAttentionOptions kFirstStage{.dim = 96, .heads = 3, .window = 7};

Subject make(const std::string& name) {
  static const std::map<std::string, std::function<Subject()>> kParts{
      {"attention-original", [] { return attention({}); }},
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
         return part(CrossCovariance{CrossCovarianceOptions{.qkv = {.dim = 192}, .heads = 4}},
                     {16, 196, 192});
       }},
      {"lpi",
       [] {
         const LocalPatchInteraction lpi{192};
         return Subject{lpi.ptr(), torch::randn({16, 196, 192}, torch::requires_grad()),
                        [lpi](const Tensor& x) { return lpi(x, 14, 14); }};
       }},
      {"class-attention",
       [] {
         return part(ClassAttention{192, 4}, {16, 197, 192});
       }},
      {"self-attention",
       [] {
         return part(TokenAttention{QkvOptions{.dim = 384}, 6}, {8, 197, 384});
       }},
      {"window-attention", [] { return window(std::make_shared<WindowQkvAttentionImpl>(kFirstStage)); }},
      {"window-attention-msf",
       [] { return window(std::make_shared<WindowSharedAttentionImpl>(kFirstStage, mean_shift("QKVPW"))); }},
  };
  const auto found = kParts.find(name);
  return found == kParts.end() ? Subject{} : found->second();
}

double seconds(Subject& part, bool lowered, int repeats) {
  at::autocast::set_autocast_dtype(torch::kCPU, torch::kBFloat16);
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < repeats; ++i) {
    at::autocast::set_autocast_enabled(torch::kCPU, lowered);
    const auto y = part.forward(part.input);
    at::autocast::set_autocast_enabled(torch::kCPU, false);
    at::autocast::clear_cache();
    y.sum().backward();
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

int main(int argc, char** argv) {
  torch::set_num_threads(argc > 1 ? std::stoi(argv[1]) : 1);
  std::map<std::string, Subject> parts;
  std::string name, type;
  for (int repeats = 0; std::cin >> name >> type >> repeats;) {
    auto& part = parts[name];
    if (!part.module) part = make(name);
    if (part.module)
      std::cout << seconds(part, type == "bf16", repeats) << std::endl;
    else
      std::cout << "nothing" << std::endl;
  }
}
