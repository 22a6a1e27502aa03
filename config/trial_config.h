// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/trial_choices.h"
#include "models/choices/attention.h"
#include "models/choices/drop_path.h"
#include "models/choices/embedding.h"
#include "models/choices/key.h"
#include "models/choices/xcit.h"

namespace abl::config {

/// How one block makes its queries, keys and values, as a file spells it (SNE). What is computed follows from
/// it: `widths` and `shared`, empty for a linear layer. Canonical: `kind` agrees with `shared_layers`.
struct EmbeddingSpelling : models::EmbeddingChoice {
  EmbeddingKind kind = EmbeddingKind::kLinear;
  int depth = 2;                   ///< 1 to 4 layers
  int width = 0;                   ///< of the hidden layers where all are equal
  std::vector<int> listed_widths;  ///< of each hidden layer where they differ; then `width` is 0
  /// Which layers the three roles share, from 1: "2", "1-2", "none". Default by kind: none, the last, all.
  std::string shared_layers = "none";

  bool operator==(const EmbeddingSpelling&) const = default;
};

/// Code of the user's own in a model (models/plugins).
struct PluginConfig {
  std::string name;            ///< logical: each worker says where its file lies; empty: no plugin
  std::string sha256;          ///< of that file
  std::string options = "{}";  ///< its own keys as canonical JSON: a text, number or truth value each

  bool operator==(const PluginConfig&) const = default;
};

/// A backbone with every dimension filled in (a preset is data: it is resolved before it gets here). A key
/// that is of no meaning for the family keeps its default.
struct ModelConfig {
  std::string preset;                 ///< as written, for people; not part of the identity
  std::string family = "simple-vit";  ///< one of config/families

  int dim = 0, depth = 0, heads = 0;  ///< of Swin, dim is the first stage's
  int dim_head = 64;                  ///< simple-vit
  int mlp_dim = 0;         ///< simple-vit, key-vit: hidden width of the MLP; 4 · dim where nothing is said
  int mlp_ratio = 4;       ///< vit, swin, swin-v2, xcit: the same as a multiple of the width
  int patch = 16;          ///< where there are tokens
  bool qkv_bias = true;    ///< vit
  double layer_scale = 0;  ///< vit: initial value; 0: none
  bool class_position = true;       ///< vit: whether the class token has a position
  bool distillation_token = false;  ///< vit

  std::vector<int> stage_depths;  ///< swin, swin-v2, resnet, regnet
  std::vector<int> stage_heads;   ///< swin, swin-v2
  std::vector<int> stage_widths;  ///< resnet, of whose bottlenecks outputs are 4 times as wide, and regnet
  int window = 7;                 ///< swin, swin-v2: side, in tokens
  std::vector<int> pretrained_window;  ///< swin-v2: of each stage that of the weights; empty: the same
  bool assumes_window = false;  ///< nobody wrote `pretrained_window`: it is that of the preset's weights

  models::PatchProjection patches = models::PatchProjection::kConvolutions;  ///< xcit
  double eta = 1.0;         ///< xcit: initial value of LayerScale
  bool tokens_norm = true;  ///< xcit: class attention normalises all tokens
  int class_blocks = 2;     ///< xcit

  bool bottleneck = true;                ///< resnet
  int cardinality = 1, base_width = 64;  ///< resnet: groups of the 3 × 3 convolutions, and their width
  int group_width = 0;                   ///< regnet

  double width_factor = 1.0, depth_factor = 1.0;  ///< efficientnet: of the channels and blocks of B0

  std::vector<models::AttentionChoice> attention;  ///< simple-vit, swin: one for each layer
  std::vector<models::KeyChoice> key;              ///< key-vit, swin, swin-v2: one for each layer
  std::vector<EmbeddingSpelling> embedding;        ///< xcit: one for each block
  std::vector<models::XcitChoice> block;           ///< xcit: one for each block, `embedding` left empty

  PluginConfig plugin;  ///< vit: in place of the attention; plugin: the whole model
};

struct DataConfig {
  std::string name;    ///< logical: each worker maps it to a folder. "shapes" is embedded in the trainer
  int image_size = 0;  ///< square, pixels
  int classes = 0;
  int train_images = 0;  ///< embedded: how many to draw; folder: the first n of a fixed shuffle, 0 = all
  int val_images = 0;
  /// Of the images to train on, those that are evaluated in place of the split for that and not trained on:
  /// below 1 a part of them, from 2 on so many; 0 = none.
  double held_out = 0;
  Damaged damaged = Damaged::kFail;
  Decode decode = Decode::kFull;
  std::vector<double> mean{0.485, 0.456, 0.406};  ///< of red, green and blue, 1 being full: ImageNet's
  std::vector<double> std{0.229, 0.224, 0.225};   ///< their standard deviation
};

struct RecipeConfig {
  std::string use;  ///< the named recipe it started from, for people; not part of the identity
  double epochs = 0;
  int batch = 0;                 ///< global
  int accumulate = 1;            ///< parts of a batch that are computed one after another
  int checkpoint_blocks = 0;     ///< leading blocks that keep no activations
  bool sync_batch_norm = false;  ///< statistics of all GPUs' images; where the model has batch normalisation

  Optimiser optimiser = Optimiser::kAdamW;
  double lr = 0;  ///< peak
  // how it was written: `lr` is what they come to, or they are 0
  double lr_base = 0;  ///< peak for a batch of `lr_base_batch` images
  int lr_base_batch = 256;
  LrScaling lr_scaling = LrScaling::kLinear;  ///< derived: by the square root for AdamW
  double head_lr = 1;                         ///< factor of the rate of what stands on the backbone
  double layer_decay = 1;  ///< by what each layer's learning rate is smaller than that of the one above it
  double weight_decay = 0;
  double weight_decay_end = 0;  ///< to which it goes along half a cosine; derived: weight_decay
  Decay decay = Decay::kMatrices;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double momentum = 0.9;  ///< of sgd
  bool nesterov = false;

