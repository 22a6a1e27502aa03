// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>

#include "protocol/number.h"
#include "storage/database.h"
#include "storage/stretch.h"

namespace abl::storage {

/// A value from its two columns: NULL where it is not finite, and then its kind; `kind` -1: there is none.
inline double stored_number(const Statement& row, int value, int kind) {
  if (!row.is_null(value)) return row.real(value);
  return protocol::non_finite_value(kind >= 0 ? row.text(kind) : "")
      .value_or(std::numeric_limits<double>::quiet_NaN());
}

/// Of a row: step, value, kind, time.
inline CurvePoint stored_point(const Statement& row) {
  return {static_cast<std::uint32_t>(row.integer(0)), stored_number(row, 1, 2), row.integer(3)};
}

}  // namespace abl::storage
