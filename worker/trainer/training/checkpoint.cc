// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/training/checkpoint.h"

#include <fmt/format.h>
#include <torch/version.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/sha256.h"
#include "worker/trainer/device/gpu.h"
#include "worker/trainer/training/checked_tensors.h"

namespace abl::training {
namespace {

using protocol::kFactsKey;

void expect_finite_weights(const Checkpoint& checkpoint) {
  if (!std::isfinite(checkpoint.loss_sum)) throw not_finite(checkpoint.step, "the training loss");
  for (const auto& [name, tensor] : checkpoint.tensors)
    if (!is_finite(tensor)) throw not_finite(checkpoint.step, "the tensor " + name);
}

}  // namespace

Machine this_machine(const torch::Device& device, int ranks) {
  return {.torch = TORCH_VERSION,
          .device = device::name_of(device),
          .instructions = at::get_cpu_capability(),
          .threads = at::get_num_threads(),
          .ranks = ranks,
          .deterministic = device::is_deterministic(device)};
}

Error not_finite(std::int64_t step, const std::string& what) {
  return Error{
      Code::kAborted,
      fmt::format("{} is not finite at step {}: no checkpoint of this step was written, earlier ones "
                  "are kept",
                  what, step)};
}

Error diverged(std::int64_t from, const torch::Tensor& finite_steps) {
  const auto first = from + static_cast<std::int64_t>(finite_steps.min().item<double>()) + 1;
  return Error{Code::kAborted, fmt::format("diverged: the training loss is not finite since step {}", first)};
}

std::string write_checkpoint(const std::filesystem::path& file, const Checkpoint& checkpoint) {
  expect_finite_weights(checkpoint);
  write_checked(file,
                {.tensors = checkpoint.tensors, .metadata = {{kFactsKey, protocol::facts_text(checkpoint)}}});
  return sha256_file(file);
}

Checkpoint read_checkpoint(const std::filesystem::path& file, const std::string& sha256,
                           const std::string& config_hash, const std::vector<std::string>& beginnings) {
  if (!sha256.empty() && std::filesystem::exists(file))
    if (const auto found = sha256_file(file); found != sha256)
      throw Error{Code::kDataLoss,
                  fmt::format("checkpoint {}: its SHA-256 is {}, {} was reported when it was written",
                              file.string(), found, sha256)};
  auto content = read_checked(file);
  const auto facts = content.metadata.find(kFactsKey);
  if (facts == content.metadata.end())
    throw Error{Code::kDataLoss,
                fmt::format("{} is not a checkpoint of this trainer: it has no '{}' metadata", file.string(),
                            kFactsKey)};
  Checkpoint checkpoint{protocol::read_checkpoint_facts(facts->second, file), std::move(content.tensors)};
  if (checkpoint.config_hash != config_hash &&
      std::ranges::find(beginnings, checkpoint.config_hash) == beginnings.end())
    throw Error{Code::kFailedPrecondition,
                fmt::format("checkpoint {} belongs to another trial ({:.12} instead of {:.12}); to train its "
                            "weights further, as for more epochs, name them in recipe.start_weights",
                            file.string(), checkpoint.config_hash, config_hash)};
  return checkpoint;
}

std::vector<std::string> other_inputs(const Checkpoint& checkpoint, const std::string& data_fingerprint,
                                      const std::map<std::string, std::string>& weights) {
  std::vector<std::string> other;
  if (!checkpoint.data_fingerprint.empty() && checkpoint.data_fingerprint != data_fingerprint)
    other.push_back(
        fmt::format("the images differ ({}; before: {})", data_fingerprint, checkpoint.data_fingerprint));
  for (const auto& [name, sha256] : checkpoint.weights)
    if (const auto here = weights.find(name); here != weights.end() && here->second != sha256)
      other.push_back(
          fmt::format("the weights {} differ (SHA-256 {}; before: {})", name, here->second, sha256));
  return other;
}

namespace {

std::map<std::string, torch::Tensor> weights_in(models::TensorFile content, const std::filesystem::path& file,
                                                bool average) {
  const bool is_checkpoint = content.metadata.contains(kFactsKey);
  if (!is_checkpoint && !average) return std::move(content.tensors);
  const std::string prefix = average ? "ema." : "model.";
  std::map<std::string, torch::Tensor> weights;
  for (const auto& [name, tensor] : content.tensors)
    if (name.starts_with(prefix)) weights.emplace(name.substr(prefix.size()), tensor);
  if (weights.empty())
    throw Error{Code::kInvalidArgument, fmt::format("{} holds no running average: it is {}", file.string(),
                                                    is_checkpoint ? "a checkpoint of a recipe without one"
                                                                  : "no checkpoint of this trainer")};
  return weights;
}

}  // namespace

std::map<std::string, torch::Tensor> read_weights(const std::filesystem::path& file, bool average) {
  return weights_in(read_checked(file), file, average);
}

WeightsFile read_weights_file(const std::filesystem::path& file) {
  auto content = read_checked(file);
  WeightsFile read;
  try {
    if (const auto facts = content.metadata.find(kFactsKey); facts != content.metadata.end())
      read.model = protocol::read_checkpoint_facts(facts->second, file).model;
  } catch (const Error& error) {  // of another format: weights they are all the same
    if (error.code() != Code::kFailedPrecondition) throw;
  }
  read.weights = weights_in(std::move(content), file, /*average=*/false);
  return read;
}

std::optional<protocol::CheckpointFacts> read_facts(const std::filesystem::path& file) {
  const auto content = read_checked(file);
  const auto facts = content.metadata.find(kFactsKey);
  if (facts == content.metadata.end()) return std::nullopt;
  return protocol::read_checkpoint_facts(facts->second, file);
}

namespace {

/// A number is not finite where all bits of its exponent are set.
template <class Bits>
bool all_below(const torch::Tensor& tensor, Bits exponent) {
  const auto* numbers = static_cast<const Bits*>(tensor.const_data_ptr());
  bool found = false;
  for (std::int64_t i = 0; i < tensor.numel(); ++i) found |= (numbers[i] & exponent) == exponent;
  return !found;
}

}  // namespace

bool is_finite(const torch::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case torch::kDouble:
      return all_below<std::uint64_t>(tensor, 0x7ff0'0000'0000'0000);
    case torch::kFloat:
      return all_below<std::uint32_t>(tensor, 0x7f80'0000);
    case torch::kBFloat16:
      return all_below<std::uint16_t>(tensor, 0x7f80);
    case torch::kHalf:
      return all_below<std::uint16_t>(tensor, 0x7c00);
    default:
      return true;
  }
}

}  // namespace abl::training
