// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <exception>
#include <filesystem>
#include <optional>

#include "base/error.h"
#include "worker/trainer/events.h"

namespace abl::trainer {

/// A failure that is the machine's and not the trial's: its disk is full or broken, a GPU is lost.
class MachineFault : public Error {
 public:
  MachineFault(const Error& error, Events::Fault fault) : Error{error}, fault_{std::move(fault)} {}
  const Events::Fault& fault() const { return fault_; }

 private:
  Events::Fault fault_;
};

/// What writing to a run's folder threw, as a MachineFault where the disk gave it. `needed_bytes`: what was
/// to be written; 0: not known. To be called while it is handled. Throws: always.
[[noreturn]] void throw_as_disk_fault(const Error& error, std::uint64_t needed_bytes);

/// An exception of LibTorch that says that a GPU cannot be reached or has failed: nothing that a model or its
/// program does. Nothing for any other exception.
std::optional<MachineFault> lost_device(const std::exception& error);

/// Tells the end of a run that failed; returns the exit code.
int fail(Events& events, const Error& error);

}  // namespace abl::trainer
