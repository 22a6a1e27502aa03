// SPDX-License-Identifier: Apache-2.0
#include "config/attention_section.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "config/fields.h"
#include "config/shape_rules.h"

namespace abl::config {
namespace {

constexpr std::string_view kRoles = "QKVPW";

std::string share_error(const std::string& share) {
  const bool letters =
      share.size() == kRoles.size() && std::ranges::all_of(share, [&share](const char& letter) {
        return (letter >= 'A' && letter <= 'Z') || (letter == '-' && &letter == &share[3]);
      });
  if (letters) return {};
  return fmt::format(
      "'{}' is no sharing; expected five capital letters for QUERY, KEY, VALUE, PROBE and WEIGHT, such as "
      "QKKKW, "
      "with - in the fourth place where there is no PROBE",
      share);
}

AttentionConfig read_one(const Json& section, const std::string& path, const ModelConfig& model,
                         const std::vector<std::string>& more_keys, std::vector<Problem>& problems) {
  AttentionConfig attention;
  if (!expect_mapping(section, path, problems)) return attention;
  std::vector<std::string> known = names(attention_fields());
  known.insert(known.end(), more_keys.begin(), more_keys.end());
  expect_keys(section, path, known, problems);
  read_fields(section, path, attention_fields(), attention, problems);
  if (const std::string error = share_error(attention.share); !error.empty()) {
    problems.push_back({path + ".share", error, {}});
    return AttentionConfig{};
  }
  attention.share = canonical_share(attention.share);
  check_attention(attention, model, path, problems);
  reset_inert(attention_fields(), attention);
  return attention;
}

std::vector<AttentionConfig> read_list(const Json& list, const std::string& path, const ModelConfig& model,
                                       std::vector<Problem>& problems) {
  std::vector<AttentionConfig> layers;
  if (model.depth > 0 && static_cast<int>(list.size()) != model.depth) {
    problems.push_back(
        {path, fmt::format("{} entries for {} layers; expected one for each", list.size(), model.depth), {}});
    return layers;
  }
  for (const Json& entry : list) {
    layers.push_back(read_one(entry, fmt::format("{}.{}", path, layers.size() + 1), model, {}, problems));
  }
  return layers;
}

std::optional<int> whole_number(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return {};
  return number;
}

bool all_equal(const std::vector<AttentionConfig>& layers) {
  return std::ranges::all_of(layers, [&](const AttentionConfig& layer) { return layer == layers.front(); });
}

template <class Write>
Json one_or_list(std::vector<AttentionConfig> layers, Write write) {
  for (AttentionConfig& layer : layers) {
    layer.share = canonical_share(layer.share);
    reset_inert(attention_fields(), layer);
  }
  if (layers.empty()) return Json::object();
  if (all_equal(layers)) return write(attention_fields(), layers.front());
  Json list = Json::array();
  for (const AttentionConfig& layer : layers) list.push_back(write(attention_fields(), layer));
  return list;
}

}  // namespace

std::string canonical_share(const std::string& share) {
  std::string letters = share;
  for (std::size_t role = 0; role < letters.size(); ++role) {
    if (share[role] != '-') letters[role] = kRoles[share.find(share[role])];
  }
  return letters;
}

std::optional<std::vector<bool>> parse_layers(const std::string& text, int depth, std::string& message) {
  std::vector<bool> chosen(static_cast<std::size_t>(depth), false);
  if (text == "none") return chosen;
  std::size_t start = 0;
  while (start <= text.size()) {
    const std::size_t comma = std::min(text.find(',', start), text.size());
    std::string part = text.substr(start, comma - start);
    std::erase(part, ' ');
    const std::size_t dash = part.find('-');
    const auto first = whole_number(part.substr(0, dash));
    const auto last = dash == std::string::npos ? first : whole_number(part.substr(dash + 1));
    if (!first || !last || *first > *last) {
      message = fmt::format(
          "'{}' names no layers; expected numbers and ranges from 1, such as 1-4,9, or none", text);
      return {};
    }
    if (*first < 1 || (depth > 0 && *last > depth)) {
      message = fmt::format("layers {} do not exist; the model has layers 1 to {}", part, depth);
      return {};
    }
    for (std::int64_t layer = *first; layer <= *last && layer <= depth; ++layer)
      chosen[static_cast<std::size_t>(layer - 1)] = true;
    start = comma + 1;
  }
  return chosen;
}

std::vector<AttentionConfig> read_attention(const Json& section, const ModelConfig& model,
                                            std::vector<Problem>& problems) {
  const std::string path = "model.attention";
  if (section.is_array()) return read_list(section, path, model, problems);
  const AttentionConfig inside = read_one(section, path, model, {"layers", "elsewhere"}, problems);
  std::vector<AttentionConfig> layers(static_cast<std::size_t>(model.depth), inside);
  if (!section.is_object() || !(section.contains("layers") || section.contains("elsewhere"))) return layers;

  const AttentionConfig elsewhere =
      section.contains("elsewhere") ? read_one(section["elsewhere"], path + ".elsewhere", model, {}, problems)
                                    : AttentionConfig{};
  if (!section.contains("layers")) {
    problems.push_back(
        {path + ".elsewhere", "has no meaning without layers; say in which layers the other keys hold", {}});
    return layers;
  }
  const Json& text = section["layers"];
  std::string message;
  const auto chosen = text.is_string() || text.is_number_integer()
                          ? parse_layers(plain_text(text), model.depth, message)
                          : std::nullopt;
  if (!chosen) {
    if (message.empty())
      message = fmt::format("expected a text such as 1-4,9, or none; got {}", canonical_json(text));
    problems.push_back({path + ".layers", message, {}});
    return layers;
  }
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    if (!(*chosen)[layer]) layers[layer] = elsewhere;
  }
  return layers;
}

Json canonical_attention(const std::vector<AttentionConfig>& layers) {
  return one_or_list(layers, canonical_section<AttentionConfig>);
}

Json full_attention(const std::vector<AttentionConfig>& layers) {
  return one_or_list(layers, full_section<AttentionConfig>);
}

}  // namespace abl::config
