// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/field_table.h"
#include "config/trial_config.h"

namespace abl::config {

/// A model by name. What is not listed keeps its default.
struct Preset {
  std::string_view name;
  std::string_view sentence;
  ModelConfig sizes;     ///< without name and family: see model_of
  int image_size = 224;  ///< of the images it is made for
  /// Whether data.image_size follows it where neither document nor data set settles that. Not so for a model
  /// that is made for the size of a data set.
  bool gives_image_size = true;
  std::string_view family{};  ///< its family's name
};

/// What of a family's models a plugin may be.
enum class PluginPart { kNone, kAttention, kModel };

/// What maps of features a family's models give, for heads that answer for places of an image.
enum class MapsOf {
  kNone,
  kLayers,  ///< a map after each layer, all of one size
  kStages,  ///< of stages, each coarser than the one before
};

/// A kind of backbone: one file of config/families, and all that the rest of config/ knows of it.
struct Family {
  int place;  ///< in what lists all families
  std::string_view name;
  std::string_view sentence;
  std::span<const std::string_view> keys;        ///< that it shares with other families (model_section.cc)
  std::span<const std::string_view> sections{};  ///< by layer, that it has
  bool adds_positions = false;                   ///< to its tokens, where they enter the first layer
  PluginPart plugin = PluginPart::kNone;
  MapsOf maps = MapsOf::kNone;
  bool describes_images = false;  ///< by one vector each, without the classifier
  std::vector<Preset> (*presets)();
  const std::vector<Field<ModelConfig>>& (*own_fields)() = nullptr;  ///< keys of its own
  // null where there is nothing of the kind
  /// Attention layers or blocks: what sections hold by layer.
  int (*layers)(const ModelConfig&) = nullptr;
  bool (*has_batch_norm)(const ModelConfig&) = nullptr;
  /// Default of `stage_widths`.
  std::vector<int> (*usual_widths)(const ModelConfig&) = nullptr;
  /// Gives what has no effect its default, once all sections are read.
  void (*settle)(ModelConfig&) = nullptr;
  /// What does not fit together in its layers, each of which is valid.
  void (*check_layers)(const ModelConfig&, std::vector<Problem>&) = nullptr;
  /// What does not fit together in its sizes and those of the images.
  void (*check_sizes)(const ModelConfig&, int image_size, std::vector<Problem>&) = nullptr;
  /// Of a model that starts from weights, what they bring where nothing is written: they are its preset's.
  void (*assume_of_weights)(ModelConfig&, const Preset& preset, int image_size) = nullptr;
  /// What the weights named `weights` may contradict, which do not say it.
  void (*doubt_weights)(const ModelConfig&, const std::string& weights, int image_size,
                        std::vector<Problem>& doubts) = nullptr;
};

/// Every family of config/families.
std::span<const Family* const> family_files();

/// The same, by their places.
const std::vector<const Family*>& families();
std::vector<std::string> family_names();
/// The family of a model that was read.
const Family& family_of(const ModelConfig& model);
/// Its attention layers or blocks; 0 where there are none.
int layers_of(const ModelConfig& model);
bool has_batch_norm(const ModelConfig& model);

/// Whether what is of meaning for the families `listed` (none: for all) is so for `family`. Of a family that
/// is not known (empty) everything is.
bool is_for(const std::vector<std::string>& listed, const std::string& family);
/// The families that have a section of that name.
std::vector<std::string> families_with_section(std::string_view section);

/// "simple-vit, swin and swin-v2".
std::string all_of(const std::vector<std::string>& names);

/// Family by family.
const std::vector<Preset>& presets();
std::vector<std::string> preset_names();
/// Null when there is none of that name.
const Preset* find_preset(std::string_view name);
/// What a preset sets, with its name and family; everything else as by default.
ModelConfig model_of(const Preset& preset);

}  // namespace abl::config
