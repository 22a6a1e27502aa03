// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/ranks/rank_states.h"

#include <ATen/CPUGeneratorImpl.h>

#include "images/random.h"

namespace abl::ranks {
namespace {

std::uint64_t seed_of(std::int64_t seed, int rank, std::int64_t step) {
  return images::RandomStream{
      seed, images::Purpose::kRank, {static_cast<std::uint64_t>(rank), static_cast<std::uint64_t>(step)}}
      .next();
}

}  // namespace

RankStates gather_states(RankGroup& ranks, const torch::Tensor& sums) {
  return {.random = ranks.gather(at::detail::getDefaultCPUGenerator().get_state()),
          .sums = ranks.gather(sums)};
}

RankStates new_states(std::int64_t seed, int ranks, std::int64_t step) {
  std::vector<torch::Tensor> random;
  for (int rank = 0; rank < ranks; ++rank)
    random.push_back(at::make_generator<at::CPUGeneratorImpl>(seed_of(seed, rank, step)).get_state());
  return {.random = torch::stack(random), .sums = torch::zeros({ranks, 3}, torch::kFloat64)};
}

void draw_as(const RankStates& states, const RankGroup& ranks) {
  at::Generator processor = at::detail::getDefaultCPUGenerator();
  processor.set_state(states.random[ranks.rank()].clone());
}

void draw_on_device(const RankGroup& ranks, torch::Device device, std::int64_t seed, std::int64_t step) {
  if (!device.is_cuda()) return;
  at::Generator gpu = at::globalContext().defaultGenerator(device);
  gpu.set_current_seed(seed_of(seed, ranks.rank(), step));
}

}  // namespace abl::ranks
