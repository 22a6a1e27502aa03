// SPDX-License-Identifier: Apache-2.0
// A data set of NumPy arrays: train_images.npy and val_images.npy, uint8 [N, H, W, 3]; train_labels.npy and
// val_labels.npy, int64 [N]; classes.txt, a name a line.
#include <cstring>
#include <fstream>
#include <numeric>
#include <stdexcept>

#include "data/own_format.h"

namespace {

namespace fs = std::filesystem;

/// An array as numpy.save writes it, in C order.
struct Array {
  std::vector<std::int64_t> shape;
  std::string bytes;
};

/// Source: NEP 1, "A simple file format for NumPy arrays".
Array load(const fs::path& file, const std::string& type) {
  std::ifstream in{file, std::ios::binary};
  const std::string text{std::istreambuf_iterator<char>{in}, {}};
  if (!text.starts_with("\x93NUMPY") || text.size() < 10)
    throw std::runtime_error{file.string() + " is no .npy file"};
  std::uint16_t length = 0;
  std::memcpy(&length, text.data() + 8, 2);  // version 1; little-endian, as x86 and ARM are
  const std::string header = text.substr(10, length);
  if (header.find("'" + type + "'") == std::string::npos ||
      header.find("'fortran_order': False") == std::string::npos)
    throw std::runtime_error{file.string() + ": expected " + type + " in C order; it says " + header};
  Array array{.bytes = text.substr(10 + std::size_t{length})};
  const auto open = header.find('(');
  for (const char* at = header.c_str() + open + 1; *at && *at != ')';) {
    char* end = nullptr;
    const long long size = std::strtoll(at, &end, 10);
    if (end == at) break;
    array.shape.push_back(size);
    at = end + std::strspn(end, ", ");
  }
  const auto elements =
      std::accumulate(array.shape.begin(), array.shape.end(), std::int64_t{1}, std::multiplies{});
  if (array.bytes.size() != static_cast<std::size_t>(elements) * (type == "<i8" ? 8 : 1))
    throw std::runtime_error{file.string() + " is cut: its header says more than it holds"};
  return array;
}

class NumpyArrays : public abl::data::OwnDataSet {
 public:
  explicit NumpyArrays(const fs::path& root) {
    std::ifstream names{root / "classes.txt"};
    for (std::string name; std::getline(names, name);) classes_.push_back(name);
    for (const bool train : {true, false}) {
      const std::string split = train ? "train" : "val";
      images_[train] = load(root / (split + "_images.npy"), "|u1");
      labels_[train] = load(root / (split + "_labels.npy"), "<i8");
      const auto& shape = images_[train].shape;
      if (shape.size() != 4 || shape[3] != 3 || labels_[train].shape != std::vector{shape[0]})
        throw std::runtime_error{split + ": expected images [N, H, W, 3] and N labels"};
    }
  }

  std::vector<std::string> classes() const override { return classes_; }
  std::uint32_t images(bool train) const override {
    return static_cast<std::uint32_t>(images_[train].shape[0]);
  }
  int label(bool train, std::uint32_t index) const override {
    std::int64_t label = 0;
    std::memcpy(&label, labels_[train].bytes.data() + 8 * std::size_t{index}, 8);
    return static_cast<int>(label);
  }
  abl::data::OwnImage image(bool train, std::uint32_t index) const override {
    const auto& [shape, bytes] = images_[train];
    const auto size = static_cast<std::size_t>(3 * shape[1] * shape[2]);
    const auto* const first = reinterpret_cast<const std::uint8_t*>(bytes.data()) + index * size;
    return abl::images::Image{.width = static_cast<int>(shape[2]),
                              .height = static_cast<int>(shape[1]),
                              .pixels = {first, first + size}};
  }

 private:
  std::vector<std::string> classes_;
  Array images_[2], labels_[2];  // val, train
};

}  // namespace

ABLATE_DATA_FORMAT(abl::data::OwnFormat{
    .name = "numpy-arrays",
    .looked_for = "train_images.npy",
    .is_in = [](const fs::path& root) { return fs::exists(root / "train_images.npy"); },
    .open = [](const fs::path& root) -> std::unique_ptr<abl::data::OwnDataSet> {
      return std::make_unique<NumpyArrays>(root);
    }})
