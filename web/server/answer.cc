// SPDX-License-Identifier: Apache-2.0
#include "web/server/answer.h"

#include <nlohmann/json.hpp>

namespace abl::web {
namespace {

struct Shown {
  int status;
  const char* name;
};

Shown shown(Code code) {
  switch (code) {
    case Code::kOk:
      return {200, "OK"};
    case Code::kInvalidArgument:
      return {400, "INVALID_ARGUMENT"};
    case Code::kOutOfRange:
      return {400, "OUT_OF_RANGE"};
    case Code::kUnauthenticated:
      return {401, "UNAUTHENTICATED"};
    case Code::kPermissionDenied:
      return {403, "PERMISSION_DENIED"};
    case Code::kNotFound:
      return {404, "NOT_FOUND"};
    case Code::kAborted:
      return {409, "ABORTED"};
    case Code::kAlreadyExists:
      return {409, "ALREADY_EXISTS"};
    case Code::kFailedPrecondition:
      return {409, "FAILED_PRECONDITION"};
    case Code::kUnimplemented:
      return {501, "UNIMPLEMENTED"};
    case Code::kCancelled:
      return {503, "CANCELLED"};
    case Code::kResourceExhausted:
      return {503, "RESOURCE_EXHAUSTED"};
    case Code::kUnavailable:
      return {503, "UNAVAILABLE"};
    case Code::kDeadlineExceeded:
      return {504, "DEADLINE_EXCEEDED"};
    case Code::kDataLoss:
      return {500, "DATA_LOSS"};
    case Code::kInternal:
      return {500, "INTERNAL"};
    case Code::kUnknown:
      break;
  }
  return {500, "UNKNOWN"};
}

}  // namespace

const char* code_name(Code code) { return shown(code).name; }

Answer error_answer(Code code, const std::string& message) {
  return error_answer(shown(code).status, code, message);
}

Answer error_answer(int status, Code code, const std::string& message) {
  const nlohmann::ordered_json error{{"code", shown(code).name}, {"message", message}};
  // a message may quote what the client sent, which need not be UTF-8
  return Answer{.status = status,
                .body = error.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)};
}

}  // namespace abl::web
