// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "ablate/v1/sweeps.grpc.pb.h"
#include "scheduler/lane.h"
#include "scheduler/server_stream.h"
#include "storage/read_pool.h"
#include "views/table_cache.h"

namespace abl::scheduler {

/// A sweep's table as it is at one moment, or some of its rows, in parts, no faster than the reader takes
/// them.
class TableStream final
    : public ServerStream<grpc::ServerWriteReactor<ablate::v1::Table>, ablate::v1::Table> {
 public:
  /// The table is read on the lane; `pool` has room for it.
  TableStream(storage::ReadPool& pool, Lane& lane, views::TableCache& tables,
              const ablate::v1::SweepRequest& request);
  grpc::ServerWriteReactor<ablate::v1::Table>* start();

 private:
  void read(storage::Database& db);
  void send_next();
  void on_sent() override;
  void OnCancel() override;

  storage::ReadPool& pool_;
  Lane& lane_;
  views::TableCache& tables_;
  const std::string sweep_;
  views::Page rest_;  // rows that are asked for and not sent yet
  const bool long_form_;
  const std::vector<std::string> pivot_;  // factors that the reader picked
  std::shared_ptr<const views::PackedTable> table_;
  storage::ReadPool::Room room_{pool_};  // of the table and of the part on its way
  std::stop_source stop_;
};

}  // namespace abl::scheduler
