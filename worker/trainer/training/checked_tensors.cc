// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/training/checked_tensors.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/crc32.h"
#include "base/error.h"

namespace abl::training {
namespace {

constexpr const char* kChecksumsKey = "crc32";

using Sums = std::map<std::string, std::string>;

Sums sums_of(const std::map<std::string, torch::Tensor>& tensors) {
  Sums sums;
  for (const auto& [name, tensor] : tensors)
    sums[name] = crc32_hex({static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()});
  return sums;
}

Sums sums_of(const std::map<std::string, std::string>& metadata) {
  Sums sums;
  for (const auto& [key, text] : metadata) sums[key] = crc32_hex(text);
  return sums;
}

void compare(const Sums& written, const Sums& found, const char* what, const std::filesystem::path& file) {
  const auto fail = [&](const std::string& why) {
    return Error{Code::kDataLoss, fmt::format("{} is damaged: {}", file.string(), why)};
  };
  for (const auto& [name, sum] : written) {
    const auto here = found.find(name);
    if (here == found.end()) throw fail(fmt::format("its {} '{}' is missing", what, name));
    if (here->second != sum)
      throw fail(
          fmt::format("the CRC-32 of its {} '{}' is {}, the file says {}", what, name, here->second, sum));
  }
  for (const auto& [name, sum] : found)
    if (!written.contains(name)) throw fail(fmt::format("its {} '{}' has no CRC-32", what, name));
}

}  // namespace

void write_checked(const std::filesystem::path& file, models::TensorFile content) {
  for (auto& [name, tensor] : content.tensors) tensor = tensor.detach().to(torch::kCPU).contiguous();
  content.metadata[kChecksumsKey] =
      nlohmann::json{{"tensors", sums_of(content.tensors)}, {"metadata", sums_of(content.metadata)}}.dump();
  models::write_safetensors(file, content);
}

models::TensorFile read_checked(const std::filesystem::path& file) {
  auto content = models::read_safetensors(file);
  const auto entry = content.metadata.extract(kChecksumsKey);
  if (!entry) return content;
  Sums tensors, metadata;
  try {
    const auto sums = nlohmann::json::parse(entry.mapped());
    tensors = sums.at("tensors"), metadata = sums.at("metadata");
  } catch (const nlohmann::json::exception&) {
    throw Error{Code::kDataLoss,
                fmt::format("{} is damaged: the CRC-32s in its header cannot be read", file.string())};
  }
  compare(metadata, sums_of(content.metadata), "entry", file);
  compare(tensors, sums_of(content.tensors), "tensor", file);
  return content;
}

}  // namespace abl::training
