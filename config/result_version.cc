// SPDX-License-Identifier: Apache-2.0
#include "config/result_version.h"

#include <string_view>

#include "config/evaluation_size.h"
#include "config/presets.h"

namespace abl::config {
namespace {

/// Recipes for ImageNet named pixels once, 256 or for SwinV2 292, whatever the size of the images.
bool evaluates_pixels_of_another_size(const nlohmann::json& document) {
  const int side = document.value("/recipe/eval_resize"_json_pointer, 0);
  const int image_size = document.value("/data/image_size"_json_pointer, 0);
  return (side == 256 || side == 292) && side != evaluation_side(image_size, 0.875);
}

bool adds_parts_in_bf16(const nlohmann::json& document) {
  return document.value("/recipe/precision"_json_pointer, "") == "bf16" &&
         document.value("/recipe/accumulate"_json_pointer, 1) > 1;
}

std::string string_at(const nlohmann::json& document, const char* pointer, const char* otherwise) {
  return document.value(nlohmann::json::json_pointer{pointer}, std::string{otherwise});
}

bool has_attention(std::string_view family) {
  return family != "resnet" && family != "efficientnet" && family != "regnet";
}

/// Of the model or its teacher.
bool attends_in_16_bits(const nlohmann::json& document) {
  if (string_at(document, "/recipe/precision", "fp32") == "fp32") return false;
  if (has_attention(string_at(document, "/model/family", "simple-vit"))) return true;
  const Preset* teacher = find_preset(string_at(document, "/recipe/teacher", ""));
  return teacher && has_attention(teacher->family);
}

// {version, what changed, which documents it touches}
constexpr ResultChange kChanges[] = {
    {7, "images were evaluated at 256 (or 292) pixels whatever their size; now at 1/0.875 of it",
     evaluates_pixels_of_another_size},
    {8, "in bf16 the gradients of a batch's parts were added in bfloat16; now in float32",
     adds_parts_in_bf16},
    {9, "attention in bf16 and fp16 rounded its scores to 16 bits on processors; they are of 32 bits now",
     attends_in_16_bits},
};

/// A document in which a key is of another type than it is today counts as touched: that costs a training,
/// the other a wrong number.
bool touches(const ResultChange& change, const nlohmann::json& document) {
  try {
    return change.touches(document);
  } catch (const nlohmann::json::exception&) {
    return true;
  }
}

}  // namespace

ResultChanges result_changes() { return kChanges; }

int result_version(const nlohmann::json& document, ResultChanges changes) {
  for (auto change = changes.rbegin(); change != changes.rend(); ++change)
    if (touches(*change, document)) return change->version;
  return kFirstResultVersion;
}

int newest_result_version(ResultChanges changes) {
  return changes.empty() ? kFirstResultVersion : changes.back().version;
}

std::vector<std::string> changes_since(int version, const nlohmann::json& document, ResultChanges changes) {
  std::vector<std::string> sentences;
  for (const ResultChange& change : changes)
    if (change.version > version && touches(change, document)) sentences.emplace_back(change.what);
  return sentences;
}

std::string what_changed(int version, ResultChanges changes) {
  for (const ResultChange& change : changes)
    if (change.version == version) return change.what;
  return "the trainer gives other numbers by now";
}

}  // namespace abl::config
