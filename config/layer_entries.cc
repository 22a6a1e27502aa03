// SPDX-License-Identifier: Apache-2.0
#include "config/layer_entries.h"

#include <fmt/format.h>

#include "config/canonical_json.h"
#include "config/layer_list.h"

namespace abl::config {
namespace {

std::vector<LayerEntry> entries_of_list(const Json& list, const std::string& path, int layers,
                                        std::vector<Problem>& problems) {
  std::vector<LayerEntry> entries;
  if (layers > 0 && list.size() != static_cast<std::size_t>(layers)) {
    problems.push_back(
        {path, fmt::format("{} entries for {} layers; expected one for each", list.size(), layers), {}});
    return entries;
  }
  for (std::size_t i = 0; i < list.size(); ++i) {
    entries.push_back({fmt::format("{}.{}", path, i + 1), list[i], std::vector<bool>(list.size(), false)});
    entries.back().holds[i] = true;
  }
  return entries;
}

/// The layers that `section.layers` names.
std::optional<std::vector<bool>> chosen_layers(const Json& section, const std::string& path, int layers,
                                               std::vector<Problem>& problems) {
  if (!section.contains("layers")) {
    problems.push_back(
        {path + ".elsewhere", "has no meaning without layers; say in which layers the other keys hold", {}});
    return {};
  }
  const Json& text = section["layers"];
  std::string message = fmt::format("expected a text such as 1-4,9, or none; got {}", canonical_json(text));
  const bool is_text = text.is_string() || text.is_number_integer();
  auto chosen = is_text ? parse_layers(plain_text(text), layers, message) : std::nullopt;
  if (!chosen) problems.push_back({path + ".layers", message, {}});
  return chosen;
}

}  // namespace

std::vector<LayerEntry> layer_entries(const Json& section, const std::string& path, int layers,
                                      std::vector<Problem>& problems) {
  if (section.is_array()) return entries_of_list(section, path, layers, problems);
  const auto count = static_cast<std::size_t>(layers);
  LayerEntry here{path, section, std::vector<bool>(count, true), /*may_be_placed=*/true};
  if (!section.is_object() || !(section.contains("layers") || section.contains("elsewhere"))) return {here};

  LayerEntry elsewhere{path + ".elsewhere", section.value("elsewhere", Json::object()),
                       std::vector<bool>(count, false)};
  if (const auto chosen = chosen_layers(section, path, layers, problems)) {
    here.holds = elsewhere.holds = *chosen;
    elsewhere.holds.flip();
  }
  return {here, elsewhere};
}

}  // namespace abl::config
