// SPDX-License-Identifier: Apache-2.0
#include "config/field_table.h"

namespace abl::config {
namespace {

constexpr std::size_t kMostListed = 12;  // choices that a message lists

/// What a value must be and is not; nothing where the message is empty.
struct Mismatch {
  std::string message;
  std::string nearest;
};

Mismatch check_number(Json& value, bool whole, const Range& range) {
  const std::string expected =
      fmt::format("expected a {}, {}", name_of(whole ? Kind::kInteger : Kind::kNumber), range.text());
  if (!value.is_number() || !std::isfinite(value.get<double>())) {
    return {fmt::format("{}; got {}", expected, value.is_number() ? "an infinite one" : value.dump()), {}};
  }
  const double number = value.get<double>();
  if (whole && number != std::floor(number))
    return {fmt::format("{} is not an integer; {}", canonical_number(number), expected), {}};
  if (!range.holds(number))
    return {fmt::format("{} is out of range; {}", canonical_number(number), expected), {}};
  if (whole) {
    value = static_cast<std::int64_t>(number);
  } else {
    value = number;
  }
  return {};
}

Mismatch check_name(const std::string& text) {
  if (!text.empty() && text.size() <= 200 && text.find_first_not_of(kNameLetters) == std::string::npos)
    return {};
  return {fmt::format("invalid name '{}'; expected letters, digits, '.', '_' and '-'", text), {}};
}

std::string text_of(const std::vector<std::string>& choices) {
  if (choices.size() <= kMostListed) return any_of(choices);
  return "one of the names that docs/config-reference.md lists";
}

/// Of many names some that begin as a text does that is near none of them, otherwise the first.
std::string examples_of(const std::vector<std::string>& choices, std::string_view text) {
  constexpr std::size_t kExamples = 3;
  if (choices.size() <= kMostListed) return any_of(choices);
  const std::string_view beginning = text.substr(0, text.find_first_of("-_"));
  std::vector<std::string> some;
  for (const bool alike : {true, false})
    for (const std::string& choice : choices)
      if (some.size() < kExamples && choice.starts_with(beginning) == alike) some.push_back(choice);
  return fmt::format("{}, such as {}", text_of(choices), fmt::join(some, ", "));
}

Mismatch check_choice(const std::string& text, const std::vector<std::string>& choices) {
  if (std::find(choices.begin(), choices.end(), text) != choices.end()) return {};
  const std::string nearest = nearest_name(text, choices);
  return {fmt::format("unknown value '{}'; expected {}", text,
                      nearest.empty() ? examples_of(choices, text) : text_of(choices)),
          nearest};
}

Mismatch check_text(Json& value, const Accepted& accepted) {
  const auto& [kind, range, choices, form] = accepted;
  if (form && value.is_number_integer()) value = plain_text(value);  // a layer's number, unquoted
  if (!value.is_string())
    return {fmt::format("expected {}; got {}", choices.empty() ? "a text" : text_of(choices), value.dump()),
            {}};
  const std::string& text = value.get_ref<const std::string&>();
  if (form) return {form(text), {}};
  return choices.empty() ? check_name(text) : check_choice(text, choices);
}

Mismatch check_bool(const Json& value) {
  if (value.is_boolean()) return {};
  return {fmt::format("expected true or false; got {}", value.dump()), {}};
}

Mismatch check_one(Json& value, const Accepted& accepted) {
  switch (accepted.kind) {
    case Kind::kInteger:
      return check_number(value, /*whole=*/true, accepted.range);
    case Kind::kNumber:
      return check_number(value, /*whole=*/false, accepted.range);
    case Kind::kText:
    case Kind::kEnum:
      return check_text(value, accepted);
    case Kind::kBool:
      return check_bool(value);
    case Kind::kIntegerList:  // accept_list
    case Kind::kNumberList:
      break;
  }
  return {};
}

bool accept_list(const Accepted& accepted, const std::string& path, Json& value,
                 std::vector<Problem>& problems) {
  const Range& range = accepted.range;
  const bool whole = accepted.kind == Kind::kIntegerList;
  if (!value.is_array() || value.empty() || value.size() > kMostEntries) {
    problems.push_back({path,
                        fmt::format("expected a list of 1 to {} {}, each {}; got {}", kMostEntries,
                                    whole ? "whole numbers" : "numbers", range.text(), value.dump()),
                        {}});
    return false;
  }
  const std::size_t before = problems.size();
  for (std::size_t i = 0; i < value.size(); ++i) {
    const Mismatch mismatch = check_number(value[i], whole, range);
    if (!mismatch.message.empty())
      problems.push_back({fmt::format("{}.{}", path, i + 1), mismatch.message, {}});
  }
  return problems.size() == before;
}

}  // namespace

std::string Range::text() const {
  if (without_low)
    return fmt::format("above {}{}", canonical_number(low),
                       std::isinf(high) ? "" : fmt::format(", at most {}", canonical_number(high)));
  if (std::isinf(high)) return fmt::format("at least {}", canonical_number(low));
  return fmt::format("{} to {}", canonical_number(low), canonical_number(high));
}

std::string wrong_sha256(const std::string& text) {
  const bool is_right = text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
  return text.empty() || is_right ? "" : "expected a SHA-256 of 64 hexadecimal digits (0-9, a-f)";
}

std::string_view name_of(Kind kind) {
  switch (kind) {
    case Kind::kInteger:
      return "whole number";
    case Kind::kNumber:
      return "number";
    case Kind::kText:
    case Kind::kEnum:
      return "text";
    case Kind::kBool:
      return "truth value";
    case Kind::kIntegerList:
      return "list of whole numbers";
    case Kind::kNumberList:
      return "list of numbers";
  }
  return {};
}

bool accept_value(const Accepted& accepted, const std::string& path, Json& value,
                  std::vector<Problem>& problems) {
  if (accepted.kind == Kind::kIntegerList || accepted.kind == Kind::kNumberList)
    return accept_list(accepted, path, value, problems);
  const Mismatch mismatch = check_one(value, accepted);
  if (mismatch.message.empty()) return true;
  problems.push_back({path, mismatch.message, mismatch.nearest});
  return false;
}

bool expect_mapping(const Json& section, const std::string& path, std::vector<Problem>& problems) {
  if (section.is_object()) return true;
  problems.push_back(
      {path, fmt::format("expected a mapping; got {}", section.is_null() ? "nothing" : section.dump()), {}});
  return false;
}

namespace {
/// All of them, unless that hides what is wrong.
std::string keys_text(const std::vector<std::string>& known) {
  constexpr std::size_t kMost = 24;
  if (known.size() <= kMost) return any_of(known);
  return "one of the keys that docs/config-reference.md lists";
}
}  // namespace

void expect_keys(const Json& section, const std::string& path, const std::vector<std::string>& known,
                 std::vector<Problem>& problems) {
  for (const auto& [key, value] : section.items()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    problems.push_back({path.empty() ? key : path + "." + key,
                        fmt::format("unknown key; expected {}", keys_text(known)), nearest_name(key, known)});
  }
}

bool is_misspelt(const std::string& path, const std::vector<Problem>& problems) {
  const std::size_t start = path.rfind('.') + 1;  // 0 where there is no dot
  return std::any_of(problems.begin(), problems.end(), [&](const Problem& problem) {
    return problem.nearest == path.substr(start) && problem.path.rfind('.') + 1 == start &&
           problem.path.compare(0, start, path, 0, start) == 0;
  });
}

const std::string* text_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() ? nullptr : found->get_ptr<const std::string*>();
}

}  // namespace abl::config
