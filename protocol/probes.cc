// SPDX-License-Identifier: Apache-2.0
#include "protocol/probes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/error.h"
#include "base/nearest_name.h"
#include "protocol/number.h"

namespace abl::protocol {
namespace {

using Kind = ProbeSetting::Kind;
constexpr std::int64_t kLargestSide = 4096;  // of an image, in pixels
constexpr std::size_t kMostNumbers = 64;     // of a list

ProbeSetting one_layer(const char* sentence) {
  return {.name = "layer",
          .kind = ProbeSetting::Kind::kNumber,
          .fallback = 0,
          .lowest = 0,
          .highest = 1024,
          .sentence = sentence};
}

ProbeSetting count_of_images(std::int64_t usual, std::int64_t most) {
  return {.name = "images",
          .kind = Kind::kNumber,
          .fallback = usual,
          .lowest = 1,
          .highest = most,
          .sentence = "Number of evaluation images, evenly spaced."};
}

ProbeSetting sizes(const char* sentence) {
  return {.name = "sizes",
          .kind = Kind::kNumbers,
          .fallback = nlohmann::json::array(),
          .lowest = 1,
          .highest = kLargestSide,
          .sentence = sentence};
}

template <class Listed>
std::vector<std::string> names_of_all(const std::vector<Listed>& listed) {
  std::vector<std::string> names;
  for (const auto& one : listed) names.emplace_back(one.name);
  return names;
}

const ProbeDeclaration& declaration_of(const std::string& name) {
  const auto& all = probe_declarations();
  const auto found = std::ranges::find_if(all, [&](const auto& one) { return name == one.name; });
  if (found != all.end()) return *found;
  const auto names = names_of_all(all);
  throw Error{Code::kInvalidArgument, fmt::format("unknown probe '{}'; expected {}{}", name, any_of(names),
                                                  did_you_mean(name, names))};
}

const ProbeSetting& setting_of(const ProbeDeclaration& probe, const std::string& name) {
  const auto found =
      std::ranges::find_if(probe.settings, [&](const auto& setting) { return name == setting.name; });
  if (found != probe.settings.end()) return *found;
  const auto names = names_of_all(probe.settings);
  throw Error{Code::kInvalidArgument, fmt::format("{}: unknown setting '{}'; {}{}", probe.name, name,
                                                  names.empty() ? "it has none" : "expected " + any_of(names),
                                                  did_you_mean(name, names))};
}

std::string expected(const ProbeSetting& setting) {
  switch (setting.kind) {
    case Kind::kNumber:
      return fmt::format("a whole number from {} to {}", setting.lowest, setting.highest);
    case Kind::kNumbers:
      return fmt::format("a list of at most {} different whole numbers from {} to {}", kMostNumbers,
                         setting.lowest, setting.highest);
    case Kind::kFlag:
      return "true or false";
  }
  return {};
}

bool is_within(const nlohmann::json& value, const ProbeSetting& setting) {
  if (!value.is_number_integer() || (value.is_number_unsigned() && value > setting.highest)) return false;
  const auto number = value.get<std::int64_t>();
  return number >= setting.lowest && number <= setting.highest;
}

bool fits(const nlohmann::json& value, const ProbeSetting& setting) {
  switch (setting.kind) {
    case Kind::kNumber:
      return is_within(value, setting);
    case Kind::kNumbers: {
      if (!value.is_array() || value.size() > kMostNumbers) return false;
      for (auto at = value.begin(); at != value.end(); ++at)
        if (!is_within(*at, setting) || std::find(value.begin(), at, *at) != at) return false;
      return true;
    }
    case Kind::kFlag:
      return value.is_boolean();
  }
  return false;
}

void set(ProbeRequest& probe, const ProbeSetting& setting, nlohmann::json value,
         const std::string& as_written) {
  if (!fits(value, setting))
    throw Error{Code::kInvalidArgument, fmt::format("{}.{}: invalid value {}; expected {}", probe.name,
                                                    setting.name, as_written, expected(setting))};
  probe.settings[setting.name] = std::move(value);
}

nlohmann::json number_in(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return nullptr;
  return number;
}

/// Null for what is of another kind.
nlohmann::json value_in(std::string_view text, Kind kind) {
  switch (kind) {
    case Kind::kNumber:
      return number_in(text);
    case Kind::kNumbers: {
      auto list = nlohmann::json::array();
      for (std::size_t from = 0; from <= text.size();) {
        const auto comma = std::min(text.find(',', from), text.size());
        list.push_back(number_in(text.substr(from, comma - from)));
        from = comma + 1;
      }
      return list;
    }
    case Kind::kFlag:
      if (text == "true" || text == "false") return text == "true";
      return nullptr;
  }
  return nullptr;
}

}  // namespace

const std::vector<ProbeDeclaration>& probe_declarations() {
  static const std::vector<ProbeDeclaration> kAll{
      {.name = "feature-norms",
       .sentence = "Mean L2 norm of the tokens after the embedding and after each block",
       .source = "MSF Figure 4",
       .needs = ProbeNeeds::kImages,
       .settings = {count_of_images(64, 65536)},
       .values = {{"embedding"}, {"last"}, {"largest"}}},
      {.name = "subspace-similarity",
       .sentence = "Similarity of the subspaces of the projections to QUERY, KEY, VALUE, PROBE and WEIGHT",
       .source = "MSF eq. 13, Figure 3",
       .needs = ProbeNeeds::kWeights,
       .settings = {},
       .values = {{"query-key"},
                  {"query-value"},
                  {"query-probe"},
                  {"query-weight"},
                  {"key-value"},
                  {"key-probe"},
                  {"key-weight"},
                  {"value-probe"},
                  {"value-weight"},
                  {"probe-weight"}}},
      {.name = "code-norms",
       .sentence = "L2 norms of the codes of query, key and value, and dot products of the normalised codes",
       .source = "SNE Table 6, Figure 4",
       .needs = ProbeNeeds::kWeights,
       .settings = {},
       .values = {{"query"}, {"key"}, {"value"}, {"query-key"}, {"query-value"}, {"key-value"}}},
      {.name = "attention",
       .sentence = "Attention of each head to the patches of images, as numbers and as a picture",
       .source = "manifold key Figure 2",
       .needs = ProbeNeeds::kImages,
       .settings = {count_of_images(4, 16),
                    one_layer("Layer, counted from 1; 0 means the last."),
                    {.name = "joint",
                     .kind = Kind::kFlag,
                     .fallback = false,
                     .lowest = 0,
                     .highest = 0,
                     .sentence = "true: attention through all layers up to that one, each with its residual, "
                                 "head by head (rollout), as in the figure; false: that layer alone."}},
       .values = {{"entropy"}}},
      {.name = "class-attention",
       .sentence = "Class attention of each head to the patches of images, as numbers and as a picture",
       .source = "XCiT Figure 4",
       .needs = ProbeNeeds::kImages,
       .settings = {count_of_images(4, 16),
                    one_layer("Layer of class attention, counted from 1; 0 means the last.")},
       .values = {{"entropy"}}},
      {.name = "accuracy-by-resolution",
       .sentence = "Accuracy at image sizes other than the trained one",
       .source = "XCiT Figure 3",
       .needs = ProbeNeeds::kData,
       .settings = {sizes("Image sizes in pixels; default: half to twice the trained size, as far as the "
                          "model supports them.")},
       .values = {{.name = "top1", .unit = Unit::kPercent, .better = Better::kHigher, .by_size = true},
                  {.name = "top5", .unit = Unit::kPercent, .better = Better::kHigher, .by_size = true},
                  {.name = "loss", .better = Better::kLower, .by_size = true}}},
      {.name = "inference-cost",
       .sentence = "Memory and images per second of inference by image size",
       .source = "XCiT Figure 2",
       .needs = ProbeNeeds::kWeights,
       .settings = {sizes("Image sizes in pixels; default: one to four times the trained size, as far as "
                          "the model takes them."),
                    {.name = "batch",
                     .kind = Kind::kNumber,
                     .fallback = 64,
                     .lowest = 1,
                     .highest = 4096,
                     .sentence = "Images per batch."}},
       .values = {{.name = "memory_bytes", .unit = Unit::kBillion, .better = Better::kLower, .by_size = true},
                  {.name = "images_per_s", .better = Better::kHigher, .by_size = true}}}};
  return kAll;
}

namespace {

/// An image size as values are named by it: "96", but not "096" or "-96", which no probe writes.
bool is_size(std::string_view text) {
  const auto number = number_in(text);
  return !number.is_null() && number >= 1 && number <= kLargestSide && number.dump() == text;
}

}  // namespace

const ProbeValue* find_value(const ProbeDeclaration& probe, std::string_view name) {
  for (const ProbeValue& value : probe.values) {
    const std::string_view declared = value.name;
    if (!value.by_size && name == declared) return &value;
    if (!value.by_size || !name.starts_with(declared)) continue;
    const auto size = name.substr(declared.size());
    if (size.starts_with('-') && is_size(size.substr(1))) return &value;
  }
  return nullptr;
}

std::vector<std::string> value_names(const ProbeRequest& probe) {
  std::vector<std::string> names;
  for (const ProbeValue& value : declaration_of(probe.name).values) {
    if (!value.by_size) {
      names.emplace_back(value.name);
      continue;
    }
    const auto sizes = probe.numbers("sizes");
    if (sizes.empty()) names.push_back(fmt::format("{}-SIZE", value.name));
    for (const auto size : sizes) names.push_back(fmt::format("{}-{}", value.name, size));
  }
  return names;
}

bool finds_value(const ProbeRequest& probe, std::string_view name) {
  const ProbeValue* value = find_value(declaration_of(probe.name), name);
  if (!value) return false;
  if (!value->by_size || probe.numbers("sizes").empty()) return true;
  const auto names = value_names(probe);
  return std::ranges::find(names, name) != names.end();
}

ProbeRequest read_probe(const nlohmann::json& written) {
  const auto* name = &written;
  if (written.is_object()) {
    if (!written.contains("name"))
      throw Error{Code::kInvalidArgument, "a probe lacks its name; expected {name: feature-norms, …}"};
    name = &written.at("name");
  }
  if (!name->is_string())
    throw Error{Code::kInvalidArgument,
                fmt::format("invalid probe {}; expected a name such as feature-norms, or {{name: "
                            "feature-norms, images: 8}}",
                            name->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace))};
  const auto& declared = declaration_of(name->get<std::string>());
  ProbeRequest probe{.name = declared.name};
  for (const auto& setting : declared.settings) probe.settings[setting.name] = setting.fallback;
  if (!written.is_object()) return probe;
  for (const auto& [key, value] : written.items())
    if (key != "name")
      set(probe, setting_of(declared, key), value,
          value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  return probe;
}

nlohmann::json to_json(const ProbeRequest& probe) {
  nlohmann::json written = probe.settings;
  written["name"] = probe.name;
  return written;
}

std::string to_text(const ProbeRequest& probe) { return to_json(probe).dump(); }

void change_probe(ProbeRequest& probe, std::string_view setting) {
  const auto equals = setting.find('=');
  if (equals == std::string_view::npos)
    throw Error{Code::kInvalidArgument,
                fmt::format("{}: invalid setting '{}'; expected KEY=VALUE", probe.name, setting)};
  const auto& declared = setting_of(declaration_of(probe.name), std::string{setting.substr(0, equals)});
  const auto text = setting.substr(equals + 1);
  set(probe, declared, value_in(text, declared.kind), fmt::format("'{}'", text));
}

std::vector<ProbeRequest> read_probes(const std::vector<std::string>& names,
                                      const std::vector<std::string>& settings) {
  std::vector<ProbeRequest> requests;
  for (const auto& text : names) {
    const auto written =
        text.starts_with("{") ? nlohmann::json::parse(text, nullptr, false) : nlohmann::json(text);
    if (written.is_discarded())
      throw Error{Code::kInvalidArgument, fmt::format("invalid probe '{}'; expected a name, or JSON", text)};
    auto request = read_probe(written);
    const auto is_same = [&](const ProbeRequest& other) {
      return other.name == request.name && other.settings == request.settings;
    };
    if (std::ranges::any_of(requests, is_same))
      throw Error{Code::kInvalidArgument, fmt::format("probe '{}' is named twice", request.name)};
    requests.push_back(std::move(request));
  }
  for (const auto& setting : settings) {
    const auto dot = setting.find('.');
    const auto asked = std::ranges::find(requests, setting.substr(0, dot), &ProbeRequest::name);
    if (dot == std::string::npos || asked == requests.end())
      throw Error{Code::kInvalidArgument,
                  fmt::format("--with {}: expected PROBE.KEY=VALUE, of a probe that is named: {}", setting,
                              fmt::join(names, ", "))};
    change_probe(*asked, std::string_view{setting}.substr(dot + 1));
  }
  return requests;
}

nlohmann::ordered_json to_json(const ProbeResult& result) {
  using Json = nlohmann::ordered_json;
  auto values = Json::object(), arrays = Json::object(), pictures = Json::array();
  for (const auto& [name, value] : result.values) values[name] = json_number(value);
  for (const auto& [name, array] : result.arrays) {
    auto axes = Json::array(), numbers = Json::array();
    for (const auto& axis : array.axes) axes.push_back({{"name", axis.name}, {"places", axis.places}});
    for (const double value : array.values) numbers.emplace_back(json_number(value));
    arrays[name] = {{"axes", std::move(axes)}, {"values", std::move(numbers)}};
  }
  for (const auto& picture : result.pictures) {
    Json told{{"name", picture.name}, {"width", picture.width}, {"height", picture.height}};
    if (!picture.file.empty())
      told.update({{"file", picture.file}, {"bytes", picture.bytes}, {"sha256", picture.sha256}});
    pictures.push_back(std::move(told));
  }
  Json told{{"probe", result.request.name},    {"settings", result.request.settings},
            {"values", std::move(values)},     {"arrays", std::move(arrays)},
            {"pictures", std::move(pictures)}, {"notes", result.notes}};
  if (!result.missing.empty()) told["missing"] = result.missing;
  return told;
}

}  // namespace abl::protocol
