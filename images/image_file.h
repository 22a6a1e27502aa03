// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "images/image.h"

namespace abl::images {

/// What an image file is by its first bytes (12 are enough), whatever its name says; nothing for what is no
/// JPEG, PNG or WebP.
std::optional<EncodedImage::Coding> coding_of(std::string_view bytes);

/// Whether a file's name ends as those of images do: .jpg, .jpeg, .png or .webp, in capitals too.
bool has_image_name(std::string_view name);
inline constexpr std::string_view kImageNames = ".jpg, .jpeg, .png or .webp";

/// A file as an image: its coding, and the dimensions that its header tells. It has no label, and no owner.
/// Throws: Error{kDataLoss} with the reason where it is none, or one of too many pixels: as many are accepted
/// as Pillow accepts.
EncodedImage image_in(std::string_view file);

/// The part of a JPEG, PNG or WebP file that `choose` names; of a JPEG at a reduced scale, where it allows
/// that. Throws: Error{kDataLoss}; Error{kResourceExhausted} where memory is missing; Error{kInvalidArgument}
/// for a region that is empty or reaches outside.
DecodedRegion decode_file(EncodedImage::Coding coding, std::string_view file, const ChooseRegion& choose);

}  // namespace abl::images
