// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/data_look.h"

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/child_process.h"
#include "base/error.h"
#include "protocol/command_line.h"

namespace abl::agent {

namespace {

std::string ask(const std::filesystem::path& trainer, const protocol::DataCommand& command,
                std::chrono::milliseconds patience, const std::stop_token& stop) {
  try {
    return run_program(protocol::with_program(trainer, command.arguments()), "", patience, stop);
  } catch (const Error& error) {
    constexpr std::string_view kSection = "data: ";
    auto why = own_words(error, "ablate-trainer");
    if (!why) throw;
    if (why->starts_with(kSection)) why->erase(0, kSection.size());
    throw Error{Code::kInvalidArgument, *why};
  }
}

}  // namespace

void expect_data(const std::filesystem::path& trainer, const std::filesystem::path& place, DataLook look,
                 std::chrono::milliseconds patience, const std::stop_token& stop) {
  ask(trainer, {.what = "format", .root = place, .open = look == DataLook::kOpen}, patience, stop);
}

std::string fingerprint_of(const std::filesystem::path& trainer, const std::filesystem::path& place,
                           std::chrono::milliseconds patience, const std::stop_token& stop) {
  const std::string said =
      ask(trainer, {.what = "format", .root = place, .open = true, .json = true}, patience, stop);
  const auto report = nlohmann::json::parse(said, nullptr, /*allow_exceptions=*/false);
  const auto found = report.is_object() ? report.find("fingerprint") : report.end();
  if (!report.is_object() || found == report.end() || !found->is_string())
    throw Error{Code::kFailedPrecondition,
                "the trainer does not say fingerprints: it is of an older release"};
  return found->get<std::string>();
}

}  // namespace abl::agent
