// SPDX-License-Identifier: Apache-2.0
#include "views/sweep_query.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "base/nearest_name.h"
#include "views/convert.h"

namespace abl::views {
namespace {

namespace v1 = ablate::v1;
using storage::SweepRecord;
using Op = SweepQuery::Op;

constexpr std::size_t kLongest = 1000, kMostTerms = 32;

char lower(char letter) { return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter + 32) : letter; }
std::string lowered(std::string_view text) {
  std::string result{text};
  std::ranges::transform(result, result.begin(), lower);
  return result;
}

/// Whether a whole text matches a pattern with * and ?. One pass that goes back to the last * only, so no
/// pattern is slow.
bool matches_whole(std::string_view written, std::string_view wanted) {
  const std::string text = lowered(written), pattern = lowered(wanted);
  std::size_t at = 0, in = 0, star = std::string::npos, from = 0;
  while (at < text.size()) {
    if (in < pattern.size() && pattern[in] == '*')
      star = in++, from = at;
    else if (in < pattern.size() && (pattern[in] == '?' || pattern[in] == text[at]))
      ++in, ++at;
    else if (star != std::string::npos)
      in = star + 1, at = ++from;
    else
      return false;
  }
  return pattern.find_first_not_of('*', in) == std::string::npos;
}

/// The same; a pattern without * and ? matches what contains it.
bool is_like(std::string_view written, std::string_view wanted) {
  if (wanted.find_first_of("*?") != std::string_view::npos) return matches_whole(written, wanted);
  return lowered(written).find(lowered(wanted)) != std::string::npos;
}

struct TextKey {
  std::string_view name;
  std::string (*of)(const SweepRecord&);
};
constexpr std::array kTextKeys{
    TextKey{"name", [](const SweepRecord& sweep) { return sweep.name; }},
    TextKey{"owner", [](const SweepRecord& sweep) { return sweep.owner; }},
};

struct NumberKey {
  std::string_view name;
  double (*of)(const SweepRecord&, Time now);
};
constexpr std::string_view kAge = "age";
constexpr std::array kNumberKeys{
    NumberKey{"done",  // percent of the trials
              [](const SweepRecord& sweep, Time) {
                const auto& trials = sweep.trials;
                return 100.0 * (trials.completed - trials.unfilled) / std::max(1u, trials.total());
              }},
    NumberKey{"rows", [](const SweepRecord& sweep, Time) { return double(sweep.rows); }},
    NumberKey{"seeds", [](const SweepRecord& sweep, Time) { return double(sweep.seeds); }},
    NumberKey{"trials", [](const SweepRecord& sweep, Time) { return double(sweep.trials.total()); }},
    NumberKey{"queued", [](const SweepRecord& sweep, Time) { return double(sweep.trials.queued); }},
    NumberKey{"running", [](const SweepRecord& sweep,
                            Time) { return double(sweep.trials.running + sweep.trials.leased); }},
    NumberKey{"failed", [](const SweepRecord& sweep, Time) { return double(sweep.trials.failed); }},
    NumberKey{"held", [](const SweepRecord& sweep, Time) { return double(sweep.trials.held); }},
    NumberKey{"missing", [](const SweepRecord& sweep, Time) { return double(sweep.trials.unfilled); }},
    NumberKey{"priority", [](const SweepRecord& sweep, Time) { return double(sweep.priority); }},
    NumberKey{"gpu_hours",
              [](const SweepRecord& sweep, Time) { return double(sweep.gpu_time.count()) / 3.6e6; }},
    NumberKey{kAge, [](const SweepRecord& sweep,
                       Time now) { return double((now - sweep.created).count()) / 1000; }},
};

struct StateWord {
  std::string_view name;
  bool (*is)(const SweepRecord&);
};
template <v1::SweepState state>
bool is_in(const SweepRecord& sweep) {
  return state_of(sweep) == state;
}
constexpr std::array kStates{
    StateWord{"active", is_in<v1::SWEEP_STATE_ACTIVE>},
    StateWord{"running",
              [](const SweepRecord& sweep) {
                return is_in<v1::SWEEP_STATE_ACTIVE>(sweep) && sweep.trials.running + sweep.trials.leased > 0;
              }},
    StateWord{"waiting",
              [](const SweepRecord& sweep) {
                return is_in<v1::SWEEP_STATE_ACTIVE>(sweep) &&
                       sweep.trials.running + sweep.trials.leased == 0;
              }},
    StateWord{"paused", is_in<v1::SWEEP_STATE_PAUSED>},
    StateWord{"completed", is_in<v1::SWEEP_STATE_COMPLETED>},
    StateWord{"incomplete", is_in<v1::SWEEP_STATE_INCOMPLETE>},
    StateWord{"failed", is_in<v1::SWEEP_STATE_FAILED>},
    StateWord{"held", is_in<v1::SWEEP_STATE_HELD>},
    StateWord{"cancelled", is_in<v1::SWEEP_STATE_CANCELLED>},
};

constexpr std::string_view kArchived = "archived";
constexpr std::array kMarks{
    StateWord{"pinned", [](const SweepRecord& sweep) { return sweep.pinned; }},
    StateWord{kArchived, [](const SweepRecord& sweep) { return sweep.archived.has_value(); }},
};

/// Of one of the tables above: the entry of that name, or null.
template <class Table>
const typename Table::value_type* entry_named(const Table& table, std::string_view name) {
  const auto found = std::ranges::find(table, name, [](const auto& entry) { return entry.name; });
  return found == table.end() ? nullptr : &*found;
}
template <class Table>
void add_names(const Table& table, std::vector<std::string>& names) {
  for (const auto& entry : table) names.emplace_back(entry.name);
}

[[noreturn]] void refuse(std::size_t place, const std::string& message) {
  throw Error{Code::kInvalidArgument, fmt::format("query, at character {}: {}", place + 1, message)};
}

/// As it was typed: the place is that of its first letter.
struct Term {
  std::size_t place = 0;
  bool negated = false;
  std::string key{}, op{}, value{};  ///< a word by itself has its value alone
};

bool is_key_letter(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
         (letter >= '0' && letter <= '9') || letter == '_' || letter == '-' || letter == '.' ||
         letter == '/' || letter == '@';
}

/// Reads a term that begins at `at`, and moves behind it.
Term read_term(std::string_view text, std::size_t& at) {
  Term term{.place = at};
  if (text[at] == '-' && at + 1 < text.size()) term.negated = true, ++at;
  const std::size_t begin = at;
  while (at < text.size() && is_key_letter(text[at])) ++at;
  for (const std::string_view op : {"!=", ">=", "<=", ":", "=", ">", "<"})
    if (at > begin && text.substr(at).starts_with(op)) {
      term.key = lowered(text.substr(begin, at - begin));
      term.op = op;
      at += op.size();
      break;
    }
  if (term.op.empty()) at = begin;
  if (at < text.size() && text[at] == '"') {
    const std::size_t end = text.find('"', at + 1);
    if (end == std::string_view::npos) refuse(at, "missing closing \"");
    term.value = text.substr(at + 1, end - at - 1);
    at = end + 1;
  } else {
    const std::size_t end = std::min(text.find_first_of(" \t", at), text.size());
    term.value = text.substr(at, end - at);
    at = end;
  }
  return term;
}

Op op_of(const Term& term) {
  if (term.op == "!=") return Op::kIsNot;
  if (term.op == ">=") return Op::kAtLeast;
  if (term.op == "<=") return Op::kAtMost;
  if (term.op == ">") return Op::kMore;
  if (term.op == "<") return Op::kLess;
  return Op::kIs;
}

/// A number, of an age with its unit.
double number_of(const Term& term, bool is_age) {
  double value = 0;
  const char* const last = term.value.data() + term.value.size();
  const auto [end, error] = std::from_chars(term.value.data(), last, value);
  const std::string_view unit{end, static_cast<std::size_t>(last - end)};
  if (error == std::errc{} && std::isfinite(value)) {
    if (!is_age && unit.empty()) return value;
    if (is_age && unit == "m") return value * 60;
    if (is_age && unit == "h") return value * 3600;
    if (is_age && unit == "d") return value * 86400;
    if (is_age && unit == "w") return value * 7 * 86400;
  }
  refuse(term.place,
         is_age ? fmt::format("invalid age '{}'; expected for example 30m, 12h, 7d or 2w", term.value)
                : fmt::format("{}: invalid number '{}'", term.key, term.value));
}

[[noreturn]] void refuse_key(const Term& term, std::vector<std::string> known) {
  for (const char* key : {"state", "tag", "is"}) known.emplace_back(key);
  add_names(kTextKeys, known);
  add_names(kNumberKeys, known);
  const std::string hint = did_you_mean(term.key, known);
  refuse(
      term.place,
      fmt::format("unknown key '{}'{}", term.key,
                  hint.empty()
                      ? "; expected state, name, owner, tag, is, a count such as rows or failed, or a column"
                      : hint));
}

/// Throws where a term compares; only a number can be more than another. Returns: whether it is negated.
bool is_negated(const Term& term) {
  if (op_of(term) != Op::kIs && op_of(term) != Op::kIsNot)
    refuse(term.place, fmt::format("{}: expected ':' or '!=', not '{}'", term.key, term.op));
  return term.negated != (op_of(term) == Op::kIsNot);
}

/// Of `state:word` and `is:word`.
template <class Words>
std::function<bool(const SweepRecord&, Time)> word_test(const Term& term, const char* what,
                                                        const Words& words) {
  const bool negated = is_negated(term);
  const StateWord* const word = entry_named(words, lowered(term.value));
  if (!word) {
    std::vector<std::string> names;
    add_names(words, names);
    const std::string hint = did_you_mean(term.value, names);
    refuse(term.place, fmt::format("unknown {} '{}'{}", what, term.value,
                                   hint.empty() ? "; expected " + any_of(names) : hint));
  }
  return [is = word->is, negated](const SweepRecord& sweep, Time) { return is(sweep) != negated; };
}

std::function<bool(const SweepRecord&, Time)> tag_test(const Term& term) {
  return [wanted = term.value, negated = is_negated(term)](const SweepRecord& sweep, Time) {
    return std::ranges::any_of(sweep.tags,
                               [&](const std::string& tag) { return matches_whole(tag, wanted); }) != negated;
  };
}

std::function<bool(const SweepRecord&, Time)> text_test(const Term& term, const TextKey& key) {
  return [of = key.of, value = term.value, negated = is_negated(term)](const SweepRecord& sweep, Time) {
    return is_like(of(sweep), value) != negated;
  };
}

}  // namespace

