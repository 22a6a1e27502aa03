// SPDX-License-Identifier: Apache-2.0
#include "config/document/trial_document.h"

#include "base/error.h"
#include "tests/fuzz/target.h"

namespace abl::fuzz {

/// What is stored of a trial reads as the same trial, or nothing could be found by what it is.
void read_trial_document(std::string_view bytes) {
  const auto document = config::Json::parse(bytes, nullptr, /*allow_exceptions=*/false);
  if (document.is_discarded()) return;
  try {
    const std::string canonical = config::canonical_text(config::read_trial_or_throw(document));
    const auto again = config::read_trial_or_throw(config::Json::parse(canonical));
    require(config::canonical_text(again) == canonical, "the canonical text is its own: " + canonical);
  } catch (const Error& error) {
    require(error.code() == Code::kInvalidArgument, "a document that is refused is bad input");
    require_printable(error.what(), 10'000);
  }
}

}  // namespace abl::fuzz
