// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/backbones/model_options.h"
#include "models/counting/counter.h"

namespace abl::models {

/// Parameters of a model in another place than before its classifier.
struct HeadCount {
  std::string mode;  ///< "params.backbone"
  std::int64_t params = 0;
};

/// `options`: of the model, or of the network's backbone.
/// What a model's layers count without the classifier, as self-supervision trains them ("params.backbone");
/// of XCiT also as the backbone of a detector and of two segmenters, without what its logits alone need. They
/// are the modules that are trained (models/dense), on the meta device:
///   "params.all@mask-rcnn": with a feature pyramid, 80 classes of things, the released configuration for
///     COCO. Source: XCiT section 4.2, Table 5.
///   "params.all@semantic-fpn", "params.all@uper-net" (with its auxiliary head): 150 classes. The printed
///     numbers leave out the convolutions that make maps finer. Source: XCiT section 4.3, Table 6.
/// Of a segmenter that is trained "params.all@xcit-2021": as the paper prints them, without those
/// convolutions. `parts`: of the network, as `count_parts` gives them.
std::vector<HeadCount> head_counts(const ModelOptions& options, const std::vector<PartCount>& parts);

}  // namespace abl::models
