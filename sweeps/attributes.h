// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/enum_names.h"
#include "protocol/column.h"
#include "protocol/metrics.h"
#include "sweeps/sweep_spec.h"
#include "sweeps/yaml_reader.h"

/// What a file may say of the table and of a column, beside where its values come from. An attribute is a key
/// here, is in the canonical text under that name, which the store keeps, and is shown as the field of that
/// name of ablate.v1's Table or Column: what is added here reaches who shows tables without a word in
/// between.
namespace abl::sweeps {

template <class Owner>
struct Attribute {
  std::string_view key;
  /// An enumeration is one of its names; one that is optional may also be written without a value.
  std::variant<std::string Owner::*, std::vector<std::string> Owner::*, bool Owner::*,
               std::optional<int> Owner::*, protocol::Take Owner::*, protocol::Better Owner::*,
               std::optional<protocol::Unit> Owner::*, std::optional<double> Owner::*,
               protocol::Compare Owner::*>
      member;
  int high = 0;  ///< of a number: 0 to this
  /// In the canonical text also where it says the default; false: only where it says another. Sweeps that are
  /// stored stay the same sweeps: what is added has false.
  bool always = false;
  int otherwise = 0;        ///< in the canonical text, of a number that is always there and not given
  std::string_view says{};  ///< for people who write one
};

inline std::span<const Attribute<TableSpec>> table_attributes() {
  static const std::vector<Attribute<TableSpec>> kAttributes{
      {.key = "baseline",
       .member = &TableSpec::baseline,
       .always = true,
       .says = "The id of the row that others are compared with; or of each group one."},
      {.key = "paper_heading",
       .member = &TableSpec::paper_heading,
       .always = true,
       .says = "Heads the papers' values, such as \"paper: ImageNet, 100 epochs\"."},
      {.key = "title", .member = &TableSpec::title, .says = "What the table shows."},
      {.key = "notes",
       .member = &TableSpec::notes,
       .says = "Stand below the table, a sentence or more each."},
      {.key = "compare", .member = &TableSpec::compare, .says = "How rows are compared with the baseline."}};
  return kAttributes;
}

inline std::span<const Attribute<Column>> column_attributes() {
  static const std::vector<Attribute<Column>> kAttributes{
      {.key = "take", .member = &Column::take, .always = true, .says = "Which of a run's values counts."},
      {.key = "unit",
       .member = &Column::unit,
       .always = true,
       .says = "M divides by 10^6, G by 10^9; % stands in the heading alone."},
      {.key = "digits",
       .member = &Column::digits,
       .high = 10,
       .always = true,
       .otherwise = 2,
       .says = "After the point."},
      {.key = "cut",
       .member = &Column::cut,
       .says = "Digits behind those are cut off, in place of rounding."},
      {.key = "heading",
       .member = &Column::heading,
       .always = true,
       .says = "As printed; the name where nothing is said."},
      {.key = "better",
       .member = &Column::better,
       .always = true,
       .says = "Which side is better; known of the metrics of the trainer."},
      {.key = "see",
       .member = &Column::see,
       .says = "The smallest difference that the seeds should show, in the column's unit."}};
  return kAttributes;
}

inline void read_attribute(YamlReader& reader, const Node& node, const std::string& name, int,
                           std::string& text) {
  text = reader.text(node, name).value_or(text);
}

inline void read_attribute(YamlReader& reader, const Node& node, const std::string& name, int high,
                           std::optional<int>& number) {
  if (const auto given = reader.whole_number(node, name, 0, high)) number = static_cast<int>(*given);
}

inline void read_attribute(YamlReader& reader, const Node& node, const std::string& name, int,
                           std::vector<std::string>& texts) {
  if (!reader.is_sequence(node, name)) return;
  for (const Node& item : node.items)
    if (const auto text = reader.text(item, name)) texts.push_back(*text);
}

inline void read_attribute(YamlReader& reader, const Node& node, const std::string& name, int, bool& value) {
  value = reader.boolean(node, name).value_or(value);
}

template <Named E>
void read_attribute(YamlReader& reader, const Node& node, const std::string& name, int, E& value) {
  if (const auto given = reader.choice(node, name, names_of<E>())) value = *value_named<E>(*given);
}

template <Named E>
void read_attribute(YamlReader& reader, const Node& node, const std::string& name, int,
                    std::optional<E>& value) {
  if (node.kind == Node::Kind::kScalar && node.text.empty())
    value.reset();
  else if (const auto given = reader.choice(node, name, names_of<E>()))
    value = value_named<E>(*given);
}

inline void read_attribute(YamlReader& reader, const Node& node, const std::string& name, int,
                           std::optional<double>& number) {
  if (const nlohmann::json value = node.json(); value.is_number() && value > 0 && value < 1e300)
    number = value.get<double>();
  else
    reader.problems().add(node.place, name, fmt::format("{}: expected a number above 0", node.text));
}

inline void read_attribute(YamlReader& reader, const Node& node, const std::string& name, int,
                           protocol::Compare& compare) {
  if (!reader.is_mapping(node, name)) return;
  reader.allow_only(node, name, Part::kCompare);
  const auto read = [&](const char* key, auto& value) {
    if (const Node* word = node.find(key)) read_attribute(reader, *word, name + "." + key, 0, value);
  };
  read("test", compare.test);
  read("interval", compare.interval);
  read("correction", compare.correction);
}

/// Reads those attributes that `mapping`, which is called `field`, has; the others stay.
template <class Owner>
void read_attributes(YamlReader& reader, const Node& mapping, const std::string& field,
                     std::span<const Attribute<Owner>> attributes, Owner& owner) {
  for (const Attribute<Owner>& attribute : attributes) {
    const Node* node = mapping.find(attribute.key);
    if (!node) continue;
    const std::string name = field + "." + std::string{attribute.key};
    std::visit([&](auto member) { read_attribute(reader, *node, name, attribute.high, owner.*member); },
               attribute.member);
  }
}

inline std::string canonical_value(const std::string& text, int) { return text; }
inline nlohmann::json canonical_value(const std::vector<std::string>& texts, int) { return texts; }
inline bool canonical_value(bool value, int) { return value; }
inline int canonical_value(const std::optional<int>& number, int otherwise) {
  return number.value_or(otherwise);
}
inline nlohmann::json canonical_value(const std::optional<double>& number, int) {
  return number ? nlohmann::json(*number) : nlohmann::json();
}
/// What is not the default.
inline nlohmann::json canonical_value(const protocol::Compare& compare, int) {
  constexpr protocol::Compare kUsual;
  nlohmann::json words = nlohmann::json::object();
  if (compare.test != kUsual.test) words["test"] = name_of(compare.test);
  if (compare.interval != kUsual.interval) words["interval"] = name_of(compare.interval);
  if (compare.correction != kUsual.correction) words["correction"] = name_of(compare.correction);
  return words;
}
/// The name of an enumeration's value; empty where it is optional and has none.
template <class E>
std::string canonical_value(const E& value, int) {
  return std::string{name_of(value)};
}

/// Adds the attributes to a table's or column's canonical form.
template <class Owner>
void add_attributes(const Owner& owner, std::span<const Attribute<Owner>> attributes, nlohmann::json& to) {
  const Owner usual{};
  for (const Attribute<Owner>& attribute : attributes)
    std::visit(
        [&](auto member) {
          if (!attribute.always && owner.*member == usual.*member) return;
          to[std::string{attribute.key}] = canonical_value(owner.*member, attribute.otherwise);
        },
        attribute.member);
}

// What a table says of its columns together; problems are the reader's (table_language.cc).
void check_expressions(YamlReader& reader, const Node& columns, const TableSpec& table);
void read_pivot(YamlReader& reader, const Node& pivot, TableSpec& table);
void check_pivot(const TableSpec& table, const std::vector<Row>& rows, const Node& pivot, Problems& problems);
void read_show(YamlReader& reader, const Node& show, TableSpec& table);

}  // namespace abl::sweeps
