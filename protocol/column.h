// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "base/enum_names.h"

/// What a column of a table shows, in the words that sweep files, results files and the wire have for it.
namespace abl::protocol {

/// Where its values come from: the runs, the architecture, or the row's settings.
enum class ColumnKind { kMetric, kCount, kSetting };
constexpr std::string_view name_of(ColumnKind kind) {
  switch (kind) {
    case ColumnKind::kMetric:
      return "metric";
    case ColumnKind::kCount:
      return "count";
    case ColumnKind::kSetting:
      return "setting";
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

}  // namespace abl::protocol
