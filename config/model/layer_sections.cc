// SPDX-License-Identifier: Apache-2.0
#include "config/model/layer_sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "config/json.h"

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
    problems.push_back({path + ".elsewhere", "requires layers: the layers that the other keys apply to", {}});
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

namespace {

std::optional<int> whole_number(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return {};
  return number;
}

struct Run {
  int first = 0, last = 0;
};

/// "4" or "1-4".
std::optional<Run> parse_run(const std::string& part) {
  const std::size_t dash = part.find('-');
  const auto first = whole_number(part.substr(0, dash));
  const auto last = dash == std::string::npos ? first : whole_number(part.substr(dash + 1));
  if (!first || !last || *first > *last) return {};
  return Run{*first, *last};
}

}  // namespace

std::optional<std::vector<bool>> parse_layers(const std::string& text, int count, std::string& message,
                                              std::string_view owner) {
  std::vector<bool> chosen(static_cast<std::size_t>(count), false);
  if (text == "none") return chosen;
  std::size_t start = 0;
  while (start <= text.size()) {
    const std::size_t comma = std::min(text.find(',', start), text.size());
    std::string part = text.substr(start, comma - start);
    std::erase(part, ' ');
    const auto run = parse_run(part);
    if (!run) {
      message = fmt::format("invalid layers '{}'; expected numbers and ranges from 1, such as 1-4,9, or none",
                            text);
      return {};
    }
    if (run->first < 1 || (count > 0 && run->last > count)) {
      message = fmt::format("layers {} out of range; {} has layers 1 to {}", part, owner, count);
      return {};
    }
    for (std::int64_t layer = run->first; layer <= run->last && layer <= count; ++layer)
      chosen[static_cast<std::size_t>(layer - 1)] = true;
    start = comma + 1;
  }
  return chosen;
}

std::string layers_text(const std::vector<bool>& chosen) {
  std::string text;
  for (std::size_t first = 0; first < chosen.size(); ++first) {
    if (!chosen[first]) continue;
    std::size_t last = first;
    while (last + 1 < chosen.size() && chosen[last + 1]) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ",", first + 1);
    if (last > first) text += fmt::format("-{}", last + 1);
    first = last;
  }
  return text.empty() ? "none" : text;
}

void add_new(const std::vector<Problem>& found, std::vector<Problem>& problems) {
  const std::size_t before = problems.size();
  for (const Problem& problem : found) {
    const auto end = problems.begin() + static_cast<std::ptrdiff_t>(before);
    const bool is_told =
        std::any_of(problems.begin(), end, [&](const Problem& told) { return told.path == problem.path; });
    if (!is_told && !is_misspelt(problem.path, problems)) problems.push_back(problem);
  }
}

namespace {

/// In Swin each stage is twice as wide as the one before it.
LayerShape shape_of_stage(const ModelConfig& model, std::size_t stage) {
  const int dim = model.dim << stage;
  const int heads = stage < model.stage_heads.size() ? model.stage_heads[stage] : 0;
  if (heads == 0 || dim % heads != 0) return {.dim = dim};  // a problem of the stages, told there
  return {.dim = dim, .heads = heads, .dim_head = dim / heads};
}

}  // namespace

std::vector<LayerShape> shapes_of(const ModelConfig& model, const std::vector<bool>& chosen) {
  if (model.stage_depths.empty()) return {{model.dim, model.heads, model.dim_head}};
  std::vector<LayerShape> shapes;
  auto layer = chosen.begin();
  for (std::size_t stage = 0; stage < model.stage_depths.size(); ++stage) {
    const auto end = layer + std::min<std::ptrdiff_t>(model.stage_depths[stage], chosen.end() - layer);
    if (std::find(layer, end, true) != end) shapes.push_back(shape_of_stage(model, stage));
    layer = end;
  }
  if (shapes.empty()) shapes.emplace_back();
  return shapes;
}

}  // namespace abl::config
