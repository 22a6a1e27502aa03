// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace abl::launchers {

/// Who starts the workers of a queue.
enum class LauncherKind { kSlurm, kKubernetes, kSsh };
constexpr std::string_view name_of(LauncherKind kind) {
  switch (kind) {
    case LauncherKind::kSlurm:
      return "slurm";
    case LauncherKind::kKubernetes:
      return "kubernetes";
    case LauncherKind::kSsh:
      return "ssh";
  }
  return {};
}

/// A machine that is reached by ssh, and what of its worker is not as the queue says.
struct SshHost {
  std::string name;  ///< as ssh knows it: "w1", "ada@w1"
  int slots = 1;
  std::map<std::string, std::string> data, weights;  ///< places of all of the queue's names
};

/// One kind of worker that a fleet may start, and how many of them: a queue of `fleet.yaml`. A worker that
/// was started for a queue is a pilot: it takes whatever trials it can run until nothing waits or its time is
/// over.
struct QueueConfig {
  std::string name;
  LauncherKind kind = LauncherKind::kSlurm;
  int min_workers = 0, max_workers = 1;
  int backlog = 2;                                     ///< pilots that may wait for their machine at once
  std::chrono::seconds time_limit{0};                  ///< 0: none
  std::chrono::seconds start_deadline{7 * 24 * 3600};  ///< a pilot that waits for longer is given up
  std::chrono::seconds idle_timeout{300};              ///< a worker without a run goes after so long
  std::chrono::seconds cool_down{30};  ///< a pilot that waits is not given up sooner after a submission
  double min_utilisation = 0.5;        ///< of a worker's slots; a pilot for less is not submitted
  std::optional<double> max_gpu_hours;

  int gpus = 0, cpus = 0;  ///< of one worker; cpus 0: what the launcher gives
  std::string memory;      ///< of one worker, as Slurm writes it: 128G
  int slots = 1;           ///< trials that one worker runs at once
  std::map<std::string, std::string> labels, data, weights;  ///< of its workers
  bool allow_commands = false;

  std::string program, home;  ///< on the machines of the queue: the worker, and a folder for workers' homes
  std::vector<std::string> worker_arguments;

  std::string partition, account, qos, gres, constraint;  ///< as Slurm has them; empty: its default
  std::vector<std::string> arguments;                     ///< of the launcher, passed through

  // as Kubernetes has them
  std::string image;
  std::map<std::string, std::string> volumes, node_selector;  ///< claim -> path; label -> value
  std::vector<std::string> tolerations;                       ///< keys of taints
  int run_as_user = 10001;

  // as ssh has them
  std::vector<SshHost> hosts;
  std::string bundle;      ///< an archive here, whose worker is started in place of `program`
  std::string ssh_config;  ///< a file; empty: what ssh reads by itself
};

/// In place of a file: the authorities that a machine knows.
inline constexpr const char* kSystem = "system";

struct FleetConfig {
  std::string scheduler;  ///< where workers find it, "head:7071"
  std::string ca;         ///< of its certificate: a file here, or kSystem; empty: it has no TLS
  std::string kubernetes, service_account;  ///< API server and folder of the account; empty: as in a pod
  std::vector<QueueConfig> queues;
};

/// Reads a fleet file, YAML; `file` is its name in messages.
/// Throws: sweeps::SweepFileError with every problem, "file:line:column: queues.h100.backlog: …" a line.
FleetConfig read_fleet_file(const std::string& text, const std::string& file);

}  // namespace abl::launchers
