// SPDX-License-Identifier: Apache-2.0
#include "data/annotated/coco_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "base/json_depth.h"
#include "base/printable.h"
#include "images/masks/coded.h"

namespace abl::data {
namespace {

using Json = nlohmann::json;

constexpr double kTolerance = 1;  // pixels that a box may reach out: it is cut then, as rounding goes

/// An entry that cannot be used.
[[noreturn]] void unusable(const std::string& reason) { throw Error{Code::kInvalidArgument, reason}; }

const Json& member(const Json& entry, const char* key) {
  const auto found = entry.find(key);
  if (found == entry.end()) unusable(fmt::format("missing '{}'", key));
  return *found;
}

std::int64_t whole(const Json& entry, const char* key) {
  const Json& value = member(entry, key);
  if (!value.is_number_integer()) unusable(fmt::format("'{}' is not a whole number", key));
  return value.get<std::int64_t>();
}

std::string text(const Json& entry, const char* key) {
  const Json& value = member(entry, key);
  if (!value.is_string()) unusable(fmt::format("'{}' is not a string", key));
  return value.get<std::string>();
}

std::vector<double> numbers(const Json& values, std::string_view what) {
  std::vector<double> all;
  if (!values.is_array()) unusable(fmt::format("{} is not a list of numbers", what));
  for (const Json& value : values) {
    if (!value.is_number()) unusable(fmt::format("{} has a value that is not a number", what));
    all.push_back(value.get<double>());
  }
  return all;
}

int side(const Json& entry, const char* key) {
  const std::int64_t value = whole(entry, key);
  if (value < 1 || value > images::kLargestMaskSide)
    unusable(fmt::format("'{}' is {}; expected 1 to {}", key, value, images::kLargestMaskSide));
  return static_cast<int>(value);
}

/// How runs are kept. Throws: Error{kInvalidArgument}.
std::string runs_of(const Json& shape) {
  const auto size = numbers(member(shape, "size"), "mask 'size'");
  if (size.size() != 2 || !std::ranges::all_of(size, [](double of) {
        return of >= 1 && of <= images::kLargestMaskSide && of == std::floor(of);
      }))
    unusable("invalid mask 'size'; expected height and width");
  const int height = static_cast<int>(size[0]), width = static_cast<int>(size[1]);
  const Json& counts = member(shape, "counts");
  if (counts.is_string())
    return images::compressed(images::mask_of_compressed(counts.get<std::string>(), width, height));
  std::vector<std::uint64_t> runs;
  for (const double run : numbers(counts, "mask 'counts'")) {
    if (!(run >= 0 && run <= 0xffffffff)) unusable(fmt::format("mask run of {} pixels", run));
    runs.push_back(static_cast<std::uint64_t>(run));
  }
  return images::compressed(images::mask_of_runs(runs, width, height));
}

std::vector<images::Polygon> polygons_of(const Json& shape) {
  if (shape.empty()) unusable("empty 'segmentation': no polygon");
  std::vector<images::Polygon> polygons;
  for (const Json& part : shape) {
    polygons.push_back(numbers(part, "a polygon"));
    images::expect_polygon(polygons.back());
  }
  return polygons;
}

/// An annotation, before the pictures and the categories are known: COCO has these last.
struct Entry {
  std::size_t number = 0;  ///< in its section
  std::int64_t id = 0, image = 0, category = 0;
  std::size_t at = 0, bytes = 0;        ///< of what is kept of it
  int mask_width = 0, mask_height = 0;  ///< of runs
};

class Reader {
 public:
  Reader(std::string name, const Report& report)
      : name_{std::move(name)},
        report_{[&report](const std::string& problem) { report(printable_line(problem)); }} {}

  void take(const std::string& section, const Json& entry) {
    if (section != "images" && section != "annotations" && section != "categories") return;
    const std::size_t number = counted_[section]++;
    try {
      if (section == "images")
        take_picture(entry);
      else if (section == "annotations")
        take_annotation(entry, number);
      else
        take_category(entry);
    } catch (const Error& error) {
      if (error.code() != Code::kInvalidArgument) throw;
      say(section, number, entry, error.what());
    }
  }

