// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"
#include "scheduler/depot.h"
#include "tests/fuzz/target.h"
#include "tests/temporary_folder.h"
#include "worker/agent/fingerprints.h"

namespace abl::fuzz {

/// Files that a worker and a scheduler keep for themselves, and that a disk or a person may have changed:
/// what a worker knows of its data sets, and which sets were pushed. Whatever they say, the next start works.
void read_kept_files(std::string_view bytes) {
  static const TemporaryFolder folder;
  static const std::filesystem::path place = [] {
    write_file(folder / "set", "images");
    return folder / "set";
  }();
  write_file(folder / "data.json", std::string{bytes});
  {
    agent::Fingerprints prints{{.cache = folder / "data.json", .data = {{"set", place}}}, [] {}};
    (void)prints.all();
    require(prints.of("set").empty(), "without a trainer nothing is known of a set");
  }
  write_file(folder / "names.json", std::string{bytes});
  scheduler::PushedData pushed{folder.path()};
  for (const auto& [name, set] : pushed.all()) {
    require(pushed.find(name).has_value(), "a name that is listed is found");
    scheduler::check_digest(set.sha256);
  }
  if (pushed.readable() && pushed.all().size() < scheduler::PushedData::kMost) {
    pushed.add("new",
               {.sha256 = std::string(64, 'a'), .fingerprint = "f", .bytes = 1, .pushed = {}, .by = "x"});
    require(scheduler::PushedData{folder.path()}.all().size() == pushed.all().size(),
            "what is written can be read");
  }
}

}  // namespace abl::fuzz
