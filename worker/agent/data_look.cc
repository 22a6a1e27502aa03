// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/data_look.h"

#include <string>
#include <string_view>

#include "base/child_process.h"
#include "base/error.h"
#include "protocol/command_line.h"

namespace abl::agent {

void expect_data(const std::filesystem::path& trainer, const std::filesystem::path& place, DataLook look,
                 std::chrono::milliseconds patience, const std::stop_token& stop) {
  const protocol::DataCommand command{.what = "format", .root = place, .open = look == DataLook::kOpen};
  try {
    run_program(protocol::with_program(trainer, command.arguments()), "", patience, stop);
  } catch (const Error& error) {
    constexpr std::string_view kSection = "data: ";
    auto why = own_words(error, "ablate-trainer");
    if (!why) throw;
    if (why->starts_with(kSection)) why->erase(0, kSection.size());
    throw Error{Code::kInvalidArgument, *why};
  }
}

}  // namespace abl::agent
