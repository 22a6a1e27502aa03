// SPDX-License-Identifier: Apache-2.0
#include "config/recipes.h"

#include <algorithm>
#include <array>

#include "config/presets.h"

namespace abl::config {
namespace {

// Source: MSF supplement Table A(a); flip, jitter, clipping, precision, repeated augmentation and evaluation
// size from the paper's code.
RecipeConfig msf_imagenet() {
  return {.use = "msf-imagenet",
          .epochs = 100,
          .batch = 1024,
          .lr = 0.001,
          .weight_decay = 0.05,
          .warmup = 0.1,
          .warmup_start = 1.0 / 30,
          .label_smoothing = 0.1,
          .clip_norm = 1,
          .crop = "resized",
          .flip = 0.5,
          .color_jitter = 0.3,
          .appearance = "3-augment",
          .mixing = "mixup-or-cutmix",
          .mixing_alpha = 0.2,
          .repeated_augmentation = 3,
          .eval_resize = 256,
          .precision = "bf16"};
}

RecipeConfig cifar_lite() {
  return {.use = "cifar-lite",
          .epochs = 10,
          .batch = 128,
          .lr = 0.001,
          .weight_decay = 0.05,
          .warmup = 0.1,
          .label_smoothing = 0.1,
          .clip_norm = 1,
          .crop = "pad",
          .flip = 0.5};
}

RecipeConfig demo() {
  return {.use = "demo",
          .epochs = 2,
          .batch = 64,
          .lr = 0.002,
          .weight_decay = 0.05,
          .warmup = 0.1,
          .eval_every = 0.25};
}

// Source: MSF supplement Table A(b).
constexpr std::array kMsfBySize{
    BySize{"simple-vit-ti", 1024, 0.1},
    BySize{"simple-vit-ss", 1024, 0.1},
    BySize{"simple-vit-s", 1024, 0.2},
    BySize{"simple-vit-b", 768, 0.5},
    BySize{"swin_tiny_patch4_window7_224", 1024, 0.5},
    BySize{"swin_small_patch4_window7_224", 768, 0.5},
    BySize{"resnet50", 1024, 0.1},
    BySize{"resnet101", 1024, 0.2},
    BySize{"resnext50_32x4d", 1024, 0.2},
    BySize{"resnext101_32x8d", 768, 0.2},
    BySize{"efficientnet_b0", 1024, 0.1},
};

bool same_size(const ModelConfig& a, const ModelConfig& b) {
  return a.family == b.family && a.dim == b.dim && a.depth == b.depth && a.stage_depths == b.stage_depths &&
         a.cardinality == b.cardinality && a.base_width == b.base_width;
}

}  // namespace

const std::vector<Recipe>& recipes() {
  static const std::vector<Recipe> kRecipes{
      {msf_imagenet(),
       "every ImageNet training of the MSF paper; batch and mixing strength go by the model's size"},
      {cifar_lite(), "a short training on small photographs: padded crops, flips, label smoothing"},
      {demo(), "a few minutes on a CPU with the embedded images: no augmentation"}};
  return kRecipes;
}

const Recipe* find_recipe(std::string_view name) {
  const auto found =
      std::ranges::find(recipes(), name, [](const Recipe& recipe) { return recipe.recipe.use; });
  return found == recipes().end() ? nullptr : &*found;
}

std::span<const BySize> msf_by_size() { return kMsfBySize; }

RecipeConfig recipe_for(const Recipe& recipe, const ModelConfig& model) {
  RecipeConfig settings = recipe.recipe;
  if (settings.use != "msf-imagenet") return settings;
  for (const BySize& by_size : kMsfBySize) {
    // by dimensions, not by name: a preset and its dimensions written out are the same model
    if (!same_size(model, model_of(*find_preset(by_size.preset)))) continue;
    settings.batch = by_size.batch;
    settings.mixing_alpha = by_size.mixing_alpha;
  }
  return settings;
}

}  // namespace abl::config
