// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>

namespace abl {

/// What went wrong, in gRPC's canonical codes and with its numbers.
enum class Code {
  kOk = 0,
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
  kUnauthenticated = 16,
};

/// The one exception of this code base. The message names the thing, the value and what was expected;
/// it is one line unless it lists several problems, one line each.
class Error : public std::runtime_error {
 public:
  Error(Code code, const std::string& message) : std::runtime_error{message}, code_{code} {}
  Code code() const { return code_; }

 private:
  Code code_;
};

/// A file is not the one that is wanted, by its digest: somebody may have exchanged it, and another machine
/// may have the right one.
class OtherFile : public Error {
 public:
  explicit OtherFile(const std::string& message) : Error{Code::kFailedPrecondition, message} {}
};

/// An Error with the text of `errno`: "cannot open FILE: No such file or directory".
Error system_error(const std::string& what, int error_number);

/// Exit codes that scripts can rely on; printed in every `--help`.
enum ExitCode : int {
  kExitOk = 0,
  kExitFailed = 1,        ///< a trial or sweep failed, an internal error
  kExitUsage = 2,         ///< bad input: a flag, a sweep file, a name that does not exist
  kExitUnavailable = 3,   ///< the scheduler, a port or a file could not be reached or is in use
  kExitInterrupted = 130  ///< Ctrl-C
};
ExitCode exit_code(Code code);

}  // namespace abl
