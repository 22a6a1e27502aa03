// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>

#include "data/annotated/annotated_source.h"

namespace abl::data {

/// Changes whenever a pixel or a truth of any scene does.
inline constexpr std::string_view kScenesFingerprint = "scenes-1";
/// The shapes, in the order of their categories.
inline constexpr std::array<std::string_view, 7> kSceneCategories{"disc", "ring",     "square",   "bar",
                                                                  "plus", "triangle", "hourglass"};
inline constexpr int kSceneSide = 96, kSmallestScene = 64, kLargestScene = 128;
inline constexpr int kMostThings = 6;

/// Draws scene `index` of `split`: a square picture of `side` pixels with up to six shapes, each of any
/// colour, size, place and turn, one over another, on a ground of uneven colour with noise. Colour, size and
/// place say nothing of the category.
///
/// A shape's mask is what is to be seen of it, at least two fifths of it; its box is around that. A pixel's
/// label is 0 on the ground, otherwise 1 + the category.
///
/// The scene depends on nothing but kScenesFingerprint, `split`, `index` and `side`, on every machine: only
/// whole numbers are calculated with. Thread: any.
/// Throws: Error{kInvalidArgument} for a side below kSmallestScene or above kLargestScene.
images::Annotated draw_scene(Split split, std::uint64_t index, int side = kSceneSide);

/// Scenes as a data set: they need no folder, and are drawn when they are asked for.
/// Throws: as draw_scene.
AnnotatedSet drawn_scenes(std::uint32_t train, std::uint32_t val, int side = kSceneSide);

}  // namespace abl::data
