// SPDX-License-Identifier: Apache-2.0
#include "config/trial_document.h"

#include <algorithm>

#include "base/error.h"
#include "base/sha256.h"
#include "config/attention_section.h"
#include "config/data_sets.h"
#include "config/fields.h"
#include "config/presets.h"
#include "config/recipes.h"
#include "config/shape_rules.h"

namespace abl::config {
namespace {

/// Whether `object[key]` is a text; what a section starts from is looked up by it before anything else is
/// read.
const std::string* text_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() ? nullptr : found->get_ptr<const std::string*>();
}

/// Whether a problem takes a key beside `path` for a misspelling of it: then it is not missing as well.
bool is_misspelt(const std::string& path, const std::vector<Problem>& problems) {
  const std::size_t start = path.rfind('.') + 1;  // 0 where there is no dot
  return std::any_of(problems.begin(), problems.end(), [&](const Problem& problem) {
    return problem.nearest == path.substr(start) && problem.path.rfind('.') + 1 == start &&
           problem.path.compare(0, start, path, 0, start) == 0;
  });
}

template <class Section>
void expect_required(const std::vector<Field<Section>>& fields, const Section& section,
                     const std::string& path, std::string_view remedy, const Json& object,
                     std::vector<Problem>& problems) {
  for (const auto& field : fields) {
    // what was given and is wrong has its problem already
    if (!field.required || object.contains(field.name) || field.get(section) != field.get(Section{}))
      continue;
    const std::string missing = fmt::format("{}.{}", path, field.name);
    if (is_misspelt(missing, problems)) continue;
    problems.push_back({missing, fmt::format("missing; expected a {}{}", field.type(), remedy), {}});
  }
}

/// `document[key]`, an empty mapping with a problem where it is missing or no mapping.
Json section_of(const Json& document, const char* key, std::vector<Problem>& problems) {
  if (!document.contains(key)) {
    if (!is_misspelt(key, problems)) problems.push_back({key, "missing; expected a mapping", {}});
    return nullptr;
  }
  return expect_mapping(document[key], key, problems) ? document[key] : Json(nullptr);
}

ModelConfig read_model(const Json& section, std::vector<Problem>& problems) {
  ModelConfig model;
  if (section.is_null()) return model;
  const std::string* name = text_at(section, "preset");
  if (const Preset* preset = name ? find_preset(*name) : nullptr) model = model_of(*preset);
  std::vector<std::string> known = names(model_fields());
  known.push_back("attention");
  expect_keys(section, "model", known, problems);
  const bool preset_meant = section.contains("preset") || is_misspelt("model.preset", problems);
  read_fields(section, "model", model_fields(), model, problems);
  if (!preset_meant) {
    expect_required(model_fields(), model, "model", ", or a preset that sets it", section, problems);
  }
  model.attention = read_attention(section.value("attention", Json::object()), model, problems);
  return model;
}

DataConfig read_data(const Json& section, std::vector<Problem>& problems) {
  DataConfig data;
  if (section.is_null()) return data;
  const std::string* name = text_at(section, "name");
  const DataSet* known = name ? find_data_set(*name) : nullptr;
  if (known) {
    data.classes = known->classes;
    data.image_size = known->image_size;
    data.train_images = known->train_images;
    data.val_images = known->val_images;
  }
  expect_keys(section, "data", names(data_fields()), problems);
  read_fields(section, "data", data_fields(), data, problems);
  if (!section.contains("name")) {
    if (!is_misspelt("data.name", problems))
      problems.push_back({"data.name", "missing; expected the logical name of a data set", {}});
  } else if (!data.name.empty()) {
    const std::string remedy = fmt::format("; '{}' is none of the data sets that are known", data.name);
    expect_required(data_fields(), data, "data", remedy, section, problems);
  }
  if (known && known->embedded) {
    for (const char* key : {"train_images", "val_images"}) {
      if (section.contains(key) && section[key] == 0) {
        problems.push_back({std::string{"data."} + key,
                            fmt::format("0 images of {}; expected at least 1 to draw", *name),
                            {}});
      }
    }
  }
  reset_inert(data_fields(), data);
  return data;
}

RecipeConfig read_recipe(const Json& section, const ModelConfig& model, const DataConfig& data,
                         std::vector<Problem>& problems) {
  RecipeConfig recipe;
  if (section.is_null()) return recipe;
  const std::string* name = text_at(section, "use");
  if (const Recipe* used = name ? find_recipe(*name) : nullptr) recipe = recipe_for(*used, model);
  expect_keys(section, "recipe", names(recipe_fields()), problems);
  const bool recipe_meant = section.contains("use") || is_misspelt("recipe.use", problems);
  read_fields(section, "recipe", recipe_fields(), recipe, problems);
  if (!recipe_meant) {
    expect_required(recipe_fields(), recipe, "recipe", ", or a recipe that sets it (use)", section, problems);
  }
  reset_inert(recipe_fields(), recipe);
  if (recipe.eval_resize == data.image_size) recipe.eval_resize = 0;  // the same by another name
  return recipe;
}

Json model_and_images(const TrialConfig& trial) {
  Json model = canonical_section(model_fields(), trial.model);
  if (const Json attention = canonical_attention(trial.model.attention); !attention.empty())
    model["attention"] = attention;
  return {{"model", model},
          {"data", {{"image_size", trial.data.image_size}, {"classes", trial.data.classes}}}};
}

void throw_if_any(const std::vector<Problem>& problems) {
  if (problems.empty()) return;
  std::string text;
  for (const Problem& problem : problems) {
    text += fmt::format("{}{}: {}", text.empty() ? "" : "\n", problem.path, problem.message);
    if (!problem.nearest.empty()) text += fmt::format("; did you mean '{}'?", problem.nearest);
  }
  throw Error{Code::kInvalidArgument, text};
}

}  // namespace

