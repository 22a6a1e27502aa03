// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <memory>

#include "base/mapped_file.h"
#include "models/safetensors.h"
#include "models/safetensors_layout.h"
#include "models/safetensors_types.h"

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

}  // namespace abl::models
