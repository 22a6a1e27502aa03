// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/enum_names.h"

/// What keys of a trial may say where that is a fixed set; those of a model's parts are in models/choices/.
namespace abl::config {

/// How an embedding is told by what its queries, keys and values share: nothing, the last layer, all layers.
enum class EmbeddingKind { kLinear, kSne, kPSne, kFSne };

constexpr std::string_view name_of(EmbeddingKind kind) {
  switch (kind) {
    case EmbeddingKind::kLinear:
      return "linear";
    case EmbeddingKind::kSne:
      return "sne";
    case EmbeddingKind::kPSne:
      return "p-sne";
    case EmbeddingKind::kFSne:
      return "f-sne";
  }
  return {};
}

/// What a trial trains for.
enum class TaskKind {
  kClassify,     ///< images
  kSegment,      ///< every pixel
  kDetect,       ///< things: their boxes, classes and masks
  kDino,         ///< images without their labels, by self-distillation
  kProbeLinear,  ///< images, by a linear layer on features that stay as they are
  kProbeKnn,     ///< nothing: the nearest neighbours of such features are asked
};

constexpr std::string_view name_of(TaskKind kind) {
  switch (kind) {
    case TaskKind::kClassify:
      return "classify";
    case TaskKind::kSegment:
      return "segment";
    case TaskKind::kDetect:
      return "detect";
    case TaskKind::kDino:
      return "dino";
    case TaskKind::kProbeLinear:
      return "probe-linear";
    case TaskKind::kProbeKnn:
      return "probe-knn";
  }
  return {};
}

/// What stands on the maps of a backbone.
enum class DenseHead { kSemanticFpn, kUperNet, kSetrNaive, kSetrPup, kSetrMla };

constexpr std::string_view name_of(DenseHead head) {
  switch (head) {
    case DenseHead::kSemanticFpn:
      return "semantic-fpn";
    case DenseHead::kUperNet:
      return "uper-net";
    case DenseHead::kSetrNaive:
      return "setr-naive";
    case DenseHead::kSetrPup:
      return "setr-pup";
    case DenseHead::kSetrMla:
      return "setr-mla";
  }
  return {};
}

/// How a picture is segmented in evaluation.
enum class Inference {
  kWhole,
  kSlide,  ///< by windows, where they overlap the mean
};

constexpr std::string_view name_of(Inference inference) {
  switch (inference) {
    case Inference::kWhole:
      return "whole";
    case Inference::kSlide:
      return "slide";
  }
  return {};
}

/// What an unreadable image does.
enum class Damaged {
  kFail,  ///< it ends the run
  kSkip,  ///< it is left out, and the log names it
};

constexpr std::string_view name_of(Damaged damaged) {
  switch (damaged) {
    case Damaged::kFail:
      return "fail";
    case Damaged::kSkip:
      return "skip";
  }
  return {};
}

/// At which scale JPEG files are decoded in training.
enum class Decode {
  kFull,
  kReduced,  ///< at 1/2, 1/4 or 1/8 where a crop is that much larger than what is made of it
};

constexpr std::string_view name_of(Decode decode) {
  switch (decode) {
    case Decode::kFull:
      return "full";
    case Decode::kReduced:
      return "reduced";
  }
  return {};
}

/// What moves the weights.
enum class Optimiser {
  kAdamW,
  kSgd,  ///< gradient descent with momentum
};

constexpr std::string_view name_of(Optimiser optimiser) {
  switch (optimiser) {
    case Optimiser::kAdamW:
      return "adamw";
    case Optimiser::kSgd:
      return "sgd";
  }
  return {};
}

/// How many values it keeps for each weight: AdamW two moments, gradient descent a velocity.
constexpr int states_of(Optimiser optimiser) {
  switch (optimiser) {
    case Optimiser::kAdamW:
      return 2;
    case Optimiser::kSgd:
      return 1;
  }
  return 0;
}

/// What decays.
enum class Decay {
  kMatrices,          ///< no norms, biases, scales, class tokens, tables of positions
  kMatricesNotCodes,  ///< the same without the codes of F-SNE
  kAll,
};

constexpr std::string_view name_of(Decay decay) {
  switch (decay) {
    case Decay::kMatrices:
      return "matrices";
    case Decay::kMatricesNotCodes:
      return "matrices-not-codes";
    case Decay::kAll:
      return "all";
  }
  return {};
}

/// How the learning rate goes down after the warm-up.
enum class Schedule { kCosine, kLinear, kPolynomial, kOneCycle, kStep, kConstant };

constexpr std::string_view name_of(Schedule schedule) {
  switch (schedule) {
    case Schedule::kCosine:
      return "cosine";
    case Schedule::kLinear:
      return "linear";
    case Schedule::kPolynomial:
      return "polynomial";
    case Schedule::kOneCycle:
      return "one-cycle";
    case Schedule::kStep:
      return "step";
    case Schedule::kConstant:
      return "constant";
  }
  return {};
}

/// Whose norm a gradient is clipped by.
enum class ClipRule {
  kGlobal,      ///< that of all gradients together
  kEachTensor,  ///< its own, parameter by parameter
};

constexpr std::string_view name_of(ClipRule rule) {
  switch (rule) {
    case ClipRule::kGlobal:
      return "global";
    case ClipRule::kEachTensor:
      return "each-tensor";
  }
  return {};
}

/// What the labels of a batch are compared by.
enum class Loss {
  kCrossEntropy,
  kBinaryCrossEntropy,  ///< each class by itself
};

constexpr std::string_view name_of(Loss loss) {
  switch (loss) {
    case Loss::kCrossEntropy:
      return "cross-entropy";
    case Loss::kBinaryCrossEntropy:
      return "binary-cross-entropy";
  }
  return {};
}

/// How a learning rate follows the size of the batch.
enum class LrScaling {
  kLinear,
  kSqrt,  ///< with its square root
};

constexpr std::string_view name_of(LrScaling scaling) {
  switch (scaling) {
    case LrScaling::kLinear:
      return "linear";
    case LrScaling::kSqrt:
      return "sqrt";
  }
  return {};
}

/// What of a teacher is learned: nothing, its most likely class, all its probabilities.
enum class Distillation { kNone, kHard, kSoft };

constexpr std::string_view name_of(Distillation distillation) {
  switch (distillation) {
    case Distillation::kNone:
      return "none";
    case Distillation::kHard:
      return "hard";
    case Distillation::kSoft:
      return "soft";
  }
  return {};
}

/// Which part of an image a training view shows.
enum class Crop {
  kNone,
  kPad,      ///< zero padding, then a random crop
  kResized,  ///< a random part of random size
};

constexpr std::string_view name_of(Crop crop) {
  switch (crop) {
    case Crop::kNone:
      return "none";
    case Crop::kPad:
      return "pad";
    case Crop::kResized:
      return "resized";
  }
  return {};
}

/// Of every resizing.
enum class Resampling { kBilinear, kBicubic };

constexpr std::string_view name_of(Resampling resampling) {
  switch (resampling) {
    case Resampling::kBilinear:
      return "bilinear";
    case Resampling::kBicubic:
      return "bicubic";
  }
  return {};
}

/// What changes the colours of a training view.
enum class Appearance {
  kNone,
  kThreeAugment,  ///< grayscale, solarisation or blur
};

constexpr std::string_view name_of(Appearance appearance) {
  switch (appearance) {
    case Appearance::kNone:
      return "none";
    case Appearance::kThreeAugment:
      return "3-augment";
  }
  return {};
}

/// How two images of a batch become one.
enum class MixingKind {
  kNone,
  kMixUp,
  kCutMix,
  kMixUpOrCutMix,  ///< one of the two, drawn for each batch
};

constexpr std::string_view name_of(MixingKind kind) {
  switch (kind) {
    case MixingKind::kNone:
      return "none";
    case MixingKind::kMixUp:
      return "mixup";
    case MixingKind::kCutMix:
      return "cutmix";
    case MixingKind::kMixUpOrCutMix:
      return "mixup-or-cutmix";
  }
  return {};
}

/// Of the forward and backward pass.
enum class Precision {
  kFloat32,
  kBFloat16,  ///< with rounded copies of the float32 weights
  kFloat16,   ///< by autocast, with a scaled loss
};

constexpr std::string_view name_of(Precision precision) {
  switch (precision) {
    case Precision::kFloat32:
      return "fp32";
    case Precision::kBFloat16:
      return "bf16";
    case Precision::kFloat16:
      return "fp16";
  }
  return {};
}

}  // namespace abl::config
