// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"

#include <cerrno>
#include <system_error>

namespace abl {

Error system_error(const std::string& what, int error_number) {
  Code code = Code::kUnknown;
  if (error_number == ENOENT) code = Code::kNotFound;
  if (error_number == EACCES || error_number == EPERM || error_number == EROFS)
    code = Code::kPermissionDenied;
  if (error_number == ENOTDIR || error_number == EISDIR || error_number == EEXIST ||
      error_number == ENAMETOOLONG || error_number == ELOOP)
    code = Code::kInvalidArgument;  // the name is wrong, or something else has it
  if (error_number == ENOSPC || error_number == EDQUOT || error_number == EFBIG || error_number == ENOMEM ||
      error_number == EMFILE || error_number == ENFILE || error_number == EAGAIN)
    code = Code::kResourceExhausted;  // room, memory, descriptors, processes
  if (error_number == EADDRINUSE || error_number == ECONNREFUSED) code = Code::kUnavailable;
  return Error{code, what + ": " + std::generic_category().message(error_number)};
}

ExitCode exit_code(Code code) {
  switch (code) {
    case Code::kOk:
      return kExitOk;
    case Code::kInvalidArgument:
    case Code::kNotFound:
    case Code::kAlreadyExists:
    case Code::kFailedPrecondition:
    case Code::kOutOfRange:
    case Code::kPermissionDenied:
    case Code::kUnauthenticated:
    case Code::kUnimplemented:
    case Code::kDataLoss:
      return kExitUsage;
    case Code::kUnavailable:
    case Code::kDeadlineExceeded:
    case Code::kResourceExhausted:
      return kExitUnavailable;
    case Code::kCancelled:
      return kExitInterrupted;
    case Code::kUnknown:
    case Code::kAborted:
    case Code::kInternal:
      break;
  }
  return kExitFailed;
}

}  // namespace abl
