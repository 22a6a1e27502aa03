// SPDX-License-Identifier: Apache-2.0
#include "models/weights/safetensors.h"

#include <fmt/format.h>
#include <torch/types.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/new_file.h"
#include "models/layers/type_name.h"
#include "models/safetensors/layout.h"

namespace abl::models::safetensors {

/// LibTorch's types, each at the place of its dtype in kDtypes.
inline constexpr std::array<torch::ScalarType, kDtypes.size()> kTypes{
    torch::kDouble, torch::kFloat, torch::kHalf, torch::kBFloat16,
    torch::kLong,   torch::kInt,   torch::kByte, torch::kBool};

}  // namespace abl::models::safetensors

namespace abl::models {
namespace {

using namespace safetensors;

torch::Tensor view_of(const TensorPlace& place, const std::shared_ptr<const MappedFile>& mapping) {
  const auto type = kTypes[place.dtype];
  const auto options = torch::dtype(type);
  if (place.begin == place.end) return torch::empty(place.shape, options);
  char* start = mapping->start() + place.begin;
  if (reinterpret_cast<std::uintptr_t>(start) % torch::elementSize(type) == 0)
    return torch::from_blob(
        start, place.shape, [mapping](void*) {}, options);
  auto copy = torch::empty(place.shape, options);  // a header of odd length puts the data at an odd address
  std::memcpy(copy.data_ptr(), start, place.end - place.begin);
  return copy;
}

}  // namespace

TensorFile read_safetensors(const std::filesystem::path& file) {
  const auto mapping = std::make_shared<const MappedFile>(file, MappedFile::Access::kCopyOnWrite);
  auto layout = read_layout(mapping->bytes(), file);
  TensorFile content{.tensors = {}, .metadata = std::move(layout.metadata)};
  for (const auto& place : layout.tensors) content.tensors.emplace(place.name, view_of(place, mapping));
  return content;
}

namespace {

using Json = nlohmann::json;
using namespace safetensors;
namespace fs = std::filesystem;

std::string_view dtype_name(const std::string& tensor, torch::ScalarType type) {
  const auto known = std::ranges::find(kTypes, type);
  if (known == kTypes.end())
    throw Error{
        Code::kInvalidArgument,
        fmt::format("'{}' has the type {}, which a safetensors file cannot hold", tensor, type_name(type))};
  return kDtypes[static_cast<std::size_t>(known - kTypes.begin())].name;
}

}  // namespace

void write_safetensors(const std::filesystem::path& file, const TensorFile& content) {
  // wide types first, as other writers do: every tensor then lies aligned
  std::vector<std::pair<std::string, torch::Tensor>> ordered{content.tensors.begin(), content.tensors.end()};
  std::ranges::stable_sort(ordered, std::greater{},
                           [](const auto& named) { return named.second.element_size(); });

  Json header = Json::object();
  if (!content.metadata.empty()) header[std::string{kMetadata}] = content.metadata;
  std::uint64_t end = 0;
  for (const auto& [name, tensor] : ordered) {
    if (name == kMetadata)
      throw Error{Code::kInvalidArgument, fmt::format("a tensor cannot be named {}", kMetadata)};
    const auto begin = end;
    end += tensor.nbytes();
    header[name] = {{"dtype", dtype_name(name, tensor.scalar_type())},
                    {"shape", tensor.sizes().vec()},
                    {"data_offsets", {begin, end}}};
  }
  auto text = header.dump();
  text.resize((text.size() + kLengthBytes - 1) / kLengthBytes * kLengthBytes, ' ');
  const std::uint64_t length = text.size();

  if (std::error_code unknown; fs::exists(file, unknown) && !fs::is_regular_file(file, unknown))
    throw Error{Code::kInvalidArgument,
                fmt::format("cannot write {}: it exists and is not a regular file", file.string())};
  NewFile out{file, {.ending = unfinished_ending()}};
  const auto append = [&out](const void* bytes, std::size_t size) {
    out.append({static_cast<const char*>(bytes), size});
  };
  append(&length, kLengthBytes);
  out.append(text);
  for (const auto& [name, tensor] : ordered) {
    const auto values = tensor.detach().to(torch::kCPU).contiguous();
    append(values.const_data_ptr(), values.nbytes());
  }
  out.publish();
}

}  // namespace abl::models
