// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/counting/counter.h"

namespace abl::models {

/// Parameters of a model in another place than before its classifier.
struct HeadCount {
  std::string mode;  ///< "params.backbone"
  std::int64_t params = 0;
};

/// What a model's layers count without the classifier, as self-supervision trains them ("params.backbone");
/// of XCiT also as the backbone of a detector and of two segmenters: patch embedding, positions and blocks,
/// without class token, class attention, final normalisation and head, and the heads of these, which are
/// trees of their parts on the meta device, with no forward:
///   "params.all@mask-rcnn": with a feature pyramid, 80 classes of things, the released configuration for
///     COCO. Deconvolutions bring the maps of the backbone to the four sizes of the pyramid. Source: XCiT
///     section 4.2, Table 5.
///   "params.all@semantic-fpn", "params.all@uper-net" (with its auxiliary head): 150 classes. The printed
///     numbers leave the deconvolutions out. Source: XCiT section 4.3, Table 6.
/// `parts`: as `count_parts` gives them, of one image of `image_size`.
std::vector<HeadCount> head_counts(const std::vector<PartCount>& parts, std::int64_t image_size);

}  // namespace abl::models
