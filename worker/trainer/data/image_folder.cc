// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/data/image_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <iostream>
#include <memory>
#include <mutex>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/sha256.h"
#include "worker/trainer/augmentation/random.h"
#include "worker/trainer/data/jpeg.h"

namespace abl::trainer {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kCacheBytes = std::size_t{512} << 20;  // of decoded pixels, each split
constexpr int kHeldOut = 5;  // every fifth image, where there is no val folder

struct File {
  std::string path;  ///< below the root, with '/'
  std::uintmax_t bytes = 0;
  int label = 0;
};

bool is_jpeg(const fs::path& file) {
  auto ending = file.extension().string();
  std::ranges::transform(ending, ending.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return ending == ".jpg" || ending == ".jpeg";
}

std::vector<std::string> folders_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator{folder})
    if (entry.is_directory() && entry.path().filename().string().front() != '.')
      names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

/// The files of one split folder, sorted by class, then name.
std::vector<File> files_in(const fs::path& root, const std::string& below,
                           const std::vector<std::string>& classes) {
  std::vector<File> files;
  for (std::size_t label = 0; label < classes.size(); ++label) {
    const std::string folder = below.empty() ? classes[label] : below + "/" + classes[label];
    const std::size_t before = files.size();
    if (fs::is_directory(root / folder))
      for (const auto& entry : fs::directory_iterator{root / folder})
        if (entry.is_regular_file() && is_jpeg(entry.path()))
          files.push_back(
              {folder + "/" + entry.path().filename().string(), entry.file_size(), static_cast<int>(label)});
    if (files.size() == before)
      throw Error{Code::kInvalidArgument,
                  fmt::format("data: {} holds no .jpg or .jpeg file", (root / folder).string())};
    std::sort(files.begin() + static_cast<std::ptrdiff_t>(before), files.end(),
              [](const File& a, const File& b) { return a.path < b.path; });
  }
  return files;
}

/// The first `count` of a fixed shuffle, in file order; all for 0.
void keep_some(std::vector<File>& files, int count) {
  if (count <= 0 || static_cast<std::size_t>(count) >= files.size()) return;
  auto order = permutation(static_cast<std::uint32_t>(files.size()), RandomStream{0, Purpose::kSubset});
  order.resize(static_cast<std::size_t>(count));
  std::ranges::sort(order);
  std::vector<File> kept;
  for (const auto index : order) kept.push_back(std::move(files[index]));
  files = std::move(kept);
}

class FolderSource final : public ImageSource {
 public:
  FolderSource(fs::path root, std::vector<File> files, bool skip_damaged, int image_size)
      : root_{std::move(root)},
        files_{std::move(files)},
        skip_damaged_{skip_damaged},
        shorter_side_{2 * image_size},
        decoded_(files_.size()) {}

  std::uint32_t size() const override { return static_cast<std::uint32_t>(files_.size()); }

  std::optional<Sample> load(std::uint32_t index) const override {
    const File& file = files_.at(index);
    if (const auto kept = decoded_[index].load()) return Sample{*kept, file.label};
    try {
      Image image = decode_jpeg(read_file(root_ / file.path), shorter_side_);
      if (cached_ + image.pixels.size() <= kCacheBytes) {
        cached_ += image.pixels.size();
        decoded_[index].store(std::make_shared<const Image>(image));
      }
      return Sample{std::move(image), file.label};
    } catch (const Error& error) {
      if (error.code() != Code::kDataLoss)
        throw;  // the file could not be read: nothing is said of its content
      const std::string what = fmt::format("{}: {}", (root_ / file.path).string(), error.what());
      if (!skip_damaged_)
        throw Error{Code::kDataLoss, "unreadable image " + what + " (data.damaged: skip would leave it out)"};
      if (const std::scoped_lock lock{mutex_}; named_.insert(index).second)
        std::cerr << "skipped unreadable image " + what + "\n";
      return std::nullopt;
    }
  }

 private:
  const fs::path root_;
  const std::vector<File> files_;
  const bool skip_damaged_;
  const int shorter_side_;  ///< room for random crops; larger photographs are decoded at a reduced scale
  mutable std::vector<std::atomic<std::shared_ptr<const Image>>> decoded_;
  mutable std::atomic<std::size_t> cached_ = 0;
  mutable std::mutex mutex_;
  mutable std::set<std::uint32_t> named_;
};

}  // namespace

DataSet open_image_folder(const config::DataConfig& config, const fs::path& root) {
  if (!fs::is_directory(root))
    throw Error{Code::kNotFound, fmt::format("data: the folder {} of the data set {} is not there",
                                             root.string(), config.name)};
  const bool has_train = fs::is_directory(root / "train");
  const std::string val = fs::is_directory(root / "val") ? "val" : "test";
  if (has_train && !fs::is_directory(root / val))
    throw Error{Code::kNotFound,
                fmt::format("data: {} has a folder train but neither val nor test", root.string())};

  DataSet data;
  data.classes = folders_in(has_train ? root / "train" : root);
  if (static_cast<int>(data.classes.size()) != config.classes)
    throw Error{
        Code::kInvalidArgument,
        fmt::format("data: {} has {} class folders, the trial is for {} classes",
                    (has_train ? root / "train" : root).string(), data.classes.size(), config.classes)};
  std::vector<File> train = files_in(root, has_train ? "train" : "", data.classes), held_out;
  if (has_train) {
    held_out = files_in(root, val, data.classes);
  } else {
    std::vector<File> all = std::move(train);
    train.clear();
    std::vector<int> seen(data.classes.size());
    for (auto& file : all) {
      const bool out = seen[static_cast<std::size_t>(file.label)]++ % kHeldOut == kHeldOut - 1;
      (out ? held_out : train).push_back(std::move(file));
    }
    if (held_out.empty())
      throw Error{Code::kInvalidArgument,
                  fmt::format("data: {} has no class with {} images or more: nothing is left for validation",
                              root.string(), kHeldOut)};
  }
  Sha256 digest;  // names and sizes of every file, before a subset is taken: what the folder is, not what is
                  // used of it
  for (const auto* split : {&train, &held_out})
    for (const auto& file : *split) digest.update(fmt::format("{}\n{}\n", file.path, file.bytes));
  data.fingerprint = "folder-1:" + digest.hex();
  keep_some(train, config.train_images);
  keep_some(held_out, config.val_images);
  const bool skip = config.damaged == "skip";
  data.train = std::make_shared<FolderSource>(root, std::move(train), skip, config.image_size);
  data.val = std::make_shared<FolderSource>(root, std::move(held_out), skip, config.image_size);
  return data;
}

}  // namespace abl::trainer
