// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "models/dense/mask_rcnn/instances.h"
#include "probes/probe.h"
#include "scoring/coco.h"
#include "worker/trainer/ranks/rank_group.h"

namespace abl::tasks {

/// What was found in a picture as its annotations would have it: boxes and masks (where they are at least
/// 1/2) of the picture's own size. `seen`: the size in which it was shown, without padding.
std::vector<scoring::Detection> in_own_size(const models::Detections& found, const models::ImageSize& seen,
                                            const models::ImageSize& own);

/// A picture's detections, compared with what there is.
struct PictureMatches {
  std::uint32_t picture = 0;
  scoring::ImageMatches boxes, masks;
};

/// The pictures of all ranks, in the order of their numbers: on each the same. Collective.
std::vector<PictureMatches> of_all_ranks(const std::vector<PictureMatches>& own, ranks::RankGroup& ranks);

struct OfRegions {
  scoring::CocoScores boxes, masks;
};
/// `pictures`: in a fixed order.
OfRegions scores_of(const std::vector<PictureMatches>& pictures, int categories);

/// Average precisions of boxes and masks, in percent, by the names of protocol/metrics.h after the split's;
/// without those that do not exist, where no thing is of such an area.
std::map<std::string, double> average_precisions(const OfRegions& scores, const std::string& split);

/// Of each category average precisions, and precision over recall at an overlap of 1/2, in percent; colours
/// of the categories. NaN where there is no truth.
probes::Findings of_categories(const OfRegions& scores, const std::vector<std::string>& categories);

}  // namespace abl::tasks
