// SPDX-License-Identifier: Apache-2.0
#include "storage/depot_store.h"

#include "storage/part_store.h"
#include "tests/storage/fixtures.h"

namespace abl::storage {
namespace {

class DepotStoreTest : public StoreTest {};

TEST_F(DepotStoreTest, WhoTakesPartInARunFetchesItsDataAndBringsNothing) {
  submit(sweep_of("s", 1, 1));
  const Lease run = lease(queue().at(0), "leader");
  PartStore{db}.add({.run = run.run, .node = 1, .worker = "other", .host = "other-host", .slots = {0}});
  const DepotStore depot{db};
  EXPECT_EQ(depot.data_of(run.run, {.worker = "leader", .token = run.token}), "cifar10");
  EXPECT_EQ(depot.data_of(run.run, {.worker = "other", .token = run.token}), "cifar10");
  const auto refused = [&](const DepotStore::Holder& holder) {
    return error_of([&] { depot.data_of(run.run, holder); }).first;
  };
  EXPECT_EQ(refused({.worker = "other", .token = "guessed"}), Code::kPermissionDenied);
  EXPECT_EQ(refused({.worker = "stranger", .token = run.token}), Code::kPermissionDenied);
  const auto written = [&] { depot.written(run.run, {.worker = "other", .token = run.token}, "abc"); };
  EXPECT_EQ(error_of(written).first, Code::kPermissionDenied) << "checkpoints are the first one's";
}

}  // namespace
}  // namespace abl::storage
