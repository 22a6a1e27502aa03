// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace abl::web {

/// What is sent back, before HTTP has its say: content, its type, and the headers that are particular to it.
struct Answer {
  int status = 200;
  std::string type = "application/json";
  std::string body;
  std::string cache = "no-store";  ///< Cache-Control
  std::vector<std::pair<std::string, std::string>> headers;
  std::string_view brotli{};  ///< `body` in Brotli, where it is there already; it outlives the answer
};

/// "NOT_FOUND", as gRPC calls it.
const char* code_name(Code code);

/// {"code": "NOT_FOUND", "message": …} with the status that fits `code`.
Answer error_answer(Code code, const std::string& message);
/// The same with a status of its own, where HTTP knows it better (405, 431).
Answer error_answer(int status, Code code, const std::string& message);

}  // namespace abl::web