  Schedule schedule = Schedule::kCosine;
  double warmup = 0;             ///< fraction of all steps
  double warmup_start = 0;       ///< fraction of the peak learning rate at step 0
  double min_lr = 0;             ///< where cosine, linear, polynomial and one-cycle end
  double power = 0.9;            ///< of schedule: polynomial
  std::vector<int> step_epochs;  ///< where schedule: step goes down
  double step_factor = 0.1;

  Loss loss = Loss::kCrossEntropy;
  double target_threshold =
      0;  ///< of binary-cross-entropy: targets above it are 1, others 0; 0 = as they are
  double label_smoothing = 0;
  double clip_norm = 0;  ///< 0 = off
  ClipRule clip_rule = ClipRule::kGlobal;
  double ema = 0;  ///< decay of the average of the weights that is evaluated too; 0 = none
  double drop_path = 0;
  models::DropPathRule drop_path_rule = models::DropPathRule::kLinear;
  double dropout = 0;           ///< of features before the head
  double position_dropout = 0;  ///< of tokens once their positions are added

  Distillation distillation = Distillation::kNone;
  std::string teacher;          ///< preset
  std::string teacher_weights;  ///< logical name of a safetensors file
  std::string teacher_sha256;   ///< of that file; empty: any of that name
  double distillation_share = 0.5;
  double distillation_temperature = 3;
  std::string start_weights;  ///< logical name of a safetensors file; empty: from scratch
  std::string start_sha256;   ///< of that file; empty: any of that name

  Crop crop = Crop::kNone;
  int crop_padding = 4;     ///< with crop: pad
  double crop_area = 0.08;  ///< smallest part of the image, with crop: resized
  Resampling interpolation = Resampling::kBilinear;
  double flip = 0;                  ///< probability of a horizontal flip
  std::vector<double> scale_range;  ///< least and largest random scale of a picture; empty: as it fits
  std::vector<int>
      side_range;            ///< least and largest shorter side of a picture, in steps of 32; empty: scaled
  int longest_side = 0;      ///< of a picture, pixels; 0: any
  double largest_class = 1;  ///< part of a crop's labelled pixels that one class may be
  bool distortion = false;   ///< of brightness, contrast, saturation and hue
  double color_jitter = 0;   ///< brightness, contrast, saturation
  Appearance appearance = Appearance::kNone;
  std::string randaugment = "none";  ///< none | rand-m9-mstd0.5-inc1, …
  bool trivial_augment = false;
  double random_erasing = 0;  ///< probability
  int repeated_augmentation = 1;

  MixingKind mixing = MixingKind::kNone;
  double mixing_alpha = 0;
  double cutmix_alpha = 0;    ///< with mixup-or-cutmix; derived: mixing_alpha
  double cutmix_share = 0.5;  ///< with mixup-or-cutmix
  double mixing_probability = 1;

  double eval_every = 1;  ///< epochs between evaluations; the last step is always evaluated
  int patience = 0;       ///< evaluations without a better one after which a training ends; 0 = never
  std::string patience_metric = "val/top1";
  double eval_crop_ratio = 1;  ///< side of the evaluated centre as a part of the shorter side; 1 = all of it
  Precision precision = Precision::kFloat32;
};

/// What is learned, where it is not the classes of images.
struct TaskConfig {
  TaskKind kind = TaskKind::kClassify;
  DenseHead head = DenseHead::kSemanticFpn;
  int width = 0;            ///< channels of the head's convolutions; derived: what its paper has
  double dropout = 0;       ///< of the head's channels before the classes; derived: the same
  std::vector<int> layers;  ///< of the backbone, that maps come from; empty: the usual ones
  Inference inference = Inference::kWhole;
  std::vector<int> anchors;  ///< side of the anchors of each level, pixels; derived: 32 to 512
  int proposals = 2000;      ///< of an image in training, half of it in evaluation
  int sampled = 512;         ///< of them that an image's losses count
  int box_width = 1024;      ///< of the two layers before boxes and classes
  int mask_width = 256;      ///< channels of the convolutions before masks
  int prototypes = 65536;    ///< of dino: outputs of the head
  int bottleneck = 256;      ///< width before them
  bool fixed_norm = true;    ///< rows of the last layer keep length 1
  int local_views = 8;       ///< of an image, beside two global ones of data.image_size
  int local_size = 96;       ///< side of a local view, pixels
  /// Least and largest part of an image that views are; derived, of dino: 0.4 to 1 and 0.05 to 0.4.
  std::vector<double> global_area, local_area;
  double blur = 2;  ///< largest radius, pixels of a view
  double student_temperature = 0.1;
  double teacher_temperature = 0.04;
  double teacher_temperature_start = 0.04;  ///< of the first epoch
  int teacher_temperature_epochs = 0;       ///< in which it goes from there to `teacher_temperature`
  double centre_momentum = 0.9;
  double teacher_momentum = 0.996;  ///< of the first step
  int frozen_epochs = 1;            ///< before the last layer learns
  int bank = 0;                     ///< images whose features vote; 0 = all; derived: of dino 10,000
  int blocks = 1;                   ///< of probe-linear: last blocks whose class tokens are features
  bool patch_mean = false;          ///< and the mean of the patches behind them

  bool operator==(const TaskConfig&) const = default;
};

/// Everything that decides a trial's numbers, apart from the trainer's version and the data's fingerprint.
struct TrialConfig {
  ModelConfig model;
  DataConfig data;
  RecipeConfig recipe;
  TaskConfig task;
  std::int64_t seed = 0;
};

}  // namespace abl::config
