// SPDX-License-Identifier: Apache-2.0
#include "scheduler/table_stream.h"

#include <algorithm>

#include "scheduler/status.h"

namespace abl::scheduler {
namespace {

constexpr std::uint32_t kRowsAtOnce = 10'000;         // some megabytes
constexpr std::uint32_t kWithStatisticsAtOnce = 200;  // tens of milliseconds

}  // namespace

TableStream::TableStream(storage::ReadPool& pool, Lane& lane, views::TableCache& tables,
                         const ablate::v1::SweepRequest& request)
    : pool_{pool},
      lane_{lane},
      tables_{tables},
      sweep_{request.sweep()},
      rest_{.first = request.first(), .with_statistics = request.statistics()},
      long_form_{request.long_form()},
      pivot_{request.pivot().begin(), request.pivot().end()} {
  if (request.count() > 0) rest_.count = request.count();
}

grpc::ServerWriteReactor<ablate::v1::Table>* TableStream::start() {
  auto* reactor = keep();
  if (lane_.full()) {
    finish({grpc::StatusCode::RESOURCE_EXHAUSTED, "too many requests; try again later"});
    return reactor;
  }
  auto first = [stream = std::static_pointer_cast<TableStream>(shared_from_this())](storage::Database& db) {
    const grpc::Status status = status_of([&] { stream->read(db); });
    if (!status.ok()) stream->finish(status);
  };
  lane_.post(std::move(first), stop_.get_token());
  return reactor;
}

void TableStream::read(storage::Database& db) {
  room_.resize(storage::ReadPool::Room::kToBegin);  // before it is there
  table_ = pivot_.empty() ? tables_.table(db, sweep_, long_form_) : tables_.pivoted(db, sweep_, pivot_);
  room_.resize(table_->bytes() + storage::ReadPool::Room::kToBegin);
  send_next();
}

/// One at a time: the first by the pool, each other when the one before has left.
void TableStream::send_next() {
  const std::uint32_t count =
      std::min(rest_.count, rest_.with_statistics ? kWithStatisticsAtOnce : kRowsAtOnce);
  ablate::v1::Table part =
      table_->part({.first = rest_.first, .count = count, .with_statistics = rest_.with_statistics});
  const bool last = part.next() == 0 || count == rest_.count;
  rest_.first += count;
  rest_.count = last ? 0 : rest_.count - count;
  if (last) table_.reset();
  send(std::move(part));  // from here on another thread may be here
  if (last) finish(grpc::Status::OK);
}

void TableStream::on_sent() {
  if (rest_.count > 0 && !ended()) send_next();
}

void TableStream::OnCancel() {
  stop_.request_stop();
  finish(grpc::Status::CANCELLED);
}

}  // namespace abl::scheduler
