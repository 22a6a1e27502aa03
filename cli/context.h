// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "cli/terminal.h"

namespace google::protobuf {
class Message;
}

namespace abl::cli {

/// What every command has at hand: the shared flags as parsed, the places that follow from them, and the two
/// streams.
struct Context {
  std::string home_flag, scheduler_flag, store_flag;  ///< as given; empty when not
  bool json = false;
  Terminal out{stdout}, err{stderr};

  std::filesystem::path home() const;    ///< --home, $ABLATE_HOME, or the usual place
  std::filesystem::path socket() const;  ///< of the scheduler that `up` starts
  std::filesystem::path default_store() const;
  std::filesystem::path store() const;    ///< --store, absolute, or the home's
  std::filesystem::path up_file() const;  ///< what a running `up` says of itself
  std::filesystem::path up_lock() const;  ///< held by it for as long as it lives
  std::string scheduler() const;          ///< gRPC address: --scheduler, $ABLATE_SCHEDULER, or the socket

  /// Prints a message as JSON, indented on a terminal, otherwise on one line.
  void print_json(const google::protobuf::Message& message) const;
  /// Asks on the terminal before something is deleted; not where `yes` was given.
  /// Throws: Error{kCancelled} when the answer is no, kInvalidArgument where nobody can be asked.
  void confirm(const std::string& question, bool yes) const;
  /// Something worth knowing, on stderr: "note: …". Not twice in a row.
  void note(const std::string& text) const;
  mutable std::string last_note;
};

/// A running `ablate up`, as written into `up_file()`.
struct UpRecord {
  int pid = 0;
  std::string url, store, socket;
};
/// Nothing when none is running, or when it is not ready yet.
std::optional<UpRecord> running_up(const Context& context);
void write_up_record(const Context& context, const UpRecord& record);
/// As JSON, on one line.
std::string to_json(const UpRecord& record);

}  // namespace abl::cli
