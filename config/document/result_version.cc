// SPDX-License-Identifier: Apache-2.0
#include "config/document/result_version.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "config/model/family.h"
#include "config/model/model_section.h"
#include "config/recipe/evaluation_size.h"
#include "config/recipe/recipes.h"

namespace abl::config {
namespace {

// Some changes corrected a recipe: its documents of before are right as documents, but they are not what the
// recipe should have said. A stored document does not name its recipe: it is the one whose settings the
// document shares most of. Where a document differs from every recipe in as many settings as it shares,
// nothing tells what it was made with, and it is taken as it stands. A setting that was written on purpose
// and is what the recipe said by mistake cannot be told either: such a trial is trained again, which costs a
// training; the other would be a wrong number.

bool has_recipe(const Json& document, std::initializer_list<std::string_view> names) {
  const Recipe* recipe = recipe_of_stored(document.value("/recipe"_json_pointer, Json::object()));
  return recipe && std::ranges::find(names, recipe->name) != names.end();
}

constexpr const char* kImageSize = "/data/image_size";
constexpr const char* kEvalResizePath = "/recipe/eval_resize";

template <class Value>
Value value_at(const Json& document, const char* pointer, Value otherwise) {
  return document.value(Json::json_pointer{pointer}, otherwise);
}

std::string string_at(const Json& document, const char* pointer, const char* otherwise) {
  return value_at(document, pointer, std::string{otherwise});
}

/// Recipes for ImageNet named pixels once, 256 or for SwinV2 292, whatever the size of the images. Pixels
/// that are the image size were left out of the document.
bool evaluates_pixels_of_another_size(const Json& document) {
  const int image_size = value_at(document, kImageSize, 0);
  const int side = value_at(document, kEvalResizePath, image_size);
  return (side == 256 || side == 292) && side != evaluation_side(image_size, 0.875) &&
         has_recipe(document, {"msf-imagenet", "mk-imagenet"});
}

void evaluate_the_usual_ratio(Json& document) {
  const int image_size = value_at(document, kImageSize, 0), side = evaluation_side(image_size, 0.875);
  document["recipe"].erase("eval_resize");
  if (side != image_size) document["recipe"]["eval_resize"] = side;
}

bool adds_parts_in_bf16(const Json& document) {
  return string_at(document, "/recipe/precision", "") == "bf16" &&
         value_at(document, "/recipe/accumulate", 1) > 1;
}

bool has_attention(std::string_view family) {
  return family != "resnet" && family != "efficientnet" && family != "regnet";
}

/// Of the model or its teacher. On GPUs the scores of all models but XCiT had 32 bits all the time; which
/// device a trial ran on is no part of its document.
bool attends_in_16_bits(const Json& document) {
  if (string_at(document, "/recipe/precision", "fp32") == "fp32") return false;
  if (has_attention(string_at(document, "/model/family", "simple-vit"))) return true;
  const Preset* teacher = find_preset(string_at(document, "/recipe/teacher", ""));
  return teacher && has_attention(teacher->family);
}

bool decays_matrices_alone(const Json& document) {
  return !document.contains("/recipe/decay"_json_pointer) &&
         value_at(document, "/recipe/weight_decay", 0.0) != 0 && has_recipe(document, {"msf-imagenet"});
}

void decay_everything(Json& document) { document["recipe"]["decay"] = "all"; }

/// The SwinV2 presets of the time before the change: a document of another one says what it means.
constexpr std::string_view kOldSwinV2[] = {"swinv2_tiny_window8_256", "swinv2_base_window12to16_192to256"};

/// That of them which has a model's sizes, whatever its windows and images; null where there is none.
const Preset* swin_v2_preset_of_size(const ModelConfig& model) {
  for (const std::string_view name : kOldSwinV2) {
    const ModelConfig& sizes = find_preset(name)->sizes;
    if (model.family == "swin-v2" && sizes.dim == model.dim && sizes.patch == model.patch &&
        sizes.stage_depths == model.stage_depths && sizes.stage_heads == model.stage_heads)
      return find_preset(name);
  }
  return nullptr;
}

/// `pretrained_window` of a SwinV2 that starts from the weights of a preset and does not say it.
std::vector<int> usual_windows(ModelConfig model, const Preset& preset, int image_size) {
  model.pretrained_window.clear();
  family_of(model).assume_of_weights(model, preset, image_size);
  return model.pretrained_window;
}

/// What `pretrained_window` is to be in a document that starts from weights and does not say it. Only of a
/// preset's sizes it is known what windows there are weights for; a model of other sizes starts from weights
/// of its own, most likely of the windows that it has.
std::vector<int> windows_of_its_weights(const Json& document) {
  if (string_at(document, "/model/family", "") != "swin-v2" ||
      string_at(document, "/recipe/start_weights", "").empty() ||
      document.contains("/model/pretrained_window"_json_pointer))
    return {};
  std::vector<Problem> problems;
  const ModelConfig model = read_model(document.at("model"), problems);
  const Preset* preset = problems.empty() ? swin_v2_preset_of_size(model) : nullptr;
  if (!preset) return {};
  return usual_windows(model, *preset, value_at(document, kImageSize, 0));
}

bool changes_windows_of_weights(const Json& document) {
  const Preset* teacher = find_preset(string_at(document, "/recipe/teacher", ""));
  return !windows_of_its_weights(document).empty() ||
         (teacher && teacher->family == "swin-v2" &&
          !usual_windows(model_of(*teacher), *teacher, value_at(document, kImageSize, 0)).empty());
}

void keep_windows_of_weights(Json& document) {
  if (const auto windows = windows_of_its_weights(document); !windows.empty())
    document["model"]["pretrained_window"] = windows;
}

bool ends_lower(const Json& document) {
  return value_at(document, "/recipe/min_lr", 0.0) == 1e-6 && has_recipe(document, {"sne-transfer"});
}

void end_at_1e_5(Json& document) { document["recipe"]["min_lr"] = 1e-5; }

bool fine_tunes_without_warmup(const Json& document) {
  return !document.contains("/recipe/warmup"_json_pointer) && has_recipe(document, {"xcit-finetune-384"});
}

void warm_up(Json& document) {
  const Json& settings = find_recipe("xcit-finetune-384")->settings;
  for (const char* key : {"warmup", "warmup_start"}) document["recipe"][key] = settings.at(key);
}

/// Of a student whose own are not ImageNet's, as by default. Which its teacher's were, its document does not
/// say: where they are ImageNet's, they are taken to be the teacher's too, as they are but for a chain that
/// changes them on its way.
bool is_taught_in_its_own_normalisation(const Json& document) {
  return string_at(document, "/recipe/teacher", "") == kTeacherTrial &&
         (document.contains("/data/mean"_json_pointer) || document.contains("/data/std"_json_pointer));
}

// {version, what changed, which documents it touches, what corrects them}
constexpr ResultChange kChanges[] = {
    {7,
     "images were scaled to 256 (or 292) pixels for evaluation, whatever the image size; now to the image "
     "size / 0.875",
     evaluates_pixels_of_another_size, evaluate_the_usual_ratio},
    {8, "in bf16 the gradients of a batch's parts were added in bfloat16; now in float32",
     adds_parts_in_bf16},
    {9,
     "bf16 and fp16 attention rounded its scores to 16 bits (on CPUs; for XCiT on GPUs too); now they have "
     "32",
     attends_in_16_bits},
    {10,
     "msf-imagenet left norms and biases out of weight decay; now everything decays, as in the paper's code",
     decays_matrices_alone, decay_everything},
    {11,
     "SwinV2 scaled relative positions by its own window size; now by the one that its weights were trained "
     "with",
     changes_windows_of_weights, keep_windows_of_weights},
    {12, "sne-transfer lowered the learning rate to 1e-6; now to 1e-5, as XCiT's trainer does", ends_lower,
     end_at_1e_5},
    {13, "xcit-finetune-384 began at the full learning rate; now it warms up for 5 epochs, as XCiT does",
     fine_tunes_without_warmup, warm_up},
    {14,
     "a teacher of another row saw images with the mean and deviation of its student; now with those that it "
     "was trained with",
     is_taught_in_its_own_normalisation},
};

/// A document in which a key is of another type than it is today counts as touched: that costs a training,
/// the other a wrong number.
bool touches(const ResultChange& change, const nlohmann::json& document) {
  try {
    return change.touches(document);
  } catch (const nlohmann::json::exception&) {
    return true;
  }
}

}  // namespace

ResultChanges result_changes() { return kChanges; }

int result_version(const nlohmann::json& document, ResultChanges changes) {
  for (auto change = changes.rbegin(); change != changes.rend(); ++change)
    if (touches(*change, document)) return change->version;
  return kFirstResultVersion;
}

nlohmann::json corrected(nlohmann::json document, int version, ResultChanges changes) {
  for (const ResultChange& change : changes) {
    if (change.version <= version || !change.correct || !touches(change, document)) continue;
    try {
      change.correct(document);
    } catch (const nlohmann::json::exception&) {  // of another form than today: there is nothing to correct
    }
  }
  return document;
}

int newest_result_version(ResultChanges changes) {
  return changes.empty() ? kFirstResultVersion : changes.back().version;
}

std::vector<std::string> changes_since(int version, const nlohmann::json& document, ResultChanges changes) {
  std::vector<std::string> sentences;
  for (const ResultChange& change : changes)
    if (change.version > version && touches(change, document)) sentences.emplace_back(change.what);
  return sentences;
}

std::string what_changed(int version, ResultChanges changes) {
  for (const ResultChange& change : changes)
    if (change.version == version) return change.what;
  return "the trainer's results have changed since";
}

}  // namespace abl::config
