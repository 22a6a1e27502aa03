// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

/// What reads bytes that anybody may have written, each as one function for libFuzzer and for the tests of
/// its corpus: whatever the bytes are, it returns.
namespace abl::fuzz {

struct Target {
  const char* name;
  void (*read)(std::string_view bytes);
  std::vector<std::string> examples = {};  ///< files and folders of the tree to begin with, beside its corpus
  std::size_t most_bytes = 4096;           ///< of an input
  std::size_t damages = 2000;              ///< that the test of the corpus tries, in all
};

/// By name, in order.
std::span<const Target> all_targets();

/// Ends the program where what must hold for every input does not, and says what.
void require(bool holds, std::string_view what);
/// What is said of bad input is read on a terminal: it is not empty, and has no control characters but line
/// ends, so many at most.
void require_printable(std::string_view message, int most_lines = 1);

void read_annotations(std::string_view bytes);
void read_checkpoint(std::string_view bytes);
void read_client_call(std::string_view bytes);
void read_depot_messages(std::string_view bytes);
void read_event_file(std::string_view bytes);
void read_fleet_file(std::string_view bytes);
void read_http_request(std::string_view bytes);
void read_image(std::string_view bytes);
void read_imported_results(std::string_view bytes);
void read_json_request(std::string_view bytes);
void read_kept_files(std::string_view bytes);
void read_labels(std::string_view bytes);
void read_machine_answers(std::string_view bytes);
void read_packed_file(std::string_view bytes);
void read_safetensors(std::string_view bytes);
void read_sweep_file(std::string_view bytes);
void read_table_rows(std::string_view bytes);
void read_trainer_output(std::string_view bytes);
void read_trial_document(std::string_view bytes);
void read_words(std::string_view bytes);
void read_worker_messages(std::string_view bytes);

}  // namespace abl::fuzz
