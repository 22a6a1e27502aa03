// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/refusal.h"

#include <string_view>

namespace abl::trainer {

std::optional<Error> refusal(const std::exception& error) {
  const auto* torch = dynamic_cast<const c10::Error*>(&error);
  const bool refuses =
      dynamic_cast<const c10::ValueError*>(torch) || dynamic_cast<const c10::IndexError*>(torch) ||
      dynamic_cast<const c10::TypeError*>(torch) || dynamic_cast<const c10::NotImplementedError*>(torch);
  if (!refuses) return std::nullopt;
  return Error{Code::kInvalidArgument, first_line(*torch)};
}

std::string first_line(const c10::Error& error) {
  const std::string_view text = error.what_without_backtrace();
  return std::string{text.substr(0, text.find('\n'))};
}

}  // namespace abl::trainer
