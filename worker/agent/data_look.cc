// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/data_look.h"

#include <string>
#include <string_view>
#include <vector>

#include "base/child_process.h"
#include "base/error.h"

namespace abl::agent {

void expect_data(const std::filesystem::path& trainer, const std::filesystem::path& place, DataLook look,
                 std::chrono::milliseconds patience, const std::stop_token& stop) {
  std::vector<std::string> argv{trainer, "data", "format", "--root", place};
  if (look == DataLook::kOpen) argv.emplace_back("--open");
  try {
    run_program(argv, "", patience, stop);
  } catch (const Error& error) {
    constexpr std::string_view kOwnWords = ": ablate-trainer: ", kSection = "data: ";
    const std::string_view text = error.what();
    const auto found = text.rfind(kOwnWords);
    if (found == std::string_view::npos) throw;
    auto words = text.substr(found + kOwnWords.size());
    if (words.starts_with(kSection)) words.remove_prefix(kSection.size());
    throw Error{Code::kInvalidArgument, std::string{words}};
  }
}

}  // namespace abl::agent
