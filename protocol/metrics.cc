// SPDX-License-Identifier: Apache-2.0
#include "protocol/metrics.h"

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "protocol/counts.h"
#include "protocol/probe_results.h"

namespace abl::protocol {
namespace {

using Words = std::span<const std::string_view>;

constexpr std::string_view kUnitsOfTime[] = {"s",   "sec",  "secs",   "second", "seconds", "ms",   "minutes",
                                             "min", "mins", "minute", "h",      "hour",    "hours"};
constexpr std::string_view kTimesAndSizes[] = {"time",    "seconds",  "sec",    "ms", "latency",
                                               "elapsed", "duration", "memory", "mem"};
constexpr std::string_view kCounted[] = {
    "img", "imgs", "image", "images", "sample", "samples", "token",   "tokens",   "step",  "steps",
    "it",  "its",  "iter",  "iters",  "batch",  "batches", "example", "examples", "epoch", "epochs"};
constexpr std::string_view kLow[] = {"loss", "error",      "err", "nll", "mae", "mse",    "rmse",
                                     "ppl",  "perplexity", "fid", "wer", "cer", "params", "flops"};
constexpr std::string_view kNeither[] = {"lr"};

bool is_one_of(std::string_view word, Words words) { return std::ranges::find(words, word) != words.end(); }

/// The words of a name such as "val/loss", "step_time" or "images_per_s".
class Name {
 public:
  explicit Name(std::string_view name) {
    while (!name.empty()) {
      const std::size_t end = std::min(name.find_first_of("/_-. "), name.size());
      words_.push_back(name.substr(0, end));
      before_.push_back(next_);
      next_ = end < name.size() ? name[end] : '\0';
      name.remove_prefix(std::min(end + 1, name.size()));
    }
  }
  std::size_t size() const { return words_.size(); }
  std::string_view operator[](std::size_t i) const { return words_[i]; }

  /// A rate, told at this word: "images_per_s", "throughput", "samples/sec", "it/s", "img_s". Not
  /// "loss_per_token", and not "acc_s", which may be a student's.
  bool is_rate(std::size_t i) const {
    if (words_[i] == "throughput") return true;
    if (words_[i] == "per") return i + 1 < size() && is_one_of(words_[i + 1], kUnitsOfTime);
    if (i == 0 || i + 1 < size() || !is_one_of(words_[i], kUnitsOfTime)) return false;
    return words_[i] == "s" ? is_one_of(words_[i - 1], kCounted) : before_[i] == '/';
  }

