// SPDX-License-Identifier: Apache-2.0
#include "storage/curve_digest.h"

#include <sqlite3.h>

#include <bit>
#include <cmath>
#include <limits>

#include "base/metric_name.h"
#include "storage/sqlite_error.h"

namespace abl::storage {
namespace {

/// SplitMix64: every bit of the result depends on every bit of `x`.
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// FNV-1a.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

/// One bit pattern for each value: there are many NaNs and two zeros.
std::uint64_t bits_of(double value) {
  if (std::isnan(value)) value = std::numeric_limits<double>::quiet_NaN();
  return std::bit_cast<std::uint64_t>(value == 0 ? 0.0 : value);
}

void step(sqlite3_context* context, int, sqlite3_value** arguments) {
  auto* digest = static_cast<CurveDigest*>(sqlite3_aggregate_context(context, sizeof(CurveDigest)));
  if (!digest) return sqlite3_result_error_nomem(context);  // zeros, which is an empty digest
  const auto text = [&](int i) {
    const auto* bytes = reinterpret_cast<const char*>(sqlite3_value_text(arguments[i]));
    return std::string_view{bytes ? bytes : ""};
  };
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double value = sqlite3_value_type(arguments[2]) != SQLITE_NULL ? sqlite3_value_double(arguments[2])
                       : text(3) == "Infinity"                         ? kInfinity
                       : text(3) == "-Infinity"                        ? -kInfinity
                                                                       : std::nan("");
  digest->add(text(0), sqlite3_value_int64(arguments[1]), value);
}

void finish(sqlite3_context* context) {
  const auto* digest = static_cast<const CurveDigest*>(sqlite3_aggregate_context(context, 0));
  sqlite3_result_int64(context, digest ? static_cast<std::int64_t>(digest->value()) : 0);
}

}  // namespace

void CurveDigest::add(std::string_view metric, std::int64_t step, double value) {
  if (tells_of_the_machine(metric)) return;
  sum_ += mixed(hash_of(metric) ^ mixed(static_cast<std::uint64_t>(step) ^ mixed(bits_of(value))));
}

void add_curve_digest(sqlite3* db) {
  const int result = sqlite3_create_function_v2(db, "curve_digest", 4, SQLITE_UTF8 | SQLITE_DETERMINISTIC,
                                                nullptr, nullptr, step, finish, nullptr);
  if (result != SQLITE_OK) throw sqlite_error(db, result);
}

}  // namespace abl::storage
