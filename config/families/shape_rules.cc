// SPDX-License-Identifier: Apache-2.0
#include "config/families/shape_rules.h"

#include <fmt/format.h>

#include <bit>

#include "config/families/model_section.h"

namespace abl::config {
namespace {

constexpr std::int64_t kMostTokens = 1 << 20;  // a matrix over pairs of them still has a size in 64 bits

/// Collects problems of keys of the model.
class Complaints {
 public:
  explicit Complaints(std::vector<Problem>& problems) : problems_{problems} {}

  template <class... Values>
  void add(const std::string& key, fmt::format_string<Values...> message, Values&&... values) {
    problems_.push_back({"model." + key, fmt::format(message, std::forward<Values>(values)...), {}});
  }

 private:
  std::vector<Problem>& problems_;
};

bool has_key(const ModelConfig& model, std::string_view key) {
  return std::ranges::any_of(model_fields_of(model.family),
                             [&](const auto& field) { return field.name == key; });
}

void check_positions(const ModelConfig& model, Complaints& complaints) {
  if (model.dim % 4 != 0)
    complaints.add("dim", "{} is not a multiple of 4, which sine and cosine positions need", model.dim);
}

void check_patches(const ModelConfig& model, int image_size, Complaints& complaints) {
  if (image_size % model.patch != 0)
    complaints.add("patch", "patches of {} do not divide the image size {}", model.patch, image_size);
  else if (const std::int64_t side = image_size / model.patch; side * side > kMostTokens)
    complaints.add("patch", "patches of {} cut images of {} into {} tokens; at most {} are possible",
                   model.patch, image_size, side * side, kMostTokens);
}

/// XCiT halves the image with each convolution, and starts with as many channels as end in `dim`.
void check_convolutions(const ModelConfig& model, Complaints& complaints) {
  if (model.patch < 2 || !std::has_single_bit(static_cast<unsigned>(model.patch))) {
    complaints.add("patch", "{} is not a power of two above 1, which convolutions of stride 2 need",
                   model.patch);
  } else if (model.dim % (model.patch / 2) != 0) {
    complaints.add("dim", "{} is not a multiple of {}, which the convolutions of patches of {} need",
                   model.dim, model.patch / 2, model.patch);
  }
}

void check_heads(const ModelConfig& model, Complaints& complaints) {
  if (model.dim % model.heads != 0)
    complaints.add("heads", "{} heads do not divide the width {}", model.heads, model.dim);
}

/// Whether there is one entry for each stage.
bool check_length(const char* key, const std::vector<int>& values, const ModelConfig& model,
                  Complaints& complaints) {
  const std::size_t stages = model.stage_depths.size();
  if (values.size() == stages) return true;
  complaints.add(key, "{} {} for {} {} (stage_depths); expected one for each", values.size(),
                 values.size() == 1 ? "entry" : "entries", stages, stages == 1 ? "stage" : "stages");
  return false;
}

void check_stage_heads(const ModelConfig& model, Complaints& complaints) {
  if (!check_length("stage_heads", model.stage_heads, model, complaints)) return;
  for (std::size_t i = 0; i < model.stage_heads.size(); ++i) {
    const int width = model.dim << i;
    if (width % model.stage_heads[i] != 0) {
      complaints.add(fmt::format("stage_heads.{}", i + 1), "{} heads do not divide the width {} of stage {}",
                     model.stage_heads[i], width, i + 1);
    }
  }
}

void check_stage_widths(const ModelConfig& model, Complaints& complaints) {
  if (model.family == "resnet" && model.stage_depths.size() != 4) {
    complaints.add("stage_depths", "{} stages; a resnet has 4", model.stage_depths.size());
    return;
  }
  if (!check_length("stage_widths", model.stage_widths, model, complaints)) return;
  for (std::size_t i = 0; i < model.stage_widths.size(); ++i) {
    const auto key = fmt::format("stage_widths.{}", i + 1);
    const int width = model.stage_widths[i];
    if (model.group_width != 0 && width % model.group_width != 0)
      complaints.add(key, "groups of {} do not divide the width {} of stage {}", model.group_width, width,
                     i + 1);
    if (model.family == "regnet" && width < 3)
      complaints.add(key, "{} channels leave none for squeeze and excitation, which takes a quarter", width);
    if (model.family == "resnet" && std::int64_t{width} * model.base_width < 64)
      complaints.add(key, "no channel is left of {} × base_width {} / 64 in stage {}", width,
                     model.base_width, i + 1);
  }
}

}  // namespace

void check_sizes(const ModelConfig& model, const DataConfig& data, std::vector<Problem>& problems) {
  Complaints complaints{problems};
  if (model.family == "simple-vit") check_positions(model, complaints);
  if (has_key(model, "patch")) check_patches(model, data.image_size, complaints);
  if (has_key(model, "patches") && model.patches == models::PatchProjection::kConvolutions)
    check_convolutions(model, complaints);
  if (has_key(model, "heads") && !has_key(model, "dim_head")) check_heads(model, complaints);
  if (has_key(model, "stage_heads")) check_stage_heads(model, complaints);
  if (has_key(model, "stage_widths")) check_stage_widths(model, complaints);
  if (has_key(model, "pretrained_window") && !model.pretrained_window.empty())
    check_length("pretrained_window", model.pretrained_window, model, complaints);
}

}  // namespace abl::config
