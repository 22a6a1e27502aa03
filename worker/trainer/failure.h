// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <exception>
#include <filesystem>
#include <optional>

#include "base/error.h"
#include "worker/trainer/events.h"

namespace abl::trainer {

/// A failure that is the machine's and not the trial's: its disk is full or broken, a GPU is lost, what lies
/// in the data's place is not the data.
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

/// What opening the data threw, as a MachineFault where the place is to blame: it holds nothing of a known
/// format, a part is missing or damaged, nobody may read it. Another machine may have it whole. Other classes
/// or fewer images than the trial wants are no such fault. To be called while it is handled. Throws: always.
[[noreturn]] void throw_as_data_fault(const Error& error);

/// An exception of LibTorch that says that a GPU cannot be reached or has failed: nothing that a model or its
/// program does. Nothing for any other exception.
std::optional<MachineFault> lost_device(const std::exception& error);

/// Tells the end of a run that failed; returns the exit code.
int fail(Events& events, const Error& error);

}  // namespace abl::trainer
