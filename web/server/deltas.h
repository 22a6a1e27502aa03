// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <list>
#include <mutex>
#include <string>
#include <string_view>

#include "web/server/answer.h"

namespace abl::web {

/// Recent answers, so that a client that has one is sent only the difference to the current one: delta
/// encoding (RFC 3229) with JSON Patch (RFC 6902). A page that shows a sweep reads it once a second, and only
/// a few numbers change. Thread: any.
class Deltas {
 public:
  static constexpr std::size_t kMostBytes = 32 << 20;  ///< of all kept answers
  static constexpr std::size_t kMost = 1000;           ///< kept answers: each is looked at for every request
  static constexpr std::size_t kLongest = 2 << 20;     ///< of one answer: comparing more takes long

  explicit Deltas(std::size_t most_bytes = kMostBytes) : most_bytes_{most_bytes} {}

  /// Keeps a whole answer that has an ETag, for clients that come back with it. `address`: what was asked
  /// for.
  void keep(const std::string& address, const Answer& answer);
  /// Replaces the answer with a patch (226) if the client has a kept answer of the same address and the patch
  /// is at most half as long. `etags`: If-None-Match, as it was sent.
  void shorten(const std::string& address, std::string_view etags, Answer& answer);

  std::size_t bytes() const;

 private:
  struct Kept {
    std::string address, etag, body;
    std::size_t size() const { return address.size() + etag.size() + body.size(); }
  };
  std::string find(const std::string& address, std::string_view etag);

  const std::size_t most_bytes_;
  mutable std::mutex mutex_;
  std::list<Kept> kept_;  // most recent first
  std::size_t bytes_ = 0;
};

}  // namespace abl::web
