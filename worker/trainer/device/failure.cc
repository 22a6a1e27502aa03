// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/device/failure.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <new>
#include <string>
#include <string_view>

namespace abl::device {
namespace {

using Part = protocol::Fault::Part;

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

protocol::FailureClass class_of(const Error& error) {
  if (dynamic_cast<const DataMismatch*>(&error)) return protocol::FailureClass::kData;
  return error.code() == Code::kResourceExhausted ? protocol::FailureClass::kResources
                                                  : protocol::FailureClass::kTrial;
}

}  // namespace

void throw_as_disk_fault(const Error& error, std::uint64_t needed_bytes) {
  if (is_of_the_disk(error.code()))
    throw MachineFault{error, {.part = Part::kDisk, .needed_bytes = needed_bytes}};
  throw;
}

void throw_as_data_fault(const Error& error) {
  if (is_of_the_data(error.code())) throw MachineFault{error, {.part = Part::kData}};
  if (error.code() == Code::kResourceExhausted) throw;  // no descriptors, no memory
  throw DataMismatch{error};
}

std::optional<MachineFault> lost_device(const std::exception& error) {
  const auto* device = dynamic_cast<const c10::AcceleratorError*>(&error);
  if (!device || std::ranges::find(kLostDevice, device->get_error_code()) == kLostDevice.end())
    return std::nullopt;
  return MachineFault{Error{Code::kUnavailable, first_line(*device)}, {.part = Part::kDevice}};
}

int fail(protocol::Events& events, const Error& error) {
  const auto code = exit_code(error.code());
  if (const auto* machine = dynamic_cast<const MachineFault*>(&error))
    events.end_by(machine->fault(), error.what());
  else if (dynamic_cast<const OtherFile*>(&error))
    events.end_by({.part = Part::kFile}, error.what());
  else  // what the same machine would meet again is not worth a retry; memory that others held may pass, and
        // so may a file system that was away (the system errors that have no code of their own)
    events.end_as(class_of(error), error.what(), code == kExitUnavailable || error.code() == Code::kUnknown);
  return code;
}

namespace {

/// LibTorch's words, of which the first sentences tell how much was asked for. Empty for another error.
std::string reason(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error)) return "the system gives no more";
  const auto* torch = dynamic_cast<const c10::Error*>(&error);
  if (!torch) return "";
  const std::string text = torch->what_without_backtrace();
  const bool memory =
      dynamic_cast<const c10::OutOfMemoryError*>(torch) ||
      text.find("can't allocate memory") != std::string::npos;  // the CPU's has no type of its own
  if (!memory) return "";
  std::string_view line = std::string_view{text}.substr(0, text.find('\n'));
  // "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't …": from where it speaks to
  // people
  if (const auto at = line.find("DefaultCPUAllocator"); at != line.npos) line.remove_prefix(at);
  return std::string{line};
}

}  // namespace

std::optional<Error> out_of_memory(const std::exception& error, const config::TrialConfig& trial) {
  const std::string why = reason(error);
  if (why.empty()) return std::nullopt;
  return Error{
      Code::kResourceExhausted,
      fmt::format("not enough memory for the model and a batch of {} images of {} pixels: {}; a smaller "
                  "recipe.batch needs less, a larger recipe.accumulate too",
                  trial.recipe.batch, trial.data.image_size, why)};
}

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

}  // namespace abl::device
