// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>

namespace abl::protocol {

/// The data sets that every trainer draws itself, as `config::data_sets` has them: a worker that has a
/// trainer has these.
inline constexpr std::array<std::string_view, 4> kEmbeddedData{"shapes", "tinted-shapes", "negative-shapes",
                                                               "scenes"};

}  // namespace abl::protocol
