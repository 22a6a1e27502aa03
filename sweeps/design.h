// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace abl::sweeps {

class YamlReader;
struct Node;

/// What a key may be while the best is looked for.
struct TunedRange {
  enum class Kind { kReal, kInteger, kChoices };
  std::string key;  ///< dotted
  Kind kind = Kind::kReal;
  double min = 0, max = 0;
  bool log = false;  ///< equal ratios are equally far apart, in place of equal differences
  std::vector<std::string> choices;
  int line = 0, column = 0;  ///< in the file

  /// "recipe.lr 0.0001 to 0.01 (log)", "recipe.batch 32, 64 or 128".
  std::string text() const;
  bool operator==(const TunedRange&) const = default;
};

/// How points are chosen.
enum class Method {
  kSobol,    ///< quasi-random: points that lie evenly
  kRandom,   ///< independent of each other
  kHalving,  ///< the points of kSobol with few epochs, the better ones of them again with more
};
constexpr std::string_view name_of(Method method) {
  switch (method) {
    case Method::kSobol:
      return "sobol";
    case Method::kRandom:
      return "random";
    case Method::kHalving:
      return "halving";
  }
  return {};
}

/// Dotted key -> value as text, which reads again as exactly that value.
using Point = std::map<std::string, std::string>;

/// `{recipe.lr: {min: 1e-4, max: 1e-2, log: true}, recipe.batch: {min: 32, max: 256, integer: true},
/// recipe.schedule: [cosine, linear]}`.
std::vector<TunedRange> read_ranges(YamlReader& reader, const Node& mapping, const std::string& field);

/// `count` different points, or as many as there are: what follows from the same seed is the same, and fewer
/// points are the first of more. Of 2^k of kSobol that are the first, each 2^k-th of a range (in its own
/// spacing) has one. A real number has 4 significant digits and lies within its range.
std::vector<Point> draw_points(const std::vector<TunedRange>& ranges, Method method, std::size_t count,
                               std::uint64_t seed);

/// Successive halving.
struct Halving {
  std::string key = "recipe.epochs";  ///< what is less at first; of a command: a parameter
  double keep = 0.5;                  ///< the part of the points that goes on
  std::optional<double> first;        ///< of `key`; none: so that two points or three are left with all of it
  bool operator==(const Halving&) const = default;
};

/// `{keep: 0.5, first: 2, key: params.epochs}`. `command`: whose key must be said.
Halving read_halving(YamlReader& reader, const Node& mapping, const std::string& field, bool command);

/// So many points, the best of those before, with `Halving::key` at `value`.
struct Rung {
  std::size_t points = 0;
  std::string value;
};

/// The last has `whole`. A trial of fewer epochs has a schedule of that many: it is another training, no part
/// of the longer one.
std::vector<Rung> rungs_of(const Halving& halving, std::size_t points, double whole);

}  // namespace abl::sweeps
