// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/enum_names.h"

/// What a column of a table shows, in the words that sweep files, results files and the wire have for it.
namespace abl::protocol {

/// Where its values come from: the runs, the architecture, the row's settings, other columns, or the paper
/// alone.
enum class ColumnKind { kMetric, kCount, kSetting, kExpression, kPrinted };
constexpr std::string_view name_of(ColumnKind kind) {
  switch (kind) {
    case ColumnKind::kMetric:
      return "metric";
    case ColumnKind::kCount:
      return "count";
    case ColumnKind::kSetting:
      return "setting";
    case ColumnKind::kExpression:
      return "expression";
    case ColumnKind::kPrinted:
      return "printed";
  }
  return {};
}

/// Why a row of a paper is not trained: the number is of another publication, nothing here does that task,
/// nothing here is that model, or the sweep is at a scale that has no such row.
enum class NotTrained { kCited, kTask, kModel, kScale };
constexpr std::string_view name_of(NotTrained kind) {
  switch (kind) {
    case NotTrained::kCited:
      return "cited";
    case NotTrained::kTask:
      return "task";
    case NotTrained::kModel:
      return "model";
    case NotTrained::kScale:
      return "scale";
  }
  return {};
}

/// How a paper prints a value; doubtful: the text is broken there, or contradicts itself.
enum class Mark { kBold, kUnderline, kDoubtful };
constexpr std::string_view name_of(Mark mark) {
  switch (mark) {
    case Mark::kBold:
      return "bold";
    case Mark::kUnderline:
      return "underline";
    case Mark::kDoubtful:
      return "doubtful";
  }
  return {};
}
/// Of one value.
struct PaperMark {
  Mark mark = Mark::kBold;
  std::string why;  ///< it is doubtful, or empty
  bool operator==(const PaperMark&) const = default;
};

/// What may stand for each column of a printed table (`table.show`): the value, of how many seeds, the
/// paper's, and the value less the paper's.
enum class Shown { kValue, kN, kPaper, kDifference };
constexpr std::string_view name_of(Shown shown) {
  switch (shown) {
    case Shown::kValue:
      return "value";
    case Shown::kN:
      return "n";
    case Shown::kPaper:
      return "paper";
    case Shown::kDifference:
      return "difference";
  }
  return {};
}

/// Which of a metric's values counts for a run.
enum class Take { kLast, kBest, kMin, kMax, kMean };
constexpr std::string_view name_of(Take take) {
  switch (take) {
    case Take::kLast:
      return "last";
    case Take::kBest:
      return "best";
    case Take::kMin:
      return "min";
    case Take::kMax:
      return "max";
    case Take::kMean:
      return "mean";
  }
  return {};
}

/// How it is tested whether a row differs from its baseline. Pairs are of one seed.
enum class Test { kWelch, kPaired, kPermutation };
constexpr std::string_view name_of(Test test) {
  switch (test) {
    case Test::kWelch:
      return "welch";
    case Test::kPaired:
      return "paired";
    case Test::kPermutation:
      return "permutation";
  }
  return {};
}

/// What intervals of means and of differences are made by.
enum class IntervalBy { kT, kBootstrap };
constexpr std::string_view name_of(IntervalBy by) {
  switch (by) {
    case IntervalBy::kT:
      return "t";
    case IntervalBy::kBootstrap:
      return "bootstrap";
  }
  return {};
}

/// What is done about many tests in one column.
enum class Correction { kHolm, kNone };
constexpr std::string_view name_of(Correction correction) {
  switch (correction) {
    case Correction::kHolm:
      return "holm";
    case Correction::kNone:
      return "none";
  }
  return {};
}

/// `table.compare`: how the cells of a table are compared.
struct Compare {
  Test test = Test::kWelch;
  IntervalBy interval = IntervalBy::kT;
  Correction correction = Correction::kHolm;
  bool operator==(const Compare&) const = default;
};

}  // namespace abl::protocol
