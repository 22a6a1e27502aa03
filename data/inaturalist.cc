// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <unordered_map>

#include "base/error.h"
#include "base/json_depth.h"
#include "data/file_source.h"
#include "data/formats.h"
#include "data/records.h"

namespace abl::data {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::array kYears{"2018", "2019"};

/// What is kept of an annotation file.
struct Annotations {
  std::vector<std::pair<std::int64_t, std::string>> images;    ///< id, file name
  std::unordered_map<std::int64_t, std::int64_t> category_of;  ///< image id -> category id
  std::map<std::int64_t, std::string> categories;              ///< id -> name

  void take(const std::string& section, const Json& entry) {
    if (section == "images")
      images.emplace_back(entry.at("id").get<std::int64_t>(), entry.at("file_name").get<std::string>());
    else if (section == "annotations")
      category_of[entry.at("image_id").get<std::int64_t>()] = entry.at("category_id").get<std::int64_t>();
    else if (section == "categories")
      categories[entry.at("id").get<std::int64_t>()] = entry.value("name", "");
  }
};

/// Entry by entry: the file has hundreds of megabytes, of which little is kept.
Annotations read_annotations(const fs::path& file) {
  std::ifstream in{file, std::ios::binary};
  if (!in) throw system_error("cannot read " + file.string(), errno);
  Annotations annotations;
  std::string section;
  const auto each = [&](int depth, Json::parse_event_t event, Json& value) {
    if (depth > kDeepestJson)
      throw Error{Code::kDataLoss,
                  fmt::format("data: {} is nested more than {} levels deep", file.string(), kDeepestJson)};
    if (depth == 1 && event == Json::parse_event_t::key) section = value.get<std::string>();
    if (depth != 2 || event != Json::parse_event_t::object_end) return true;
    annotations.take(section, value);
    return false;
  };
  try {
    const auto whole = Json::parse(in, each);
    if (!whole.is_object())
      throw Error{Code::kDataLoss,
                  fmt::format("data: {} is not a JSON object; expected images, annotations and "
                              "categories",
                              file.string())};
  } catch (const Json::exception& error) {
    throw Error{Code::kDataLoss, fmt::format("data: {}: {}; the file is truncated or not an annotation file",
                                             file.string(), error.what())};
  }
  if (annotations.images.empty() || annotations.categories.empty())
    throw Error{Code::kDataLoss,
                fmt::format("data: {} has {} images and {} categories; expected both", file.string(),
                            annotations.images.size(), annotations.categories.size())};
  return annotations;
}

std::vector<File> files_of(const fs::path& root, const std::string& list, const Annotations& annotations) {
  std::map<std::int64_t, int> label_of;
  for (const auto& [id, name] : annotations.categories)
    label_of.emplace(id, static_cast<int>(label_of.size()));
  std::vector<File> files;
  for (const auto& [id, path] : annotations.images) {
    const auto category = annotations.category_of.find(id);
    const auto label =
        category == annotations.category_of.end() ? label_of.end() : label_of.find(category->second);
    if (label == label_of.end())
      throw Error{
          Code::kInvalidArgument,
          fmt::format("data: {} gives image {} no category that it lists; expected one for each image", list,
                      id)};
    files.push_back({path, listed_file_size(root, path, list), label->second});
  }
  return files;
}

std::string year_of(const fs::path& root) {
  const auto found = std::ranges::find_if(kYears, [&](const std::string& year) {
    return fs::is_regular_file(root / ("train" + year + ".json"));
  });
  return found == kYears.end() ? "" : *found;
}

}  // namespace

bool is_inaturalist(const fs::path& root) { return !year_of(root).empty(); }

DataSet open_inaturalist(const config::DataConfig& config, const fs::path& root) {
  const std::string year = year_of(root);
  const fs::path train_list = root / ("train" + year + ".json"), val_list = root / ("val" + year + ".json");
  if (year.empty() || !fs::is_regular_file(val_list))
    throw Error{Code::kNotFound, fmt::format("data: {} is missing; expected it beside {}", val_list.string(),
                                             train_list.filename().string())};
  const Annotations train = read_annotations(train_list), val = read_annotations(val_list);
  const std::string format = "iNaturalist " + year;
  check_classes(config, root, format, static_cast<int>(train.categories.size()));
  if (train.categories != val.categories)
    throw Error{Code::kInvalidArgument,
                fmt::format("data: {} has {} categories but {} has {}; expected the same categories",
                            train_list.string(), train.categories.size(), val_list.filename().string(),
                            val.categories.size())};
  DataSet data = data_set_of_files(config, root, files_of(root, train_list.string(), train),
                                   files_of(root, val_list.string(), val), "inaturalist-1", true);
  for (const auto& [id, name] : train.categories)
    data.classes.push_back(name.empty() ? std::to_string(id) : name);
  data.format = format;
  return data;
}

}  // namespace abl::data
