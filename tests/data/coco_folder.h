// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

#include "data/annotated/formats.h"
#include "images/png_write.h"
#include "tests/data/data_folder.h"

namespace abl::data {

/// A small COCO data set and a small ADE20K one, in which a test makes one thing wrong.
class AnnotatedFolder : public DataFolder {
 protected:
  using Json = nlohmann::json;

  /// Two pictures of 24×16 pixels; the first has a polygon and a crowd, the second nothing. Categories have
  /// ids that are no places.
  static Json instances() {
    return Json::parse(R"({
      "images": [{"id": 9, "file_name": "b.jpg", "width": 24, "height": 16},
                 {"id": 4, "file_name": "a.jpg", "width": 24, "height": 16}],
      "annotations": [
        {"id": 1, "image_id": 9, "category_id": 18, "bbox": [2, 3, 8, 5], "area": 40, "iscrowd": 0,
         "segmentation": [[2, 3, 10, 3, 10, 8, 2, 8]]},
        {"id": 2, "image_id": 9, "category_id": 3, "bbox": [0, 0, 1, 4], "area": 4, "iscrowd": 1,
         "segmentation": {"size": [16, 24], "counts": [0, 4, 380]}}],
      "categories": [{"id": 18, "name": "dog"}, {"id": 3, "name": "car"}]})");
  }
  void put_coco(const Json& train = instances(), const Json& val = instances()) const {
    put("coco/annotations/instances_train2017.json", train.dump());
    put("coco/annotations/instances_val2017.json", val.dump());
    for (const char* split : {"train", "val"})
      for (const char* name : {"a", "b"}) put_picture(fmt::format("coco/{}2017/{}.jpg", split, name));
  }

  static std::string label_file(std::vector<std::uint8_t> some, int width = 24, int height = 16) {
    auto map = images::labelled(width, height, 0);
    std::ranges::copy(some, map.labels.begin());
    return images::encode_png(map);
  }
  void put_ade20k() const {
    for (const char* split : {"training", "validation"})
      for (const char* name : {"a", "b"}) {
        put_picture(fmt::format("ade/images/{}/{}.jpg", split, name));
        put(fmt::format("ade/annotations/{}/{}.png", split, name), label_file({1, 2, 150, 255}));
      }
  }

  AnnotatedSet open_set(const std::string& below, const Report& report = {}) const {
    return open_annotated({.name = "test"}, path(below), report);
  }
};

}  // namespace abl::data
