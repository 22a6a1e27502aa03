// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "models/backbones/classifier.h"
#include "models/backbones/image_features.h"
#include "models/layers/drop_path.h"
#include "models/layers/dropout.h"

namespace abl::models {

/// Whether a model of these options can compute blocks again; one that has none says
/// `static constexpr bool kHasBlocks = false`.
template <class Options>
concept WithBlocks = requires(Options options) {
  { options.checkpoint_blocks } -> std::convertible_to<std::int64_t>;
};

/// Whether a model of these options has dropout.
template <class Options>
concept WithDropout = requires(Options options) {
  { options.dropout } -> std::convertible_to<DropoutOptions>;
};

/// Whether a model of these options can do without its head, and give maps of features.
template <class Options>
concept WithMaps = requires(Options options) {
  { options.has_head } -> std::convertible_to<bool>;
};

/// Whether a model of these options can do without its classifier, and give one vector for each image.
template <class Options>
concept WithFeatures = std::derived_from<typename Options::Model, ImageFeatures>;

/// The options of a family: an aggregate that names the model it is for, and has a size of images,
/// stochastic depth and a number of blocks to compute again.
///   struct FooOptions {
///     using Model = class FooImpl;
///     std::int64_t image_size = 224;  // and others of its own
///     DropPathOptions drop_path{};
///     DropoutOptions dropout{};  // where it has any
///     std::int64_t checkpoint_blocks = 0;
///     bool has_head = true;      // where it can give maps of features in place of logits
///   };
template <class Options>
concept FamilyOptions = (WithBlocks<Options> || !Options::kHasBlocks) && requires(Options options) {
  typename Options::Model;
  { options.image_size } -> std::convertible_to<std::int64_t>;
  { options.drop_path } -> std::convertible_to<DropPathOptions>;
};

/// The options of one model, of whatever family.
class ModelOptions {
 public:
  template <FamilyOptions Options>
  ModelOptions(Options options) : held_{std::make_shared<const HeldAs<Options>>(std::move(options))} {}

 private:
  struct Held {
    virtual ~Held() = default;
    virtual std::shared_ptr<Classifier> build(torch::Device device) const = 0;
    virtual ModelOptions with_drop_path(double rate, std::optional<DropPathRule> rule) const = 0;
    virtual ModelOptions with_dropout(const DropoutOptions& dropout) const = 0;
    virtual ModelOptions with_checkpointing(std::int64_t blocks) const = 0;
    virtual ModelOptions without_head() const = 0;
    virtual ModelOptions without_classifier() const = 0;
    virtual std::int64_t image_size() const = 0;
  };
  template <class Options>
  struct HeldAs;

  friend std::shared_ptr<Classifier> build(const ModelOptions&, torch::Device);
  friend ModelOptions with_drop_path(const ModelOptions&, double, std::optional<DropPathRule>);
  friend ModelOptions with_dropout(const ModelOptions&, const DropoutOptions&);
  friend ModelOptions with_checkpointing(const ModelOptions&, std::int64_t);
  friend ModelOptions without_head(const ModelOptions&);
  friend ModelOptions without_classifier(const ModelOptions&);
  friend std::int64_t image_size(const ModelOptions&);

  std::shared_ptr<const Held> held_;  ///< never changed, so copies may share it
};

/// Builds the model. On the meta device it costs no memory and no random numbers: that is how models are
/// counted.
/// Throws: c10::ValueError when the options do not fit together.
std::shared_ptr<Classifier> build(const ModelOptions& options, torch::Device device = torch::kCPU);

/// The same model with stochastic depth. `rule`: none leaves the family's own, which is constant in XCiT and
/// linear elsewhere.
ModelOptions with_drop_path(const ModelOptions& options, double rate, std::optional<DropPathRule> rule = {});

/// The same model with dropout.
/// Throws: c10::ValueError for a family that has none, unless there is to be none.
ModelOptions with_dropout(const ModelOptions& options, const DropoutOptions& dropout);

/// The same transformer that keeps no activations of its first blocks, but computes them again in the
/// backward pass (`recomputed`). Of an XCiT blocks of class attention do not count, of a Swin those of all
/// stages do.
/// Throws: c10::ValueError for a family without transformer blocks; building, where there are not so many.
ModelOptions with_checkpointing(const ModelOptions& options, std::int64_t blocks);

/// The same model without its head: what it builds is a `Trunk` (models/backbones/trunk.h) or gives
/// `FeatureMaps` itself.
/// Throws: c10::ValueError for a family that gives no maps.
ModelOptions without_head(const ModelOptions& options);

/// The same model without its classifier: what it builds gives `ImageFeatures`.
/// Throws: c10::ValueError for a family that gives none.
ModelOptions without_classifier(const ModelOptions& options);

/// Side of the square images that the model is made for, pixels.
std::int64_t image_size(const ModelOptions& options);

/// Of a model without dropout. Throws: c10::ValueError unless there is to be none.
void check_no_dropout(const DropoutOptions& dropout);

/// Of a model that gives no maps. Throws: c10::ValueError.
[[noreturn]] void refuse_maps();

/// Of a model that gives no features. Throws: c10::ValueError.
[[noreturn]] void refuse_features();

/// Of a model without blocks. Throws: c10::ValueError unless it is 0.
void check_no_checkpointing(std::int64_t blocks);

template <class Options>
struct ModelOptions::HeldAs final : Held {
  explicit HeldAs(Options options) : own{std::move(options)} {}

  std::shared_ptr<Classifier> build(torch::Device device) const override {
    return std::make_shared<typename Options::Model>(own, device);
  }
  ModelOptions with_drop_path(double rate, std::optional<DropPathRule> rule) const override {
    auto changed = own;
    changed.drop_path.rate = rate;
    if (rule) changed.drop_path.rule = *rule;
    return changed;
  }
  ModelOptions with_dropout(const DropoutOptions& dropout) const override {
    auto changed = own;
    if constexpr (WithDropout<Options>)
      changed.dropout = dropout;
    else
      check_no_dropout(dropout);
    return changed;
  }
  ModelOptions with_checkpointing(std::int64_t blocks) const override {
    auto changed = own;
    if constexpr (WithBlocks<Options>)
      changed.checkpoint_blocks = blocks;
    else
      check_no_checkpointing(blocks);
    return changed;
  }
  ModelOptions without_head() const override {
    if constexpr (WithMaps<Options>) {
      auto changed = own;
      changed.has_head = false;
      return changed;
    } else {
      refuse_maps();
    }
  }
  ModelOptions without_classifier() const override {
    if constexpr (WithFeatures<Options>) {
      auto changed = own;
      changed.classes = 0;
      return changed;
    } else {
      refuse_features();
    }
  }
  std::int64_t image_size() const override { return own.image_size; }

  const Options own;
};

}  // namespace abl::models
