// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/failure.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <array>

#include "worker/trainer/refusal.h"

namespace abl::trainer {
namespace {

/// Of CUDA's numbers of errors those that no program brings about: devices unavailable, no device, an
/// uncorrectable error of memory or of NVLink, a system that is not ready, a driver that does not match.
constexpr std::array kLostDevice{46, 100, 214, 220, 802, 803};

/// What the file system itself refuses: no room, no right (also on one that is read-only by now), no folder
/// any more, or an error of the device, which has no code of its own.
bool is_of_the_disk(Code code) {
  return code == Code::kResourceExhausted || code == Code::kPermissionDenied || code == Code::kNotFound ||
         code == Code::kUnknown;
}

/// What is not there, cannot be read, or is not what its format says.
bool is_of_the_data(Code code) {
  return code == Code::kNotFound || code == Code::kPermissionDenied || code == Code::kDataLoss ||
         code == Code::kUnknown;
}

}  // namespace

void throw_as_disk_fault(const Error& error, std::uint64_t needed_bytes) {
  if (is_of_the_disk(error.code())) throw MachineFault{error, {.part = "disk", .needed_bytes = needed_bytes}};
  throw;
}

void throw_as_data_fault(const Error& error) {
  if (is_of_the_data(error.code())) throw MachineFault{error, {.part = "data"}};
  throw;
}

std::optional<MachineFault> lost_device(const std::exception& error) {
  const auto* device = dynamic_cast<const c10::AcceleratorError*>(&error);
  if (!device || std::ranges::find(kLostDevice, device->get_error_code()) == kLostDevice.end())
    return std::nullopt;
  return MachineFault{Error{Code::kUnavailable, first_line(*device)}, {.part = "device"}};
}

int fail(Events& events, const Error& error) {
  const auto code = exit_code(error.code());
  if (const auto* machine = dynamic_cast<const MachineFault*>(&error))
    events.end_by(machine->fault(), error.what());
  else  // what the same machine would meet again is not worth a retry; memory that others held may pass, and
        // so may a file system that was away (the system errors that have no code of their own)
    events.end("failed", error.what(), code == kExitUnavailable || error.code() == Code::kUnknown);
  return code;
}

}  // namespace abl::trainer
