// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/data/file_source.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "base/sha256.h"
#include "worker/trainer/data/image_file.h"
#include "worker/trainer/data/stored_source.h"
#include "worker/trainer/data/subset.h"

namespace abl::trainer {
namespace {

namespace fs = std::filesystem;

class FileSource final : public StoredSource {
 public:
  FileSource(const config::DataConfig& data, fs::path root, std::vector<File> files)
      : StoredSource{data, files.size()}, root_{std::move(root)}, files_{std::move(files)} {}

  std::uint32_t size() const override { return static_cast<std::uint32_t>(files_.size()); }
  int label(std::uint32_t index) const override { return files_.at(index).label; }
  std::string name(std::uint32_t index) const override { return (root_ / files_.at(index).path).string(); }
  EncodedImage open(std::uint32_t index) const override {
    const File& file = files_.at(index);
    auto bytes = std::make_shared<const std::string>(read_file(root_ / file.path));
    EncodedImage image = image_in(*bytes);
    image.owner = bytes, image.label = file.label;
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

}  // namespace abl::trainer