bool holds(Op op, double value, double wanted) {
  switch (op) {
    case Op::kIs:
      return value == wanted;
    case Op::kIsNot:
      return value != wanted;
    case Op::kLess:
      return value < wanted;
    case Op::kAtMost:
      return value <= wanted;
    case Op::kMore:
      return value > wanted;
    case Op::kAtLeast:
      return value >= wanted;
  }
  return false;
}

SweepQuery::SweepQuery(std::string_view text, const std::function<std::vector<std::string>()>& columns) {
  if (text.size() > kLongest)
    throw Error{Code::kInvalidArgument,
                fmt::format("the query has {} bytes; the limit is {}", text.size(), kLongest)};
  for (std::size_t at = 0; (at = text.find_first_not_of(" \t", at)) != std::string_view::npos;) {
    const Term term = read_term(text, at);
    if (tests_.size() + columns_.size() == kMostTerms)
      refuse(term.place, fmt::format("too many terms; the limit is {}", kMostTerms));
    if (!term.op.empty() && term.value.empty())
      refuse(term.place, fmt::format("missing value after '{}{}'", term.key, term.op));
    if (term.op.empty()) {
      tests_.push_back(
          text_test({.place = term.place, .negated = term.negated, .value = term.value}, kTextKeys.front()));
    } else if (term.key == "state") {
      tests_.push_back(word_test(term, "state", kStates));
    } else if (term.key == "is") {
      tests_.push_back(word_test(term, "mark", kMarks));
      asks_for_archived_ = asks_for_archived_ || lowered(term.value) == kArchived;
    } else if (term.key == "tag") {
      tests_.push_back(tag_test(term));
    } else if (const TextKey* text_key = entry_named(kTextKeys, term.key)) {
      tests_.push_back(text_test(term, *text_key));
    } else if (const NumberKey* key = entry_named(kNumberKeys, term.key)) {
      tests_.push_back([of = key->of, op = op_of(term), wanted = number_of(term, key->name == kAge),
                        negated = term.negated](const SweepRecord& sweep, Time now) {
        return holds(op, of(sweep, now), wanted) != negated;
      });
    } else {
      auto known = columns();
      const auto column = std::ranges::find(known, term.key, [](const auto& name) { return lowered(name); });
      if (column == known.end()) refuse_key(term, std::move(known));
      columns_.push_back({*column, op_of(term), number_of(term, false), term.negated});
    }
  }
}

