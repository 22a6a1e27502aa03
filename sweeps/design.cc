// SPDX-License-Identifier: Apache-2.0
#include "sweeps/design.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/random/sobol.hpp>
#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <set>

#include "base/nearest_name.h"
#include "config/json.h"
#include "sweeps/yaml_reader.h"

namespace abl::sweeps {
namespace {

constexpr std::size_t kMostKeys = 32, kMostChoices = 1000;
constexpr int kDigits = 4;  // significant ones: a learning rate is not known better than that

/// The number that four digits make of it.
double rounded(double value) { return std::stod(fmt::format("{:.{}g}", value, kDigits)); }

/// Numbers in [0, 1), one for each key, point after point.
class Sequence {
 public:
  virtual ~Sequence() = default;
  virtual std::vector<double> next() = 0;
};

/// Of each key a stream of its own, whatever other keys there are.
std::vector<std::mt19937_64> streams(std::size_t keys, std::uint64_t seed) {
  std::vector<std::mt19937_64> all;
  for (std::size_t key = 0; key < keys; ++key) {
    std::seed_seq mixed{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32),
                        static_cast<std::uint32_t>(key)};
    all.emplace_back(mixed);
  }
  return all;
}

double unit_of(std::uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

class RandomSequence final : public Sequence {
 public:
  RandomSequence(std::size_t keys, std::uint64_t seed) : streams_{streams(keys, seed)} {}
  std::vector<double> next() override {
    std::vector<double> point;
    for (auto& stream : streams_) point.push_back(unit_of(stream()));
    return point;
  }

 private:
  std::vector<std::mt19937_64> streams_;
};

/// Sobol's sequence, the bits of each key changed alike for all points: each 2^k-th still has its one.
class SobolSequence final : public Sequence {
 public:
  SobolSequence(std::size_t keys, std::uint64_t seed) : sobol_{keys} {
    for (auto& stream : streams(keys, seed)) shifts_.push_back(stream());
  }
  std::vector<double> next() override {
    std::vector<double> point;
    for (const std::uint64_t shift : shifts_) point.push_back(unit_of((first_ ? 0 : sobol_()) ^ shift));
    first_ = false;
    return point;
  }

 private:
  boost::random::sobol sobol_;  // begins with its second point: the first is all zeros
  bool first_ = true;
  std::vector<std::uint64_t> shifts_;
};

std::string value_at(const TunedRange& range, double unit) {
  const bool whole = range.kind == TunedRange::Kind::kInteger;
  if (range.kind == TunedRange::Kind::kChoices) {
    const auto count = range.choices.size();
    return range.choices[std::min(count - 1, static_cast<std::size_t>(unit * static_cast<double>(count)))];
  }
  const double end = range.max + (whole ? 1 : 0);  // each whole number has a part of its own
  double value =
      range.log ? range.min * std::pow(end / range.min, unit) : range.min + unit * (end - range.min);
  value = whole ? std::floor(value) : rounded(value);
  return config::canonical_number(std::clamp(value, range.min, range.max));
}

std::optional<double> number(YamlReader& reader, const Node& node, const std::string& field) {
  const auto json = node.json();
  if (node.kind == Node::Kind::kScalar && !node.quoted && json.is_number())
    if (const double value = json.get<double>(); std::isfinite(value)) return value;
  reader.problems().add(node.place, field, fmt::format("invalid value '{}'; expected a number", node.text));
  return std::nullopt;
}

void read_choices(YamlReader& reader, const Node& list, const std::string& field, TunedRange& range) {
  range.kind = TunedRange::Kind::kChoices;
  for (const Node& item : list.items) {
    if (item.kind != Node::Kind::kScalar)
      reader.problems().add(item.place, field, "expected a value, a text or a number");
    else if (std::ranges::find(range.choices, item.text) != range.choices.end())
      reader.problems().add(item.place, field, fmt::format("'{}' is listed twice", item.text));
    else
      range.choices.push_back(item.text);
  }
  if (list.items.size() < 2 || list.items.size() > kMostChoices)
    reader.problems().add(list.place, field,
                          fmt::format("{} values; expected 2 to {}", list.items.size(), kMostChoices));
}

void read_bounds(YamlReader& reader, const Node& node, const std::string& field, TunedRange& range) {
  reader.allow_only(node, field, Part::kRange);
  std::optional<double> ends[2];
  for (const auto& [end, key] : {std::pair{&ends[0], "min"}, std::pair{&ends[1], "max"}}) {
    const Node* value = node.find(key);
    if (value)
      *end = number(reader, *value, dotted(field, key));
    else
      reader.problems().add(node.place, field,
                            fmt::format("{} is missing; expected {{min: 1e-4, max: 1e-2, log: true}}", key));
  }
  if (const Node* log = node.find("log"))
    range.log = reader.boolean(*log, dotted(field, "log")).value_or(false);
  if (const Node* whole = node.find("integer"))
    if (reader.boolean(*whole, dotted(field, "integer")).value_or(false))
      range.kind = TunedRange::Kind::kInteger;
  if (!ends[0] || !ends[1]) return;
  range.min = *ends[0], range.max = *ends[1];
  const auto problem = [&](const char* key, const std::string& message) {
    reader.problems().add(node.find(key)->place, dotted(field, key), message);
  };
  if (range.min >= range.max)
    problem("max", fmt::format("{} is not above min, {}", config::canonical_number(range.max),
                               config::canonical_number(range.min)));
  if (range.log && range.min <= 0)
    problem("min", fmt::format("{}; expected a number above 0: with log: true ratios are equally likely",
                               config::canonical_number(range.min)));
  constexpr double kMostWhole = 1e15;
  if (range.kind != TunedRange::Kind::kInteger) return;
  for (const auto& [key, value] : {std::pair{"min", range.min}, std::pair{"max", range.max}})
    if (value != std::floor(value) || std::abs(value) > kMostWhole)
      problem(key,
              fmt::format("{}; expected a whole number: integer is true", config::canonical_number(value)));
}

}  // namespace

std::string TunedRange::text() const {
  if (kind == Kind::kChoices) return fmt::format("{} {}", key, any_of(choices));
  return fmt::format("{} {} to {}{}", key, config::canonical_number(min), config::canonical_number(max),
                     log ? " (log)" : "");
}

std::vector<TunedRange> read_ranges(YamlReader& reader, const Node& mapping, const std::string& field) {
  std::vector<TunedRange> ranges;
  if (!reader.is_mapping(mapping, field)) return ranges;
  if (mapping.entries.empty() || mapping.entries.size() > kMostKeys)
    reader.problems().add(
        mapping.place, field,
        fmt::format("{} keys; expected 1 to {}, such as {{recipe.lr: {{min: 1e-4, max: 1e-2, "
                    "log: true}}}}",
                    mapping.entries.size(), kMostKeys));
  for (const Node::Entry& entry : mapping.entries) {
    TunedRange range{.key = entry.key, .line = entry.place.line, .column = entry.place.column};
    const std::string its_field = dotted(field, entry.key);
    const auto before = reader.problems().size();
    if (entry.value.kind == Node::Kind::kSequence)
      read_choices(reader, entry.value, its_field, range);
    else if (entry.value.kind == Node::Kind::kMapping)
      read_bounds(reader, entry.value, its_field, range);
    else
      reader.problems().add(
          entry.value.place, its_field,
          "expected a range, such as {min: 1e-4, max: 1e-2, log: true}, or a list of values");
    if (reader.problems().size() == before) ranges.push_back(std::move(range));
  }
  return ranges;
}

std::vector<Point> draw_points(const std::vector<TunedRange>& ranges, Method method, std::size_t count,
                               std::uint64_t seed) {
  if (ranges.empty()) return {};
  std::unique_ptr<Sequence> sequence;
  if (method == Method::kRandom)
    sequence = std::make_unique<RandomSequence>(ranges.size(), seed);
  else
    sequence = std::make_unique<SobolSequence>(ranges.size(), seed);
  std::vector<Point> points;
  std::set<Point> seen;
  constexpr std::size_t kTriesForEach = 64;  // where few values are left, others come again and again
  const auto tries_for = [](std::size_t drawn) { return kTriesForEach * (drawn + 1); };
  for (std::size_t tries = 0; points.size() < count && tries < tries_for(points.size()); ++tries) {
    const std::vector<double> units = sequence->next();
    Point point;
    for (std::size_t i = 0; i < ranges.size(); ++i) point[ranges[i].key] = value_at(ranges[i], units[i]);
    if (seen.insert(point).second) points.push_back(std::move(point)), tries = 0;
  }
  return points;
}

Halving read_halving(YamlReader& reader, const Node& mapping, const std::string& field, bool command) {
  Halving halving;
  if (!reader.is_mapping(mapping, field)) return halving;
  reader.allow_only(mapping, field, Part::kHalving);
  if (const Node* keep = mapping.find("keep"))
    if (const auto part = number(reader, *keep, dotted(field, "keep"))) {
      halving.keep = *part;
      if (*part < 0.1 || *part > 0.9)
        reader.problems().add(keep->place, dotted(field, "keep"),
                              fmt::format("{}; expected the part of the points that goes on, 0.1 to 0.9",
                                          config::canonical_number(*part)));
    }
  if (const Node* first = mapping.find("first"))
    if (const auto value = number(reader, *first, dotted(field, "first"))) {
      halving.first = *value;
      if (*value <= 0)
        reader.problems().add(first->place, dotted(field, "first"),
                              fmt::format("{}; expected a number above 0", config::canonical_number(*value)));
    }
  const Node* key = mapping.find("key");
  if (key) {
    halving.key = reader.text(*key, dotted(field, "key")).value_or(halving.key);
    if (command ? !halving.key.starts_with("params.") : halving.key != "recipe.epochs")
      reader.problems().add(
          key->place, dotted(field, "key"),
          fmt::format("'{}'; expected {}", halving.key,
                      command ? "a parameter of the command, such as params.epochs" : "recipe.epochs"));
  }
  return halving;
}

std::vector<Rung> rungs_of(const Halving& halving, std::size_t points, double whole) {
  constexpr std::size_t kFewest = 2;  // of one there is nothing to choose
  constexpr std::size_t kMostRungs = 20;
  std::size_t rungs = 1;
  if (halving.first) {
    for (double value = *halving.first; value < whole * (1 - 1e-9) && rungs < kMostRungs; ++rungs)
      value /= halving.keep;
  } else {
    for (double left = static_cast<double>(points) * halving.keep;
         left + 1e-9 >= static_cast<double>(kFewest) && rungs < kMostRungs; ++rungs)
      left *= halving.keep;
  }
  std::vector<Rung> all;
  for (std::size_t rung = 0; rung < rungs; ++rung) {
    const double left =
        static_cast<double>(points) * std::pow(halving.keep, static_cast<double>(rung)) + 1e-9;
    const double part = std::pow(halving.keep, static_cast<double>(rungs - 1 - rung));
    const double value = rung + 1 == rungs ? whole
                         : halving.first
                             ? rounded(*halving.first / std::pow(halving.keep, static_cast<double>(rung)))
                             : rounded(whole * part);
    all.push_back({.points = std::max(std::min(points, kFewest), static_cast<std::size_t>(left)),
                   .value = config::canonical_number(value)});
  }
  return all;
}

}  // namespace abl::sweeps
