// SPDX-License-Identifier: Apache-2.0
#include "scheduler/status.h"

#include <fmt/format.h>

#include <algorithm>

namespace abl::scheduler {
namespace {

/// gRPC refuses trailers above 8 KiB and sends what is not ASCII as three bytes each.
constexpr std::size_t kMaxEncodedBytes = 6000;

std::size_t encoded_bytes(std::string_view text) {
  std::size_t bytes = 0;
  for (const char c : text) bytes += c >= ' ' && c <= '~' && c != '%' ? 1 : 3;
  return bytes;
}

/// Whole lines from the front, as many as fit; at least the first.
std::string fitting(const std::string& message) {
  if (encoded_bytes(message) <= kMaxEncodedBytes) return message;
  std::size_t bytes = 0, end = 0;
  while (end < message.size()) {
    const std::size_t next = std::min(message.find('\n', end + 1), message.size());
    bytes += encoded_bytes(std::string_view{message}.substr(end, next - end));
    if (bytes > kMaxEncodedBytes) break;
    end = next;
  }
  if (end == 0) {  // one very long line
    while (end + 256 < message.size() &&
           encoded_bytes(std::string_view{message}.substr(0, end + 256)) <= kMaxEncodedBytes)
      end += 256;
    while (end > 0 && (message[end] & 0xC0) == 0x80) --end;  // not within a UTF-8 character
    return message.substr(0, end) + " …";
  }
  const auto more = std::count(message.begin() + static_cast<std::ptrdiff_t>(end), message.end(), '\n');
  return fmt::format("{}\n… and {} more", message.substr(0, end), more);
}

}  // namespace

grpc::Status to_status(const Error& error) {
  return {static_cast<grpc::StatusCode>(error.code()), fitting(error.what())};
}

grpc::Status to_status(std::exception_ptr error) {
  if (!error) return grpc::Status::OK;
  try {
    std::rethrow_exception(error);
  } catch (const Error& known) {
    return to_status(known);
  } catch (const std::exception& unknown) {
    return {grpc::StatusCode::INTERNAL, fitting(unknown.what())};
  }
}

std::string message_of(std::exception_ptr error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& exception) {
    return exception.what();
  }
}

}  // namespace abl::scheduler
