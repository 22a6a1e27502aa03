// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "base/sha256.h"
#include "data/annotated/formats.h"
#include "data/annotated/stored_annotations.h"
#include "data/order.h"
#include "data/stored_source.h"
#include "images/image_file.h"

namespace abl::data {
namespace {

namespace fs = std::filesystem;

constexpr int kAdeClasses = 150;
constexpr const char* kAdeNames = "objectInfo150.txt";

struct Labelled {
  fs::path picture, labels;
  AnnotatedSource::Extent extent;
};

class Ade20kSource final : public StoredAnnotations {
 public:
  Ade20kSource(const config::DataConfig& data, int classes, std::vector<Labelled> pictures)
      : StoredAnnotations{data.damaged, classes}, pictures_{std::move(pictures)} {}

  std::uint32_t size() const override { return static_cast<std::uint32_t>(pictures_.size()); }
  std::string name(std::uint32_t index) const override { return pictures_.at(index).picture.string(); }
  Extent extent(std::uint32_t index) const override { return pictures_.at(index).extent; }
  std::size_t instances(std::uint32_t) const override { return 0; }
  images::EncodedImage open(std::uint32_t index) const override {
    return owning(read_file(pictures_.at(index).picture));
  }
  Truths truths(std::uint32_t index) const override {
    return {.things = {},
            .values = LabelValues::kZeroIsOther,
            .label_file = read_file(pictures_.at(index).labels)};
  }

 private:
  const std::vector<Labelled> pictures_;
};

/// A folder's files with a name that `takes`, sorted.
template <class Takes>
std::vector<fs::path> files_of(const fs::path& folder, const Takes& takes) {
  if (!fs::is_directory(folder))
    throw Error{Code::kNotFound, fmt::format("data: {} is missing", folder.string())};
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator{folder})
    if (entry.is_regular_file() && takes(entry.path().filename().string())) files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

/// The pictures of a split that have labels; the headers of all are read, for their dimensions.
std::vector<Labelled> pictures_of(const fs::path& root, const char* split, const Report& report) {
  const fs::path labels = root / "annotations" / split;
  std::vector<Labelled> pictures;
  auto label_files =
      files_of(labels, [](const std::string& name) { return fs::path{name}.extension() == ".png"; });
  for (const fs::path& picture : files_of(root / "images" / split, images::has_image_name)) {
    const fs::path own = labels / (picture.stem().string() + ".png");
    const auto found = std::ranges::lower_bound(label_files, own);
    if (found == label_files.end() || *found != own) {
      report(fmt::format("{}: missing label file {}", picture.string(), own.string()));
      continue;
    }
    label_files.erase(found);
    try {
      const std::string bytes = read_file(picture);
      const auto header = images::image_in(bytes);
      pictures.push_back({picture, own, {header.width, header.height}});
    } catch (const Error& error) {
      if (error.code() != Code::kDataLoss) throw;
      report(fmt::format("{}: {}", picture.string(), error.what()));
    }
  }
  for (const fs::path& left : label_files)
    report(fmt::format("{}: missing image file {}/{}.*", left.string(), (root / "images" / split).string(),
                       left.stem().string()));
  if (pictures.empty())
    throw Error{Code::kNotFound,
                fmt::format("data: {} has no labelled images", (root / "images" / split).string())};
  return pictures;
}

/// The last column of a table with a heading, up to its first comma; or whole lines.
std::vector<std::string> names_in(const fs::path& root) {
  std::vector<std::string> names;
  const bool is_table = fs::is_regular_file(root / kAdeNames);
  if (!is_table && !fs::is_regular_file(root / "classes.txt")) {
    for (int i = 1; i <= kAdeClasses; ++i) names.push_back(std::to_string(i));
    return names;
  }
  std::istringstream lines{read_file(root / (is_table ? kAdeNames : "classes.txt"))};
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty()) continue;
    if (is_table) line = line.substr(line.rfind('\t') + 1);
    names.push_back(is_table ? line.substr(0, line.find(',')) : line);
  }
  if (is_table && !names.empty()) names.erase(names.begin());
  if (names.empty() || names.size() > images::LabelMap::kIgnored - 1)
    throw Error{Code::kInvalidArgument,
                fmt::format("data: {} names {} classes; expected 1 to 254",
                            (root / (is_table ? kAdeNames : "classes.txt")).string(), names.size())};
  return names;
}

void add_to(Sha256& digest, const std::vector<Labelled>& pictures) {
  for (const auto& of : pictures)
    digest.update(fmt::format("{}\n{}\n{}\n", of.picture.filename().string(), fs::file_size(of.picture),
                              fs::file_size(of.labels)));
}

}  // namespace

bool is_ade20k(const fs::path& root) {
  return fs::is_directory(root / "annotations" / "training") &&
         fs::is_directory(root / "images" / "training");
}

AnnotatedSet open_ade20k(const config::DataConfig& config, const fs::path& root, const Report& report) {
  auto train = pictures_of(root, "training", report), val = pictures_of(root, "validation", report);
  AnnotatedSet set{.labels = names_in(root), .format = "ADE20K"};
  Sha256 digest;
  for (const auto& name : set.labels) digest.update(name + "\n");
  add_to(digest, train), add_to(digest, val);
  set.fingerprint = "ade20k-1:" + digest.hex();
  keep_some(train, config.train_images, "train_images");
  keep_some(val, config.val_images, "val_images");
  const int classes = static_cast<int>(set.labels.size());
  set.train = std::make_shared<Ade20kSource>(config, classes, std::move(train));
  set.val = std::make_shared<Ade20kSource>(config, classes, std::move(val));
  return set;
}

}  // namespace abl::data
