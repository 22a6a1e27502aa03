// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/training/checkpoint.h"

#include <fmt/format.h>
#include <torch/version.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/sha256.h"
#include "worker/trainer/device/gpu.h"
#include "worker/trainer/training/checked_tensors.h"

namespace abl::training {
namespace {

constexpr const char* kFactsKey = "ablate";  // of the metadata entry that holds everything but the tensors
constexpr int kFormat = 1;
constexpr int kMostRanks = 1024;

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
  const auto& machine = checkpoint.machine;
  nlohmann::json facts{{"format", kFormat},
                       {"config_hash", checkpoint.config_hash},
                       {"step", checkpoint.step},
                       {"evaluated", checkpoint.evaluated},
                       {"loss_sum", checkpoint.loss_sum},
                       {"correct", checkpoint.correct},
                       {"seen", checkpoint.seen},
                       {"data_fingerprint", checkpoint.data_fingerprint},
                       {"weights", checkpoint.weights},
                       {"machine",
                        {{"torch", machine.torch},
                         {"device", machine.device},
                         {"instructions", machine.instructions},
                         {"threads", machine.threads},
                         {"ranks", machine.ranks},
                         {"deterministic", machine.deterministic}}}};
  if (checkpoint.best) facts["best"] = *checkpoint.best;
  if (!checkpoint.model.empty()) facts["model"] = checkpoint.model;
  write_checked(file, {.tensors = checkpoint.tensors, .metadata = {{kFactsKey, facts.dump()}}});
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
  Checkpoint checkpoint;
  try {
    const auto facts = nlohmann::json::parse(content.metadata.at(kFactsKey));
    if (facts.at("format") != kFormat)
      throw Error{Code::kFailedPrecondition, fmt::format("checkpoint {} has format {}, this trainer reads {}",
                                                         file.string(), facts.at("format").dump(), kFormat)};
    checkpoint.config_hash = facts.at("config_hash");
    checkpoint.step = facts.at("step"), checkpoint.evaluated = facts.at("evaluated");
    checkpoint.loss_sum = facts.at("loss_sum"), checkpoint.correct = facts.at("correct"),
    checkpoint.seen = facts.at("seen");
    checkpoint.data_fingerprint = facts.value("data_fingerprint", "");
    checkpoint.weights = facts.value("weights", checkpoint.weights);
    if (facts.contains("best")) checkpoint.best = facts.at("best").get<double>();
    const auto& machine = facts.at("machine");
    checkpoint.machine = {.torch = machine.at("torch"),
                          .device = machine.at("device"),
                          .instructions = machine.at("instructions"),
                          .threads = machine.at("threads"),
                          .ranks = machine.value("ranks", 1),
                          .deterministic = machine.value("deterministic", true)};
    if (checkpoint.machine.ranks < 1 || checkpoint.machine.ranks > kMostRanks ||
        checkpoint.machine.threads < 1)
      throw Error{
          Code::kDataLoss,
          fmt::format("checkpoint {} says {} ranks and {} threads; expected 1 to {}, and at least 1",
                      file.string(), checkpoint.machine.ranks, checkpoint.machine.threads, kMostRanks)};
  } catch (const nlohmann::json::exception& error) {
    throw Error{Code::kDataLoss,
                fmt::format("{} is not a checkpoint of this trainer: {}", file.string(), error.what())};
  } catch (const std::out_of_range&) {
    throw Error{Code::kDataLoss,
                fmt::format("{} is not a checkpoint of this trainer: it has no '{}' metadata", file.string(),
                            kFactsKey)};
  }
  if (checkpoint.config_hash != config_hash &&
      std::ranges::find(beginnings, checkpoint.config_hash) == beginnings.end())
    throw Error{Code::kFailedPrecondition,
                fmt::format("checkpoint {} belongs to another trial ({:.12} instead of {:.12})",
                            file.string(), checkpoint.config_hash, config_hash)};
  checkpoint.tensors = std::move(content.tensors);
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

std::map<std::string, torch::Tensor> read_weights(const std::filesystem::path& file, bool average) {
  auto content = read_checked(file);
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

std::string read_model_text(const std::filesystem::path& file) {
  const auto content = read_checked(file);
  const auto facts = content.metadata.find(kFactsKey);
  if (facts == content.metadata.end()) return {};
  const auto said = nlohmann::json::parse(facts->second, nullptr, /*allow_exceptions=*/false);
  return said.is_object() ? said.value("model", "") : std::string{};
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
