// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "launchers/ssh_scripts.h"
#include "tests/fuzz/target.h"

namespace abl::fuzz {

/// What a machine that is reached by ssh prints: its pilots, how much of a bundle it has, why it failed.
void read_machine_answers(std::string_view bytes) {
  using namespace launchers;
  constexpr std::chrono::hours kCentury{24 * 366 * 100};
  if (const auto pilots = ssh::parse_list(bytes)) {
    require(pilots->size() <= ssh::kMostPilots, "pilots are bounded");
    for (const ssh::FoundPilot& pilot : *pilots) {
      require(pilot.ran.count() >= 0 && pilot.ran <= kCentury, "times of pilots can be added");
      require(!pilot.code || (*pilot.code >= 0 && *pilot.code < 256), "an exit code");
      if (!pilot.said.empty()) require_printable(pilot.said);
    }
  }
  try {
    (void)ssh::parse_prepared(bytes);
  } catch (const Error& error) {
    require_printable(error.what());
  }
  for (const int code : {-1, 0, 1, 255}) try {
      const std::string text{bytes};
      (void)ssh::heard({.code = code, .ended = {}, .out = text, .err = text}, {});
    } catch (const Error& error) {
      require_printable(error.what());
    }
}

}  // namespace abl::fuzz
