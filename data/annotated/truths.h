// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "images/annotated.h"
#include "images/masks/polygons.h"

namespace abl::data {

/// What the values of a file of labels are.
enum class LabelValues : std::uint8_t {
  kNone,         ///< there is no such file
  kClasses,      ///< the classes; 255 does not count
  kZeroIsOther,  ///< 0 does not count, the classes begin at 1: mmsegmentation's `reduce_zero_label`
};

/// All that is stored of a picture, as its files have it: small, and drawn into masks when it is needed.
struct Truths {
  /// Nothing, polygons, or runs as `images::compressed` writes them.
  using Shape = std::variant<std::monostate, std::vector<images::Polygon>, std::string>;
  struct Thing {
    int category = 0;
    images::Box box;
    double area = 0;
    bool crowd = false;
    Shape shape;
  };
  std::vector<Thing> things;
  LabelValues values = LabelValues::kNone;
  std::string label_file;  ///< a PNG
};

void append_thing(std::string& out, const Truths::Thing& thing);
std::string encode_truths(const Truths& truths);
/// Throws: Error{kDataLoss} for whatever bytes that `encode_truths` does not write.
Truths decode_truths(std::string_view bytes, int categories);
/// Things one behind the other, without their number.
std::vector<Truths::Thing> decode_things(std::string_view bytes, int categories);

/// The mask of a thing of a picture of that size; of no side where it has none.
/// Throws: Error{kInvalidArgument}, as images::mask_of_polygons and images::mask_of_compressed.
images::Mask mask_of(const Truths::Thing& thing, int width, int height);

/// The instances of a picture of that size. Throws: Error{kDataLoss} with the reason.
std::vector<images::Instance> instances_of(const Truths& truths, int width, int height);
/// The labels of a picture of that size; empty where it has none. Throws: Error{kDataLoss} where the file is
/// damaged, of another size, or has a value beyond the classes.
images::LabelMap labels_of(const Truths& truths, int width, int height, int classes);

}  // namespace abl::data
