// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cli/context.h"

namespace abl::cli {

/// A disk as a folder of ours sees it.
struct SeenDisk {
  std::string folder;                         ///< that lies on it
  std::string kind;                           ///< of the file system: "ext4", "tmpfs", "nfs"
  std::uint64_t size = 0, free = 0;           ///< bytes, free for this user
  std::uint64_t inodes = 0, free_inodes = 0;  ///< 0 of 0: it does not count them
  bool is_read_only = false;
  bool operator==(const SeenDisk&) const = default;
};

/// A program of ours.
struct SeenProgram {
  std::string path;
  std::string version;  ///< as it says; empty: it does not start
  std::string error;    ///< then: why
};

/// What the doctor has looked at, of one home: read from a real machine by `look`, made up in tests.
struct Seen {
  std::string version;  ///< of this program
  Time now{};

  // This machine.
  std::optional<SeenDisk> home, runs, shared_memory;
  std::uint64_t descriptors = 0, most_descriptors = 0;  ///< this shell's limits: soft, hard
  std::uint64_t memory = 0, memory_available = 0;       ///< bytes
  std::optional<std::uint64_t> memory_limit;            ///< of the cgroup
  std::optional<double> cpu_limit;                      ///< likewise, in cores
  int cores = 0;
  bool overcommits = true;                    ///< /proc/sys/vm/overcommit_memory is not 2
  std::vector<std::string> instructions;      ///< flags of the processor
  std::optional<bool> clock_is_synchronised;  ///< nothing: the kernel does not say
  std::vector<std::string> gpus;              ///< by name, as the driver lists them
  std::string gpu_error;                      ///< a driver that is there and does not answer

  // This store.
  struct Store {
    std::string file;
    bool exists = false;
    std::string error;                   ///< why it cannot be opened
    bool is_of_another_release = false;  ///< that is why: nothing is wrong with it
    int version = 0;                     ///< of its schema
    std::uint64_t bytes = 0, free_bytes = 0, log_bytes = 0;
    std::uint32_t mode = 0;
    bool is_ours = true;  ///< its owner is this user
    Time written{};
    std::string file_system;
    std::vector<std::string> copies;  ///< beside it: rescued ones, those of earlier versions
    std::uint64_t copies_bytes = 0;
    std::optional<std::vector<std::string>> damages;  ///< of a look at every page; nothing: not looked for
  } store;

  // Programs, and what a worker left.
  std::vector<SeenProgram> programs;   ///< scheduler and worker
  std::optional<SeenProgram> trainer;  ///< nothing: none is found
  int trainer_result_version = 0, newest_result_version = 0;
  std::optional<bool> trainer_uses_gpus;  ///< where there are some
  std::string trainer_gpu_error;
  std::size_t spool_files = 0;  ///< that are not empty: each is of a run
  std::uint64_t spooled_bytes = 0;
  bool worker_runs = false;

  // The scheduler.
  bool up_runs = false;  ///< `ablate up` keeps one running here
  std::string address;
  bool is_elsewhere = false;  ///< it was named by host and port, so that it should be there
  bool answers = false;
  std::string scheduler_error;    ///< where it does not
  std::string scheduler_version;  ///< empty: it does not say
  std::string ailments;           ///< what it says is wrong with it
  struct Worker {
    std::string name, version, trouble;
    bool connected = false, is_here = false;
    std::optional<std::string> drained;  ///< why, or empty; nothing: it is not
    std::string quarantine;              ///< why; empty: it is not in quarantine
  };
  std::vector<Worker> workers;
  struct Certificate {
    enum class Kind { kServer, kAuthority, kClient } kind = Kind::kServer;
    std::string where;  ///< a file, or an address
    Time ends{};
  };
  std::vector<Certificate> certificates;  ///< of the home's fleet, of the scheduler, of the login there
};

struct Finding {
  enum class Verdict { kOk, kNote, kProblem };
  Verdict verdict = Verdict::kOk;
  std::string what;   ///< what there is, or what is wrong
  std::string to_do;  ///< empty: nothing
};

/// One thing that is looked at. Nothing: it does not apply here.
struct Check {
  const char *area, *name;
  std::optional<Finding> (*judge)(const Seen&);
};

/// In the order in which they are told.
const std::vector<Check>& doctor_checks();

/// Looks; changes nothing. `deep`: also at every page of the results file, telling `waiting` now and then.
Seen look(const Context& context, bool deep, const std::function<void()>& waiting);

}  // namespace abl::cli
