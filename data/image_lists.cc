// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "data/file_source.h"
#include "data/formats.h"
#include "data/records.h"

namespace abl::data {
namespace {

namespace fs = std::filesystem;

struct Lists {
  const char *train, *val;                ///< the lists
  const char *train_folder, *val_folder;  ///< where their files lie, if there is such a folder
  const char* names;                      ///< of the classes
  char separator;
  int first_label;
};
constexpr std::array kLists{
    Lists{"anno_train.csv", "anno_test.csv", "cars_train", "cars_test", "names.csv", ',', 1},
    Lists{"cars_train_annos.csv", "cars_test_annos.csv", "cars_train", "cars_test", "names.csv", ',', 1},
    Lists{"train.txt", "val.txt", "", "", "classes.txt", ' ', 0},
    Lists{"train.txt", "test.txt", "", "", "classes.txt", ' ', 0}};
constexpr int kMostClasses = 1'000'000;

const Lists* find_lists(const fs::path& root) {
  const auto found = std::ranges::find_if(kLists, [&](const Lists& lists) {
    return fs::is_regular_file(root / lists.train) && fs::is_regular_file(root / lists.val);
  });
  return found == kLists.end() ? nullptr : &*found;
}

std::string trimmed(std::string text) {
  constexpr const char* kAround = " \t\r\"";
  text.erase(text.find_last_not_of(kAround) + 1);
  text.erase(0, text.find_first_not_of(kAround));
  return text;
}

std::vector<std::string> fields_of(const std::string& line, char separator) {
  std::vector<std::string> fields;
  if (separator == ' ') {  // the label is behind the last gap: a path may have spaces
    const auto gap = line.find_last_of(" \t");
    if (gap != std::string::npos) fields = {trimmed(line.substr(0, gap)), line.substr(gap + 1)};
    return fields;
  }
  std::istringstream in{line};
  for (std::string field; std::getline(in, field, separator);) fields.push_back(trimmed(field));
  return fields;
}

std::optional<int> number_in(const std::string& text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::size_t column(const std::vector<std::string>& header, const std::vector<std::string>& names,
                   std::size_t otherwise) {
  const auto found = std::ranges::find_first_of(header, names);
  return found == header.end() ? otherwise : static_cast<std::size_t>(found - header.begin());
}

std::vector<File> read_list(const fs::path& root, const Lists& lists, const char* list, const char* folder) {
  const std::string where = (root / list).string();
  const std::string below = *folder && fs::is_directory(root / folder) ? std::string{folder} + "/" : "";
  std::istringstream lines{read_file(root / list)};
  std::vector<File> files;
  std::optional<std::size_t> path_at, label_at;  // columns, where a header tells them
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    line = trimmed(line);
    if (line.empty()) continue;
    const auto fields = fields_of(line, lists.separator);
    const std::size_t at = label_at.value_or(fields.empty() ? 0 : fields.size() - 1);
    const auto label = number_in(at < fields.size() ? fields[at] : "");
    if (number == 1 && fields.size() > 1 && !label && lists.separator == ',') {
      path_at = column(fields, {"fname", "filename", "file", "image", "path"}, 0);
      label_at = column(fields, {"class", "label"}, fields.size() - 1);
      continue;
    }
    if (fields.size() < 2 || path_at.value_or(0) >= fields.size() || !label || *label < lists.first_label ||
        *label >= kMostClasses)
      throw Error{Code::kInvalidArgument,
                  fmt::format("data: {}:{}: '{}'; expected a file and its label, {} or more", where, number,
                              line.substr(0, 80), lists.first_label)};
    File file{.path = below + fields[path_at.value_or(0)], .label = *label - lists.first_label};
    file.bytes = listed_file_size(root, file.path, fmt::format("{}:{}", where, number));
    files.push_back(std::move(file));
  }
  if (files.empty())
    throw Error{Code::kInvalidArgument, fmt::format("data: {} names no file; expected at least one", where)};
  return files;
}

/// Labels are 0 … classes-1, each with an image to train on.
void check_labels(const std::vector<File>& files, const std::string& where, int classes, int first_label,
                  bool each) {
  std::vector<bool> seen(static_cast<std::size_t>(classes));
  for (const auto& file : files) {
    if (file.label >= classes)
      throw Error{Code::kInvalidArgument,
                  fmt::format("data: {} gives {} the label {}; expected {} to {}", where, file.path,
                              file.label + first_label, first_label, classes - 1 + first_label)};
    seen[static_cast<std::size_t>(file.label)] = true;
  }
  if (const auto missing = std::ranges::find(seen, false); each && missing != seen.end())
    throw Error{Code::kInvalidArgument,
                fmt::format("data: {} names no image of label {}; expected one of each from {} to {}", where,
                            missing - seen.begin() + first_label, first_label, classes - 1 + first_label)};
}

}  // namespace

bool is_image_lists(const fs::path& root) { return find_lists(root) != nullptr; }

DataSet open_image_lists(const config::DataConfig& config, const fs::path& root) {
  const Lists* lists = find_lists(root);
  if (!lists)
    throw Error{
        Code::kNotFound,
        fmt::format("data: {} has no anno_train.csv with anno_test.csv, and no train.txt with val.txt",
                    root.string())};
  auto train = read_list(root, *lists, lists->train, lists->train_folder);
  auto val = read_list(root, *lists, lists->val, lists->val_folder);
  const int found = std::ranges::max(train, {}, &File::label).label + 1;
  const std::string format = fmt::format("images listed in {} and {}", lists->train, lists->val);
  check_classes(config, root, format, found);
  check_labels(train, (root / lists->train).string(), found, lists->first_label, true);
  check_labels(val, (root / lists->val).string(), found, lists->first_label, false);
  DataSet data = data_set_of_files(config, root, std::move(train), std::move(val), "list-1", true);
  data.classes = class_names(root / lists->names, found);
  data.format = format;
  return data;
}

}  // namespace abl::data
