// SPDX-License-Identifier: Apache-2.0
#include "sweeps/scale.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include "base/nearest_name.h"
#include "config/document/trial_document.h"
#include "config/json.h"
#include "config/model/layer_sections.h"

namespace abl::sweeps {
namespace {

constexpr std::string_view kAny = "*";  // the key is there

/// The layers of `to` that stand where those of `from` stood: one that takes the place of k is chosen where
/// at least half of them were.
std::vector<bool> in_proportion(const std::vector<bool>& chosen, int to) {
  const std::size_t each = chosen.size() / static_cast<std::size_t>(to);
  std::vector<bool> result;
  for (std::size_t first = 0; first < chosen.size(); first += each) {
    const auto begin = chosen.begin() + static_cast<std::ptrdiff_t>(first);
    const auto there = std::count(begin, begin + static_cast<std::ptrdiff_t>(each), true);
    result.push_back(static_cast<std::size_t>(there) * 2 >= each);
  }
  return result;
}

std::vector<std::string> texts_of(YamlReader& reader, const Node& node, const std::string& field) {
  std::vector<std::string> texts;
  if (node.kind == Node::Kind::kSequence) {
    for (const Node& item : node.items)
      if (auto text = reader.text(item, field)) texts.push_back(std::move(*text));
  } else if (auto text = reader.text(node, field)) {
    texts.push_back(std::move(*text));
  }
  return texts;
}

/// A key of a trial's document, as far as that can be told without its model.
void expect_trial_key(const std::string& key, Place place, const std::string& field, Problems& problems) {
  const std::string section = key.substr(0, key.find('.'));
  const std::vector<std::string> sections{"model", "data", "task", "recipe"};
  if (std::ranges::find(sections, section) != sections.end()) return;
  problems.add(place, field,
               fmt::format("'{}' is no key of a trial; expected one below {}", key, any_of(sections)),
               nearest_name(section, sections));
}

/// A file of scales, which has a mapping `scales`. Throws: SweepFileError.
Node read_scales(const std::string& text, const std::string& file) {
  Problems problems{file};
  Node root = load_yaml(text, file, problems);
  problems.throw_if_any();
  YamlReader reader{problems};
  if (reader.is_mapping(root, "")) reader.allow_only(root, "", Part::kScales);
  const Node* scales = root.find("scales");
  if (!scales) problems.add(root.place, "scales", "missing; expected a mapping of scales by name");
  if (scales) reader.is_mapping(*scales, "scales");
  problems.throw_if_any();
  return root;
}

}  // namespace

Scale::Scale(YamlReader& reader, const Node& section) : place_{section.place} {
  if (!reader.is_mapping(section, "scale")) return;
  reader.allow_only(section, "scale", Part::kScale);
  if (const Node* name = section.find("name"))
    name_ = reader.name(*name, "scale.name").value_or("");
  else
    reader.problems().add(section.place, "scale.name", "missing; expected a name such as cifar");
  if (const Node* says = section.find("says"))
    says_ = reader.text(*says, "scale.says").value_or("");
  else
    reader.problems().add(section.place, "scale.says",
                          "missing; expected what the scale is, which the table says");
  if (const Node* from = section.find("from")) from_ = reader.text(*from, "scale.from").value_or("");
  if (const Node* seeds = section.find("seeds"))
    if (const auto count = reader.whole_number(*seeds, "scale.seeds", 1, kMostTrials))
      seeds_ = static_cast<int>(*count);
  const Node* rules = section.find("rules");
  if (!rules) {
    reader.problems().add(section.place, "scale.rules", "missing; expected a list of rules");
  } else if (reader.is_sequence(*rules, "scale.rules")) {
    if (rules->items.empty())
      reader.problems().add(rules->place, "scale.rules", "no rules; expected at least one");
    for (std::size_t i = 0; i < rules->items.size(); ++i)
      rules_.push_back(read_rule(reader, rules->items[i], fmt::format("scale.rules.{}", i + 1)));
  }
}

Scale::Rule Scale::read_rule(YamlReader& reader, const Node& node, const std::string& field) const {
  Rule rule{.place = node.place, .field = field};
  Problems& problems = reader.problems();
  if (!reader.is_mapping(node, field)) return rule;
  reader.allow_only(node, field, Part::kScaleRule);
  if (!node.find("why") && !node.find("cannot"))
    problems.add(node.place, field + ".why", "missing; expected the reason of the rule");
  if (const Node* why = node.find("why")) reader.text(*why, field + ".why");
  if (const Node* when = node.find("when"); when && reader.is_mapping(*when, field + ".when"))
    for (const Node::Entry& entry : when->entries) {
      const std::string path = dotted(field + ".when", entry.key);
      expect_trial_key(entry.key, entry.place, path, problems);
      rule.when.push_back({entry.key, texts_of(reader, entry.value, path)});
    }
  if (const Node* drop = node.find("drop")) {
    rule.drop = texts_of(reader, *drop, field + ".drop");
    for (const std::string& key : rule.drop) expect_trial_key(key, drop->place, field + ".drop", problems);
  }
  if (const Node* set = node.find("set"); set && reader.is_mapping(*set, field + ".set"))
    for (const Node::Entry& entry : set->entries) {
      const std::string path = dotted(field + ".set", entry.key);
      expect_trial_key(entry.key, entry.place, path, problems);
      rule.set.push_back({entry.key, &entry.value, entry.place, path});
    }
  if (const Node* layers = node.find("layers"); layers && reader.is_mapping(*layers, field + ".layers")) {
    reader.allow_only(*layers, field + ".layers", Part::kScaleLayers);
    Layers placed;
    const auto number = [&](const char* key) {
      const Node* value = layers->find(key);
      if (!value)
        problems.add(layers->place, dotted(field + ".layers", key), "missing; expected a number of layers");
      return value ? static_cast<int>(
                         reader.whole_number(*value, dotted(field + ".layers", key), 1, kMostLayers)
                             .value_or(0))
                   : 0;
    };
    placed.from = number("from");
    placed.to = number("to");
    if (const Node* key = layers->find("key"))
      placed.key = reader.text(*key, field + ".layers.key").value_or("");
    else
      problems.add(layers->place, field + ".layers.key",
                   "missing; expected a key such as model.attention.layers");
    if (placed.from > 0 && placed.to > 0 && placed.from % placed.to != 0)
      problems.add(
          layers->place, field + ".layers",
          fmt::format("{} layers are no multiple of {}; expected as many old layers for each new one",
                      placed.from, placed.to));
    else if (placed.from > 0 && placed.to > 0 && !placed.key.empty())
      rule.layers = placed;
  }
  rule.sources = read_sources(reader, node, field);
  for (const DraftSource& source : rule.sources)
    if (source.sweep.empty())
      problems.add(source.place, source.field + ".sweep",
                   "missing; expected the sweep file that has this row");
  if (const Node* cannot = node.find("cannot"))
    rule.cannot = reader.text(*cannot, field + ".cannot").value_or("");
  const auto has = [&](const char* key) { return node.find(key) != nullptr; };
  const bool changes = std::ranges::any_of(std::array{"drop", "set", "layers", "from", "teacher"}, has);
  if (!changes && !node.find("cannot"))
    problems.add(node.place, field, "changes nothing; expected drop, set, layers, from, teacher or cannot");
  if (changes && node.find("cannot"))
    problems.add(node.place, field, "rows that cannot be had are not changed; expected one of both");
  return rule;
}

bool Scale::holds(const Rule& rule, const Settings& settings) {
  return std::ranges::all_of(rule.when, [&](const Condition& condition) {
    const auto there = settings.text_at(condition.key);
    return there && std::ranges::any_of(condition.values, [&](const std::string& value) {
             return value == *there || value == kAny;
           });
  });
}

std::vector<DraftSource> Scale::sources(const Settings& settings) const {
  std::vector<DraftSource> all;
  for (const Rule& rule : rules_) {
    if (!holds(rule, settings)) continue;
    for (const DraftSource& source : rule.sources) {
      std::erase_if(all, [&](const DraftSource& earlier) { return earlier.role == source.role; });
      all.push_back(source);
    }
  }
  return all;
}

std::optional<std::string> Scale::apply(Settings& settings, Problems& problems) {
  applied_ = true;
  std::vector<Rule*> held;
  std::optional<std::string> cannot;
  for (Rule& rule : rules_) {
    if (!holds(rule, settings)) continue;
    if (!rule.cannot.empty()) {
      rule.held = true;
      if (!cannot) cannot = rule.cannot;
    } else {
      held.push_back(&rule);
    }
  }
  for (Rule* rule : held) {
    const bool placed = rule->layers && place_layers(*rule->layers, *rule, settings, problems, cannot);
    rule->held = rule->held || placed || !rule->layers;
    for (const std::string& key : rule->drop) settings.take_out(key);
    for (const Assignment& assignment : rule->set) settings.assign(assignment, problems);
  }
  return cannot;
}

bool Scale::place_layers(const Layers& layers, const Rule& rule, Settings& settings, Problems& problems,
                         std::optional<std::string>& cannot) {
  const auto text = settings.text_at(layers.key);
  if (!text) return false;
  std::string message;
  const auto chosen = config::parse_layers(*text, layers.from, message);
  if (!chosen) {
    problems.add(rule.place, rule.field + ".layers", fmt::format("{}: {}", layers.key, message));
    return true;
  }
  const auto fewer = in_proportion(*chosen, layers.to);
  const bool some = std::ranges::find(*chosen, true) != chosen->end();
  const bool all = std::ranges::find(*chosen, false) == chosen->end();
  if (some && std::ranges::find(fewer, true) == fewer.end())
    cannot =
        fmt::format("layers {} of {} are less than half of any layer of {}", *text, layers.from, layers.to);
  else if (!all && std::ranges::find(fewer, false) == fewer.end())
    cannot = fmt::format("layers {} of {} are all layers of {}", *text, layers.from, layers.to);
  const Node value{
      .kind = Node::Kind::kScalar, .place = rule.place, .text = config::layers_text(fewer), .quoted = true};
  settings.assign({layers.key, &value, rule.place, rule.field + ".layers"}, problems);
  return true;
}

void Scale::check(Problems& problems) const {
  if (!applied_) return;  // no row can be had, for what they start from cannot
  if (std::ranges::none_of(rules_, &Rule::held)) {
    if (!rules_.empty())
      problems.add(place_, "scale.rules", fmt::format("no rule of scale {} holds for any row", name_));
    return;
  }
  if (!from_.empty()) return;
  for (const Rule& rule : rules_)
    if (!rule.held)
      problems.add(rule.place, rule.field, "holds for no row; expected settings in `when` that some row has");
}

std::vector<std::string> Scale::notes(const std::vector<std::vector<std::string>>& same) const {
  std::vector<std::string> notes{fmt::format("scale {}, not the paper's own: {}", name_, says_)};
  for (const auto& rows : same)
    notes.push_back(fmt::format("rows {} are the same at this scale", fmt::join(rows, ", ")));
  return notes;
}

std::vector<std::vector<std::string>> made_equal(const std::vector<ScaledRow>& rows) {
  const auto without = [](const ScaledRow& row) {
    std::vector<config::Problem> problems;
    const auto trial = config::read_trial(row.written, problems);
    return problems.empty() ? config::canonical_json(config::canonical_document(trial))
                            : config::canonical_json(row.written);
  };
  std::map<std::string, std::vector<const ScaledRow*>> by_hash;
  for (const ScaledRow& row : rows)
    if (!row.config_hash.empty()) by_hash[row.config_hash].push_back(&row);
  std::vector<std::vector<std::string>> groups;
  for (const ScaledRow& row : rows) {  // in the order of the rows
    const auto found = by_hash.find(row.config_hash);
    if (found == by_hash.end() || found->second.size() < 2 || found->second.front() != &row) continue;
    std::set<std::string> different;
    std::vector<std::string> ids;
    for (const ScaledRow* one : found->second) {
      different.insert(without(*one));
      ids.push_back(one->id);
    }
    if (different.size() > 1) groups.push_back(std::move(ids));
  }
  return groups;
}

std::vector<std::string> scale_names(const std::string& scales_text, const std::string& scales_file) {
  std::vector<std::string> names;
  const Node root = read_scales(scales_text, scales_file);
  for (const Node::Entry& scale : root.find("scales")->entries) names.push_back(scale.key);
  return names;
}

std::string with_scale(const std::string& text, const std::string& file, const std::string& scales_text,
                       const std::string& scales_file, const std::string& scale, bool own_seeds) {
  const Node root = read_scales(scales_text, scales_file);
  const Node* scales = root.find("scales");
  Problems of_file{file};

  const Node::Entry* entry = scales->entry(scale);
  if (!entry) {
    std::vector<std::string> known{"full"};
    for (const Node::Entry& other : scales->entries) known.push_back(other.key);
    const std::string nearest = nearest_name(scale, known);
    throw Error{Code::kNotFound,
                fmt::format("{}: no scale '{}'; expected {}{}", scales_file, scale, any_of(known),
                            nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest))};
  }
  const Node sweep = load_yaml(text, file, of_file);
  of_file.throw_if_any();
  if (const Node::Entry* own = sweep.entry("scale"))
    throw Error{Code::kInvalidArgument,
                fmt::format("{}:{}: the file has a 'scale' section already; expected no --scale", file,
                            own->place.line)};
  if (sweep.entry("command"))
    throw Error{Code::kInvalidArgument, fmt::format("{}: a command has no scale", file)};

