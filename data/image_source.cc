// SPDX-License-Identifier: Apache-2.0
#include "data/image_source.h"

#include <fmt/format.h>

#include "base/error.h"
#include "data/formats.h"

namespace abl::data {

std::optional<Sample> ImageSource::load(std::uint32_t index) const {
  auto whole = decode(index, [](int width, int height) {
    return images::Wanted{.region = {.width = width, .height = height}, .width = 0, .height = 0};
  });
  if (!whole) return std::nullopt;
  return Sample{std::move(whole->image), whole->label};
}

DataSet open_data(const config::DataConfig& data, const std::string& root, Needs needs) {
  if (is_drawn(data.name)) return hold_out(open_drawn(data), data);
  if (root.empty())
    throw Error{
        Code::kNotFound,
        fmt::format(
            "no folder is given for the data set {0}: name it with --data-root FOLDER, or start the worker "
            "with --data {0}=FOLDER",
            data.name)};
  DataSet set = open_stored(data, root);
  if ((needs == Needs::kTrainAndVal || data.held_out > 0) && set.train->size() == 0)
    throw Error{
        Code::kFailedPrecondition,
        fmt::format("data: {} ({}) has images to evaluate on, but none to train on", root, set.format)};
  return hold_out(std::move(set), data);
}

}  // namespace abl::data
