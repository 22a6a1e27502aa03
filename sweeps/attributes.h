// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

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
  std::variant<std::string Owner::*, std::optional<int> Owner::*> member;
  std::vector<std::string> choices = {};  ///< of a text: it is one of these; none: it is any
  bool may_be_empty = false;              ///< a choice that may also be written without a value
  int high = 0;                           ///< of a number: 0 to this
  /// In the canonical text also where it says the default; false: only where it says another. Sweeps that are
  /// stored stay the same sweeps: what is added has false.
  bool always = false;
  int otherwise = 0;  ///< in the canonical text, of a number that is always there and not given
};

inline std::span<const Attribute<TableSpec>> table_attributes() {
  static const std::vector<Attribute<TableSpec>> kAttributes{
      {.key = "baseline", .member = &TableSpec::baseline, .always = true},
      {.key = "paper_heading", .member = &TableSpec::paper_heading, .always = true}};
  return kAttributes;
}

inline std::span<const Attribute<Column>> column_attributes() {
  static const std::vector<Attribute<Column>> kAttributes{
      {.key = "take",
       .member = &Column::take,
       .choices = {"last", "best", "min", "max", "mean"},
       .always = true},
      {.key = "unit",
       .member = &Column::unit,
       .choices = {"%", "M", "G"},
       .may_be_empty = true,
       .always = true},
      {.key = "digits", .member = &Column::digits, .high = 10, .always = true, .otherwise = 2},
      {.key = "heading", .member = &Column::heading, .always = true},
      {.key = "better", .member = &Column::better, .choices = {"higher", "lower", "none"}, .always = true}};
  return kAttributes;
}

/// The keys that a mapping may have: those in front, the attributes', those behind.
template <class Owner>
std::vector<std::string_view> keys_with(std::vector<std::string_view> keys,
                                        std::span<const Attribute<Owner>> attributes,
                                        const std::vector<std::string_view>& behind = {}) {
  for (const Attribute<Owner>& attribute : attributes) keys.push_back(attribute.key);
  keys.insert(keys.end(), behind.begin(), behind.end());
  return keys;
}

/// Reads those attributes that `mapping`, which is called `field`, has; the others stay.
template <class Owner>
void read_attributes(YamlReader& reader, const Node& mapping, const std::string& field,
                     std::span<const Attribute<Owner>> attributes, Owner& owner) {
  for (const Attribute<Owner>& attribute : attributes) {
    const Node* node = mapping.find(attribute.key);
    if (!node) continue;
    const std::string name = field + "." + std::string{attribute.key};
    if (const auto* number = std::get_if<std::optional<int> Owner::*>(&attribute.member)) {
      if (const auto given = reader.whole_number(*node, name, 0, attribute.high))
        owner.** number = static_cast<int>(*given);
      continue;
    }
    std::string& text = owner.*std::get<std::string Owner::*>(attribute.member);
    if (attribute.choices.empty())
      text = reader.text(*node, name).value_or(text);
    else if (attribute.may_be_empty && node->kind == Node::Kind::kScalar && node->text.empty())
      text.clear();
    else
      text = reader.choice(*node, name, attribute.choices).value_or("");
  }
}

/// Adds the attributes to a table's or column's canonical form.
template <class Owner>
void add_attributes(const Owner& owner, std::span<const Attribute<Owner>> attributes, nlohmann::json& to) {
  const Owner usual{};
  for (const Attribute<Owner>& attribute : attributes)
    std::visit(
        [&](auto member) {
          if (!attribute.always && owner.*member == usual.*member) return;
          if constexpr (std::is_same_v<decltype(member), std::optional<int> Owner::*>)
            to[std::string{attribute.key}] = (owner.*member).value_or(attribute.otherwise);
          else
            to[std::string{attribute.key}] = owner.*member;
        },
        attribute.member);
}

}  // namespace abl::sweeps
