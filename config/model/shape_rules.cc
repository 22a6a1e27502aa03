// SPDX-License-Identifier: Apache-2.0
#include "config/model/shape_rules.h"

#include "config/model/family.h"

namespace abl::config {

void check_sizes(const ModelConfig& model, const DataConfig& data, std::vector<Problem>& problems) {
  const Family& family = family_of(model);
  if (family.check_sizes) family.check_sizes(model, data.image_size, problems);
}

void check_patches(const ModelConfig& model, int image_size, std::vector<Problem>& problems) {
  constexpr std::int64_t kMostTokens = 1 << 20;  // a matrix over pairs of them still has a size in 64 bits
  if (image_size % model.patch != 0)
    complain(problems, "patch", "patches of {} do not divide the image size {}", model.patch, image_size);
  else if (const std::int64_t side = image_size / model.patch; side * side > kMostTokens)
    complain(problems, "patch", "patches of {} cut images of {} into {} tokens; at most {} are possible",
             model.patch, image_size, side * side, kMostTokens);
}

void check_heads(const ModelConfig& model, std::vector<Problem>& problems) {
  if (model.dim % model.heads != 0)
    complain(problems, "heads", "{} heads do not divide the width {}", model.heads, model.dim);
}

bool check_length(const char* key, const std::vector<int>& values, const ModelConfig& model,
                  std::vector<Problem>& problems) {
  const std::size_t stages = model.stage_depths.size();
  if (values.size() == stages) return true;
  complain(problems, key, "{} {} for {} {} (stage_depths); expected one for each", values.size(),
           values.size() == 1 ? "entry" : "entries", stages, stages == 1 ? "stage" : "stages");
  return false;
}

void check_stage_heads(const ModelConfig& model, std::vector<Problem>& problems) {
  if (!check_length("stage_heads", model.stage_heads, model, problems)) return;
  for (std::size_t i = 0; i < model.stage_heads.size(); ++i) {
    const int width = model.dim << i;
    if (width % model.stage_heads[i] != 0) {
      complain(problems, fmt::format("stage_heads.{}", i + 1),
               "{} heads do not divide the width {} of stage {}", model.stage_heads[i], width, i + 1);
    }
  }
}

}  // namespace abl::config
