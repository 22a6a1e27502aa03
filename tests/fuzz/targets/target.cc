// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/target.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "base/printable.h"

namespace abl::fuzz {

std::span<const Target> all_targets() {
  static const std::vector<Target> kAll{
      {"annotations", read_annotations},
      {"checkpoint", read_checkpoint},
      {"client_call", read_client_call, {"sweeps/demo", "sweeps/examples"}},
      {"depot_messages", read_depot_messages, {}, 4096, 100},  // a disk waits for each
      {"event_file", read_event_file},
      {"fleet_file",
       read_fleet_file,
       {"deploy/fleet-slurm.yaml", "deploy/fleet-ssh.yaml", "deploy/kubernetes/fleet.yaml"}},
      {"http_request", read_http_request},
      {"image", read_image, {"tests/data/image_files"}, 1 << 16},
      {"imported_results", read_imported_results, {}, 4096, 1000},
      {"json_request", read_json_request},
      {"kept_files", read_kept_files, {}, 4096, 200},
      {"labels", read_labels},
      {"machine_answers", read_machine_answers},
      {"packed_file", read_packed_file},
      {"safetensors", read_safetensors},
      {"sweep_file", read_sweep_file, {"sweeps/demo", "sweeps/examples", "sweeps/papers"}, 1 << 14},
      {"table_rows", read_table_rows},
      {"trainer_output", read_trainer_output},
      {"trial_document", read_trial_document, {"config/recipes"}},
      {"words", read_words, {}, 512},
      {"worker_messages", read_worker_messages},
  };
  return kAll;
}

void require(bool holds, std::string_view what) {
  if (holds) return;
  std::fprintf(stderr, "this does not hold: %.*s\n", static_cast<int>(what.size()), what.data());
  std::abort();
}

void require_printable(std::string_view message, int most_lines) {
  require(!message.empty(), "a message says something");
  require(printable(message) == message, "a message can be printed: " + printable(message));
  require(std::ranges::count(message, '\n') < most_lines,
          "a message is one line for each problem: " + printable(message));
}

}  // namespace abl::fuzz
