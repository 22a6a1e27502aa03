// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <google/protobuf/timestamp.pb.h>

#include <optional>
#include <string>
#include <string_view>

#include "ablate/v1/sweeps.pb.h"
#include "base/clock.h"

/// Numbers and times as people read them.
namespace abl::cli {

/// "0.4s", "12s", "3m 05s", "2h 14m", "3d 04h"; "–" for what is not a finite, non-negative number.
std::string format_duration(double seconds);
/// As above, or "–" when it is unknown.
std::string format_eta(std::optional<double> seconds);

/// A moment to come, in this place's time: "14:30", on another day "Tue 14:30", from a week on "Nov 28".
std::string format_moment(Time moment, Time now);
/// "2h 14m (Tue 14:30)", or why nothing is known.
std::string format_forecast(const ablate::v1::Forecast& forecast, Time now);
/// A line: "complete in about 2h 14m (Tue 14:30): from 6 completed runs, 2.0 at once". `what`: "complete in".
std::string forecast_line(const ablate::v1::Forecast& forecast, std::string_view what, Time now);

/// "12.3 steps/s"; below one a second "42 steps/min", below one a minute "3.0 steps/h"; "–" when nothing
/// moves.
std::string format_rate(double per_second, std::string_view unit);

/// "23.68" for 23,680,000 and "4.60" for 4.6e9: in the unit and with the digits that papers print.
std::string format_millions(double count);
std::string format_billions(double count);

/// "312 B", "1.5 KiB", "23.7 MiB", "1.2 GiB".
std::string format_bytes(std::uint64_t bytes);

/// "12.35": bytes in units of 2^20 and 2^30.
std::string format_mib(double bytes);
std::string format_gib(double bytes);

/// "1,234,567".
std::string format_count(std::uint64_t count);

/// "3m 05s ago"; "–" for an unset time.
std::string format_age(const google::protobuf::Timestamp& time, Time now);
/// "2026-11-23 22:15", in UTC.
std::string date_text(const google::protobuf::Timestamp& time);

/// "1 trial", "2 trials".
std::string plural(std::uint64_t count, std::string_view noun);
/// "3 seeds", or "2 to 5 seeds" of a rule; `min`: 0 without one.
std::string seeds_text(std::uint32_t seeds, std::uint32_t min);

}  // namespace abl::cli
