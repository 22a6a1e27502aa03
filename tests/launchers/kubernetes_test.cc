// SPDX-License-Identifier: Apache-2.0
#include "launchers/kubernetes.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"

namespace abl::launchers {
namespace {

using nlohmann::json;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

constexpr const char *kOne = "0a1b2c3d4e5f", *kTwo = "111111111111";
const Time kToday{std::chrono::seconds{1'700'000'100}};  // 2023-11-14T22:15:00Z

json object(const char* pilot, json status = json::object()) {
  return {{"metadata", {{"labels", {{"ablate-pilot", pilot}}}, {"annotations", {{"ablate-queue", "h100"}}}}},
          {"spec", {{"nodeName", "node-7"}}},
          {"status", std::move(status)}};
}
std::vector<std::string> page(std::vector<json> items) { return {json{{"items", std::move(items)}}.dump()}; }
json ended(const char* type, const char* reason) {
  return {{"conditions", {{{"type", type}, {"status", "True"}, {"reason", reason}}}}};
}
Pilot only(const std::vector<std::string>& jobs, const std::vector<std::string>& pods) {
  const auto pilots = parse_jobs(jobs, pods, kToday);
  EXPECT_THAT(pilots, SizeIs(1));
  return pilots.empty() ? Pilot{} : pilots.front();
}

TEST(KubernetesJobs, AreAsTheirPodsAre) {
  EXPECT_EQ(only(page({object(kOne)}), {}).state, PilotState::kWaiting) << "its pod is not there yet";
  const json waits{
      {"phase", "Pending"},
      {"conditions",
       {{{"type", "PodScheduled"}, {"status", "False"}, {"message", "0/4 nodes are available"}}}}};
  EXPECT_EQ(only(page({object(kOne)}), page({object(kOne, waits)})).said, "0/4 nodes are available");
  const json pulls{{"phase", "Pending"},
                   {"containerStatuses", {{{"state", {{"waiting", {{"reason", "ImagePullBackOff"}}}}}}}}};
  EXPECT_EQ(only(page({object(kOne)}), page({object(kOne, pulls)})).said, "ImagePullBackOff");
  const Pilot runs =
      only(page({object(kOne)}),
           page({object(kOne, {{"phase", "Running"}, {"startTime", "2023-11-14T22:14:00Z"}})}));
  EXPECT_EQ(runs.state, PilotState::kRunning);
  EXPECT_EQ(runs.machine, "node-7");
  EXPECT_EQ(runs.ran, std::chrono::seconds{60});
  EXPECT_EQ(runs.worker(), "h100-0a1b2c3d4e5f");
}

TEST(KubernetesJobs, EndByTheirOwnFaultOrByThatOfTheirNode) {
  const auto jobs = page({object(kOne, ended("Failed", "BackoffLimitExceeded"))});
  const json exits{{"phase", "Failed"},
                   {"containerStatuses", {{{"state", {{"terminated", {{"exitCode", 2}}}}}}}}};
  const Pilot failed = only(jobs, page({object(kOne, exits)}));
  EXPECT_EQ(failed.state, PilotState::kEnded);
  EXPECT_TRUE(failed.failed);
  EXPECT_EQ(failed.said, "BackoffLimitExceeded, exit code 2");
  EXPECT_FALSE(only(jobs, {}).failed) << "its node is gone, and its pod with it";
  EXPECT_FALSE(only(jobs, page({object(kOne, {{"phase", "Failed"}, {"reason", "Evicted"}})})).failed);
  EXPECT_FALSE(only(jobs, page({object(kOne, {{"phase", "Failed"},
                                              {"conditions",
                                               {{{"type", "DisruptionTarget"},
                                                 {"status", "True"},
                                                 {"reason", "PreemptionByScheduler"}}}}})}))
                   .failed);
  EXPECT_FALSE(only(page({object(kOne, ended("Complete", ""))}), {}).failed);
  EXPECT_EQ(only({}, page({object(kOne, {{"phase", "Running"}})})).state, PilotState::kRunning)
      << "its job is deleted: it has the time to end";
}

TEST(KubernetesJobs, AreNoneOfWhatIsNotUnderstood) {
  EXPECT_THAT(
      parse_jobs(page({object("../../etc"), json::object(), json{{"metadata", 7}}, 7, json{}}), {}, kToday),
      IsEmpty());
  for (const char* text : {"", "<html>", "[]", "{}", R"({"items": 7})", "{\"items\": [", "null"})
    EXPECT_THROW(parse_jobs({text}, {}, kToday), Error) << text;
}

TEST(KubernetesJob, HasNoSecretAndEveryWordAsAnArgumentOfItsOwn) {
  const QueueConfig queue{.name = "h100",
                          .kind = LauncherKind::kKubernetes,
                          .time_limit = std::chrono::hours{1},
                          .gpus = 2,
                          .memory = "16G",
                          .slots = 2,
                          .labels = {{"gpu", "$(rm -rf /); `id`"}},
                          .program = "/bin/ablate-worker",
                          .home = "/work"};
  const KubernetesOptions options{.store_id = "ab12", .scheduler = "head:7071"};
  const Pass pass{.id = kTwo, .token = "abl_secret", .authorities = "PEM"};
  const std::string text = job_document(queue, options, kTwo, pass);
  EXPECT_THAT(text, Not(HasSubstr("abl_secret")));
  const json job = json::parse(text);
  EXPECT_EQ(job["metadata"]["name"], "ablate-ab12-111111111111");
  const json& pod = job["spec"]["template"]["spec"];
  const auto command = pod["containers"][0]["command"].get<std::vector<std::string>>();
  EXPECT_THAT(command, Contains("gpu=$(rm -rf /); `id`"));
  EXPECT_THAT(command.at(2), Not(HasSubstr("rm -rf")));
  EXPECT_EQ(pod["containers"][0]["resources"]["limits"]["nvidia.com/gpu"], "2");
  EXPECT_EQ(pod["containers"][0]["resources"]["limits"]["memory"], "16Gi");
  EXPECT_EQ(pod["automountServiceAccountToken"], false);
  EXPECT_EQ(pod["securityContext"]["runAsNonRoot"], true);
  EXPECT_EQ(job["spec"]["backoffLimit"], 0) << "the scheduler asks anew where it wants another";
  const json secret = json::parse(secret_document(options, kTwo, pass));
  EXPECT_EQ(secret["metadata"]["name"], job["metadata"]["name"]);
  EXPECT_EQ(secret["stringData"]["token"], "abl_secret\n");
}

TEST(KubernetesFleet, ReadsTheExampleThatIsDelivered) {
  const std::string file = ABLATE_SOURCE_DIR "/deploy/kubernetes/fleet.yaml";
  const FleetConfig fleet = read_fleet_file(read_file(file), file);
  EXPECT_EQ(fleet.queues.at(0).kind, LauncherKind::kKubernetes);
  EXPECT_EQ(fleet.queues.at(0).volumes.at("ablate-work"), "/work");
}

}  // namespace
}  // namespace abl::launchers
