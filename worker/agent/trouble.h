// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace abl::agent {

/// Something of the worker's own that failed, and what has to succeed, beside a write in each of its folders,
/// before it is well again.
struct Trouble {
  std::string reason;
  bool trainer = false;               ///< the trainer has to start, or to open `data`
  bool gpus = false;                  ///< the trainer has to reach each GPU
  std::optional<std::uint64_t> room;  ///< so many bytes are free where runs write; 0: nobody knows how many
  std::string data;  ///< this data set has to be usable again, and only runs that need it wait; empty: all do
};

}  // namespace abl::agent
