// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/ranks/rank_group.h"

#include <fmt/format.h>
#include <torch/utils.h>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/comm.hpp>

#include "base/error.h"
#include "worker/trainer/ranks/backends.h"
#include "worker/trainer/ranks/store_client.h"

namespace abl::ranks {
namespace {

using c10d::ProcessGroup;

constexpr std::size_t kSharedAtOnce = 64 << 20;  // bytes that travel as one message

std::string first_line(std::string_view text) { return std::string{text.substr(0, text.find('\n'))}; }

/// Tensors on processors travel by Gloo, those on GPUs by NCCL: what is said between the steps never waits
/// for a GPU.
c10::intrusive_ptr<ProcessGroup> connect(const RankPlace& place) {
  const auto store = reach_store(place.rendezvous, place.key, place.patience);
  const auto under = [&](const char* name) {
    return BackendOptions{.store = c10::make_intrusive<c10d::PrefixStore>(name, store),
                          .rank = place.rank,
                          .ranks = place.ranks,
                          .timeout = place.timeout};
  };
  auto group = c10::make_intrusive<ProcessGroup>(store, place.rank, place.ranks);
  const std::string& own = place.address.empty() ? place.rendezvous.host : place.address;
  group->setBackend(torch::kCPU, ProcessGroup::GLOO,
                    gloo_backend(under("gloo"), own, !place.address.empty()));
  group->setDefaultBackend(ProcessGroup::GLOO);
  if (place.device.is_cuda()) {
    group->setBackend(torch::kCUDA, ProcessGroup::NCCL, nccl_backend(under("nccl"), place.device.index()));
    group->setDefaultBackend(ProcessGroup::NCCL);
  }
  group->setGroupName("ranks");
  return group;
}

}  // namespace

void reach_ranks(const std::function<void()>& talk) {
  const auto lost = [](std::string_view why) {
    return Error{Code::kUnavailable, fmt::format("{}: {}", kLostRanks, first_line(why))};
  };
  try {
    talk();
  } catch (const Error&) {
    throw;
  } catch (const c10::DistError& error) {
    throw lost(error.what_without_backtrace());
  } catch (const c10::Error&) {  // of the computation itself
    throw;
  } catch (const std::runtime_error& error) {  // Gloo's own
    throw lost(error.what());
  }
}

struct RankGroup::Links {
  c10::intrusive_ptr<ProcessGroup> group;
};

RankGroup::RankGroup() = default;

RankGroup::RankGroup(const RankPlace& place)
    : rank_{place.rank}, ranks_{place.ranks}, links_{std::make_unique<Links>()} {
  reach_ranks([&] {
    try {
      links_->group = connect(place);
    } catch (const c10::DistError&) {
      throw;
    } catch (const c10::Error& error) {  // nothing is computed yet: another rank is gone, or did not come
      throw std::runtime_error{error.what_without_backtrace()};
    }
  });
  // Nobody goes on while others are still connecting: a rank that finds its trial wrong and ends at once
  // would break their connections, and what all of them would say of the trial is not said.
  auto here = torch::ones({1}, torch::kInt32);
  sum(here);
}

RankGroup::~RankGroup() = default;

c10::intrusive_ptr<ProcessGroup> RankGroup::process_group() const {
  return links_ ? links_->group : c10::intrusive_ptr<ProcessGroup>{};
}

bool RankGroup::as_first(bool said) {
  if (!links_) return said;
  std::vector<torch::Tensor> word{torch::tensor({said ? 1 : 0}, torch::kInt32)};
  reach_ranks([&] { links_->group->broadcast(word)->wait(); });
  return word[0].item<int>() != 0;
}

void RankGroup::share(const std::vector<torch::Tensor>& tensors) {
  if (!links_ || tensors.empty()) return;
  const torch::NoGradGuard no_grad;
  reach_ranks([&] { c10d::broadcast_coalesced(links_->group, tensors, kSharedAtOnce); });
}

void RankGroup::sum(torch::Tensor& tensor) {
  if (!links_) return;
  const torch::NoGradGuard no_grad;
  std::vector<torch::Tensor> whole{tensor};
  reach_ranks([&] { links_->group->allreduce(whole)->wait(); });
}

torch::Tensor RankGroup::gather(const torch::Tensor& row) {
  if (!links_) return row.unsqueeze(0);
  std::vector<torch::Tensor> own{row.contiguous()};
  std::vector<std::vector<torch::Tensor>> rows(1);
  for (int i = 0; i < ranks_; ++i) rows[0].push_back(torch::empty_like(own[0]));
  reach_ranks([&] { links_->group->allgather(rows, own)->wait(); });
  return torch::stack(rows[0]);
}

}  // namespace abl::ranks
