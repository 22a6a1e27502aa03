// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <array>
#include <string_view>

#include "config/model/family.h"
#include "config/model/model_section.h"
#include "config/recipe/recipes.h"
#include "config/tasks.h"

namespace abl::config {
namespace {

std::vector<std::string> recipe_names() {
  std::vector<std::string> all;
  for (const Recipe& recipe : recipes()) all.push_back(recipe.name);
  return all;
}

std::vector<std::string> teachers() {
  auto all = preset_names();
  all.emplace_back(kTeacherTrial);
  return all;
}

/// Of all tasks, of the weights and of their average.
std::vector<std::string> judged_metrics() {
  std::vector<std::string> all;
  for (const char* evaluated : {"val", "val_ema"})
    for (const Task& task : tasks())
      for (const std::string_view metric : task.metrics)
        if (auto name = fmt::format("{}/{}", evaluated, metric); std::ranges::find(all, name) == all.end())
          all.push_back(std::move(name));
  return all;
}

constexpr std::string_view kDigits = "0123456789";

bool is_whole_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of(kDigits) == std::string_view::npos;
}

/// What is before the first "-", which goes with it.
std::string_view next_part(std::string_view& text) {
  const std::string_view part = text.substr(0, text.find('-'));
  text.remove_prefix(std::min(part.size() + 1, text.size()));
  return part;
}

/// "m9" or "mstd0.5".
bool is_randaugment_part(std::string_view part) {
  constexpr std::array<std::string_view, 6> kNames{"m", "n", "p", "mstd", "mmax", "inc"};
  const std::string_view name = part.substr(0, part.find_first_of(kDigits)),
                         number = part.substr(name.size());
  const auto point = number.find('.');
  return std::ranges::find(kNames, name) != kNames.end() && is_whole_number(number.substr(0, point)) &&
         (point == std::string_view::npos || is_whole_number(number.substr(point + 1)));
}

/// rand-m9-mstd0.5-inc1: "rand", then parts of a letter or word and a number. The trainer knows what each may
/// be.
std::string wrong_randaugment(const std::string& text) {
  if (text == "none") return {};
  std::string_view rest = text;
  bool is_right = next_part(rest) == "rand";
  while (is_right && !rest.empty()) is_right = is_randaugment_part(next_part(rest));
  return is_right && !text.ends_with('-') ? "" : "expected none, or rand and its parts: rand-m9-mstd0.5-inc1";
}

bool distils(const RecipeConfig& r) { return r.distillation != Distillation::kNone; }
bool is_sgd(const RecipeConfig& r) { return r.optimiser == Optimiser::kSgd; }
bool has_no_base(const RecipeConfig& r) { return r.lr_base == 0; }

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
      {.name = "accumulate",
       .member = &R::accumulate,
       .sentence = "Parts into which the batch is cut where it does not fit; their gradients are added up.",
       .range = {1, 65536}},
      {.name = "checkpoint_blocks",
       .member = &R::checkpoint_blocks,
       .sentence = "Leading transformer blocks whose activations are computed again in the backward pass "
                   "instead of being kept: less memory for more time.",
       .range = {0, 65536}},
      {.name = "sync_batch_norm",
       .member = &R::sync_batch_norm,
       .sentence = "Whether batch normalisation takes the images of all GPUs as one batch, or those of each "
                   "GPU alone as the papers' releases do. On one GPU, and in a model without such "
                   "normalisation, that is the same."},
      {.name = "optimiser",
       .member = choice<&R::optimiser>(),
       .sentence = "AdamW, or gradient descent with momentum."},
      {.name = "lr",
       .member = &R::lr,
       .sentence = "Peak learning rate.",
       .range = kPositive,
       .required = true,
       .derived_text = "the recipe's"},
      {.name = "lr_base",
       .member = &R::lr_base,
       .sentence = "In place of lr: the peak for a batch of `lr_base_batch` images, from which that of the "
                   "recipe's batch follows; 0 = lr is written.",
       .identity = false,  // stored as lr: read_recipe
       .derived_text = "0"},
      {.name = "lr_base_batch",
       .member = &R::lr_base_batch,
       .sentence = "The batch of which lr_base is the learning rate.",
       .range = kFromOne,
       .identity = false,
       .derived_text = "256",
       .inert = has_no_base,
       .inert_when = "there is no lr_base"},
      {.name = "lr_scaling",
       .member = choice<&R::lr_scaling>(),
       .sentence = "Whether the learning rate grows with the batch or with its square root.",
       .identity = false,
       .derived = [](const R& r) { return Json(name_of(is_sgd(r) ? LrScaling::kLinear : LrScaling::kSqrt)); },
       .derived_text = "sqrt; linear where optimiser is sgd",
       .inert = has_no_base,
       .inert_when = "there is no lr_base"},
      {.name = "head_lr",
       .member = &R::head_lr,
       .sentence =
           "Multiplies the learning rate of the head: the classifier, or everything above the backbone of "
           "a segmenter or detector.",
       .range = {0, 1000, true}},
      {.name = "layer_decay",
       .member = &R::layer_decay,
       .sentence =
           "Multiplies the learning rate once for each layer below the head, so that the patch embedding has "
           "the lowest; 1 = the same for all layers. The head has lr times head_lr.",
       .range = {0, 1, true}},
      {.name = "weight_decay", .member = &R::weight_decay, .sentence = "Of what `decay` names."},
      {.name = "weight_decay_end",
       .member = &R::weight_decay_end,
       .sentence = "Where weight_decay ends: it goes there along half a cosine over all steps.",
       .derived = [](const R& r) { return Json(r.weight_decay); },
       .derived_text = "weight_decay"},
      {.name = "decay",
       .member = choice<&R::decay>(),
       .sentence = "What decays: matrices (no norms, biases, scales, class tokens, tables of positions; in "
                   "task.kind: "
                   "dino the latter two do, as in its release), the same without the codes of F-SNE, or all.",
       .inert = [](const R& r) { return r.weight_decay == 0 && r.weight_decay_end == 0; },
       .inert_when = "weight_decay is 0 from start to end"},
      {.name = "beta1",
       .member = &R::beta1,
       .sentence = "AdamW's first decay.",
       .range = kFraction,
       .inert = is_sgd,
       .inert_when = "optimiser is sgd"},
      {.name = "beta2",
       .member = &R::beta2,
       .sentence = "AdamW's second decay.",
       .range = kFraction,
       .inert = is_sgd,
       .inert_when = "optimiser is sgd"},
      {.name = "eps",
       .member = &R::eps,
       .sentence = "AdamW's epsilon.",
       .range = kPositive,
       .inert = is_sgd,
       .inert_when = "optimiser is sgd"},
      {.name = "momentum",
       .member = &R::momentum,
       .sentence = "Of gradient descent.",
       .range = kFraction,
       .inert = [](const R& r) { return !is_sgd(r); },
       .inert_when = "optimiser is not sgd"},
      {.name = "nesterov",
       .member = &R::nesterov,
       .sentence = "Whether gradient descent looks ahead.",
       .inert = [](const R& r) { return !is_sgd(r) || r.momentum == 0; },
       .inert_when = "optimiser is not sgd"},
      {.name = "schedule",
       .member = choice<&R::schedule>(),
       .sentence = "How the learning rate goes down after the warm-up."},
      {.name = "warmup",
       .member = &R::warmup,
       .sentence =
           "Fraction of all steps with a rising learning rate: along a line, in one-cycle along a cosine.",
       .range = kFraction},
      {.name = "warmup_start",
       .member = &R::warmup_start,
       .sentence = "Fraction of the peak at the first step.",
       .range = kFraction,
       .inert = [](const R& r) { return r.warmup == 0; },
       .inert_when = "warmup is 0"},
      {.name = "min_lr",
       .member = &R::min_lr,
       .sentence = "Learning rate at the end.",
       .inert = [](const R& r) { return r.schedule == Schedule::kStep || r.schedule == Schedule::kConstant; },
       .inert_when = "schedule is step or constant"},
      {.name = "power",
       .member = &R::power,
       .sentence = "Exponent of the polynomial decay of the learning rate.",
       .range = {0, 10, true},
       .inert = [](const R& r) { return r.schedule != Schedule::kPolynomial; },
       .inert_when = "schedule is not polynomial"},
      {.name = "step_epochs",
       .member = &R::step_epochs,
       .sentence = "Epochs at which the learning rate goes down.",
       .range = kFromOne,
       .inert = [](const R& r) { return r.schedule != Schedule::kStep; },
       .inert_when = "schedule is not step"},
      {.name = "step_factor",
       .member = &R::step_factor,
       .sentence = "By what the learning rate is multiplied at each of them.",
       .range = kFraction,
       .inert = [](const R& r) { return r.schedule != Schedule::kStep; },
       .inert_when = "schedule is not step"},
      {.name = "loss",
       .member = choice<&R::loss>(),
       .sentence = "Of the labels: cross entropy, or binary cross entropy of each class by itself, with the "
                   "mean over classes."},
      {.name = "target_threshold",
       .member = &R::target_threshold,
       .sentence = "Targets that labels, smoothing and mixing come to are made 1 above it, and 0 otherwise; "
                   "0 = they stay.",
       .range = kFraction,
       .inert = [](const R& r) { return r.loss != Loss::kBinaryCrossEntropy; },
       .inert_when = "loss is not binary-cross-entropy"},
      {.name = "label_smoothing",
       .member = &R::label_smoothing,
       .sentence = "Share of the target spread over all classes.",
       .range = kFraction},
      {.name = "clip_norm", .member = &R::clip_norm, .sentence = "Largest gradient norm; 0 = not clipped."},
      {.name = "clip_rule",
       .member = choice<&R::clip_rule>(),
       .sentence = "Whether that is the norm of all gradients together, or each parameter's own.",
       .inert = [](const R& r) { return r.clip_norm == 0; },
       .inert_when = "clip_norm is 0"},
      {.name = "ema",
       .member = &R::ema,
       .sentence = "Decay of a running average of the weights, evaluated beside them as val_ema/…; 0 = none.",
       .range = {0, 0.999999999}},
      {.name = "drop_path",
       .member = &R::drop_path,
       .sentence = "Stochastic depth: probability that a residual branch is left out for an image.",
       .range = {0, 0.99}},
      {.name = "drop_path_rule",
       .member = choice<&R::drop_path_rule>(),
       .sentence =
           "Whether that probability rises linearly from 0 at the first layer, or is the same in all.",
       .inert = [](const R& r) { return r.drop_path == 0; },
       .inert_when = "drop_path is 0"},
      {.name = "dropout",
       .member = &R::dropout,
       .sentence = "Probability that a feature is left out before the head.",
       .range = {0, 0.99}},
      {.name = "position_dropout",
       .member = &R::position_dropout,
       .sentence = "Probability that a number of a token is left out once positions are added.",
       .range = {0, 0.99}},
      {.name = "distillation",
       .member = choice<&R::distillation>(),
       .sentence = "Learn from a teacher too: from its most likely class, or from all its probabilities."},
      {.name = "teacher",
       .member = &R::teacher,
       .sentence =
           "The teacher's preset; trial: the model whose weights they are, as 'teacher' of a row says.",
       .choices = teachers(),
       .inert = [](const R& r) { return !distils(r); },
       .inert_when = "distillation is none"},
      {.name = "teacher_weights",
       .member = &R::teacher_weights,
       .sentence =
           "Name of the teacher's safetensors file; each worker says where it lies (--weights NAME=FILE).",
       .inert = [](const R& r) { return !distils(r); },
       .inert_when = "distillation is none"},
      {.name = "teacher_sha256",
       .member = &R::teacher_sha256,
       .sentence = "SHA-256 of that file: another one of the name is refused. Without it the name alone "
                   "tells trials apart.",
       .form = wrong_sha256,
       .inert = [](const R& r) { return !distils(r); },
       .inert_when = "distillation is none"},
      {.name = "distillation_share",
       .member = &R::distillation_share,
       .sentence = "Share of the teacher in the loss.",
       .range = kFraction,
       .inert = [](const R& r) { return !distils(r); },
       .inert_when = "distillation is none"},
      {.name = "distillation_temperature",
       .member = &R::distillation_temperature,
       .sentence = "By what the logits of both are divided.",
       .range = kPositive,
       .inert = [](const R& r) { return r.distillation != Distillation::kSoft; },
       .inert_when = "distillation is not soft"},
      {.name = "start_weights",
       .member = &R::start_weights,
       .sentence =
           "Name of a safetensors file to start from, for fine-tuning: another head, image size or patch is "
           "fitted; each worker says where it lies (--weights NAME=FILE)."},
      {.name = "start_sha256",
       .member = &R::start_sha256,
       .sentence = "SHA-256 of that file, as teacher_sha256.",
       .form = wrong_sha256,
       .inert = [](const R& r) { return r.start_weights.empty(); },
       .inert_when = "there are no start_weights"},
      {.name = "crop",
       .member = choice<&R::crop>(),
       .sentence = "Random crops in training: none, of the zero-padded image, or of random size and shape."},
      {.name = "crop_padding",
       .member = &R::crop_padding,
       .sentence = "Pixels of padding on each side.",
       .range = {1, 65536},
       .inert = [](const R& r) { return r.crop != Crop::kPad; },
       .inert_when = "crop is not pad"},
      {.name = "crop_area",
       .member = &R::crop_area,
       .sentence = "Smallest part of the image that a crop of random size may be.",
       .range = {0, 1, true},
       .inert = [](const R& r) { return r.crop != Crop::kResized; },
       .inert_when = "crop is not resized"},
      {.name = "interpolation",
       .member = choice<&R::interpolation>(),
       .sentence = "Of every resizing, in training and evaluation."},
      {.name = "flip",
       .member = &R::flip,
       .sentence = "Probability of a horizontal flip.",
       .range = kFraction},
      {.name = "scale_range",
       .member = &R::scale_range,
       .sentence =
           "Least and largest random scale of a picture with annotations, 1 being the one at which its "
           "shorter side is image_size (for detection: at which it just fits); the crop is of image_size.",
       .range = {0.01, 100},
       .derived_text = "1 and 1"},
      {.name = "side_range",
       .member = &R::side_range,
       .sentence =
           "Least and largest shorter side of a picture with things, of which one is drawn in steps of 32 "
           "pixels; half of the pictures are cut before, as DETR does. Without it they are scaled into a "
           "frame of image_size (scale_range).",
       .range = {32, 65536},
       .derived_text = "none"},
      {.name = "longest_side",
       .member = &R::longest_side,
       .sentence =
           "Bound of the longer side where the shorter one is given, in training and evaluation, pixels; "
           "0 = none.",
       .range = {0, 65536}},
      {.name = "largest_class",
       .member = &R::largest_class,
       .sentence =
           "Part of a crop's labelled pixels that one class may have: crops with more are drawn anew, "
           "ten times at most; 1 = any.",
       .range = {0, 1, true}},
      {.name = "distortion",
       .member = &R::distortion,
       .sentence = "Whether brightness, contrast, saturation and hue of pictures are changed at random, as "
                   "mmsegmentation's PhotoMetricDistortion."},
      {.name = "eval_every",
       .member = &R::eval_every,
       .sentence = "Epochs between evaluations; the last step is always evaluated.",
       .range = kPositive},
      {.name = "patience",
       .member = &R::patience,
       .sentence = "Stop after this many evaluations in a row without improvement; 0 = run "
                   "through its epochs.",
       .range = kCount},
      {.name = "patience_metric",
       .member = &R::patience_metric,
       .sentence = "What is to get better.",
       .choices = judged_metrics(),
       .inert = [](const R& r) { return r.patience == 0; },
       .inert_when = "patience is 0"},
      {.name = "color_jitter",
       .member = &R::color_jitter,
       .sentence = "Strength of random brightness, contrast and saturation."},
      {.name = "appearance",
       .member = choice<&R::appearance>(),
       .sentence = "Grayscale, solarisation or blur, one at random, or none."},
      {.name = "randaugment",
       .member = &R::randaugment,
       .sentence = "Random operations on colours and shape, as timm writes them: rand-m9-mstd0.5-inc1.",
       .form = wrong_randaugment},
      {.name = "trivial_augment",
       .member = &R::trivial_augment,
       .sentence = "Whether TrivialAugment changes each image: one operation on colours or shape, of any "
                   "strength of its wide range. In place of randaugment."},
      {.name = "random_erasing",
       .member = &R::random_erasing,
       .sentence = "Probability that a rectangle is replaced by noise.",
       .range = kFraction},
      {.name = "mixing",
       .member = choice<&R::mixing>(),
       .sentence = "MixUp, CutMix, one of both at random for each batch, or none."},
      {.name = "mixing_alpha",
       .member = &R::mixing_alpha,
       .sentence = "Shape of the Beta distribution of the mixing weight.",
       .inert = [](const R& r) { return r.mixing == MixingKind::kNone; },
       .inert_when = "mixing is none"},
      {.name = "cutmix_alpha",
       .member = &R::cutmix_alpha,
       .sentence = "The same for CutMix.",
       .derived = [](const R& r) { return Json(r.mixing_alpha); },
       .derived_text = "mixing_alpha",
       .inert = [](const R& r) { return r.mixing != MixingKind::kMixUpOrCutMix; },
       .inert_when = "mixing is not mixup-or-cutmix"},
      {.name = "cutmix_share",
       .member = &R::cutmix_share,
       .sentence = "Probability that it is CutMix.",
       .range = kFraction,
       .inert = [](const R& r) { return r.mixing != MixingKind::kMixUpOrCutMix; },
       .inert_when = "mixing is not mixup-or-cutmix"},
      {.name = "mixing_probability",
       .member = &R::mixing_probability,
       .sentence = "Probability that a batch is mixed.",
       .range = kFraction,
       .inert = [](const R& r) { return r.mixing == MixingKind::kNone; },
       .inert_when = "mixing is none"},
      {.name = "repeated_augmentation",
       .member = &R::repeated_augmentation,
       .sentence = "Differently augmented copies of an image in an epoch of unchanged length.",
       .range = {1, 1000}},
      {.name = "eval_crop_ratio",
       .member = &R::eval_crop_ratio,
       .sentence =
           "Side of the centre that is evaluated, as a part of the image's shorter side: that is scaled "
           "to image_size / eval_crop_ratio pixels, rounded down. ImageNet's 0.875 makes 256 of 224; "
           "1 = the whole shorter side.",
       .range = {0.1, 1},
       .identity = false},  // stored in pixels: canonical_document
      {.name = "precision",
       .member = choice<&R::precision>(),
       .sentence =
           "Of the forward and backward pass: bf16 computes with rounded copies of the float32 weights, fp16 "
           "by autocast with a scaled loss. The optimiser moves float32 weights."},
  };
  return kFields;
}

}  // namespace abl::config
