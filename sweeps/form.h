// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/enum_names.h"

/// Which keys a sweep file may have, and what their values are. The parser refuses a key that is not here
/// (`YamlReader::allow_only`), and `ablate schema` tells editors of all that are: neither knows a key without
/// the other.
namespace abl::sweeps {

/// A mapping of a sweep file or a scales file whose keys are known.
enum class Part {
  kSweep,
  kRow,
  kNotTrained,
  kPaperValue,
  kSource,
  kCommand,
  kMetricSource,
  kTable,
  kColumn,
  kCompare,
  kPivot,
  kSeedRule,
  kTune,
  kSearch,
  kRange,
  kHalving,
  kResources,
  kAmount,
  kRetry,
  kLimits,
  kScale,
  kScaleRule,
  kScaleLayers,
  kScales,
};
constexpr std::string_view name_of(Part part) {
  switch (part) {
    case Part::kSweep:
      return "sweep";
    case Part::kRow:
      return "row";
    case Part::kNotTrained:
      return "not_trained";
    case Part::kPaperValue:
      return "paper_value";
    case Part::kSource:
      return "source";
    case Part::kCommand:
      return "command";
    case Part::kMetricSource:
      return "metric_source";
    case Part::kTable:
      return "table";
    case Part::kColumn:
      return "column";
    case Part::kCompare:
      return "compare";
    case Part::kPivot:
      return "pivot";
    case Part::kSeedRule:
      return "seed_rule";
    case Part::kTune:
      return "tune";
    case Part::kSearch:
      return "search";
    case Part::kRange:
      return "range";
    case Part::kHalving:
      return "halving";
    case Part::kResources:
      return "resources";
    case Part::kAmount:
      return "amount";
    case Part::kRetry:
      return "retry";
    case Part::kLimits:
      return "limits";
    case Part::kScale:
      return "scale";
    case Part::kScaleRule:
      return "scale_rule";
    case Part::kScaleLayers:
      return "scale_layers";
    case Part::kScales:
      return "scales";
  }
  return {};
}

struct Key {
  std::string_view name;
  nlohmann::json schema;  ///< of its values, with a description
  bool needed = false;
};

/// The keys of a part, in the order in which messages list them.
struct Form {
  std::vector<Key> keys;
  nlohmann::json rules = nlohmann::json::object();  ///< what holds between keys, as JSON Schema says it

  std::vector<std::string_view> names() const;
};
const Form& form_of(Part part);

// What parser and schema have in common.
inline constexpr int kFormatVersion = 1;
inline constexpr std::int64_t kMostTrials = 100'000;
inline constexpr std::int64_t kMostSeeds = 1000;  // that a rule gives a row
inline constexpr int kMostGpus = 1024;            // of a trial, of several machines together
inline constexpr int kMostNodes = 64;
inline constexpr int kMostAttempts = 1000;
inline constexpr int kMostLayers = 4096;

/// JSON Schema (draft 7, which editors know) of a sweep file: what its mappings may have, and the keys of a
/// trial both nested and dotted. What needs more than one key to be judged is the parser's alone.
nlohmann::json sweep_schema();
/// The same of `scales.yaml`.
nlohmann::json scales_schema();

}  // namespace abl::sweeps