  // its lines as they are written: what is stored reads like the file
  if (entry->value.kind != Node::Kind::kMapping || entry->value.place.line <= entry->place.line)
    throw SweepFileError{{{scales_file, entry->value.place, dotted("scales", scale),
                           "expected a mapping below the name, a key on each line", ""}}};
  int end = 0;
  for (const Node::Entry& other : scales->entries)
    if (other.place.line > entry->place.line && (end == 0 || other.place.line < end)) end = other.place.line;
  const std::string indent(static_cast<std::size_t>(entry->value.place.column - 1), ' ');
  const std::filesystem::path from{scales_file};
  std::string section = fmt::format("scale:\n{0}name: {1}\n{0}from: {2}\n", indent, scale,
                                    (from.parent_path().filename() / from.filename()).string());
  int line = 1;
  for (std::size_t at = 0; at < scales_text.size(); ++line) {
    const std::size_t stop = std::min(scales_text.find('\n', at), scales_text.size());
    const Node::Entry* seeds = own_seeds ? entry->value.entry("seeds") : nullptr;
    if (line > entry->place.line && (end == 0 || line < end) && !(seeds && seeds->place.line == line))
      section += scales_text.substr(at, stop - at) + "\n";
    at = stop + 1;
  }
  const std::string together = text + (text.ends_with('\n') || text.empty() ? "" : "\n") + section;
  Problems unread{file};
  if (sweep.entries.empty() || !load_yaml(together, file, unread).find("scale"))
    throw Error{Code::kInvalidArgument,
                fmt::format("{}: no section can stand behind it; expected a key on each line", file)};
  return together;
}

std::string with_seeds(const std::string& text, const std::string& file, int seeds) {
  Problems problems{file};
  const Node sweep = load_yaml(text, file, problems);
  problems.throw_if_any();
  const Node::Entry* entry = sweep.entry("seeds");
  const std::string line = fmt::format("seeds: {}", seeds);
  if (!entry) return text + (text.ends_with('\n') ? "" : "\n") + line + "\n";
  const auto elsewhere = [&](const Node& node) { return node.place.line != entry->place.line; };
  if (entry->place.column != 1 || elsewhere(entry->value) ||
      std::ranges::any_of(entry->value.items, elsewhere) || entry->value.kind == Node::Kind::kMapping)
    throw Error{Code::kInvalidArgument,
                fmt::format("{}:{}: only a list of seeds on one line, or their number, can be given anew",
                            file, entry->place.line)};
  std::size_t begin = 0;
  for (int number = 1; number < entry->place.line; ++number) begin = text.find('\n', begin) + 1;
  return text.substr(0, begin) + line + text.substr(std::min(text.find('\n', begin), text.size()));
}

}  // namespace abl::sweeps
