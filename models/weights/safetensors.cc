// SPDX-License-Identifier: Apache-2.0
#include "models/weights/safetensors.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <torch/torch.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/mapped_file.h"
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

/// A file written beside `target` that takes its place when all is on the disk, and vanishes when that fails.
class Replacement {
 public:
  explicit Replacement(const std::filesystem::path& target)
      : target_{target}, path_{fmt::format("{}.{}.tmp", target.string(), ::getpid())} {
    std::error_code unknown;
    if (std::filesystem::exists(target_, unknown) && !std::filesystem::is_regular_file(target_, unknown))
      throw Error{Code::kInvalidArgument,
                  fmt::format("cannot write {}: it exists and is not a regular file", target_.string())};
    descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (descriptor_ < 0) throw failure();
  }
  ~Replacement() {
    if (descriptor_ < 0) return;
    ::close(descriptor_);
    if (!in_place_) ::unlink(path_.c_str());
  }
  Replacement(const Replacement&) = delete;
  Replacement& operator=(const Replacement&) = delete;

  void write(const void* bytes, std::size_t size) {
    for (const char* next = static_cast<const char*>(bytes); size > 0;) {
      const auto written = ::write(descriptor_, next, size);
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) throw failure();
      next += written;
      size -= static_cast<std::size_t>(written);
    }
  }

  void take_place() {
    if (::fsync(descriptor_) != 0 || ::rename(path_.c_str(), target_.c_str()) != 0) throw failure();
    in_place_ = true;
    const auto folder = target_.has_parent_path() ? target_.parent_path() : std::filesystem::path{"."};
    const int parent = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (parent < 0) throw failure();
    const bool synced = ::fsync(parent) == 0;  // the rename itself
    const int why = errno;
    ::close(parent);
    if (!synced) throw system_error("cannot write " + target_.string(), why);
  }

 private:
  Error failure() const { return system_error("cannot write " + target_.string(), errno); }

  const std::filesystem::path target_, path_;
  int descriptor_ = -1;
  bool in_place_ = false;
};

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

  Replacement out{file};
  out.write(&length, kLengthBytes);
  out.write(text.data(), text.size());
  for (const auto& [name, tensor] : ordered) {
    const auto values = tensor.detach().to(torch::kCPU).contiguous();
    out.write(values.const_data_ptr(), values.nbytes());
  }
  out.take_place();
}

}  // namespace abl::models
