// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace abl::config {

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
  std::string layout = "interleaved";  ///< interleaved | block | fused-block; without effect when groups = 1
  double tied_weight_scale = 1.0;  ///< the factor before a WEIGHT that is tied to another role (eq. 9 and 11)
  bool operator==(const AttentionConfig&) const = default;
};

/// How one layer makes its key (manifold key).
struct KeyConfig {
  std::string method = "linear";  ///< linear | spatialk | kua | simplek | vanillak
  int charts = 8;
  /// none | all (eq. 4: the mean over charts and tokens) | charts (the mean over the charts at each token).
  /// Default: all for kua and vanillak, else none.
  std::string broadcasting = "none";
  std::string chart_order = "chart-major";  ///< chart-major | plain-reshape (Algorithm 1 as printed)
  double gamma = 1.0;                       ///< initial value of Γ
  double gamma_cb = 1.0;                    ///< initial value of γ', where there is broadcasting
  bool operator==(const KeyConfig&) const = default;
};

/// How one block makes its queries, keys and values (SNE). Canonical: `kind` agrees with `shared`.
struct EmbeddingConfig {
  std::string kind = "linear";  ///< linear | sne | p-sne | f-sne
  int layers = 2;           ///< 1 to 4; its key is `depth`, for `layers` says in which blocks a section holds
  int width = 0;            ///< of the hidden layers where all are equal
  std::vector<int> widths;  ///< of each hidden layer where they differ; then `width` is 0
  /// Which layers the three roles share, from 1: "2", "1-2", "none". Default by kind: none, the last, all.
  std::string shared = "none";
  int code_size = 0;             ///< F-SNE: what tells the roles apart
  std::string codes = "model";   ///< model (one set for all blocks) | block
  double code_deviation = 0.02;  ///< of the codes' initial values
  bool bias = true;
  bool operator==(const EmbeddingConfig&) const = default;
};

/// What one block of XCiT consists of.
struct BlockConfig {
  std::string attention = "channels";  ///< channels (XCA) | tokens | none (the branch is removed)
  bool l2_norm = true;                 ///< of queries and keys, of attention over channels
  bool learned_temperature = true;     ///< of attention over channels; else it stays as it starts
  double temperature = 1.0;            ///< start of it, a factor of the scores: 1/τ
  bool lpi = true;                     ///< local patch interaction; false: the branch is removed
  bool operator==(const BlockConfig&) const = default;
};

/// A backbone with every dimension filled in (a preset is data: it is resolved before it gets here). A key
/// that is of no meaning for the family keeps its default.
struct ModelConfig {
  std::string preset;                 ///< as written, for people; not part of the identity
  std::string family = "simple-vit";  ///< one of config/families/family.h

  int dim = 0, depth = 0, heads = 0;  ///< of Swin, dim is the first stage's
  int dim_head = 64;                  ///< simple-vit
  int mlp_dim = 0;       ///< simple-vit, key-vit: hidden width of the MLP; 4 · dim where nothing is said
  int mlp_ratio = 4;     ///< vit, swin, swin-v2, xcit: the same as a multiple of the width
  int patch = 16;        ///< where there are tokens
  bool qkv_bias = true;  ///< vit

  std::vector<int> stage_depths;       ///< swin, swin-v2, resnet, regnet
  std::vector<int> stage_heads;        ///< swin, swin-v2
  std::vector<int> stage_widths;       ///< resnet, whose stages' outputs are 4 times as wide, and regnet
  int window = 7;                      ///< swin, swin-v2: side, in tokens
  std::vector<int> pretrained_window;  ///< swin-v2: of each stage that of the weights; empty: the same
  bool assumes_window = false;  ///< nobody wrote `pretrained_window`: it is that of the preset's weights

  std::string patches = "convolutions";  ///< xcit: convolutions | linear
  double eta = 1.0;                      ///< xcit: initial value of LayerScale
  bool tokens_norm = true;               ///< xcit: class attention normalises all tokens
  int class_blocks = 2;                  ///< xcit

  int cardinality = 1, base_width = 64;  ///< resnet: groups of the 3 × 3 convolutions, and their width
  int group_width = 0;                   ///< regnet

  double width_factor = 1.0, depth_factor = 1.0;  ///< efficientnet: of the channels and blocks of B0

