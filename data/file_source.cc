// SPDX-License-Identifier: Apache-2.0
#include "data/file_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>

#include "base/error.h"
#include "base/file.h"
#include "base/sha256.h"
#include "data/order.h"
#include "data/stored_source.h"
#include "images/image_file.h"

namespace abl::data {
namespace {

namespace fs = std::filesystem;

class FileSource final : public StoredSource {
 public:
  FileSource(const config::DataConfig& data, fs::path root, std::vector<File> files)
      : StoredSource{data, files.size()}, root_{std::move(root)}, files_{std::move(files)} {}

  std::uint32_t size() const override { return static_cast<std::uint32_t>(files_.size()); }
  int label(std::uint32_t index) const override { return files_.at(index).label; }
  std::string name(std::uint32_t index) const override { return (root_ / files_.at(index).path).string(); }
  images::EncodedImage open(std::uint32_t index) const override {
    const File& file = files_.at(index);
    images::EncodedImage image = owning(read_file(root_ / file.path));
    image.label = file.label;
    return image;
  }

 private:
  const fs::path root_;
  const std::vector<File> files_;
};

}  // namespace

DataSet data_set_of_files(const config::DataConfig& data, const fs::path& root, std::vector<File> train,
                          std::vector<File> val, std::string_view kind, bool with_labels) {
  Sha256 digest;  // what the folder is, not what is used of it
  for (const auto* split : {&train, &val})
    for (const auto& file : *split) {
      digest.update(fmt::format("{}\n{}\n", file.path, file.bytes));
      if (with_labels) digest.update(fmt::format("{}\n", file.label));
    }
  DataSet set;
  set.fingerprint = fmt::format("{}:{}", kind, digest.hex());
  keep_some(train, data.train_images, "train_images");
  keep_some(val, data.val_images, "val_images");
  set.train = std::make_shared<FileSource>(data, root, std::move(train));
  set.val = std::make_shared<FileSource>(data, root, std::move(val));
  return set;
}

std::uintmax_t listed_file_size(const fs::path& root, const std::string& path, const std::string& list) {
  const fs::path below{path};
  if (path.empty() || below.is_absolute() || std::ranges::find(below, "..") != below.end())
    throw Error{Code::kInvalidArgument,
                fmt::format("data: {} names '{}'; expected a path below {}", list, path, root.string())};
  std::error_code failed;
  const auto bytes = fs::file_size(root / below, failed);
  if (failed)
    throw Error{Code::kNotFound, fmt::format("data: {} names {}, which cannot be read: {}", list,
                                             (root / below).string(), failed.message())};
  return bytes;
}

namespace {

class Photograph final : public ImageSource {
 public:
  explicit Photograph(const std::filesystem::path& file) : name_{file.string()}, bytes_{read_file(file)} {}

  std::uint32_t size() const override { return 1; }
  int label(std::uint32_t) const override { return 0; }
  std::string name(std::uint32_t) const override { return name_; }
  images::EncodedImage open(std::uint32_t) const override { return images::image_in(bytes_); }
  std::optional<images::DecodedRegion> decode(std::uint32_t index,
                                              const images::ChooseRegion& choose) const override {
    try {
      return decode_region(open(index), choose);
    } catch (const Error& error) {
      throw Error{error.code(), fmt::format("{}: {}", name_, error.what())};
    }
  }

 private:
  const std::string name_, bytes_;
};

}  // namespace

bool is_photograph(const std::filesystem::path& file) {
  std::ifstream in{file, std::ios::binary};
  if (!in) throw system_error("cannot read " + file.string(), errno);
  std::array<char, 12> first{};
  in.read(first.data(), first.size());
  return images::coding_of({first.data(), static_cast<std::size_t>(in.gcount())}).has_value();
}

std::shared_ptr<const ImageSource> open_photograph(const std::filesystem::path& file) {
  return std::make_shared<Photograph>(file);
}

}  // namespace abl::data
