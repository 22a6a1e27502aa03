// SPDX-License-Identifier: Apache-2.0
#include "launchers/fleet_file.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "base/file.h"

namespace abl::launchers {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;

/// What is wrong with a queue that has these lines beside what it must have.
std::string problem(const std::string& lines) {
  try {
    read_fleet_file(
        "scheduler: head:7071\nqueues:\n  h100:\n    launcher: slurm\n    workers: {min: 0, max: 8}\n"
        "    time_limit: 8h\n    program: /opt/ablate-worker\n    home: /shared/workers\n" +
            lines,
        "fleet.yaml");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kInvalidArgument);
    return error.what();
  }
  return {};
}

TEST(FleetFile, ReadsTheExampleThatIsDelivered) {
  const std::string file = ABLATE_SOURCE_DIR "/deploy/fleet-slurm.yaml";
  const FleetConfig fleet = read_fleet_file(read_file(file), file);
  ASSERT_EQ(fleet.queues.size(), 2U);
  const QueueConfig& gpus = fleet.queues.front();
  EXPECT_EQ(gpus.name, "h100");
  EXPECT_EQ(gpus.max_workers, 8);
  EXPECT_EQ(gpus.slots, gpus.gpus);
  EXPECT_EQ(gpus.time_limit, std::chrono::hours{8});
  EXPECT_THAT(gpus.labels, ElementsAre(Pair("gpu", "h100")));
  EXPECT_EQ(gpus.gres, "gpu:h100:4");
  EXPECT_TRUE(gpus.max_gpu_hours.has_value());
}

TEST(FleetFile, ReadsTheExampleOfMachinesThatSshReaches) {
  const std::string file = ABLATE_SOURCE_DIR "/deploy/fleet-ssh.yaml";
  const FleetConfig fleet = read_fleet_file(read_file(file), file);
  ASSERT_EQ(fleet.queues.size(), 2U);
  const QueueConfig& desk = fleet.queues.front();
  EXPECT_EQ(desk.kind, LauncherKind::kSsh);
  EXPECT_EQ(desk.max_workers, 3) << "one for each machine";
  EXPECT_EQ(desk.backlog, 3);
  EXPECT_EQ(desk.time_limit.count(), 0) << "none";
  EXPECT_EQ(desk.bundle, ABLATE_SOURCE_DIR "/deploy/out/ablate-worker.tar.gz") << "beside the fleet file";
  EXPECT_EQ(desk.hosts.at(2).name, "ada@w3");
  EXPECT_THAT(desk.hosts.at(2).data, ElementsAre(Pair("cifar10", "/scratch/cifar10")));
  EXPECT_THAT(desk.hosts.at(0).data, ElementsAre(Pair("cifar10", "/data/cifar10")));
  EXPECT_EQ(fleet.queues.back().program, "/opt/ablate/bin/ablate-worker");
  EXPECT_EQ(fleet.queues.back().hosts.at(0).slots, 4);
}

