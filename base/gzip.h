// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace abl {

/// A member of a gzip file (RFC 1952) with these bytes. `level`: 1, the quickest, to 12. Equal bytes give
/// equal ones. Thread: any. Throws: Error{kResourceExhausted} without memory.
std::string gzip(std::string_view bytes, int level);

/// What one such member holds. Throws: Error{kDataLoss} for what is none, or holds more than `most` bytes.
std::string gunzip(std::string_view bytes, std::size_t most);

}  // namespace abl
