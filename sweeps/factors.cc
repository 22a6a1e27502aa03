// SPDX-License-Identifier: Apache-2.0
#include "sweeps/factors.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/nearest_name.h"
#include "config/json.h"

namespace abl::sweeps {
namespace {

Level read_level(YamlReader& reader, const Node& node, const std::string& field) {
  Level level{.value = &node, .json = node.json(), .place = node.place};
  if (node.kind == Node::Kind::kMapping) {
    const Node* label = node.find("label");
    const Node* value = node.find("value");
    if (!label || !value || node.entries.size() != 2) {
      reader.problems().add(node.place, field, "a level that is a mapping needs {label: …, value: …}");
      level.value = nullptr;
      return level;
    }
    level.text = reader.text(*label, field + ".label").value_or("");
    level.value = value;
    level.json = value->json();
    level.place = value->place;
  } else {
    level.text = node.kind == Node::Kind::kScalar ? node.text : config::plain_text(level.json);
  }
  return level;
}

class FactorReader {
 public:
  FactorReader(YamlReader& reader, FactorPlan& plan) : reader_{reader}, plan_{plan} {}

  void read_levels(const Node& factors) {
    if (!reader_.is_mapping(factors, "factors")) return;
    if (factors.entries.empty()) problem(factors.place, "factors", "no factors; expected at least one");
    for (const Node::Entry& entry : factors.entries) {
      const std::string field = dotted("factors", entry.key);
      if (entry.key == "seed") {
        problem(entry.place, field, "seeds are not a factor; use the seeds: key");
        continue;
      }
      Factor factor{.key = entry.key, .place = entry.place, .axis = static_cast<int>(plan_.factors.size())};
      if (reader_.is_sequence(entry.value, field)) {
        for (const Node& item : entry.value.items) add_level(factor, read_level(reader_, item, field), field);
        if (entry.value.items.empty())
          problem(entry.value.place, field, "no levels; expected a list with at least one");
      }
      plan_.factors.push_back(std::move(factor));
    }
  }

  void read_zip(const Node& zip) {
    if (!reader_.is_sequence(zip, "zip")) return;
    std::vector<bool> zipped(plan_.factors.size(), false);
    for (const Node& group : zip.items) {
      if (!reader_.is_sequence(group, "zip")) continue;
      if (group.items.size() < 2)
        problem(group.place, "zip", "expected lists of at least two factors that vary together");
      const Factor* first = nullptr;
      for (const Node& key : group.items) {
        const int index = factor_named(key, "zip");
        if (index < 0) continue;
        Factor& factor = plan_.factors[static_cast<std::size_t>(index)];
        if (zipped[static_cast<std::size_t>(index)])
          problem(key.place, "zip", fmt::format("{} is zipped twice", factor.key));
        zipped[static_cast<std::size_t>(index)] = true;
        if (!first) {
          first = &factor;
        } else if (factor.levels.size() != first->levels.size()) {
          problem(key.place, "zip",
                  fmt::format("{} has {} levels and {} has {}; they must have the same number", factor.key,
                              factor.levels.size(), first->key, first->levels.size()));
        } else {
          factor.axis = first->axis;
        }
      }
    }
  }

  void read_only_if(const Node& only_if) {
    if (!reader_.is_mapping(only_if, "only_if")) return;
    for (const Node::Entry& entry : only_if.entries) {
      const std::string field = dotted("only_if", entry.key);
      const int index = factor_named(entry.key, entry.place, field);
      const Exclusion conditions = read_conditions(entry.value, field);
      if (index >= 0) plan_.factors[static_cast<std::size_t>(index)].only_if = conditions;
    }
    for (std::size_t i = 0; i < plan_.factors.size(); ++i) {
      if (depends_on(static_cast<int>(i), static_cast<int>(i), 0)) {
        const Node::Entry* entry = only_if.entry(plan_.factors[i].key);
        problem(entry->place, dotted("only_if", entry->key), "depends on itself");
        plan_.factors[i].only_if.clear();
      }
    }
  }

  void read_exclude(const Node& exclude) {
    if (!reader_.is_sequence(exclude, "exclude")) return;
    plan_.exclude_place = exclude.place;
    for (std::size_t i = 0; i < exclude.items.size(); ++i) {
      const std::size_t before = reader_.problems().size();
      Exclusion exclusion = read_conditions(exclude.items[i], fmt::format("exclude.{}", i + 1));
      if (reader_.problems().size() == before) plan_.exclude.push_back(std::move(exclusion));
    }
  }

