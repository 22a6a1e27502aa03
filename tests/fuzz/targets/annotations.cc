// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <sstream>

#include "base/error.h"
#include "data/annotated/coco_file.h"
#include "data/annotated/truths.h"
#include "images/label_file.h"
#include "images/masks/coded.h"
#include "images/masks/mask.h"
#include "images/masks/overlap.h"
#include "images/masks/polygons.h"
#include "tests/fuzz/target.h"

namespace abl::fuzz {
namespace {

/// Runs what may refuse the bytes.
template <class Read>
void or_refuse(Code code, const Read& read) {
  try {
    read();
  } catch (const Error& error) {
    require(error.code() == code, "what is refused is wrong, and nothing else");
    require_printable(error.what());
  }
}

void use(const images::Mask& mask) {
  std::uint64_t pixels = 0;
  for (const auto run : mask.runs) pixels += run;
  require(pixels == std::uint64_t{1} * static_cast<unsigned>(mask.width) * static_cast<unsigned>(mask.height),
          "a mask has a run for each pixel");
  require(images::pixels_of(mask).size() == pixels, "and a byte");
  require(images::mask_of_compressed(images::compressed(mask), mask.width, mask.height) == mask,
          "what is written is read");
  require(images::flipped(images::flipped(mask)) == mask, "flipped twice it is the same");
  const auto box = images::bounds(mask);
  require(box.right() <= mask.width && box.bottom() <= mask.height, "its box lies in the picture");
  require(images::overlap(mask, mask, images::Against::kThing) <= 1, "no overlap is more than all");
  if (mask.width > 0 && mask.height > 0) (void)images::resized(images::cropped(mask, {-1, 1, 5, 9}), 7, 3);
}

std::vector<double> numbers_in(std::string_view bytes) {
  std::vector<double> numbers(bytes.size() / sizeof(double));
  if (!numbers.empty()) std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(double));
  return numbers;
}

}  // namespace

/// Masks, polygons, what is stored of a picture, and an annotation file: the first two bytes are a picture's
/// sides.
void read_annotations(std::string_view bytes) {
  if (bytes.size() < 2) return;
  const int width = static_cast<unsigned char>(bytes[0]), height = static_cast<unsigned char>(bytes[1]);
  const std::vector<char> exact{bytes.begin() + 2, bytes.end()};
  const std::string_view content{exact.data(), exact.size()};
  or_refuse(Code::kInvalidArgument, [&] { use(images::mask_of_compressed(content, width, height)); });
  or_refuse(Code::kInvalidArgument, [&] {
    const auto corners = numbers_in(content);
    for (const double corner : corners)
      if (std::abs(corner) > 1e4) return;  // a long boundary takes as long as an honest one
    use(images::mask_of_polygon(corners, width, height));
  });
  or_refuse(Code::kDataLoss, [&] {
    const auto truths = data::decode_truths(content, 3);
    require(data::encode_truths(truths).size() == content.size(), "what is read is written");
    for (const auto& thing : truths.things)
      if (const auto* polygons = std::get_if<std::vector<images::Polygon>>(&thing.shape))
        for (const auto& polygon : *polygons)
          for (const double corner : polygon)
            if (std::abs(corner) > 1e4) return;
    for (const auto& instance : data::instances_of(truths, width, height))
      if (instance.has_mask()) use(instance.mask);
    (void)data::labels_of(truths, width, height, 3);
  });
  or_refuse(Code::kDataLoss, [&] {
    std::istringstream in{std::string{content}};
    const auto file = data::read_coco(
        in, "file.json", [](const std::string& name) { return name.size() % 2 == 1; },
        [](const std::string& problem) { require_printable(problem); });
    for (const auto& picture : file.pictures)
      require(data::decode_things(picture.things, static_cast<int>(file.categories.size())).size() ==
                  picture.count,
              "what was kept is read");
  });
  or_refuse(Code::kDataLoss, [&] {
    const auto labels = images::read_labels(content);
    require(labels.labels.size() ==
                static_cast<std::size_t>(labels.width) * static_cast<std::size_t>(labels.height),
            "a map has all its pixels");
  });
}

}  // namespace abl::fuzz
