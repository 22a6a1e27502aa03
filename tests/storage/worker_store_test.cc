// SPDX-License-Identifier: Apache-2.0
#include "storage/worker_store.h"

#include "tests/storage/fixtures.h"

namespace abl::storage {
namespace {

using namespace std::chrono_literals;

class WorkerStoreTest : public StoreTest {
 protected:
  WorkerStore workers{db};
};

TEST_F(WorkerStoreTest, WorkerIsListedAsItLastSaid) {
  workers.upsert({.name = "b", .host = "old", .connected = true, .last_heartbeat = now});
  workers.upsert({.name = "a",
                  .host = "h",
                  .slots_json = "[]",
                  .data_json = "[\"shapes\"]",
                  .weights_json = "[\"regnet\"]",
                  .allows_commands = true});
  workers.upsert({.name = "b",
                  .host = "new",
                  .instance = "i2",
                  .version = "0.1",
                  .result_version = 3,
                  .connected = true,
                  .last_heartbeat = now});
  const auto list = workers.list();
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0].name, "a");
  EXPECT_TRUE(list[0].allows_commands);
  EXPECT_EQ(list[0].data_json, "[\"shapes\"]");
  EXPECT_EQ(list[0].weights_json, "[\"regnet\"]");
  EXPECT_EQ(list[1].host, "new");
  EXPECT_EQ(list[1].result_version, 3);
}

TEST_F(WorkerStoreTest, HeartbeatAndConnectionAreTracked) {
  workers.upsert({.name = "a", .connected = true, .last_heartbeat = now});
  workers.heartbeat("a", now + 5s);
  EXPECT_EQ(workers.list()[0].last_heartbeat, now + 5s);
  workers.set_connected("a", false);
  EXPECT_FALSE(workers.list()[0].connected);
  workers.set_connected("a", true);
  workers.disconnect_all();
  EXPECT_FALSE(workers.list()[0].connected);
}

}  // namespace
}  // namespace abl::storage
