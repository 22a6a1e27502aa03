// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "web/server/answer.h"
#include "web/server/deltas.h"

namespace abl::web {

/// What a client takes, and what it has.
struct Taken {
  bool gzip = false;
  bool brotli = false;
  std::string etags{};  ///< If-None-Match, as it was sent
  bool patch = false;   ///< a JSON Patch is welcome: "A-IM: json-patch"
};
Taken taken_by(std::string_view accept_encoding, std::string_view if_none_match, std::string_view a_im = {});
/// The ETags of If-None-Match, without the W/ of weak ones.
std::vector<std::string_view> tags_in(std::string_view if_none_match);

/// Gives a whole answer (200) an ETag of its content, where it has none, takes the content away from one that
/// the client has already (304), and compresses what is text and long enough, or sends the compressed form
/// that is there. Costs time in proportion to the answer: for a thread that computes. Thread: any.
void encode(Answer& answer, const Taken& taken);
/// The same; also keeps the answer in `deltas`, and sends a patch to clients that take one.
void encode(Answer& answer, const Taken& taken, Deltas& deltas, const std::string& address);

}  // namespace abl::web
