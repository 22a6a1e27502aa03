// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

/// An enumeration whose values people write is named by one `switch`, beside it:
///   constexpr std::string_view name_of(Kernel kernel) {
///     switch (kernel) {
///       case Kernel::kDot: return "dot";
///       …
///     }
///     return {};
///   }
/// A value without a name does not compile (-Werror=switch). Everything else is made of it. The values count
/// from 0, without gaps.
namespace abl {

template <class E>
concept Named = std::is_enum_v<E> && requires(E value) {
  { name_of(value) } -> std::same_as<std::string_view>;
};

/// All values, in their order: those from 0 up to the first without a name.
template <Named E>
const std::vector<E>& values_of() {
  static const std::vector<E> kValues = [] {
    std::vector<E> values;
    for (int i = 0; !name_of(static_cast<E>(i)).empty(); ++i) values.push_back(static_cast<E>(i));
    return values;
  }();
  return kValues;
}

/// Their names, in the same order.
template <Named E>
const std::vector<std::string>& names_of() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names;
    for (const E value : values_of<E>()) names.emplace_back(name_of(value));
    return names;
  }();
  return kNames;
}

/// Nothing where no value has that name.
template <Named E>
std::optional<E> value_named(std::string_view name) {
  for (const E value : values_of<E>())
    if (name_of(value) == name) return value;
  return std::nullopt;
}

}  // namespace abl
