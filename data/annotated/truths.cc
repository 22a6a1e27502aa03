// SPDX-License-Identifier: Apache-2.0
#include "data/annotated/truths.h"

#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "data/little_endian.h"
#include "images/label_file.h"
#include "images/masks/coded.h"

namespace abl::data {
namespace {

enum class ShapeKind : std::uint8_t { kNone, kPolygons, kRuns };
constexpr std::string_view kWhat = "an annotation";

[[noreturn]] void refuse_truths(const std::string& reason) { throw Error{Code::kDataLoss, reason}; }

double finite(Taker& taker) {
  const double value = taker.real();
  if (!std::isfinite(value)) refuse_truths("annotation coordinate is not a number");
  return value;
}

images::Polygon take_polygon(Taker& taker) {
  const auto count = taker.number<std::uint32_t>();
  if (count > taker.left() / sizeof(double))
    refuse_truths("annotation is truncated: fewer corners than announced");
  images::Polygon polygon(count);
  for (double& value : polygon) value = finite(taker);
  return polygon;
}

Truths::Shape take_shape(Taker& taker) {
  const auto kind = taker.number<std::uint8_t>();
  switch (static_cast<ShapeKind>(kind)) {
    case ShapeKind::kNone:
      return {};
    case ShapeKind::kPolygons: {
      std::vector<images::Polygon> polygons;
      for (auto left = taker.number<std::uint32_t>(); left > 0; --left)
        polygons.push_back(take_polygon(taker));
      return polygons;
    }
    case ShapeKind::kRuns:
      return taker.text();
  }
  refuse_truths(fmt::format("annotation shape kind {} is out of range; expected 0 to 2", kind));
}

Truths::Thing take_thing(Taker& taker, int categories) {
  Truths::Thing thing;
  const auto category = taker.number<std::uint32_t>();
  if (category >= static_cast<std::uint32_t>(categories))
    refuse_truths(
        fmt::format("annotation category {} is out of range; expected 0 to {}", category, categories - 1));
  thing.category = static_cast<int>(category);
  for (double* value : {&thing.box.left, &thing.box.top, &thing.box.width, &thing.box.height, &thing.area})
    *value = finite(taker);
  thing.crowd = taker.number<std::uint8_t>() != 0;
  thing.shape = take_shape(taker);
  return thing;
}

}  // namespace

void append_thing(std::string& out, const Truths::Thing& thing) {
  put(out, static_cast<std::uint32_t>(thing.category));
  for (const double value : {thing.box.left, thing.box.top, thing.box.width, thing.box.height, thing.area})
    put(out, value);
  put(out, static_cast<std::uint8_t>(thing.crowd));
  put(out, static_cast<std::uint8_t>(thing.shape.index()));
  if (const auto* polygons = std::get_if<std::vector<images::Polygon>>(&thing.shape)) {
    put(out, static_cast<std::uint32_t>(polygons->size()));
    for (const auto& polygon : *polygons) {
      put(out, static_cast<std::uint32_t>(polygon.size()));
      for (const double value : polygon) put(out, value);
    }
  } else if (const auto* runs = std::get_if<std::string>(&thing.shape)) {
    put_text(out, *runs);
  }
}

std::string encode_truths(const Truths& truths) {
  std::string out;
  put(out, static_cast<std::uint8_t>(truths.values));
  put(out, static_cast<std::uint32_t>(truths.things.size()));
  for (const auto& thing : truths.things) append_thing(out, thing);
  return out + truths.label_file;
}

Truths decode_truths(std::string_view bytes, int categories) {
  Taker taker{bytes, kWhat};
  Truths truths;
  const auto values = taker.number<std::uint8_t>();
  if (values > static_cast<std::uint8_t>(LabelValues::kZeroIsOther))
    refuse_truths(fmt::format("label kind {} is out of range; expected 0 to 2", values));
  truths.values = static_cast<LabelValues>(values);
  for (auto left = taker.number<std::uint32_t>(); left > 0; --left)
    truths.things.push_back(take_thing(taker, categories));
  truths.label_file = taker.take(taker.left());
  if (truths.label_file.empty() != (truths.values == LabelValues::kNone))
    refuse_truths("annotation has extra bytes or lacks its labels");
  return truths;
}

std::vector<Truths::Thing> decode_things(std::string_view bytes, int categories) {
  std::vector<Truths::Thing> things;
  for (Taker taker{bytes, kWhat}; taker.left() > 0;) things.push_back(take_thing(taker, categories));
  return things;
}

images::Mask mask_of(const Truths::Thing& thing, int width, int height) {
  if (const auto* polygons = std::get_if<std::vector<images::Polygon>>(&thing.shape))
    return images::mask_of_polygons(*polygons, width, height);
  if (const auto* runs = std::get_if<std::string>(&thing.shape))
    return images::mask_of_compressed(*runs, width, height);
  return {};
}

std::vector<images::Instance> instances_of(const Truths& truths, int width, int height) {
  std::vector<images::Instance> instances;
  for (const auto& thing : truths.things) {
    try {
      instances.push_back({.category = thing.category,
                           .box = thing.box,
                           .mask = mask_of(thing, width, height),
                           .area = thing.area,
                           .crowd = thing.crowd});
    } catch (const Error& error) {
      refuse_truths(fmt::format("instance {}: {}", instances.size(), error.what()));
    }
  }
  return instances;
}

images::LabelMap labels_of(const Truths& truths, int width, int height, int classes) {
  if (truths.values == LabelValues::kNone) return {};
  images::LabelMap map = images::read_labels(truths.label_file);
  if (map.width != width || map.height != height)
    refuse_truths(fmt::format("label image size {}×{} does not match image size {}×{}", map.width, map.height,
                              width, height));
  const bool from_one = truths.values == LabelValues::kZeroIsOther;
  for (std::size_t i = 0; i < map.labels.size(); ++i) {
    std::uint8_t& label = map.labels[i];
    if (label == images::LabelMap::kIgnored) continue;
    if (from_one && label == 0) {
      label = images::LabelMap::kIgnored;
      continue;
    }
    if (label - from_one >= classes)
      refuse_truths(fmt::format("label {} at ({}, {}) is out of range; expected 0 to {}, or 255", label,
                                i % static_cast<std::size_t>(width), i / static_cast<std::size_t>(width),
                                classes - 1 + from_one));
    label = static_cast<std::uint8_t>(label - from_one);
  }
  return map;
}

}  // namespace abl::data