 private:
  void problem(Place place, const std::string& field, const std::string& message,
               const std::string& nearest = {}) {
    reader_.problems().add(place, field, message, nearest);
  }

  void add_level(Factor& factor, Level level, const std::string& field) {
    const auto same = std::ranges::find(factor.levels, level.json, &Level::json);
    if (same != factor.levels.end())
      problem(level.place, field, fmt::format("level '{}' is listed twice", level.text));
    factor.levels.push_back(std::move(level));
  }

  /// The factor of that key, or -1 with a problem.
  int factor_named(const std::string& key, Place place, const std::string& field) {
    const auto found = std::ranges::find(plan_.factors, key, &Factor::key);
    if (found != plan_.factors.end()) return static_cast<int>(found - plan_.factors.begin());
    std::vector<std::string> keys;
    for (const Factor& factor : plan_.factors) keys.push_back(factor.key);
    problem(place, field, fmt::format("unknown factor '{}'; expected {}", key, any_of(keys)),
            nearest_name(key, keys));
    return -1;
  }
  int factor_named(const Node& key, const std::string& field) {
    const auto text = reader_.text(key, field);
    return text ? factor_named(*text, key.place, field) : -1;
  }

  int level_named(const Factor& factor, const Node& node, const std::string& field) {
    const nlohmann::json value = node.json();
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < factor.levels.size(); ++i) {
      if (factor.levels[i].json == value || factor.levels[i].text == node.text) return static_cast<int>(i);
      if (std::ranges::find(texts, factor.levels[i].text) == texts.end())  // 0.001 and "0.001" read the same
        texts.push_back(factor.levels[i].text);
    }
    const std::string text = config::plain_text(value);
    problem(node.place, field,
            fmt::format("unknown level '{}' of {}; expected {}", text, factor.key, any_of(texts)),
            nearest_name(text, texts));
    return -1;
  }

  /// {factor: level, other: [level, level]}
  Exclusion read_conditions(const Node& node, const std::string& field) {
    Exclusion conditions;
    if (!reader_.is_mapping(node, field)) return conditions;
    if (node.entries.empty()) problem(node.place, field, "empty; expected factors with their levels");
    for (const Node::Entry& entry : node.entries) {
      const std::string path = dotted(field, entry.key);
      Factor::Condition condition{.factor = factor_named(entry.key, entry.place, path)};
      if (condition.factor < 0) continue;
      const Factor& factor = plan_.factors[static_cast<std::size_t>(condition.factor)];
      if (factor.levels.empty()) continue;  // told already
      if (entry.value.kind == Node::Kind::kSequence) {
        for (const Node& item : entry.value.items)
          condition.levels.push_back(level_named(factor, item, path));
      } else {
        condition.levels.push_back(level_named(factor, entry.value, path));
      }
      conditions.push_back(std::move(condition));
    }
    return conditions;
  }

  bool depends_on(int factor, int wanted, std::size_t steps) const {
    if (steps > plan_.factors.size()) return false;
    for (const Factor::Condition& condition : plan_.factors[static_cast<std::size_t>(factor)].only_if) {
      if (condition.factor == wanted || depends_on(condition.factor, wanted, steps + 1)) return true;
    }
    return false;
  }

  YamlReader& reader_;
  FactorPlan& plan_;
};

}  // namespace

std::vector<std::string> zipped_with(const Node& root, const std::string& key) {
  const Node* zip = root.find("zip");
  if (!zip) return {};
  for (const Node& together : zip->items) {
    std::vector<std::string> keys;
    for (const Node& one : together.items) keys.push_back(one.text);
    if (std::erase(keys, key) > 0) return keys;
  }
  return {};
}

FactorPlan read_factors(YamlReader& reader, const Node& root) {
  FactorPlan plan;
  FactorReader factors{reader, plan};
  factors.read_levels(*root.find("factors"));
  if (const Node* zip = root.find("zip")) factors.read_zip(*zip);
  if (const Node* only_if = root.find("only_if")) factors.read_only_if(*only_if);
  if (const Node* exclude = root.find("exclude")) factors.read_exclude(*exclude);
  check_product(plan, reader.problems());
  return plan;
}

}  // namespace abl::sweeps