  CocoFile finish(const std::function<bool(const std::string&)>& is_there);

 private:
  void take_picture(const Json& entry) {
    CocoFile::Picture picture{.id = whole(entry, "id"),
                              .file = text(entry, "file_name"),
                              .width = side(entry, "width"),
                              .height = side(entry, "height"),
                              .things = {}};
    if (const auto [there, added] = picture_.emplace(picture.id, pictures_.size()); !added)
      unusable(fmt::format("duplicate image id {}: {} and {}", picture.id, picture.file,
                           pictures_[there->second].file));
    pictures_.push_back(std::move(picture));
  }

  void take_category(const Json& entry) {
    const std::int64_t id = whole(entry, "id");
    const std::string name = entry.contains("name") ? text(entry, "name") : std::to_string(id);
    if (!categories_.emplace(id, name).second) unusable(fmt::format("duplicate category id {}", id));
  }

  void take_annotation(const Json& entry, std::size_t number) {
    Entry kept{.number = number,
               .id = whole(entry, "id"),
               .image = whole(entry, "image_id"),
               .category = whole(entry, "category_id"),
               .at = arena_.size()};
    const auto box = numbers(member(entry, "bbox"), "'bbox'");
    if (box.size() != 4)
      unusable(fmt::format("'bbox' has {} numbers; expected left, top, width and height", box.size()));
    Truths::Thing thing{.box = {box[0], box[1], box[2], box[3]}, .shape = {}};
    if (!(thing.box.width > 0 && thing.box.height > 0))
      unusable(fmt::format("empty bounding box [{}]", fmt::join(box, ", ")));
    const Json crowd = entry.value("iscrowd", Json{0});
    if (crowd != 0 && crowd != 1) unusable(fmt::format("'iscrowd' is {}; expected 0 or 1", crowd.dump()));
    thing.crowd = crowd == 1;
    thing.area = thing.box.area();
    if (entry.contains("area")) thing.area = numbers(Json::array({entry["area"]}), "'area'").front();
    if (!(thing.area >= 0)) unusable(fmt::format("'area' is {}; expected 0 or more", thing.area));
    if (const auto shape = entry.find("segmentation"); shape != entry.end()) {
      if (shape->is_array()) {
        thing.shape = polygons_of(*shape);
      } else if (shape->is_object()) {
        thing.shape = runs_of(*shape);
        kept.mask_height = (*shape)["size"][0].get<int>(), kept.mask_width = (*shape)["size"][1].get<int>();
      } else {
        unusable("invalid 'segmentation'; expected polygons or run lengths");
      }
    }
    append_thing(arena_, thing);
    kept.bytes = arena_.size() - kept.at;
    entries_.push_back(kept);
  }

  void say(const std::string& section, std::size_t number, const Json& entry,
           const std::string& reason) const {
    std::string where = fmt::format("{}: {}[{}]", name_, section, number);
    const auto add = [&](const char* key, const char* before) {
      if (const auto value = entry.find(key); value != entry.end() && value->is_number_integer())
        where += fmt::format("{}{}", before, value->dump());
    };
    add("id", ", id ");
    add("image_id", ", image ");
    report_(where + ": " + reason);
  }
  void say(const Entry& entry, const std::string& reason) const {
    report_(fmt::format("{}: annotations[{}], id {}, image {}: {}", name_, entry.number, entry.id,
                        entry.image, reason));
  }

  void place(const Entry& entry, const std::unordered_map<std::int64_t, int>& label_of,
             std::unordered_set<std::int64_t>& ids);

