// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/enum_names.h"
#include "protocol/metrics.h"

/// The probes by their names: what sweep files and command lines may ask for, and what the trainer answers.
/// What a probe computes is in probes/, a function of the same name.
namespace abl::protocol {

/// What a probe looks at, beside the trained weights.
enum class ProbeNeeds { kWeights, kImages, kData };
constexpr std::string_view name_of(ProbeNeeds needs) {
  switch (needs) {
    case ProbeNeeds::kWeights:
      return "weights";  ///< nothing else
    case ProbeNeeds::kImages:
      return "images";  ///< some images of the evaluation
    case ProbeNeeds::kData:
      return "data";  ///< all of them, with their labels
  }
  return {};
}

struct ProbeSetting {
  enum class Kind { kNumber, kNumbers, kFlag };
  const char* name;
  Kind kind;
  nlohmann::json fallback;       ///< what it is where nothing is said
  std::int64_t lowest, highest;  ///< of each number
  const char* sentence;
};

/// A number that a probe finds.
struct ProbeValue {
  const char* name;
  std::optional<Unit> unit{};
  Better better = Better::kNone;
  bool by_size = false;  ///< one for each image size: "top1-96"
};

struct ProbeDeclaration {
  const char* name;
  const char* sentence;
  const char* source;  ///< where in the papers
  ProbeNeeds needs;
  std::vector<ProbeSetting> settings;
  std::vector<ProbeValue> values;
};

/// All of them, in the order in which they are listed.
const std::vector<ProbeDeclaration>& probe_declarations();

/// The declared value of that name: "last", "top1-96". Null where the probe has none of that name.
const ProbeValue* find_value(const ProbeDeclaration& probe, std::string_view name);

/// A probe that is asked for, with each of its settings.
struct ProbeRequest {
  std::string name;
  nlohmann::json settings = nlohmann::json::object();

  std::int64_t number(const char* setting) const { return settings.at(setting).get<std::int64_t>(); }
  std::vector<std::int64_t> numbers(const char* setting) const {
    return settings.at(setting).get<std::vector<std::int64_t>>();
  }
  bool flag(const char* setting) const { return settings.at(setting).get<bool>(); }
};

/// Reads "feature-norms" or {"name": "feature-norms", "images": 8}.
/// Throws: Error{kInvalidArgument} naming the probe or setting, its value, what was expected and the nearest
/// name.
ProbeRequest read_probe(const nlohmann::json& written);

/// The names of the values that the probe finds; of those by image size, where no sizes are asked for,
/// "top1-SIZE".
std::vector<std::string> value_names(const ProbeRequest& probe);
/// Whether it may find a value of that name.
bool finds_value(const ProbeRequest& probe, std::string_view name);

/// The same with every setting: {"name": "feature-norms", "images": 64}.
nlohmann::json to_json(const ProbeRequest& probe);
std::string to_text(const ProbeRequest& probe);

/// Reads a setting of a probe as a command line has it: "sizes=64,96".
/// Throws: as `read_probe`.
void change_probe(ProbeRequest& probe, std::string_view setting);

/// Reads what a command line asks for: names, or JSON as `to_text` has it, each once, and settings by the
/// flag
/// --with, such as "attention.images=8".
/// Throws: as `read_probe`; for a probe that is given twice, and a setting of one that is not named.
std::vector<ProbeRequest> read_probes(const std::vector<std::string>& names,
                                      const std::vector<std::string>& settings);

/// An array that a probe found, its last axis the fastest.
struct ProbeArray {
  struct Axis {
    std::string name;
    std::vector<std::string> places;
  };
  std::vector<Axis> axes;
  std::vector<double> values;  ///< as many as the product of the axes' places
};

struct ProbePicture {
  std::string name, file;  ///< a PNG; empty where it was not written
  std::string sha256;
  std::uint64_t bytes = 0;
  int width = 0, height = 0;
};

/// What a probe found, as the trainer says it.
struct ProbeResult {
  ProbeRequest request;
  std::map<std::string, double> values;
  std::map<std::string, ProbeArray> arrays;
  std::vector<ProbePicture> pictures;
  std::vector<std::string> notes;
  std::string missing{};  ///< why it found nothing: the model has nothing for it to look at; or empty
};

/// {"probe": …, "settings": {…}, "values": {…}, "arrays": {NAME: {"axes": […], "values": […]}}, "pictures":
/// […], "notes": […]}, with "missing" where it found nothing. Numbers that are not finite are texts
/// (protocol/number.h).
nlohmann::ordered_json to_json(const ProbeResult& result);

}  // namespace abl::protocol
