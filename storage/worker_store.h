// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "storage/database.h"
#include "storage/types.h"

namespace abl::storage {

struct WorkerRecord {
  std::string name, host, instance, version;
  std::string slots_json;    ///< list of ablate.v1.Slot in Protobuf's JSON form, without their runs
  std::string data_json;     ///< list of logical data names
  std::string weights_json;  ///< list of logical names of weights
  int result_version = 0;
  bool allows_commands = false;
  bool connected = false;
  Time last_heartbeat{};
  std::string trouble;                   ///< what is wrong with it, in its own words, or empty
  Labels labels{};                       ///< `host` and `name` among them
  std::optional<std::string> drained{};  ///< it gets no trials, and why; told by people, not by its hello
  /// It gets one trial at a time, and nothing until then: trials failed on it one after the other.
  struct Quarantine {
    std::string why;
    Time until{};             ///< by the wall clock, also after a restart
    Milliseconds back_off{};  ///< twice as long when that one fails too
    bool operator==(const Quarantine&) const = default;
  };
  std::optional<Quarantine> quarantine{};
};

/// Whether a worker with these labels will do.
bool suits(const Where& where, const Labels& labels);
/// Why none of these workers will do, for people, with the nearest label where none has one that is asked
/// for; empty: one will.
std::string why_nobody_suits(const Where& where, const std::vector<Labels>& workers);

/// Workers that have said hello.
/// Thread: the connection's.
class WorkerStore {
 public:
  explicit WorkerStore(Database& db) : db_{db} {}
  void upsert(const WorkerRecord& worker);
  void heartbeat(const std::string& name, Time now, const std::string& trouble = {});
  void set_connected(const std::string& name, bool connected);
  void disconnect_all();  ///< at the scheduler's start
  /// From now on it gets no trials, for this reason; nothing: it does again. It stays so through whatever
  /// hello. Throws: Error{kNotFound} naming the nearest worker that there is.
  void set_drained(const std::string& name, const std::optional<std::string>& reason);
  std::optional<std::string> drained(const std::string& name) const;
  std::optional<WorkerRecord::Quarantine> quarantine(const std::string& name) const;
  void set_quarantine(const std::string& name, const std::optional<WorkerRecord::Quarantine>& quarantine);
  std::vector<WorkerRecord> list() const;

 private:
  Database& db_;
};

}  // namespace abl::storage