  const std::string name_;
  const Report report_;  ///< what the file has of names is no terminal's commands
  std::map<std::string, std::size_t> counted_;
  std::vector<CocoFile::Picture> pictures_;
  std::unordered_map<std::int64_t, std::size_t> picture_;  ///< id -> place
  std::map<std::int64_t, std::string> categories_;
  std::vector<Entry> entries_;
  std::string arena_;
};

/// Cuts what reaches out by a rounding. Throws: Error{kInvalidArgument} for more.
images::Box cut_to(const images::Box& box, int width, int height) {
  if (box.left < -kTolerance || box.top < -kTolerance || box.right() > width + kTolerance ||
      box.bottom() > height + kTolerance)
    unusable(fmt::format("bounding box [{}, {}, {}, {}] extends beyond the {}×{} image", box.left, box.top,
                         box.width, box.height, width, height));
  const double left = std::max(0.0, box.left), top = std::max(0.0, box.top);
  const images::Box cut{left, top, std::min<double>(width, box.right()) - left,
                        std::min<double>(height, box.bottom()) - top};
  if (cut.empty())
    unusable(fmt::format("bounding box [{}, {}, {}, {}] lies outside the {}×{} image", box.left, box.top,
                         box.width, box.height, width, height));
  return cut;
}

void Reader::place(const Entry& entry, const std::unordered_map<std::int64_t, int>& label_of,
                   std::unordered_set<std::int64_t>& ids) {
  if (!ids.insert(entry.id).second) unusable("duplicate annotation id");
  const auto category = label_of.find(entry.category);
  if (category == label_of.end())
    unusable(fmt::format("unknown category {}; 'categories' lists {}, {} to {}", entry.category,
                         categories_.size(), categories_.begin()->first, categories_.rbegin()->first));
  const auto found = picture_.find(entry.image);
  if (found == picture_.end())
    unusable(fmt::format("unknown image {}: 'images' does not list it", entry.image));
  CocoFile::Picture& picture = pictures_[found->second];
  if (entry.mask_width > 0 && (entry.mask_width != picture.width || entry.mask_height != picture.height))
    unusable(fmt::format("mask size {}×{} does not match image size {}×{}", entry.mask_width,
                         entry.mask_height, picture.width, picture.height));
  Truths::Thing thing = decode_things(std::string_view{arena_}.substr(entry.at, entry.bytes), 1).front();
  thing.category = category->second;
  thing.box = cut_to(thing.box, picture.width, picture.height);
  append_thing(picture.things, thing);
  ++picture.count;
}

CocoFile Reader::finish(const std::function<bool(const std::string&)>& is_there) {
  if (pictures_.empty() || categories_.empty())
    throw Error{Code::kDataLoss, fmt::format("data: {} has {} usable images and {} categories; expected both",
                                             name_, pictures_.size(), categories_.size())};
  CocoFile file;
  std::unordered_map<std::int64_t, int> label_of;
  for (const auto& category : categories_) {
    label_of.emplace(category.first, static_cast<int>(label_of.size()));
    file.categories.push_back(category);
  }
  std::unordered_set<std::int64_t> ids;
  for (const Entry& entry : entries_) {
    try {
      place(entry, label_of, ids);
    } catch (const Error& error) {
      if (error.code() != Code::kInvalidArgument) throw;
      say(entry, error.what());
    }
  }
  for (auto& picture : pictures_) {
    if (is_there(picture.file))
      file.pictures.push_back(std::move(picture));
    else
      report_(fmt::format("{}: image {}: missing file {}", name_, picture.id, picture.file));
  }
  std::ranges::sort(file.pictures, {}, &CocoFile::Picture::id);
  return file;
}

}  // namespace

CocoFile read_coco(std::istream& in, const std::string& name,
                   const std::function<bool(const std::string& picture)>& is_there, const Report& report) {
  Reader reader{name, report};
  std::string section;
  const auto each = [&](int depth, Json::parse_event_t event, Json& value) {
    if (depth > kDeepestJson)
      throw Error{Code::kDataLoss,
                  fmt::format("data: {} is nested more than {} levels deep", name, kDeepestJson)};
    if (depth == 1 && event == Json::parse_event_t::key) section = value.get<std::string>();
    if (depth != 2 || event != Json::parse_event_t::object_end) return true;
    reader.take(section, value);
    return false;
  };
  try {
    if (!Json::parse(in, each).is_object())
      throw Error{
          Code::kDataLoss,
          fmt::format("data: {} is not a JSON object; expected images, annotations and categories", name)};
  } catch (const Json::exception& error) {
    throw Error{Code::kDataLoss, fmt::format("data: {}: {}; the file is truncated or not an annotation file",
                                             name, printable_line(error.what()))};
  }
  return reader.finish(is_there);
}

}  // namespace abl::data
