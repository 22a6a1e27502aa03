// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <istream>
#include <string>
#include <vector>

#include "data/annotated/formats.h"
#include "data/annotated/truths.h"

namespace abl::data {

/// What is kept of an annotation file of COCO's.
struct CocoFile {
  struct Picture {
    std::int64_t id = 0;
    std::string file;  ///< below the folder of the pictures
    int width = 0, height = 0;
    std::string things;  ///< as `append_thing` writes them; of categories by their place in `categories`
    std::size_t count = 0;
  };
  std::vector<Picture> pictures;                                 ///< by id
  std::vector<std::pair<std::int64_t, std::string>> categories;  ///< id and name, by id
};

/// Reads it entry by entry: the file has hundreds of megabytes, of which masks and numbers are kept. What
/// cannot be used is told to `report`, with `name`, the file's, and the entry's place in it. `places`:
/// whether a path below the folder of the pictures is a file there. Throws: Error{kDataLoss} for a file that
/// is no JSON, or has no pictures or categories; what `report` throws.
CocoFile read_coco(std::istream& in, const std::string& name,
                   const std::function<bool(const std::string& picture)>& is_there, const Report& report);

}  // namespace abl::data