bool SweepQuery::matches(const SweepRecord& sweep, Time now) const {
  return std::ranges::all_of(tests_, [&](const auto& test) { return test(sweep, now); });
}

std::function<bool(const SweepRecord&, const SweepRecord&)> sweep_order(std::string_view text, Time now) {
  if (text.empty())
    return [](const SweepRecord& a, const SweepRecord& b) {
      return a.pinned != b.pinned ? a.pinned : a.id > b.id;
    };
  const bool descending = text.starts_with('-');
  const std::string key = lowered(text.substr(descending ? 1 : 0));
  const auto ordered = [descending](auto of) {
    return [descending, of](const SweepRecord& a, const SweepRecord& b) {
      const auto x = of(a), y = of(b);
      if (x < y || y < x) return descending ? y < x : x < y;
      return a.id > b.id;
    };
  };
  if (key == "created") return ordered([](const SweepRecord& sweep) { return sweep.id; });
  if (key == "state") return ordered([](const SweepRecord& sweep) { return int(state_of(sweep)); });
  if (const TextKey* text_key = entry_named(kTextKeys, key)) return ordered(text_key->of);
  if (const NumberKey* number = entry_named(kNumberKeys, key))
    return ordered([of = number->of, now](const SweepRecord& sweep) { return of(sweep, now); });
  std::vector<std::string> names{"created", "state"};
  add_names(kTextKeys, names);
  add_names(kNumberKeys, names);
  const std::string hint = did_you_mean(key, names);
  throw Error{Code::kInvalidArgument, fmt::format("sort: unknown key '{}'{}", key,
                                                  hint.empty() ? "; expected " + any_of(names) : hint)};
}

}  // namespace abl::views
