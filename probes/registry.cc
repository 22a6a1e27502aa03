// SPDX-License-Identifier: Apache-2.0
#include <torch/autograd.h>

#include <string_view>
#include <utility>

#include "base/error.h"
#include "probes/probe.h"

namespace abl::probes {
namespace {

constexpr std::pair<std::string_view, Look> kLooks[] = {
    {"feature-norms", &feature_norms},     {"subspace-similarity", &subspace_similarity},
    {"code-norms", &code_norms},           {"attention", &attention},
    {"class-attention", &class_attention}, {"accuracy-by-resolution", &accuracy_by_resolution},
    {"inference-cost", &inference_cost},
};

}  // namespace

Look look_of(const std::string& name) {
  for (const auto& [known, look] : kLooks)
    if (known == name) return look;
  throw Error{Code::kUnimplemented, "probe '" + name + "' is declared and has no function here"};
}

Findings look(const Subject& subject, const protocol::ProbeRequest& request) {
  const torch::NoGradGuard no_grad;
  return look_of(request.name)(subject, request);
}

std::vector<std::string> counted(std::int64_t count) {
  std::vector<std::string> places;
  for (std::int64_t place = 1; place <= count; ++place) places.push_back(std::to_string(place));
  return places;
}

}  // namespace abl::probes
