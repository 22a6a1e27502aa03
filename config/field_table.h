// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/nearest_name.h"
#include "config/canonical_json.h"
#include "config/trial_document.h"

namespace abl::config {

/// What names (of data, of sweeps) are made of: they become parts of paths, URLs and shell words.
inline constexpr std::string_view kNameLetters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";

/// The numbers that a key accepts: low ≤ x ≤ high, or low < x.
struct Range {
  double low = 0;
  double high = std::numeric_limits<double>::infinity();
  bool without_low = false;

  bool holds(double x) const { return (without_low ? x > low : x >= low) && x <= high; }
  std::string text() const;  ///< "at least 1", "above 0", "0 to 1"
};

/// One key of a section: all that reading, canonical form, schema and reference know of it.
template <class Section>
struct Field {
  std::string_view name;
  std::variant<int Section::*, double Section::*, std::string Section::*> member;
  std::string_view sentence;
  Range range{};                       ///< of a number
  std::vector<std::string> choices{};  ///< of a text; empty: any name
  /// Must be known: written out, or set by what the section starts from (preset, recipe, data set).
  bool required = false;
  bool identity = true;                       ///< false: for people, not part of the canonical form
  Json (*derived)(const Section&) = nullptr;  ///< default that follows from other keys
  std::string_view derived_text{};            ///< a default that is no constant, in words
  bool (*inert)(const Section&) = nullptr;    ///< true where the key has no effect
  std::string_view inert_when{};

  Json get(const Section& section) const {
    return std::visit([&](auto pointer) { return Json(section.*pointer); }, member);
  }
  void set(Section& section, const Json& value) const {
    std::visit([&](auto pointer) { value.get_to(section.*pointer); }, member);
  }
  Json default_value(const Section& section) const { return derived ? derived(section) : get(Section{}); }
  std::string_view type() const {
    constexpr std::string_view kTypes[] = {"whole number", "number", "text"};
    return kTypes[member.index()];
  }
};

/// What `value` must be and is not, or an empty message. On success `value` has the field's type: 100.0
/// becomes 100.
struct Mismatch {
  std::string message;
  std::string nearest;
};
Mismatch check_number(Json& value, bool whole, const Range& range);
Mismatch check_text(const Json& value, const std::vector<std::string>& choices);

template <class Section>
std::vector<std::string> names(const std::vector<Field<Section>>& fields) {
  std::vector<std::string> all;
  for (const auto& field : fields) all.emplace_back(field.name);
  return all;
}

/// Whether `section` is a mapping; a problem where it is not.
bool expect_mapping(const Json& section, const std::string& path, std::vector<Problem>& problems);
/// A problem for each key of `section` that is not in `known`.
void expect_keys(const Json& section, const std::string& path, const std::vector<std::string>& known,
                 std::vector<Problem>& problems);

/// Reads the keys of `fields` that `object` has into `section`, which holds what the section starts from;
/// then fills in derived defaults.
template <class Section>
void read_fields(const Json& object, const std::string& path, const std::vector<Field<Section>>& fields,
                 Section& section, std::vector<Problem>& problems) {
  for (const auto& field : fields) {
    const auto found = object.find(field.name);
    if (found == object.end()) continue;
    Json value = *found;
    const Mismatch mismatch = field.member.index() == 2
                                  ? check_text(value, field.choices)
                                  : check_number(value, field.member.index() == 0, field.range);
    if (mismatch.message.empty()) {
      field.set(section, value);
    } else {
      problems.push_back({path + "." + std::string{field.name}, mismatch.message, mismatch.nearest});
    }
  }
  const Section unset;
  for (const auto& field : fields) {
    // a preset may have set it
    const bool open = !object.contains(field.name) && field.get(section) == field.get(unset);
    if (field.derived && open) field.set(section, field.derived(section));
  }
}

/// The section without keys that are equal to their default, have no effect or are for people.
template <class Section>
Json canonical_section(const std::vector<Field<Section>>& fields, const Section& section) {
  Json object = Json::object();
  for (const auto& field : fields) {
    const bool inert = field.inert && field.inert(section);
    if (!field.identity || inert) continue;
    if (field.required || field.get(section) != field.default_value(section))
      object[field.name] = field.get(section);
  }
  return object;
}

/// The section with every key.
template <class Section>
Json full_section(const std::vector<Field<Section>>& fields, const Section& section) {
  Json object = Json::object();
  for (const auto& field : fields) object[field.name] = field.get(section);
  return object;
}

/// Gives keys without effect their default, so that equal sections compare equal.
template <class Section>
void reset_inert(const std::vector<Field<Section>>& fields, Section& section) {
  const Section before = section;
  for (const auto& field : fields) {
    if (field.inert && field.inert(before)) field.set(section, field.get(Section{}));
  }
}

}  // namespace abl::config
