// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/out_of_memory.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <new>
#include <string>
#include <string_view>

namespace abl::trainer {
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

}  // namespace abl::trainer
