// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>

#include "base/error.h"
#include "base/file.h"
#include "base/sha256.h"
#include "data/annotated/coco_file.h"
#include "data/annotated/stored_annotations.h"
#include "data/order.h"
#include "data/stored_source.h"
#include "images/image_file.h"

namespace abl::data {
namespace {

namespace fs = std::filesystem;

constexpr std::array kCocoYears{"2017", "2014", ""};

class CocoSource final : public StoredAnnotations {
 public:
  CocoSource(const config::DataConfig& data, fs::path folder, CocoFile file)
      : StoredAnnotations{data.damaged, 0},
        folder_{std::move(folder)},
        categories_{static_cast<int>(file.categories.size())},
        pictures_{std::move(file.pictures)} {}

  std::uint32_t size() const override { return static_cast<std::uint32_t>(pictures_.size()); }
  std::string name(std::uint32_t index) const override {
    return (folder_ / pictures_.at(index).file).string();
  }
  Extent extent(std::uint32_t index) const override {
    return {pictures_.at(index).width, pictures_.at(index).height};
  }
  std::size_t instances(std::uint32_t index) const override { return pictures_.at(index).count; }
  images::EncodedImage open(std::uint32_t index) const override {
    return owning(read_file(folder_ / pictures_.at(index).file));
  }
  Truths truths(std::uint32_t index) const override {
    return {.things = decode_things(pictures_.at(index).things, categories_), .label_file = {}};
  }

 private:
  const fs::path folder_;
  const int categories_;
  const std::vector<CocoFile::Picture> pictures_;
};

std::string list_of(std::string_view split, std::string_view year) {
  return fmt::format("annotations/instances_{}{}.json", split, year);
}

const char* year_of_coco(const fs::path& root) {
  const auto* const found = std::ranges::find_if(
      kCocoYears, [&](const char* year) { return fs::is_regular_file(root / list_of("train", year)); });
  return found == kCocoYears.end() ? nullptr : *found;
}

fs::path folder_of(const fs::path& root, const std::string& name) {
  for (const fs::path& folder : {root / name, root / "images" / name})
    if (fs::is_directory(folder)) return folder;
  throw Error{Code::kNotFound, fmt::format("data: missing {}; expected it or {} beside annotations/",
                                           (root / name).string(), (root / "images" / name).string())};
}

/// A path that does not lead out of the folder, and a file.
bool is_file_below(const fs::path& folder, const std::string& name) {
  const fs::path below{name};
  return !name.empty() && !below.is_absolute() && std::ranges::find(below, "..") == below.end() &&
         fs::is_regular_file(folder / below);
}

struct CocoSplit {
  fs::path list, folder;
  CocoFile file;

  CocoSplit(const fs::path& root, std::string_view split, std::string_view year, const Report& report)
      : list{root / list_of(split, year)} {
    if (!fs::is_regular_file(list))
      throw Error{Code::kNotFound, fmt::format("data: {} is missing", list.string())};
    folder = folder_of(root, fmt::format("{}{}", split, year));
    std::ifstream in{list, std::ios::binary};
    if (!in) throw system_error("cannot read " + list.string(), errno);
    file = read_coco(
        in, list.string(), [&](const std::string& name) { return is_file_below(folder, name); }, report);
  }
  /// Of what it is, before a part of it is taken.
  void add_to(Sha256& digest) const {
    digest.update(sha256_file(list) + "\n");
    for (const auto& picture : file.pictures)
      digest.update(fmt::format("{}\n{}\n", picture.file, fs::file_size(folder / picture.file)));
  }
};

}  // namespace

bool is_coco(const fs::path& root) { return year_of_coco(root) != nullptr; }

AnnotatedSet open_coco(const config::DataConfig& config, const fs::path& root, const Report& report) {
  const char* const year = year_of_coco(root);
  if (!year)
    throw Error{Code::kNotFound,
                fmt::format("data: {} is missing", (root / list_of("train", kCocoYears.front())).string())};
  CocoSplit train{root, "train", year, report}, val{root, "val", year, report};
  if (train.file.categories != val.file.categories)
    throw Error{Code::kInvalidArgument,
                fmt::format("data: {} has {} categories but {} has {}; expected the same categories",
                            train.list.string(), train.file.categories.size(), val.list.string(),
                            val.file.categories.size())};
  Sha256 digest;
  train.add_to(digest), val.add_to(digest);
  AnnotatedSet set{.fingerprint = "coco-1:" + digest.hex(), .format = fmt::format("COCO instances {}", year)};
  if (*year == '\0') set.format = "COCO instances";
  for (const auto& category : train.file.categories) set.categories.push_back(category.second);
  keep_some(train.file.pictures, config.train_images, "train_images");
  keep_some(val.file.pictures, config.val_images, "val_images");
  set.train = std::make_shared<CocoSource>(config, train.folder, std::move(train.file));
  set.val = std::make_shared<CocoSource>(config, val.folder, std::move(val.file));
  return set;
}

}  // namespace abl::data
