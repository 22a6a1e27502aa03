// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "data/file_source.h"
#include "data/formats.h"
#include "images/image_file.h"

namespace abl::data {
namespace {

namespace fs = std::filesystem;

constexpr int kHeldOut = 5;      // every fifth image, where there is no val folder
constexpr int kNumbered = 1000;  // folders that are named by the numbers of ImageNet's classes

bool is_named_as_image(const fs::path& file) { return images::has_image_name(file.filename().string()); }

/// "1 file is", "3 files are".
std::string number_of(std::uint64_t count, std::string_view one, std::string_view more) {
  return fmt::format("{} {}", count, count == 1 ? one : more);
}

std::vector<std::string> folders_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator{folder})
    if (entry.is_directory() && entry.path().filename().string().front() != '.')
      names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

/// Files beside images that are not read, whatever they hold.
struct OtherFiles {
  std::uint64_t count = 0;
  std::string first;

  void add(const fs::path& file) {
    if (file.filename().string().front() == '.') return;  // .DS_Store
    if (count++ == 0 || file.string() < first) first = file.string();
  }
  std::vector<std::string> sentences() const {
    if (count == 0) return {};
    return {
        fmt::format("{}, the first is {}",
                    number_of(count, "file does not end in", "files do not end in") +
                        fmt::format(" {} and {} not used", images::kImageNames, count == 1 ? "is" : "are"),
                    first)};
  }
};

/// The files of one split folder, sorted by class, then name.
std::vector<File> files_in(const fs::path& root, const std::string& below,
                           const std::vector<std::string>& classes, OtherFiles& others) {
  std::vector<File> files;
  for (std::size_t label = 0; label < classes.size(); ++label) {
    const std::string folder = below.empty() ? classes[label] : below + "/" + classes[label];
    const std::size_t before = files.size();
    if (fs::is_directory(root / folder))
      for (const auto& entry : fs::directory_iterator{root / folder}) {
        if (!entry.is_regular_file()) continue;
        if (is_named_as_image(entry.path()))
          files.push_back(
              {folder + "/" + entry.path().filename().string(), entry.file_size(), static_cast<int>(label)});
        else
          others.add(entry.path());
      }
    if (files.size() == before)
      throw Error{Code::kInvalidArgument,
                  fmt::format("data: {} holds no {} file", (root / folder).string(), images::kImageNames)};
    std::sort(files.begin() + static_cast<std::ptrdiff_t>(before), files.end(),
              [](const File& a, const File& b) { return a.path < b.path; });
  }
  return files;
}

/// Classes of the validation folder that cannot be learned.
std::vector<std::string> classes_of_val_alone(const fs::path& val, const std::vector<std::string>& classes) {
  std::vector<std::string> alone;
  std::ranges::set_difference(folders_in(val), classes, std::back_inserter(alone));
  if (alone.empty()) return {};
  std::uint64_t images = 0;
  for (const auto& name : alone)
    images += static_cast<std::uint64_t>(
        std::ranges::count_if(fs::directory_iterator{val / name},
                              [](const auto& entry) { return is_named_as_image(entry.path()); }));
  return {fmt::format("{} in {} alone and not used, with {}; the first is {}",
                      number_of(alone.size(), "class is", "classes are"), val.string(),
                      number_of(images, "image", "images"), alone.front())};
}

/// "0" … "999": the order of the labels, which is not that of the sorted names.
std::vector<std::string> numbers() {
  std::vector<std::string> names;
  for (int number = 0; number < kNumbered; ++number) names.push_back(std::to_string(number));
  return names;
}

}  // namespace

bool has_split_folders(const fs::path& root) {
  return fs::is_directory(root / "train") && !folders_in(root / "train").empty();
}

bool has_class_folders(const fs::path& root) {
  return std::ranges::any_of(folders_in(root), [&](const std::string& name) {
    const fs::directory_iterator files{root / name, fs::directory_options::skip_permission_denied};
    return std::ranges::any_of(files, [](const auto& entry) { return is_named_as_image(entry.path()); });
  });
}

DataSet open_image_folder(const config::DataConfig& config, const fs::path& root) {
  if (!fs::is_directory(root))
    throw Error{Code::kNotFound,
                fmt::format("data: folder {} of the data set {} not found", root.string(), config.name)};
  const bool has_train = fs::is_directory(root / "train");
  const std::string val = fs::is_directory(root / "val") ? "val" : "test";
  if (has_train && !fs::is_directory(root / val))
    throw Error{Code::kNotFound,
                fmt::format("data: {} has a folder train but neither val nor test", root.string())};

  const auto classes = folders_in(has_train ? root / "train" : root);
  if (classes.empty() || (config.classes > 0 && static_cast<int>(classes.size()) != config.classes))
    throw Error{classes.empty() ? Code::kNotFound : Code::kInvalidArgument,
                fmt::format("data: {} has {} class folders, {}", (has_train ? root / "train" : root).string(),
                            classes.size(),
                            config.classes > 0 ? fmt::format("the trial is for {} classes", config.classes)
                                               : "at least one was expected")};
  OtherFiles others;
  std::vector<std::string> passed_over;
  std::vector<File> train = files_in(root, has_train ? "train" : "", classes, others), held_out;
  if (has_train) {
    held_out = files_in(root, val, classes, others);
    passed_over = classes_of_val_alone(root / val, classes);
  } else {
    std::vector<File> all = std::move(train);
    train.clear();
    std::vector<int> seen(classes.size());
    for (auto& file : all) {
      const bool out = seen[static_cast<std::size_t>(file.label)]++ % kHeldOut == kHeldOut - 1;
      (out ? held_out : train).push_back(std::move(file));
    }
    if (held_out.empty())
      throw Error{Code::kInvalidArgument,
                  fmt::format("data: {} has no class with {} images or more: nothing is left for validation",
                              root.string(), kHeldOut)};
  }
  DataSet data = data_set_of_files(config, root, std::move(train), std::move(held_out), "folder-1", false);
  data.classes = classes;
  data.format = "folders of images";
  data.passed_over = std::move(passed_over);
  std::ranges::move(others.sentences(), std::back_inserter(data.passed_over));
  return data;
}

bool is_numbered_folders(const fs::path& root) {
  const auto folders = folders_in(root);
  return folders.size() == kNumbered && std::ranges::all_of(numbers(), [&](const std::string& number) {
           return std::ranges::binary_search(folders, number);
         });
}

DataSet open_numbered_folders(const config::DataConfig& config, const fs::path& root) {
  if (config.classes > 0 && config.classes != kNumbered)
    throw Error{Code::kInvalidArgument,
                fmt::format("data: {} has class folders 0 to {} (ImageNet-V2), the trial is for {} classes",
                            root.string(), kNumbered - 1, config.classes)};
  const auto classes = numbers();
  OtherFiles others;
  DataSet data =
      data_set_of_files(config, root, {}, files_in(root, "", classes, others), "numbered-1", false);
  data.passed_over = others.sentences();
  data.classes = classes;
  data.format = "numbered folders of images (ImageNet-V2)";
  return data;
}

}  // namespace abl::data