TrialConfig read_trial(const Json& document, std::vector<Problem>& problems) {
  TrialConfig trial;
  if (!expect_mapping(document, "trial", problems)) return trial;
  expect_keys(document, "", {"model", "data", "recipe", "seed"}, problems);
  const std::size_t before = problems.size();
  trial.model = read_model(section_of(document, "model", problems), problems);
  trial.data = read_data(section_of(document, "data", problems), problems);
  if (problems.size() == before) check_sizes(trial.model, trial.data, problems);
  trial.recipe = read_recipe(section_of(document, "recipe", problems), trial.model, trial.data, problems);
  if (document.contains("seed")) {
    Json seed = document["seed"];
    const Mismatch mismatch = check_number(seed, true, kSeedRange);
    if (!mismatch.message.empty()) {
      problems.push_back({"seed", mismatch.message, {}});
    } else {
      trial.seed = seed.get<std::int64_t>();
    }
  }
  return trial;
}

TrialConfig read_trial_or_throw(const Json& document) {
  std::vector<Problem> problems;
  TrialConfig trial = read_trial(document, problems);
  throw_if_any(problems);
  return trial;
}

TrialConfig read_model_or_throw(const Json& document) {
  std::vector<Problem> problems;
  TrialConfig trial;
  if (expect_mapping(document, "document", problems)) {
    Json data = section_of(document, "data", problems);
    if (data.is_object() && !data.contains("name")) data["name"] = "any";  // counts do not depend on it
    trial.model = read_model(section_of(document, "model", problems), problems);
    trial.data = read_data(data, problems);
    if (problems.empty()) check_sizes(trial.model, trial.data, problems);
  }
  throw_if_any(problems);
  return trial;
}

Json canonical_document(const TrialConfig& trial) {
  Json document = model_and_images(trial);
  document["data"] = canonical_section(data_fields(), trial.data);
  document["recipe"] = canonical_section(recipe_fields(), trial.recipe);
  document["seed"] = trial.seed;
  return document;
}

Json full_document(const TrialConfig& trial) {
  Json model = full_section(model_fields(), trial.model);
  model["attention"] = full_attention(trial.model.attention);
  return {{"model", model},
          {"data", full_section(data_fields(), trial.data)},
          {"recipe", full_section(recipe_fields(), trial.recipe)},
          {"seed", trial.seed}};
}

std::string canonical_text(const TrialConfig& trial) { return canonical_json(canonical_document(trial)); }

std::string canonical_model_text(const TrialConfig& trial) { return canonical_json(model_and_images(trial)); }

std::string config_hash(const std::string& canonical) { return sha256_hex(canonical); }

}  // namespace abl::config
