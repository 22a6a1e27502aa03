// SPDX-License-Identifier: Apache-2.0
#include "config/fields.h"

#include "config/recipes.h"

namespace abl::config {
namespace {

std::vector<std::string> recipe_names() {
  std::vector<std::string> all;
  for (const Recipe& recipe : recipes()) all.push_back(recipe.recipe.use);
  return all;
}

}  // namespace

const std::vector<Field<RecipeConfig>>& recipe_fields() {
  using R = RecipeConfig;
  static const std::vector<Field<R>> kFields{
      {.name = "use",
       .member = &R::use,
       .sentence = "A recipe by name; the other keys change it.",
       .choices = recipe_names(),
       .identity = false},
      {.name = "epochs",
       .member = &R::epochs,
       .sentence = "Passes over the training images.",
       .range = kPositive,
       .required = true,
       .derived_text = "the recipe's"},
      {.name = "batch",
       .member = &R::batch,
       .sentence = "Images in one optimiser step, over all GPUs.",
       .range = kFromOne,
       .required = true,
       .derived_text = "the recipe's"},
      {.name = "lr",
       .member = &R::lr,
       .sentence = "Peak learning rate of AdamW.",
       .range = kPositive,
       .required = true,
       .derived_text = "the recipe's"},
      {.name = "weight_decay",
       .member = &R::weight_decay,
       .sentence = "Of matrices; norms and biases have none."},
      {.name = "beta1", .member = &R::beta1, .sentence = "AdamW's first decay.", .range = kFraction},
      {.name = "beta2", .member = &R::beta2, .sentence = "AdamW's second decay.", .range = kFraction},
      {.name = "eps", .member = &R::eps, .sentence = "AdamW's epsilon.", .range = kPositive},
      {.name = "warmup",
       .member = &R::warmup,
       .sentence = "Fraction of all steps with a linearly rising learning rate.",
       .range = kFraction},
      {.name = "warmup_start",
       .member = &R::warmup_start,
       .sentence = "Fraction of the peak at the first step.",
       .range = kFraction,
       .inert = [](const R& r) { return r.warmup == 0; },
       .inert_when = "warmup is 0"},
      {.name = "min_lr", .member = &R::min_lr, .sentence = "Learning rate at which the cosine ends."},
      {.name = "label_smoothing",
       .member = &R::label_smoothing,
       .sentence = "Share of the target spread over all classes.",
       .range = kFraction},
      {.name = "clip_norm", .member = &R::clip_norm, .sentence = "Largest gradient norm; 0 = not clipped."},
      {.name = "crop",
       .member = &R::crop,
       .sentence = "Random crops in training: none, of the zero-padded image, or of random size and shape.",
       .choices = {"none", "pad", "resized"}},
      {.name = "crop_padding",
       .member = &R::crop_padding,
       .sentence = "Pixels of padding on each side.",
       .range = {1, 65536},
       .inert = [](const R& r) { return r.crop != "pad"; },
       .inert_when = "crop is not pad"},
      {.name = "flip",
       .member = &R::flip,
       .sentence = "Probability of a horizontal flip.",
       .range = kFraction},
      {.name = "eval_every",
       .member = &R::eval_every,
       .sentence = "Epochs between evaluations; the last step is always evaluated.",
       .range = kPositive},
      {.name = "color_jitter",
       .member = &R::color_jitter,
       .sentence = "Strength of random brightness, contrast and saturation."},
      {.name = "appearance",
       .member = &R::appearance,
       .sentence = "Grayscale, solarisation or blur, one at random, or none.",
       .choices = {"none", "3-augment"}},
      {.name = "mixing",
       .member = &R::mixing,
       .sentence = "MixUp or CutMix, one at random for each batch, or none.",
       .choices = {"none", "mixup-or-cutmix"}},
      {.name = "mixing_alpha",
       .member = &R::mixing_alpha,
       .sentence = "Shape of the Beta distribution of the mixing weight.",
       .inert = [](const R& r) { return r.mixing == "none"; },
       .inert_when = "mixing is none"},
      {.name = "repeated_augmentation",
       .member = &R::repeated_augmentation,
       .sentence = "Differently augmented copies of an image in an epoch of unchanged length.",
       .range = {1, 1000}},
      {.name = "eval_resize",
       .member = &R::eval_resize,
       .sentence = "Shorter side before the centre crop of evaluation; 0 = the image size.",
       .range = {0, 65536}},
      {.name = "precision",
       .member = &R::precision,
       .sentence = "Of the forward and backward pass; weights and optimiser are fp32.",
       .choices = {"fp32", "bf16"}},
  };
  return kFields;
}

}  // namespace abl::config
