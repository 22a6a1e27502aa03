// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace abl::config {

/// Raised when the trainer changes so that the same trial gives other numbers. Part of a trial's identity.
inline constexpr int kResultVersion = 1;

/// The attention of one layer. The four papers' points: original = dot + none, MSF = gaussian + inside (eq.
/// 12), residual = gaussian + outside (eq. 14), Gauss-Orig = gaussian + none.
struct AttentionConfig {
  std::string kernel = "dot";  ///< dot | gaussian | none (the branch is removed, the MLP stays)
  std::string probe = "none";  ///< none | inside (before WEIGHT) | outside (its own matrix after WEIGHT)
  /// The matrix of QUERY, KEY, VALUE, PROBE, WEIGHT, in this order; equal letters share it; '-' = no PROBE.
  /// Canonical: each matrix bears the letter of the first role that uses it. Default: QKV-W, QKVPW with a
  /// PROBE.
  std::string share = "QKV-W";
  int groups = 1;                      ///< of QUERY, KEY, VALUE and PROBE; WEIGHT stays full
  std::string layout = "interleaved";  ///< interleaved | block; without effect when groups = 1
  double tied_weight_scale = 1.0;  ///< the factor before a WEIGHT that is tied to another role (eq. 9 and 11)
  bool operator==(const AttentionConfig&) const = default;
};

/// A backbone with every dimension filled in (a preset is data: it is resolved before it gets here).
struct ModelConfig {
  std::string preset;                 ///< as written, for people; not part of the identity
  std::string family = "simple-vit";  ///< simple-vit
  int dim = 0, depth = 0, heads = 0;
  int dim_head = 64;
  int mlp_dim = 0;  ///< hidden width of the MLP; 4 · dim where nothing is said
  int patch = 16;
  std::vector<AttentionConfig> attention;  ///< one for each layer, `depth` of them
};

struct DataConfig {
  std::string name;    ///< logical: each worker maps it to a folder. "shapes" is embedded in the trainer
  int image_size = 0;  ///< square, pixels
  int classes = 0;
  int train_images = 0;  ///< embedded: how many to draw; folder: the first n of a fixed shuffle, 0 = all
  int val_images = 0;
  std::string damaged = "fail";  ///< fail | skip: what an unreadable image does; the log names it
};

struct RecipeConfig {
  std::string use;  ///< the named recipe it started from, for people; not part of the identity
  double epochs = 0;
  int batch = 0;            ///< global
  double lr = 0;            ///< peak
  double weight_decay = 0;  ///< AdamW; on matrices only, not on norms and biases
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double warmup = 0;        ///< fraction of all steps
  double warmup_start = 0;  ///< fraction of the peak learning rate at step 0
  double min_lr = 0;        ///< where the cosine ends
  double label_smoothing = 0;
  double clip_norm = 0;       ///< 0 = off
  std::string crop = "none";  ///< none | pad (zero padding, random crop) | resized (random resized crop)
  int crop_padding = 4;       ///< with crop: pad
  double flip = 0;            ///< probability of a horizontal flip
  double eval_every = 1;      ///< epochs between evaluations; the last step is always evaluated
  double color_jitter = 0;    ///< brightness, contrast, saturation
  std::string appearance = "none";  ///< none | 3-augment (grayscale, solarisation or blur)
  std::string mixing = "none";      ///< none | mixup-or-cutmix
  double mixing_alpha = 0;
  int repeated_augmentation = 1;
  int eval_resize = 0;             ///< shorter side before the centre crop; 0 = image_size
  std::string precision = "fp32";  ///< fp32 | bf16
};

/// Everything that decides a trial's numbers, apart from the trainer's version and the data's fingerprint.
struct TrialConfig {
  ModelConfig model;
  DataConfig data;
  RecipeConfig recipe;
  std::int64_t seed = 0;
};

}  // namespace abl::config
