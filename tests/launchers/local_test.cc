// SPDX-License-Identifier: Apache-2.0
#include "launchers/local.h"

#include <gmock/gmock.h>

namespace abl::launchers {
namespace {

using testing::ElementsAre;

const LocalOptions kOptions{.programs = "/usr/bin",
                            .home = "/home/me/.ablate",
                            .store = "/home/me/.ablate/results.db",
                            .socket = "/home/me/.ablate/run/scheduler.sock",
                            .http_port = 8571};

TEST(Local, AScheduler) {
  EXPECT_THAT(scheduler_argv(kOptions),
              ElementsAre("/usr/bin/ablate-scheduler", "--store", "/home/me/.ablate/results.db", "--listen",
                          "unix:/home/me/.ablate/run/scheduler.sock", "--http-port", "8571",
                          "--depot-limit-mib", "0"));
}

TEST(Local, AWorkerThatDecidesItself) {
  EXPECT_THAT(worker_argv(kOptions),
              ElementsAre("/usr/bin/ablate-worker", "--scheduler", "unix:/home/me/.ablate/run/scheduler.sock",
                          "--home", "/home/me/.ablate", "--runs-root", "/home/me/.ablate/runs"));
}

TEST(Local, AWorkerThatIsToldWhereThingsLie) {
  LocalOptions options = kOptions;
  options.slots = 2;
  options.threads = 4;
  options.data = {{"cifar10", "/data/../data/cifar10"}, {"mine", "photos"}};
  options.weights = {{"teacher", "/weights/t.safetensors"}};
  options.allow_commands = true;
  const auto argv = worker_argv(options);
  EXPECT_THAT((std::vector<std::string>{argv.begin() + 7, argv.end()}),
              ElementsAre("--slots", "2", "--threads", "4", "--data", "cifar10=/data/cifar10", "--data",
                          "mine=" + (std::filesystem::current_path() / "photos").string(), "--weights",
                          "teacher=/weights/t.safetensors", "--allow-commands"));
}

TEST(Local, BothLogAsThisProgramDoes) {
  LocalOptions options = kOptions;
  options.log_format = LogFormat::kJson;
  for (const auto& argv : {scheduler_argv(options), worker_argv(options)})
    EXPECT_THAT((std::vector<std::string>{argv.end() - 2, argv.end()}), ElementsAre("--log-format", "json"));
}

}  // namespace
}  // namespace abl::launchers
