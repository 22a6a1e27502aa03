// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/training/found_files.h"

#include <fmt/format.h>
#include <torch/utils.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "base/file.h"
#include "base/sha256.h"
#include "images/png_write.h"
#include "protocol/probe_results.h"

namespace abl::training {
namespace fs = std::filesystem;
namespace {

/// The number of the fewest digits that 32 bits tell from others: as text half as long.
double shortest(double value) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), static_cast<float>(value)).ptr;
  double read = value;
  if (std::isfinite(value)) std::from_chars(text.data(), end, read);
  return read;
}

protocol::ProbeArray told(const probes::Array& array) {
  const bool is_short = array.values.scalar_type() == torch::kFloat32;
  const auto values = array.values.detach().to(torch::kCPU, torch::kDouble).contiguous();
  protocol::ProbeArray result;
  std::vector<std::int64_t> shape;
  for (const auto& [name, places] : array.axes) {
    result.axes.push_back({.name = name, .places = places});
    shape.push_back(static_cast<std::int64_t>(places.size()));
  }
  if (values.sizes() != torch::IntArrayRef{shape})
    throw Error{Code::kInternal,
                fmt::format("an array of {} axes has {} values", shape.size(), values.numel())};
  result.values.assign(values.data_ptr<double>(), values.data_ptr<double>() + values.numel());
  if (is_short) std::ranges::transform(result.values, result.values.begin(), shortest);
  return result;
}

protocol::ProbePicture written(const std::string& probe, const std::string& name, const images::Image& image,
                               const std::filesystem::path& folder) {
  protocol::ProbePicture picture{.name = name, .width = image.width, .height = image.height};
  if (folder.empty()) return picture;
  const auto file = folder / fmt::format("{}-{}.png", probe, name);
  const auto bytes = images::encode_png(image);
  write_file_atomically(file, bytes);
  picture.file = file.string(), picture.bytes = bytes.size(), picture.sha256 = sha256_hex(bytes);
  return picture;
}

}  // namespace

protocol::ProbeResult result_of(const protocol::ProbeRequest& request, const probes::Findings& found,
                                const fs::path& pictures) {
  protocol::ProbeResult result{.request = request, .values = found.values, .notes = found.notes};
  for (const auto& [name, array] : found.arrays) result.arrays.emplace(name, told(array));
  for (const auto& [name, image] : found.pictures)
    result.pictures.push_back(written(protocol::probe_key(request), name, image, pictures));
  return result;
}

fs::path write_found(const protocol::ProbeResult& found, const fs::path& folder) {
  const auto file = folder / (protocol::probe_key(found.request) + ".json");
  write_file_atomically(file, protocol::to_json(found).dump() + "\n");
  return file;
}

}  // namespace abl::training
