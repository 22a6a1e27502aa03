// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/resource_buffer.h"

#include <algorithm>

namespace abl::agent {
using ablate::v1::ResourceSample;
using ablate::v1::RunResources;

ResourceSample merged(const ResourceSample& first, const ResourceSample& second) {
  ResourceSample both;
  both.set_at_ms(second.at_ms());
  both.set_over_ms(first.over_ms() + second.over_ms());
  const auto mean = [&](auto has, auto value, auto set) {
    const double a = (first.*value)(), b = (second.*value)(), over = both.over_ms();
    if (!(first.*has)() && !(second.*has)()) return;
    if (!(first.*has)() || !(second.*has)())
      (both.*set)((first.*has)() ? a : b);
    else
      (both.*set)(over > 0 ? (a * first.over_ms() + b * second.over_ms()) / over : (a + b) / 2);
  };
  using S = ResourceSample;
  mean(&S::has_cpu_cores, &S::cpu_cores, &S::set_cpu_cores);
  mean(&S::has_read_bytes_per_s, &S::read_bytes_per_s, &S::set_read_bytes_per_s);
  mean(&S::has_written_bytes_per_s, &S::written_bytes_per_s, &S::set_written_bytes_per_s);
  mean(&S::has_gpu, &S::gpu, &S::set_gpu);
  if (first.has_memory_bytes() || second.has_memory_bytes())
    both.set_memory_bytes(std::max(first.memory_bytes(), second.memory_bytes()));
  if (first.has_gpu_memory_bytes() || second.has_gpu_memory_bytes())
    both.set_gpu_memory_bytes(std::max(first.gpu_memory_bytes(), second.gpu_memory_bytes()));
  if (first.has_free_bytes() && second.has_free_bytes())
    both.set_free_bytes(std::min(first.free_bytes(), second.free_bytes()));
  else if (first.has_free_bytes() || second.has_free_bytes())
    both.set_free_bytes(first.has_free_bytes() ? first.free_bytes() : second.free_bytes());
  if (first.has_data_of_ms() || second.has_data_of_ms()) {
    both.set_data_wait_ms(first.data_wait_ms() + second.data_wait_ms());
    both.set_data_of_ms(first.data_of_ms() + second.data_of_ms());
  }
  return both;
}

void ResourceBuffer::add(std::uint32_t run, const std::string& token, ResourceSample sample, SteadyTime now) {
  auto state = state_.lock();
  forget(*state, now);
  if (state->size >= most_) make_room(*state);
  state->runs[{run, token}].samples.push_back({.sample = std::move(sample), .since = now});
  ++state->size;
}

void ResourceBuffer::end(std::uint32_t run, const std::string& token) {
  auto state = state_.lock();
  if (const auto found = state->runs.find({run, token}); found != state->runs.end())
    found->second.ended = true;
}

/// Of the run that has most waiting, every two become one; where none has two, the first goes.
void ResourceBuffer::make_room(State& state) const {
  auto most = state.runs.begin();
  std::size_t waits = 0;
  for (auto each = state.runs.begin(); each != state.runs.end(); ++each) {
    const auto count = static_cast<std::size_t>(
        std::ranges::count_if(each->second.samples, [](const Waiting& one) { return !one.left; }));
    if (count > waits) most = each, waits = count;
  }
  if (waits < 2) {
    state.size -= most->second.samples.size();
    state.runs.erase(most);
    return;
  }
  std::deque<Waiting> kept;
  std::optional<Waiting> first;
  for (Waiting& one : most->second.samples) {
    if (one.left) {
      --state.size;  // it has had its chance
    } else if (first) {
      kept.push_back({.sample = merged(first->sample, one.sample), .since = first->since});
      first.reset();
      --state.size;
    } else {
      first = std::move(one);
    }
  }
  if (first) kept.push_back(*std::move(first));
  most->second.samples = std::move(kept);
}

void ResourceBuffer::forget(State& state, SteadyTime now) {
  for (auto run = state.runs.begin(); run != state.runs.end();) {
    auto& samples = run->second.samples;
    while (!samples.empty() && samples.front().left && now - *samples.front().left > kMaybeLost)
      samples.pop_front(), --state.size;
    run = samples.empty() ? state.runs.erase(run) : std::next(run);
  }
}

std::vector<RunResources> ResourceBuffer::take(SteadyTime now) {
  auto state = state_.lock();
  forget(*state, now);
  std::vector<RunResources> leaving;
  std::size_t room = kMostTogether;
  for (auto& [key, run] : state->runs) {
    const auto waiting = std::ranges::find_if(run.samples, [](const Waiting& one) { return !one.left; });
    if (waiting == run.samples.end() || (!run.ended && now - waiting->since < kGather)) continue;
    RunResources resources;
    resources.set_run(key.first);
    resources.set_token(key.second);
    for (auto one = waiting; one != run.samples.end() && room > 0; ++one, --room) {
      *resources.add_samples() = one->sample;
      one->left = now;
    }
    if (resources.samples_size() > 0) leaving.push_back(std::move(resources));
    if (room == 0) break;
  }
  return leaving;
}

void ResourceBuffer::begin_session(SteadyTime now) {
  auto state = state_.lock();
  forget(*state, now);
  for (auto& [key, run] : state->runs)
    for (Waiting& one : run.samples) one.left.reset();
}

}  // namespace abl::agent
