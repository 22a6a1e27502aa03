// SPDX-License-Identifier: Apache-2.0
#include "scheduler/services.h"

#include <algorithm>
#include <optional>
#include <stop_token>
#include <utility>

#include "scheduler/answer.h"
#include "scheduler/feed_stream.h"
#include "scheduler/slow_answer.h"
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
  LogStream(storage::ReadPool& pool, ChangeFeed& feed, const ablate::v1::TailLogRequest& request)
      : FeedStream{pool, feed}, run_{request.run()}, follow_{request.follow()}, offset_{request.offset()} {}

 private:
  bool concerns(const std::set<storage::Change>& changes) const override {
    return std::any_of(changes.begin(), changes.end(),
                       [this](const storage::Change& change) { return change.run == run_; });
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

/// Every metric point of a sweep, no faster than the reader takes it: the next block is read when the one
/// before has left, so that a reader who stops holds no thread.
class ExportStream final : public ServerStream<grpc::ServerWriteReactor<ExportBlock>, ExportBlock> {
 public:
  ExportStream(Lane& lane, std::string sweep) : lane_{lane}, sweep_{std::move(sweep)} {}

  auto* start() {
    auto* reactor = keep();
    read_next();
    return reactor;
  }

 private:
  void read_next() {
    auto read = [stream = std::static_pointer_cast<ExportStream>(shared_from_this())](storage::Database& db) {
      std::optional<ExportBlock> block;
      const grpc::Status status = status_of([&] { block = stream->next(db); });
      if (block)
        stream->send(*std::move(block));
      else
        stream->finish(status);
    };
    lane_.post(std::move(read), stop_.get_token());
  }
  std::optional<ExportBlock> next(storage::Database& db) {
    if (!blocks_) blocks_.emplace(db, sweep_);
    return blocks_->next(db);
  }
  void on_sent() override {
    if (!ended()) read_next();
  }
  void OnCancel() override {
    stop_.request_stop();
    finish(grpc::Status::CANCELLED);
  }

  Lane& lane_;
  const std::string sweep_;
  std::optional<views::PointBlocks> blocks_;
  std::stop_source stop_;
};

}  // namespace

grpc::ServerUnaryReactor* RunsService::ListRuns(Context*, const ablate::v1::ListRunsRequest* request,
                                                ablate::v1::ListRunsResponse* response) {
  return slow_answer(pool_, slow_, response,
                     [request](storage::Database& db) { return views::list_runs(db, *request); });
}

grpc::ServerUnaryReactor* RunsService::GetRun(Context*, const ablate::v1::RunRequest* request,
                                              ablate::v1::RunDetail* response) {
  return answer(pool_, response,
                [request](storage::Database& db) { return views::run_detail(db, request->run()); });
}

grpc::ServerUnaryReactor* RunsService::GetMetrics(Context*, const ablate::v1::GetMetricsRequest* request,
                                                  ablate::v1::GetMetricsResponse* response) {
  return slow_answer(pool_, slow_, response,
                     [request](storage::Database& db) { return views::metrics(db, *request); });
}

grpc::ServerWriteReactor<LogText>* RunsService::TailLog(Context*, const ablate::v1::TailLogRequest* request) {
  return std::make_shared<LogStream>(pool_, feed_, *request)->start();
}

grpc::ServerWriteReactor<ExportBlock>* RunsService::Export(Context*,
                                                           const ablate::v1::SweepRequest* request) {
  return std::make_shared<ExportStream>(slow_, request->sweep())->start();
}

grpc::ServerUnaryReactor* RunsService::Why(Context*, const ablate::v1::WhyRequest* request,
                                           ablate::v1::WhyResponse* response) {
  return slow_answer(pool_, slow_, response,
                     [request](storage::Database& db) { return views::why(db, *request); });
}

grpc::ServerUnaryReactor* RunsService::Compare(Context*, const ablate::v1::CompareRequest* request,
                                               ablate::v1::CompareResponse* response) {
  return slow_answer(pool_, slow_, response,
                     [request](storage::Database& db) { return views::compare(db, *request); });
}

grpc::ServerUnaryReactor* RunsService::GetProbes(Context*, const ablate::v1::ProbesRequest* request,
                                                 ablate::v1::ProbesResponse* response) {
  return slow_answer(pool_, slow_, response,
                     [request](storage::Database& db) { return views::probes(db, *request); });
}

grpc::ServerUnaryReactor* RunsService::PutProbes(Context* context,
                                                 const ablate::v1::PutProbesRequest* request,
                                                 ablate::v1::ProbesResponse* response) {
  Unary* reactor = context->DefaultReactor();
  const grpc::Status status = status_of([&] {
    std::vector<views::ProbeRecord> found;
    for (const auto& probe : request->probes()) found.push_back(views::probe_record(probe));
    const storage::RunId run = request->run();
    coordinator_.put_probes(run, std::move(found), [=, this](std::exception_ptr error) {
      if (error) return reactor->Finish(to_status(error));
      pool_.post([=](storage::Database& db) {
        reactor->Finish(status_of([&] {
          ablate::v1::ProbesRequest stored;
          stored.set_run(run);
          *response = views::probes(db, stored);
        }));
      });
    });
  });
  if (!status.ok()) reactor->Finish(status);
  return reactor;
}

}  // namespace abl::scheduler