/// What is wrong with a queue of ssh that has these lines.
std::string ssh_problem(const std::string& lines) {
  try {
    read_fleet_file("scheduler: a:1\nqueues:\n  desk:\n    launcher: ssh\n" + lines, "f");
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

TEST(FleetFile, SaysWhatIsWrongWithMachines) {
  const std::string program = "    program: /p\n";
  EXPECT_EQ(ssh_problem(program + "    hosts: [w1]\n"), "");
  EXPECT_THAT(ssh_problem("    hosts: [w1]\n"), HasSubstr("queues.desk: expected either bundle"));
  EXPECT_THAT(ssh_problem(program + "    bundle: b\n    hosts: [w1]\n"), HasSubstr("expected either bundle"));
  EXPECT_THAT(ssh_problem(program), HasSubstr("queues.desk.hosts: missing"));
  EXPECT_THAT(ssh_problem(program + "    hosts: [-oProxyCommand=x]\n"),
              HasSubstr("invalid machine '-oProxyCommand=x'"));
  EXPECT_THAT(ssh_problem(program + "    hosts: [\"w1; reboot\"]\n"), HasSubstr("invalid machine"));
  EXPECT_THAT(ssh_problem(program + "    hosts: [w1, w1]\n"), HasSubstr("w1 is there twice"));
  EXPECT_THAT(ssh_problem(program + "    hosts: [w1]\n    workers: 2\n"),
              HasSubstr("expected at most 1, one for each of hosts; got 2"));
  EXPECT_THAT(ssh_problem(program + "    hosts: [{host: w1, data: {a: /x}}]\n"),
              HasSubstr("queues.desk.hosts.1.data.a: the queue's data has no 'a'"));
  EXPECT_THAT(ssh_problem(program + "    hosts: [w1]\n    home: ~/ablate\n"),
              HasSubstr("without '~' and '..'"));
  EXPECT_THAT(ssh_problem(program + "    hosts: [w1]\n    home: a/../../b\n"),
              HasSubstr("without '~' and '..'"));
  EXPECT_THAT(ssh_problem(program + "    hosts: [w1]\n    gpus: 1\n    max_gpu_hours: 3\n"),
              HasSubstr("expected time_limit as well"));
  EXPECT_THAT(problem("    hosts: [w1]\n"),
              HasSubstr("queues.h100.hosts: only for launcher: ssh; this is slurm"));
}

TEST(FleetFile, NamesThePlaceOfAProblemWhatWasExpectedAndTheNearestSpelling) {
  EXPECT_THAT(problem("    backlogg: 2\n"),
              HasSubstr("fleet.yaml:9:5: queues.h100.backlogg: unknown key; expected"));
  EXPECT_THAT(problem("    backlogg: 2\n"), HasSubstr("did you mean 'backlog'?"));
  EXPECT_EQ(problem("    backlog: 0\n"),
            "fleet.yaml:9:14: queues.h100.backlog: expected a whole number, 1 to 1000; got '0'");
  EXPECT_THAT(problem("    idle_timeout: 5 minutes\n"),
              HasSubstr("9:19: queues.h100.idle_timeout: invalid duration"));
  EXPECT_THAT(problem("    memory: lots\n"), HasSubstr("invalid size 'lots'; expected such as 64G"));
  EXPECT_THAT(problem("    image: ablate\n"),
              HasSubstr("queues.h100.image: only for launcher: kubernetes; this is slurm"));
  EXPECT_THAT(problem("    min_utilisation: 2\n"), HasSubstr("expected a number, 0 to 1; got '2'"));
}

TEST(FleetFile, NamesTheAuthorityOfTheSchedulersCertificate) {
  const auto ca = [](const std::string& value) {
    return read_fleet_file("scheduler: a:1\nca: " + value +
                               "\nqueues: {a: {launcher: slurm, workers: 2, program: /p, home: /h, "
                               "time_limit: 1h, start_deadline: 2d}}\n",
                           "f");
  };
  EXPECT_EQ(ca("/etc/ca.crt").ca, "/etc/ca.crt");
  EXPECT_EQ(ca("system").ca, kSystem);
  EXPECT_EQ(ca("system").queues.at(0).start_deadline, std::chrono::hours{48});
  EXPECT_THROW(ca("ca.crt"), Error) << "relative to what?";
}

TEST(FleetFile, RequiresATimeLimit) {
  try {
    read_fleet_file("scheduler: a:1\nqueues: {a: {launcher: slurm, workers: 2, program: /p, home: /h}}\n",
                    "f");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "f:2:13: queues.a.time_limit: missing; expected the time limit of a worker, such as 8h");
  }
}

TEST(FleetFile, RefusesALauncherThatThereIsNot) {
  try {
    read_fleet_file(
        "scheduler: a:1\nqueues: {a: {launcher: slrum, workers: 2, time_limit: 1h, program: /p, home: /h}}\n",
        "f");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("unknown value 'slrum'; expected slurm, kubernetes or ssh; did you mean 'slurm'?"));
  }
}

TEST(FleetFile, SaysOfALauncherThatThereIsNotOnlyThis) {
  for (const char* launcher : {"launcher: shh, ", ""}) try {
      read_fleet_file(
          std::string{"scheduler: a:1\nqueues: {a: {"} + launcher + "hosts: [w1], bundle: b.tar.gz}}\n", "f");
      FAIL();
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("queues.a.launcher: "));
      EXPECT_THAT(error.what(), Not(HasSubstr("\n"))) << "what else is missing depends on it";
    }
}

TEST(FleetFile, PassesOnlyFlagsThroughThatTheLauncherDoesNotSetItself) {
  EXPECT_EQ(problem("    arguments: [--exclusive, --nice=100]\n"), "");
  EXPECT_THAT(problem("    arguments: [--time=3]\n"),
              HasSubstr("'--time=3': expected as 'time_limit:' of the queue"));
  EXPECT_THAT(problem("    arguments: [--wrap=reboot]\n"), HasSubstr("the launcher sets this flag itself"));
  EXPECT_THAT(problem("    arguments: [-a]\n"), HasSubstr("expected a long flag"));
  EXPECT_THAT(problem("    arguments: [/bin/sh]\n"), HasSubstr("expected a long flag"));
}

TEST(FleetFile, RefusesWhatWouldEndALineOrNameAnotherFolder) {
  EXPECT_THAT(problem("    partition: \"gpu\\nrm\"\n"), HasSubstr("a control character in it"));
  EXPECT_THAT(problem("    data: {a: relative}\n"), HasSubstr("expected an absolute path; got 'relative'"));
}

TEST(FleetFile, RefusesNumbersThatContradictEachOther) {
  EXPECT_THAT(problem("    max_gpu_hours: 10\n"), HasSubstr("the queue's workers have no GPU"));
  EXPECT_THAT(problem("    gpus: 4\n    slots: 2\n"),
              HasSubstr("expected 4: a worker with GPUs has one slot for each"));
}

}  // namespace
}  // namespace abl::launchers
