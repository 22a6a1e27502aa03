// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/enum_names.h"
#include "base/nearest_name.h"
#include "config/json.h"

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

inline constexpr Range kPositive{0, std::numeric_limits<double>::infinity(), true};
inline constexpr Range kFraction{0, 1};
inline constexpr Range kFromOne{1, 1e9};
inline constexpr Range kCount{0, 1e9};

enum class Kind { kInteger, kNumber, kText, kBool, kIntegerList, kNumberList, kEnum };
std::string_view name_of(Kind kind);

inline constexpr std::size_t kMostEntries = 8;  // of a list: there is one entry for each stage of a model

/// What is wrong with a text that has a form of its own; empty where nothing is.
using TextForm = std::string (*)(const std::string& text);
/// Of a digest, or nothing.
std::string wrong_sha256(const std::string& text);

/// The values that a key accepts.
struct Accepted {
  Kind kind;
  const Range& range;                       ///< of a number, or of each number of a list
  const std::vector<std::string>& choices;  ///< of an enumeration or a text
  TextForm form;                            ///< of a text that is neither choice nor name
};

/// A member that has one of a fixed set of values, by their names.
template <class Section>
struct Choice {
  const std::vector<std::string>& (*names)();
  std::string_view (*get)(const Section&);
  void (*set)(Section&, std::string_view name);  ///< one of `names`
};

/// The parts of the type of a pointer to a member.
template <class Pointer>
struct MemberOf;
template <class S, class V>
struct MemberOf<V S::*> {
  using Section = S;
  using Value = V;
};

template <class E>
E chosen(const E& value) {
  return value;
}
template <class E>
E chosen(const std::optional<E>& value) {
  return value.value_or(E{});
}

/// The choice that a member of an enumeration is: choice<&AttentionChoice::kernel>(). One that is optional
/// reads as the first of the values where it is empty.
template <auto kMember>
auto choice() {
  using Section = typename MemberOf<decltype(kMember)>::Section;
  using E = decltype(chosen(std::declval<const typename MemberOf<decltype(kMember)>::Value&>()));
  return Choice<Section>{
      .names = abl::names_of<E>,
      .get = [](const Section& section) { return name_of(chosen(section.*kMember)); },
      .set = [](Section& section, std::string_view name) { section.*kMember = *abl::value_named<E>(name); }};
}

/// One key of a section: all that reading, canonical form, schema and reference know of it.
template <class Section>
struct Field {
  std::string_view name;
  std::variant<int Section::*, std::int64_t Section::*, double Section::*, std::string Section::*,
               bool Section::*, std::vector<int> Section::*, std::vector<double> Section::*, Choice<Section>>
      member;
  std::string_view sentence;
  std::vector<std::string> families{};  ///< of models for which the key has meaning; empty: all
  Range range{};                        ///< of a number, or of each number of a list
  std::vector<std::string> choices{};   ///< of a text; empty: any name. A Choice has its own
  TextForm form = nullptr;              ///< of a text that is no name
  /// Must be known: written out, or set by what the section starts from (preset, recipe, data set).
  bool required = false;
  bool identity = true;                       ///< false: for people, not part of the canonical form
  Json (*derived)(const Section&) = nullptr;  ///< default that follows from other keys
  std::string_view
      derived_text{};  ///< what stands for the default in the reference, where a constant does not
  bool (*inert)(const Section&) = nullptr;  ///< true where the key has no effect
  std::string_view inert_when{};
  std::string_view after{};  ///< of a family's own key: behind which it is listed; empty: at the end

  Json get(const Section& section) const {
    return std::visit(
        [&](auto accessor) -> Json {
          if constexpr (std::is_same_v<decltype(accessor), Choice<Section>>)
            return std::string{accessor.get(section)};
          else
            return section.*accessor;
        },
        member);
  }
  void set(Section& section, const Json& value) const {
    std::visit(
        [&](auto accessor) {
          if constexpr (std::is_same_v<decltype(accessor), Choice<Section>>)
            accessor.set(section, value.template get_ref<const std::string&>());
          else
            value.get_to(section.*accessor);
        },
        member);
  }
  Json default_value(const Section& section) const { return derived ? derived(section) : get(Section{}); }
  Kind kind() const {
    using enum Kind;
    constexpr Kind kKinds[] = {kInteger, kInteger,     kNumber,     kText,
                               kBool,    kIntegerList, kNumberList, kEnum};  // of `member`
    return kKinds[member.index()];
  }
  Accepted accepted() const {
    const auto* choice = std::get_if<Choice<Section>>(&member);
    return {kind(), range, choice ? choice->names() : choices, form};
  }
};

/// Whether `value` is accepted; a problem where it is not, in a list one for each wrong entry. Then `value`
/// has the kind's type: 100.0 becomes 100.
bool accept_value(const Accepted& accepted, const std::string& path, Json& value,
                  std::vector<Problem>& problems);

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

/// Whether a problem takes a key beside `path` for a misspelling of it: then it is not missing as well.
bool is_misspelt(const std::string& path, const std::vector<Problem>& problems);
/// `object[key]` where that is a text, else null.
const std::string* text_at(const Json& object, const char* key);

/// Reads the keys of `fields` that `object` has into `section`, which holds what the section starts from (a
/// preset, a recipe); then fills in derived defaults.
template <class Section>
void read_fields(const Json& object, const std::string& path, const std::vector<Field<Section>>& fields,
                 Section& section, std::vector<Problem>& problems) {
  std::vector<const Field<Section>*> open;
  for (const auto& field : fields) {
    const auto found = object.find(field.name);
    Json value = found == object.end() ? Json{} : *found;
    if (found != object.end() &&
        accept_value(field.accepted(), fmt::format("{}.{}", path, field.name), value, problems)) {
      field.set(section, value);
    } else if (field.derived && field.get(section) == field.get(Section{})) {
      open.push_back(&field);
    }
  }
  for (const auto* field : open) field->set(section, field->derived(section));
}

/// A problem for each required key that neither `object` nor what the section started from has set.
template <class Section>
void expect_required(const std::vector<Field<Section>>& fields, const Section& section,
                     const std::string& path, std::string_view remedy, const Json& object,
                     std::vector<Problem>& problems) {
  for (const auto& field : fields) {
    // what was given and is wrong has its problem already
    if (!field.required || object.contains(field.name) || field.get(section) != field.get(Section{}))
      continue;
    const std::string missing = fmt::format("{}.{}", path, field.name);
    if (is_misspelt(missing, problems)) continue;
    problems.push_back({missing, fmt::format("missing; expected a {}{}", name_of(field.kind()), remedy), {}});
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

/// The section with every key that has an effect.
template <class Section>
Json effective_section(const std::vector<Field<Section>>& fields, const Section& section) {
  Json object = Json::object();
  for (const auto& field : fields)
    if (field.identity && !(field.inert && field.inert(section))) object[field.name] = field.get(section);
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
