// SPDX-License-Identifier: Apache-2.0
#include "scheduler/runs_service.h"

#include <algorithm>
#include <condition_variable>

#include "scheduler/answer.h"
#include "scheduler/feed_stream.h"
#include "storage/metric_store.h"
#include "storage/trial_store.h"
#include "views/views.h"

namespace abl::scheduler {
namespace {

using ablate::v1::ExportBlock;
using ablate::v1::LogText;

constexpr std::size_t kLogChunkBytes = 64 << 10;

/// A run's log from an offset on; with `follow`, until the run has ended.
class LogStream final : public FeedStream<LogText> {
 public:
  LogStream(ReadPool& pool, ChangeFeed& feed, const ablate::v1::TailLogRequest& request)
      : FeedStream{pool, feed}, run_{request.run()}, follow_{request.follow()}, offset_{request.offset()} {}

 private:
  bool concerns(const std::set<Change>& changes) const override {
    return std::any_of(changes.begin(), changes.end(),
                       [this](const Change& change) { return change.run == run_; });
  }

  bool look(storage::Database& db) override {
    // its state first: what it wrote until its end is there when the end is seen
    const storage::TrialStore trials{db};
    trials.run(run_);  // throws kNotFound
    const bool ended = !trials.under_way(run_);
    std::string text = storage::MetricStore{db}.log(run_, offset_, kLogChunkBytes);
    if (text.empty()) return ended || !follow_;
    LogText chunk;
    chunk.set_offset(offset_);
    offset_ += text.size();
    chunk.set_text(std::move(text));
    send(std::move(chunk));
    wake();  // there may be more: the next look finds out
    return false;
  }

  const storage::RunId run_;
  const bool follow_;
  std::uint64_t offset_;
};

/// Every metric point of a sweep, no faster than the reader takes it.
class ExportStream final : public ServerStream<grpc::ServerWriteReactor<ExportBlock>, ExportBlock> {
 public:
  auto* start(ReadPool& pool, const std::string& sweep) {
    auto* reactor = keep();
    pool.post(
        [stream = std::static_pointer_cast<ExportStream>(shared_from_this()), sweep](storage::Database& db) {
          stream->finish(status_of([&] {
            views::export_points(db, sweep, [&](const ExportBlock& block) {
              stream->wait_for_room();
              stream->send(block);
            });
          }));
        });
    return reactor;
  }

 private:
  static constexpr std::size_t kMaxUnsent = 16;

  /// Throws: Error{kCancelled} when nobody reads any more.
  void wait_for_room() {
    std::unique_lock lock{mutex_};
    room_.wait(lock, [this] { return cancelled_ || unsent() < kMaxUnsent; });
    if (cancelled_) throw Error{Code::kCancelled, "the export was cancelled"};
  }
  void on_sent() override {
    changed([] {});
  }
  void OnCancel() override {
    changed([this] { cancelled_ = true; });
  }
  template <class Change>
  void changed(Change change) {
    {
      const std::lock_guard lock{mutex_};
      change();
    }
    room_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable room_;
  bool cancelled_ = false;
};

}  // namespace

grpc::ServerUnaryReactor* RunsService::ListRuns(Context* context, const ablate::v1::ListRunsRequest* request,
                                                ablate::v1::ListRunsResponse* response) {
  return answer(context, response, pool_,
                [request](storage::Database& db) { return views::list_runs(db, *request); });
}

grpc::ServerUnaryReactor* RunsService::GetRun(Context* context, const ablate::v1::RunRequest* request,
                                              ablate::v1::RunDetail* response) {
  return answer(context, response, pool_,
                [request](storage::Database& db) { return views::run_detail(db, request->run()); });
}

grpc::ServerUnaryReactor* RunsService::GetMetrics(Context* context,
                                                  const ablate::v1::GetMetricsRequest* request,
                                                  ablate::v1::GetMetricsResponse* response) {
  return answer(context, response, pool_,
                [request](storage::Database& db) { return views::metrics(db, *request); });
}

grpc::ServerWriteReactor<LogText>* RunsService::TailLog(Context*, const ablate::v1::TailLogRequest* request) {
  return std::make_shared<LogStream>(pool_, feed_, *request)->start();
}

grpc::ServerWriteReactor<ExportBlock>* RunsService::Export(Context*,
                                                           const ablate::v1::SweepRequest* request) {
  return std::make_shared<ExportStream>()->start(exports_, request->sweep());
}

}  // namespace abl::scheduler
