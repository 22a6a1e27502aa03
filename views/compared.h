// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ablate/v1/sweeps.pb.h"
#include "base/guarded.h"
#include "statistics/difference.h"
#include "statistics/interval.h"
#include "statistics/sequential.h"
#include "statistics/summary.h"
#include "storage/types.h"

/// What is compared of two rows of a table, and how: by `compare_cells` for a whole table, by
/// `add_statistics` for the rows that are asked for.
namespace abl::views {

/// A difference counts where the corrected p is less than this; intervals have the level 1 − α.
inline constexpr double kAlpha = 0.05;

/// A row's values in one column.
struct Sample {
  Sample() = default;
  explicit Sample(const ablate::v1::Cell& cell);
  /// A mean that may be compared.
  bool counts() const { return !values.empty() && diverged.empty() && finite_mean; }
  std::vector<double> values;
  std::vector<std::int64_t> seeds;
  std::vector<std::uint32_t> runs;
  std::string diverged;  ///< the first seed that was not finite all along, or empty
  double mean = 0;
  bool finite_mean = false;
  std::optional<statistics::Summary> summary;  ///< of the values
  std::uint32_t settled = 0;  ///< with looks: so many of the first seeds have ended, one way or the other
};

/// The values of two rows that are held against each other: all of them, or those of seeds that both have,
/// by seed.
struct Compared {
  Compared(const Sample& row, const Sample& baseline, protocol::Test test);
  std::vector<double> row, baseline;
  std::vector<std::int64_t> unpaired;  ///< seeds that one side alone has: left out
};

/// Results of what is costly, by what they are computed from: the same again for nothing. It keeps the
/// newest, of bounded number. Thread: any.
template <class Result>
class Memo {
 public:
  explicit Memo(std::size_t most) : most_{most} {}
  /// `compute` is called without the lock.
  template <class Compute>
  Result get(const std::string& key, const Compute& compute) {
    {
      auto known = known_.lock();
      if (const auto found = known->now.find(key); found != known->now.end()) return found->second;
      if (const auto found = known->before.find(key); found != known->before.end()) {
        Result result = found->second;
        known->keep(key, result, most_);
        return result;
      }
    }
    Result result = compute();
    known_.lock()->keep(key, result, most_);
    return result;
  }

 private:
  struct Known {
    void keep(const std::string& key, const Result& result, std::size_t most) {
      if (now.size() >= most) before = std::exchange(now, {});
      now.emplace(key, result);
    }
    std::unordered_map<std::string, Result> now, before;
  };
  std::size_t most_;
  Guarded<Known> known_;
};

/// What `add_statistics` computes of a cell.
struct CellNumbers {
  std::optional<statistics::Interval> mean, difference;
  std::optional<statistics::EffectSize> effect;
  std::optional<std::size_t> more_seeds;
};

struct StatisticsMemo {
  Memo<std::optional<double>> permutations{100'000};  // 100 bytes each
  Memo<CellNumbers> cells{10'000};
};

/// The same text for the same values in the same order.
std::string key_of(std::string_view what, const std::vector<double>& row, const std::vector<double>& baseline,
                   double number = 0);

/// The table's way to compare; what a message of another release says otherwise is as usual.
protocol::Compare compare_of(const ablate::v1::Table& table);

/// Of the mean of values, as tables show it.
std::optional<statistics::Interval> mean_interval(const std::vector<double>& values, protocol::IntervalBy by,
                                                  double level);

/// "Welch's t-test", "the paired t-test", "the permutation test".
std::string_view words_of(protocol::Test test);

/// p of a test by itself, and which side is higher.
struct Tested {
  std::optional<double> p;
  double difference = 0;
  std::string why_not;  ///< set where there is no p
};
Tested test_of(const Sample& row, const Sample& baseline, const protocol::Compare& compare,
               StatisticsMemo* memo);

/// The looks that were planned at the rows of a table to which seeds are added (`Table.sequential`). A look
/// is of the first so many seeds, in the file's order, that have a value in both rows. A seed that has ended
/// without one is left out; one that has not ended is waited for, whatever later ones have: which seeds a
/// look is of does not depend on how fast they are. What the scheduler adds seeds by is computed here too.
class Looks {
 public:
  explicit Looks(const ablate::v1::Sequential& sequential);
  Looks(std::size_t min, std::size_t looks, std::vector<std::int64_t> order, statistics::Spending spending);
  /// The seeds that the last look is of; none before the first.
  std::vector<std::int64_t> seeds(const Sample& row, const Sample* baseline = nullptr) const;
  /// A sample of these seeds alone, which it has.
  static Sample of(const Sample& sample, std::span<const std::int64_t> seeds);
  /// As test_of, over all looks until now: `p` holds however many there were.
  Tested test_of(const Sample& row, const Sample& baseline, const protocol::Compare& compare,
                 StatisticsMemo* memo) const;
  /// Of an interval at the look of so many seeds, that all looks' together have the level 1 − α.
  double level(std::size_t seeds) const { return design_.level_at(seeds - min_); }

 private:
  std::size_t min_;
  std::vector<std::int64_t> order_;
  statistics::SequentialDesign design_;
};

/// Whether its cells are of values for each seed: these are compared.
inline bool is_compared(const ablate::v1::Column& column) {
  return column.kind() == ablate::v1::Column::KIND_METRIC || column.per_seed();
}

inline void write(const statistics::Interval& from, ablate::v1::Interval& to) {
  to.set_low(from.low);
  to.set_high(from.high);
}

/// "p = 0.012", "p < 0.0001".
std::string p_text(double p);

}  // namespace abl::views
