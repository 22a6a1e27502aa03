// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/util/Exception.h>

#include <cstdint>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>

#include "base/error.h"
#include "config/trial_config.h"
#include "protocol/events.h"

namespace abl::device {

/// A failure that is the machine's and not the trial's: its disk is full or broken, a GPU is lost, what lies
/// in the data's place is not the data.
class MachineFault : public Error {
 public:
  MachineFault(const Error& error, protocol::Events::Fault fault) : Error{error}, fault_{fault} {}
  const protocol::Events::Fault& fault() const { return fault_; }

 private:
  protocol::Events::Fault fault_;
};

/// What a trial asks of its data and they do not have: other classes, fewer images.
class DataMismatch : public Error {
 public:
  explicit DataMismatch(const Error& error) : Error{error} {}
};

/// What writing to a run's folder threw, as a MachineFault where the disk gave it. `needed_bytes`: what was
/// to be written; 0: not known. To be called while it is handled. Throws: always.
[[noreturn]] void throw_as_disk_fault(const Error& error, std::uint64_t needed_bytes);

/// What opening the data threw, as a MachineFault where the place is to blame: it holds nothing of a known
/// format, a part is missing or damaged, nobody may read it. Another machine may have it whole. Other classes
/// or fewer images than the trial wants are no such fault, but a DataMismatch. To be called while it is
/// handled. Throws: always.
[[noreturn]] void throw_as_data_fault(const Error& error);

/// An exception of LibTorch that says that a GPU cannot be reached or has failed: nothing that a model or its
/// program does. Nothing for any other exception.
std::optional<MachineFault> lost_device(const std::exception& error);

/// Tells the end of a run that failed; returns the exit code.
int fail(protocol::Events& events, const Error& error);

/// What to tell of an exception of LibTorch or of the standard library that says that memory ran out: what it
/// was needed for and what would need less. Nothing for any other exception.
/// Returns: Error{kResourceExhausted}, one line.
std::optional<Error> out_of_memory(const std::exception& error, const config::TrialConfig& trial);

/// What a model or LibTorch says of values that it does not take (batch normalisation over one value, a shape
/// that does not fit): nothing that another try would change. Nothing for any other exception.
/// Returns: Error{kInvalidArgument}, one line.
std::optional<Error> refusal(const std::exception& error);

/// The first line of what LibTorch says, without where in its sources it says so.
std::string first_line(const c10::Error& error);

}  // namespace abl::device
