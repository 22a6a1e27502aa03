// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "data/image_source.h"

namespace abl::data {

inline constexpr int kEmbeddedSize = 32;
inline constexpr int kEmbeddedClasses = 10;
/// Changes whenever a pixel of any image does.
inline constexpr std::string_view kEmbeddedFingerprint = "shapes-1";
/// The shapes, in the order of their classes.
inline constexpr std::array<std::string_view, kEmbeddedClasses> kEmbeddedClassNames{
    "disc", "frame", "plus", "cross", "triangle", "corner", "columns", "rows", "slash", "tee"};

/// Draws image `index` of `split` and returns its class.
///
/// A board of 4×4 tiles, each 8×8 pixels, shows ten different shapes in ten different colours at random
/// places; three to six further tiles are filled with the colour that is asked for, and the rest is empty.
/// The class is the shape that has this colour.
///
/// No tile tells anything by itself: whatever the class, the colours of the shapes are a uniform permutation
/// of the ten, the places one of the sixteen, and the asked colour is uniform. So P(class | content and
/// position of any part of one tile) is 1/10, and the best sum of scores of separate tiles is chance level.
/// A norm taken after pooling mixes tiles and can leak a little: the varying number of filled tiles, their
/// brightness and the noise make that faint, not impossible.
///
/// Each ten images from the first have the ten classes once each. The image depends on nothing but
/// kEmbeddedFingerprint, `split` and `index`, on every machine.
/// Shape: `pixels` [32, 32, 3]: rows from the top; red, green, blue.
/// Thread: any.
int draw_embedded_image(Split split, std::uint64_t index,
                        std::span<std::uint8_t, kEmbeddedSize * kEmbeddedSize * 3> pixels);

/// Changes whenever a pixel of any tinted image does.
inline constexpr std::string_view kTintedFingerprint = "tinted-shapes-1";

/// The same images, with the colour of each tile that has one off by chance, in red, green and blue by about
/// 35 of 255 each: colours that are near each other can be taken for one another, so that no model is right
/// of every image, and one is right the more often the better it sums up the tiles that are filled.
int draw_tinted_image(Split split, std::uint64_t index,
                      std::span<std::uint8_t, kEmbeddedSize * kEmbeddedSize * 3> pixels);

/// Changes whenever a pixel of any image of negatives does.
inline constexpr std::string_view kNegativeFingerprint = "negative-shapes-1";

/// Boards for comparing kinds of attention. Two to ten of the shapes are on one, and the filled tiles have
/// the negative of the colour that is asked for, so that a tile must find one that is unlike itself; each
/// tile's colour is off by chance, in red, green and blue by about 20 of 255 each. A board of few shapes is
/// an easy one: what is learned there leads to the others, and no training waits long for its first idea. The
/// classes are those of draw_embedded_image, image by image.
int draw_negative_image(Split split, std::uint64_t index,
                        std::span<std::uint8_t, kEmbeddedSize * kEmbeddedSize * 3> pixels);

}  // namespace abl::data