 private:
  std::vector<std::string_view> words_;
  std::vector<char> before_;  // what stands before each word
  char next_ = '\0';
};

/// What dense tasks are judged by, of some weights.
template <const auto& evaluated>
constexpr std::array kDenseScores = [] {
  using namespace metric;
  std::array scores{
      Quantity{kOf<evaluated, kMeanIntersection>.data()}, Quantity{kOf<evaluated, kMeanAccuracy>.data()},
      Quantity{kOf<evaluated, kPixelAccuracy>.data()},    Quantity{kOf<evaluated, kBoxAp>.data()},
      Quantity{kOf<evaluated, kBoxAp50>.data()},          Quantity{kOf<evaluated, kBoxAp75>.data()},
      Quantity{kOf<evaluated, kBoxApSmall>.data()},       Quantity{kOf<evaluated, kBoxApMedium>.data()},
      Quantity{kOf<evaluated, kBoxApLarge>.data()},       Quantity{kOf<evaluated, kMaskAp>.data()},
      Quantity{kOf<evaluated, kMaskAp50>.data()},         Quantity{kOf<evaluated, kMaskAp75>.data()},
      Quantity{kOf<evaluated, kMaskApSmall>.data()},      Quantity{kOf<evaluated, kMaskApMedium>.data()},
      Quantity{kOf<evaluated, kMaskApLarge>.data()}};
  for (Quantity& score : scores) score.unit = Unit::kPercent, score.better = Better::kHigher;
  return scores;
}();

constexpr std::array kCommonMetrics{
    Quantity{metric::kTrainLoss, {}, Better::kLower},
    Quantity{metric::kTrainTop1, Unit::kPercent, Better::kHigher},
    Quantity{metric::kTrainGradNorm, {}, Better::kNone},
    Quantity{metric::kTrainSkippedSteps, {}, Better::kLower},
    Quantity{metric::kValLoss, {}, Better::kLower},
    Quantity{metric::kValTop1, Unit::kPercent, Better::kHigher},
    Quantity{metric::kValTop5, Unit::kPercent, Better::kHigher},
    Quantity{metric::kValKnn10, Unit::kPercent, Better::kHigher},
    Quantity{metric::kValKnn20, Unit::kPercent, Better::kHigher},
    Quantity{metric::kValFeatureStd, {}, Better::kNone},
    Quantity{metric::kAverageLoss, {}, Better::kLower},
    Quantity{metric::kAverageTop1, Unit::kPercent, Better::kHigher},
    Quantity{metric::kAverageTop5, Unit::kPercent, Better::kHigher},
    Quantity{metric::kLearningRate, {}, Better::kNone},
    Quantity{metric::kImagesPerSecond, {}, Better::kHigher},
    Quantity{metric::kMemoryBytes, Unit::kBillion, Better::kLower},
    Quantity{metric::kTimeData, {}, Better::kLower},
    Quantity{metric::kTimeCheckpoints, {}, Better::kLower},
    Quantity{metric::kTimeEvaluation, {}, Better::kLower},
};

template <std::size_t... sizes>
constexpr auto joined(const std::array<Quantity, sizes>&... parts) {
  std::array<Quantity, (sizes + ...)> all{};
  auto* at = all.data();
  ((at = std::copy(parts.begin(), parts.end(), at)), ...);
  return all;
}
constexpr std::array kTrainerMetrics =
    joined(kCommonMetrics, kDenseScores<metric::kVal>, kDenseScores<metric::kAverage>);

/// Of all less is better.
constexpr std::array kCountModes{
    Quantity{kParamsAll, Unit::kMillion},
    Quantity{kParamsWeights, Unit::kMillion},
    Quantity{"params.backbone", Unit::kMillion},
    Quantity{"params.all@xcit-2021", Unit::kMillion},
    Quantity{"params.all@mask-rcnn", Unit::kMillion},
    Quantity{"params.all@semantic-fpn", Unit::kMillion},
    Quantity{"params.all@uper-net", Unit::kMillion},
    Quantity{kFlopsMacs, Unit::kBillion},
    Quantity{kFlopsStep, Unit::kBillion},
    Quantity{kFlopsMsf, Unit::kBillion},
    Quantity{kFlopsCnn, Unit::kBillion},
    Quantity{kFlopsFvcore2, Unit::kBillion},
    Quantity{kFlopsFvcore5, Unit::kBillion},
    Quantity{"flops.fvcore(5)@xcit-2021", Unit::kBillion},
    Quantity{"flops.fvcore(2)@mk-head-all-tokens", Unit::kBillion},
    Quantity{kMemoryState, Unit::kBillion},
    Quantity{kMemoryStateBf16, Unit::kBillion},
    Quantity{"memory.base.fp32", Unit::kBillion},
    Quantity{"memory.base.bf16", Unit::kBillion},
    Quantity{"memory.base.fp16", Unit::kBillion},
    Quantity{"memory.image.fp32", Unit::kBillion},
    Quantity{"memory.image.bf16", Unit::kBillion},
    Quantity{"memory.image.fp16", Unit::kBillion},
};

/// What an evaluation of each kind of task measures, as `config::tasks` has it.
struct Judged {
  std::string_view kind;
  std::vector<std::string_view> values;
  bool recognises = false;  ///< so that steps say how many of their images were recognised
};
const std::vector<Judged>& judged() {
  using namespace metric;
  static const std::vector<Judged> kJudged{
      {"classify", {kTop1, kTop5, kLoss}, true},
      {"segment", {kMeanIntersection, kMeanAccuracy, kPixelAccuracy, kLoss}},
      {"detect",
       {kBoxAp, kBoxAp50, kBoxAp75, kBoxApSmall, kBoxApMedium, kBoxApLarge, kMaskAp, kMaskAp50, kMaskAp75,
        kMaskApSmall, kMaskApMedium, kMaskApLarge}},
      {"dino", {kKnn20, kKnn10, kFeatureStd}},
      {"probe-linear", {kTop1, kTop5, kLoss, kKnn20, kKnn10, kFeatureStd}, true},
      {"probe-knn", {kKnn20, kKnn10, kFeatureStd}},
  };
  return kJudged;
}

}  // namespace

std::vector<std::string> never_reported(std::string_view task_kind) {
  const auto own = std::ranges::find(judged(), task_kind.empty() ? "classify" : task_kind, &Judged::kind);
  std::vector<std::string> never;
  if (own == judged().end()) return never;
  if (!own->recognises) never.emplace_back(metric::kTrainTop1);
  for (const Judged& other : judged())
    for (const std::string_view value : other.values)
      if (!is_one_of(value, own->values))
        for (const char* evaluated : {metric::kVal, metric::kAverage})
          never.push_back(metric::of(evaluated, value));
  return never;
}

Better better_by_name(std::string_view metric) {
  for (const auto table : {trainer_metrics(), count_modes()})
    if (const Quantity* known = find(table, metric)) return known->better;
  if (is_probe_metric(metric)) {
    const ProbeValue* value = value_declared(metric);
    return value ? value->better : Better::kNone;
  }
  const Name name{metric};
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name.is_rate(i)) return Better::kHigher;  // images_per_s, but not time_per_image
    if (is_one_of(name[i], kTimesAndSizes) || is_one_of(name[i], kLow)) return Better::kLower;
    if (is_one_of(name[i], kNeither)) return Better::kNone;
  }
  return Better::kHigher;
}

std::optional<Unit> unit_by_name(std::string_view metric) {
  if (const Quantity* known = find(trainer_metrics(), metric)) return known->unit;
  const ProbeValue* value = value_declared(metric);
  return value ? value->unit : std::nullopt;
}

bool tells_of_the_machine(std::string_view metric) {
  const Name name{metric};
  for (std::size_t i = 0; i < name.size(); ++i)
    if (name.is_rate(i) || is_one_of(name[i], kTimesAndSizes) || name[i] == "util") return true;
  return false;
}

std::span<const Quantity> trainer_metrics() { return kTrainerMetrics; }
std::span<const Quantity> count_modes() { return kCountModes; }

std::vector<std::string> names(std::span<const Quantity> quantities) {
  std::vector<std::string> all;
  for (const Quantity& quantity : quantities) all.emplace_back(quantity.name);
  return all;
}

const Quantity* find(std::span<const Quantity> quantities, std::string_view name) {
  const auto found = std::ranges::find(quantities, name, &Quantity::name);
  return found == quantities.end() ? nullptr : &*found;
}

}  // namespace abl::protocol
