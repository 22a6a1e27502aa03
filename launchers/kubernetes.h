// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "launchers/launcher.h"

namespace abl::launchers {

/// Where the API server is and by which service account it is asked: as every pod has them, unless a test
/// says otherwise.
struct KubernetesOptions {
  std::string store_id;   ///< a label of its jobs: the pilots of other stores are not ours
  std::string scheduler;  ///< where workers find it
  std::string server;     ///< "https://10.0.0.1:443"
  std::filesystem::path account{
      "/var/run/secrets/kubernetes.io/serviceaccount"};  ///< token, ca.crt, namespace
  Milliseconds time_limit{20'000};                       ///< of a request

  /// As the fleet file says, or as in every pod. Throws: Error where it does not and this is no pod.
  static KubernetesOptions of(const FleetConfig& fleet, std::string store_id);
};

/// Pilots as jobs of Kubernetes, one pod each, over the API server's REST interface. curl speaks HTTPS: as a
/// child process it has a time limit and an end like sbatch's, and is told the token on its stdin. The token
/// is read again for each request, for Kubernetes exchanges it. A pilot is known by its job's labels.
class KubernetesLauncher final : public Launcher {
 public:
  explicit KubernetesLauncher(KubernetesOptions options) : options_{std::move(options)} {}

  std::vector<Pilot> list(const std::stop_token& stop) override;
  std::string submit(const QueueConfig& queue, const std::optional<Pass>& pass,
                     const std::stop_token& stop) override;
  void cancel(const std::vector<Pilot>& pilots, const std::stop_token& stop) override;
  void remove(const QueueConfig& queue, const Leftovers& leftovers, const std::stop_token& stop) override;

 private:
  struct Answer {
    int status = 0;
    std::string body;
  };
  Answer ask(const char* method, const std::string& path, const std::string& body,
             const std::stop_token& stop) const;
  std::vector<std::string> list_all(const std::string& path, const std::stop_token& stop) const;
  std::string in_namespace(const char* group, const std::string& rest) const;
  void make(const char* group, const std::string& kind, const std::string& body,
            const std::stop_token& stop) const;
  void unmake(const char* group, const std::string& object, const std::stop_token& stop) const;

  const KubernetesOptions options_;
  std::map<std::string, Pilot> live_;  // as they were listed last
};

/// What is created for a pilot: its job; and, where its worker joins with a pass, the secret that has it.
std::string job_document(const QueueConfig& queue, const KubernetesOptions& options, const std::string& pilot,
                         const std::optional<Pass>& pass);
std::string secret_document(const KubernetesOptions& options, const std::string& pilot, const Pass& pass);
/// The pilots of jobs and their pods, by the pages of the API server's lists. An item that is not understood
/// is not ours. Throws: Error for a page that is no list.
std::vector<Pilot> parse_jobs(const std::vector<std::string>& jobs, const std::vector<std::string>& pods,
                              Time now);

}  // namespace abl::launchers