  std::vector<AttentionConfig> attention;  ///< simple-vit, swin: one for each layer
  std::vector<KeyConfig> key;              ///< key-vit, swin, swin-v2: one for each layer
  std::vector<EmbeddingConfig> embedding;  ///< xcit: one for each block
  std::vector<BlockConfig> block;          ///< xcit: one for each block

  int layers() const;  ///< attention layers: depth, or the sum of the stages; 0 where there are none
};

struct DataConfig {
  std::string name;    ///< logical: each worker maps it to a folder. "shapes" is embedded in the trainer
  int image_size = 0;  ///< square, pixels
  int classes = 0;
  int train_images = 0;  ///< embedded: how many to draw; folder: the first n of a fixed shuffle, 0 = all
  int val_images = 0;
  std::string damaged = "fail";  ///< fail | skip: what an unreadable image does; the log names it
  std::string decode = "full";   ///< full | reduced: at which scale the crops of training are decoded
};

struct RecipeConfig {
  std::string use;  ///< the named recipe it started from, for people; not part of the identity
  double epochs = 0;
  int batch = 0;                 ///< global
  int accumulate = 1;            ///< parts of a batch that are computed one after another
  int checkpoint_blocks = 0;     ///< leading blocks that keep no activations
  bool sync_batch_norm = false;  ///< statistics of all GPUs' images; where the model has batch normalisation

  std::string optimiser = "adamw";  ///< adamw | sgd
  double lr = 0;                    ///< peak
  double weight_decay = 0;
  std::string decay = "matrices";  ///< matrices | matrices-not-codes | all
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double momentum = 0.9;  ///< of sgd
  bool nesterov = false;

  std::string schedule = "cosine";  ///< cosine | linear | one-cycle | step | constant
  double warmup = 0;                ///< fraction of all steps
  double warmup_start = 0;          ///< fraction of the peak learning rate at step 0
  double min_lr = 0;                ///< where cosine, linear and one-cycle end
  std::vector<int> step_epochs;     ///< where schedule: step goes down
  double step_factor = 0.1;

  double label_smoothing = 0;
  double clip_norm = 0;  ///< 0 = off
  double ema = 0;        ///< decay of the average of the weights that is evaluated too; 0 = none
  double drop_path = 0;
  std::string drop_path_rule = "linear";  ///< linear | constant

  std::string distillation = "none";  ///< none | hard | soft
  std::string teacher;                ///< preset
  std::string teacher_weights;        ///< logical name of a safetensors file
  std::string teacher_sha256;         ///< of that file; empty: any of that name
  double distillation_share = 0.5;
  double distillation_temperature = 3;
  std::string start_weights;  ///< logical name of a safetensors file; empty: from scratch
  std::string start_sha256;   ///< of that file; empty: any of that name

  std::string crop = "none";  ///< none | pad (zero padding, random crop) | resized (random resized crop)
  int crop_padding = 4;       ///< with crop: pad
  double crop_area = 0.08;    ///< smallest part of the image, with crop: resized
  std::string interpolation = "bilinear";  ///< bilinear | bicubic
  double flip = 0;                         ///< probability of a horizontal flip
  double color_jitter = 0;                 ///< brightness, contrast, saturation
  std::string appearance = "none";         ///< none | 3-augment (grayscale, solarisation or blur)
  std::string randaugment = "none";        ///< none | rand-m9-mstd0.5-inc1, …
  double random_erasing = 0;               ///< probability
  int repeated_augmentation = 1;

  std::string mixing = "none";  ///< none | mixup | cutmix | mixup-or-cutmix
  double mixing_alpha = 0;
  double cutmix_alpha = 0;    ///< with mixup-or-cutmix; derived: mixing_alpha
  double cutmix_share = 0.5;  ///< with mixup-or-cutmix
  double mixing_probability = 1;

  double eval_every = 1;       ///< epochs between evaluations; the last step is always evaluated
  double eval_crop_ratio = 1;  ///< side of the evaluated centre as a part of the shorter side; 1 = all of it
  std::string precision = "fp32";  ///< fp32 | bf16 | fp16
};

/// Everything that decides a trial's numbers, apart from the trainer's version and the data's fingerprint.
struct TrialConfig {
  ModelConfig model;
  DataConfig data;
  RecipeConfig recipe;
  std::int64_t seed = 0;
};

}  // namespace abl::config
