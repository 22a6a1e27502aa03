// SPDX-License-Identifier: Apache-2.0
#include "config/fields.h"

#include "config/data_sets.h"
#include "config/presets.h"
#include "config/recipes.h"

namespace abl::config {
namespace {

constexpr Range kPositive{0, std::numeric_limits<double>::infinity(), true};
constexpr Range kFraction{0, 1};
constexpr Range kFromOne{1, 1e9};
constexpr Range kCount{0, 1e9};

std::vector<std::string> preset_names() {
  std::vector<std::string> all;
  for (const Preset& preset : presets()) all.emplace_back(preset.name);
  return all;
}

std::vector<std::string> recipe_names() {
  std::vector<std::string> all;
  for (const Recipe& recipe : recipes()) all.push_back(recipe.recipe.use);
  return all;
}

bool no_attention(const AttentionConfig& a) { return a.kernel == "none"; }

bool weight_is_free(const AttentionConfig& a) {
  return a.share.substr(0, 4).find(a.share.back()) == std::string::npos;
}

bool embedded(const DataConfig& data) {
  const DataSet* known = find_data_set(data.name);
  return known && known->embedded;
}

}  // namespace

const std::vector<Field<ModelConfig>>& model_fields() {
  using M = ModelConfig;
  static const std::vector<Field<M>> kFields{
      {.name = "preset",
       .member = &M::preset,
       .sentence = "A model by name; the other keys change it.",
       .choices = preset_names(),
       .identity = false},
      {.name = "family", .member = &M::family, .sentence = "The backbone.", .choices = {"simple-vit"}},
      {.name = "dim",
       .member = &M::dim,
       .sentence = "Width of the tokens; a multiple of 4.",
       .range = {8, 65536},
       .required = true,
       .derived_text = "the preset's"},
      {.name = "depth",
       .member = &M::depth,
       .sentence = "Number of layers.",
       .range = {1, 1000},
       .required = true,
       .derived_text = "the preset's"},
      {.name = "heads",
       .member = &M::heads,
       .sentence = "Number of attention heads.",
       .range = {1, 1024},
       .required = true,
       .derived_text = "the preset's"},
      {.name = "dim_head", .member = &M::dim_head, .sentence = "Width of one head.", .range = {1, 65536}},
      {.name = "mlp_dim",
       .member = &M::mlp_dim,
       .sentence = "Hidden width of the MLP.",
       .range = {1, 1e6},
       .derived = [](const M& m) { return Json(4 * m.dim); },
       .derived_text = "4 · dim"},
      {.name = "patch",
       .member = &M::patch,
       .sentence = "Side of a square patch, pixels; divides the image size.",
       .range = {1, 65536}},
  };
  return kFields;
}

const std::vector<Field<AttentionConfig>>& attention_fields() {
  using A = AttentionConfig;
  static const std::vector<Field<A>> kFields{
      {.name = "kernel",
       .member = &A::kernel,
       .sentence = "What compares queries with keys: their product, a Gaussian of their distance (MSF), or "
                   "no attention branch at all.",
       .choices = {"dot", "gaussian", "none"}},
      {.name = "probe",
       .member = &A::probe,
       .sentence = "Where the PROBE is subtracted: before WEIGHT (MSF eq. 12), as a matrix of its own after "
                   "WEIGHT (eq. 14), or nowhere.",
       .choices = {"none", "inside", "outside"},
       .inert = no_attention,
       .inert_when = "kernel is none"},
      {.name = "share",
       .member = &A::share,
       .sentence = "The matrix of QUERY, KEY, VALUE, PROBE and WEIGHT, a letter each in this order; equal "
                   "letters share one matrix; "
                   "`-` = no PROBE.",
       .derived = [](const A& a) { return Json(a.probe == "none" ? "QKV-W" : "QKVPW"); },
       .derived_text = "QKVPW with a PROBE, QKV-W without",
       .inert = no_attention,
       .inert_when = "kernel is none"},
      {.name = "groups",
       .member = &A::groups,
       .sentence = "Groups of QUERY, KEY, VALUE and an inside PROBE; WEIGHT stays full.",
       .range = {1, 65536},
       .inert = no_attention,
       .inert_when = "kernel is none"},
      {.name = "layout",
       .member = &A::layout,
       .sentence = "How the outputs of the groups fill the heads (MSF Figure 2).",
       .choices = {"interleaved", "block"},
       .inert = [](const A& a) { return no_attention(a) || a.groups == 1; },
       .inert_when = "groups is 1"},
      {.name = "tied_weight_scale",
       .member = &A::tied_weight_scale,
       .sentence = "The factor before a WEIGHT that is tied to another role (MSF eq. 9 and 11).",
       .range = kPositive,
       .inert = [](const A& a) { return no_attention(a) || weight_is_free(a); },
       .inert_when = "WEIGHT has a matrix of its own"},
  };
  return kFields;
}

const std::vector<Field<DataConfig>>& data_fields() {
  using D = DataConfig;
  static const std::vector<Field<D>> kFields{
      {.name = "name",
       .member = &D::name,
       .sentence =
           "Logical name; each worker maps it to a folder. An unknown name needs `classes` and `image_size`.",
       .required = true},
      {.name = "image_size",
       .member = &D::image_size,
       .sentence = "Side of the square images, pixels.",
       .range = {1, 65536},
       .required = true,
       .derived_text = "the data set's"},
      {.name = "classes",
       .member = &D::classes,
       .sentence = "Number of classes.",
       .range = {2, 1e6},
       .required = true,
       .derived_text = "the data set's"},
      {.name = "train_images",
       .member = &D::train_images,
       .sentence = "How many training images: drawn, or the first of a fixed shuffle of the folder; 0 = all.",
       .range = kCount},
      {.name = "val_images",
       .member = &D::val_images,
       .sentence = "The same for evaluation.",
       .range = kCount},
      {.name = "damaged",
       .member = &D::damaged,
       .sentence = "What an unreadable image does: ends the run, or is left out and named in the log.",
       .choices = {"fail", "skip"},
       .inert = embedded,
       .inert_when = "the images are embedded"},
  };
  return kFields;
}

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
