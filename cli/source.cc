// SPDX-License-Identifier: Apache-2.0
#include "cli/source.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/new_file.h"
#include "cli/client.h"
#include "cli/format.h"
#include "cli/store_report.h"
#include "config/document/result_version.h"
#include "storage/archive.h"
#include "storage/database.h"
#include "storage/due_versions.h"
#include "storage/metric_store.h"
#include "storage/sweep_store.h"
#include "storage/trial_store.h"
#include "storage/up_to_date.h"
#include "views/comparison.h"
#include "views/convert.h"
#include "views/picked_pivot.h"
#include "views/tuning.h"
#include "views/views.h"

namespace abl::cli {
namespace {

/// Whether a program takes connections there: the file of one that was killed is left behind.
bool takes_connections(const std::filesystem::path& file) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = file.string();
  if (path.size() >= sizeof address.sun_path) return false;
  path.copy(address.sun_path, path.size());
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  const bool taken = ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  ::close(fd);
  return taken;
}

using namespace ablate::v1;
using namespace std::chrono_literals;

template <class Request>
Request named(const std::string& sweep) {
  Request request;
  request.set_sweep(sweep);
  return request;
}

void move_all(auto& from, auto& to) {
  for (auto& item : from) to.Add(std::move(item));
}

GetMetricsRequest metrics_request(std::uint32_t run) {
  GetMetricsRequest request;
  request.add_runs(run);
  return request;
}

class SchedulerSource final : public Source {
 public:
  explicit SchedulerSource(const Context& context) : context_{context}, client_{context} {}

  ListSweepsResponse list_sweeps() override {
    ListSweepsRequest request;
    ListSweepsResponse all = client_.call(&Sweeps::Stub::ListSweeps, request);
    while (!all.next().empty()) {
      request.set_after(all.next());
      ListSweepsResponse page = client_.call(&Sweeps::Stub::ListSweeps, request);
      move_all(*page.mutable_sweeps(), *all.mutable_sweeps());
      all.set_next(page.next());
    }
    all.set_left_out(0);
    return all;
  }
  SweepDetail rows(const std::string& name, std::uint32_t first, std::uint32_t trials) override {
    SweepRequest request = named<SweepRequest>(name);
    request.set_first(first);
    request.set_trials(trials);
    return client_.call(&Sweeps::Stub::GetSweep, request);
  }
  Table table(const std::string& name, const TableAsked& asked) override {
    SweepRequest request = named<SweepRequest>(name);
    request.set_count(asked.rows);
    request.set_statistics(asked.statistics);
    request.set_long_form(asked.long_form);
    request.mutable_pivot()->Assign(asked.pivot.begin(), asked.pivot.end());
    Table all;
    const std::function<void(const Table&)> add = [&](const Table& part) {
      if (all.rows().empty())
        all = part;
      else
        all.mutable_rows()->MergeFrom(part.rows());
    };
    client_.stream(&Sweeps::Stub::GetTable, request, add, 60s);
    if (asked.rows == 0) all.set_left_out(0);
    all.set_next(0);
    return all;
  }
  ListWorkersResponse list_workers() override {
    ListWorkersRequest request;
    ListWorkersResponse all = client_.call(&Workers::Stub::ListWorkers, request);
    while (all.next() != 0) {
      request.set_first(all.next());
      ListWorkersResponse page = client_.call(&Workers::Stub::ListWorkers, request);
      move_all(*page.mutable_workers(), *all.mutable_workers());
      all.set_next(page.next());
    }
    all.set_left_out(0);
    return all;
  }

  RunDetail run(std::uint32_t run) override {
    RunRequest request;
    request.set_run(run);
    return client_.call(&Runs::Stub::GetRun, request);
  }
  GetMetricsResponse metrics(std::uint32_t run) override {
    return client_.call(&Runs::Stub::GetMetrics, metrics_request(run));
  }
  SweepText sweep_text(const std::string& sweep, std::uint32_t revision) override {
    auto request = named<SweepTextRequest>(sweep);
    request.set_revision(revision);
    return client_.call(&Sweeps::Stub::GetSweepText, request);
  }
  ProvenanceResponse provenance(const std::string& sweep) override {
    return client_.call(&Sweeps::Stub::GetProvenance, named<SweepRequest>(sweep));
  }
  TuningResponse tuning(const std::string& sweep) override {
    auto request = named<SweepRequest>(sweep);
    TuningResponse all = client_.call(&Sweeps::Stub::GetTuning, request);
    while (all.next() != 0) {
      request.set_first(all.next());
      TuningResponse page = client_.call(&Sweeps::Stub::GetTuning, request);
      views::append_points(page, all);
    }
    return all;
  }
  Retention retention() override { return client_.call(&Keeping::Stub::GetRetention, RetentionRequest{}); }
  WhyResponse why(const WhyRequest& request) override { return client_.call(&Runs::Stub::Why, request, 60s); }
  CompareResponse compare(const CompareRequest& request) override {
    return client_.call(&Runs::Stub::Compare, request, 60s);
  }
  ProbesResponse probes(const ProbesRequest& request) override {
    return client_.call(&Runs::Stub::GetProbes, request, 60s);
  }
  void put_probes(const PutProbesRequest& request) override {
    client_.call(&Runs::Stub::PutProbes, request, 60s);
  }

  void log(std::uint32_t run, bool follow, const std::function<void(const LogText&)>& sink) override {
    TailLogRequest request;
    request.set_run(run);
    request.set_follow(follow);
    with_reconnection(
        [&](bool& progress) {
          const std::function<void(const LogText&)> pass_on = [&](const LogText& piece) {
            progress = true;
            sink(piece);
            request.set_offset(piece.offset() + piece.text().size());  // where to go on after a break
          };
          client_.stream(&Runs::Stub::TailLog, request, pass_on, follow ? 3600s : 60s);
        },
        [&](const Error& error) { context_.note(std::string{error.what()} + "; waiting for it"); });
  }

  void export_points(const std::string& name, const std::function<void(const ExportBlock&)>& sink) override {
    client_.stream(&Runs::Stub::Export, named<SweepRequest>(name), sink, 3600s);
  }

 private:
  const Context& context_;
  Client client_;
};

class StoreSource final : public Source {
 public:
  StoreSource(const Context& context, const std::filesystem::path& file)
      : context_{context},
        file_{file},
        current_{file, std::filesystem::temp_directory_path() / ("ablate" + unfinished_ending())},
        db_{current_.file(), storage::Database::Mode::kReadOnly} {}

  bool is_older() const { return current_.is_copy(); }

  bool is_empty() { return storage::SweepStore{db_}.count() == 0; }
  std::uint32_t under_way() { return storage::TrialStore{db_}.count_under_way(); }

  int known_version() { return storage::DueVersions{db_}.known(); }

  ListSweepsResponse list_sweeps() override { return views::list_sweeps(db_); }
  SweepDetail rows(const std::string& name, std::uint32_t first, std::uint32_t trials) override {
    constexpr std::uint32_t kTrialsAtOnce = 2000;
    return views::sweep_detail(db_, name,
                               {.first = first, .most_trials = trials == 0 ? kTrialsAtOnce : trials});
  }
  Table table(const std::string& name, const TableAsked& asked) override {
    Table table = views::table(db_, name);
    if (!asked.pivot.empty())
      table = views::pivoted_by(db_, std::move(table), asked.pivot);
    else if (!asked.long_form && views::has_pivot(table))
      table = views::pivoted(table);
    if (asked.statistics) views::add_statistics(table);
    if (const auto all = static_cast<std::uint32_t>(table.rows_size()); asked.rows > 0 && all > asked.rows) {
      table.mutable_rows()->DeleteSubrange(static_cast<int>(asked.rows), static_cast<int>(all - asked.rows));
      table.set_left_out(all - asked.rows);
    }
    return table;
  }
  ListWorkersResponse list_workers() override { return views::list_workers(db_); }

  RunDetail run(std::uint32_t run) override { return views::run_detail(db_, run); }
  GetMetricsResponse metrics(std::uint32_t run) override { return views::metrics(db_, metrics_request(run)); }
  SweepText sweep_text(const std::string& sweep, std::uint32_t revision) override {
    return views::sweep_text(db_, sweep, revision);
  }
  ProvenanceResponse provenance(const std::string& sweep) override { return views::provenance(db_, sweep); }
  TuningResponse tuning(const std::string& sweep) override { return views::tuning(db_, sweep); }
  Retention retention() override { return views::retention(db_, file_); }
  WhyResponse why(const WhyRequest& request) override { return views::why(db_, request); }
  CompareResponse compare(const CompareRequest& request) override { return views::compare(db_, request); }
  ProbesResponse probes(const ProbesRequest& request) override { return views::probes(db_, request); }
  void put_probes(const PutProbesRequest& request) override {
    const FileLock lock = lock_store(context_, std::filesystem::absolute(file_));
    storage::Database db{file_, storage::Database::Mode::kWrite};
    storage::ProbeStore{db}.expect_ended(request.run());
    for (const auto& probe : request.probes()) {
      const auto record = views::probe_record(probe);
      storage::ProbeStore{db}.put(request.run(), record.found, record.step, record.pictures,
                                  SystemClock{}.now());
    }
  }

  void log(std::uint32_t run, bool follow, const std::function<void(const LogText&)>& sink) override {
    if (follow)
      throw Error{Code::kInvalidArgument, "--follow needs a scheduler: a results file is read once"};
    constexpr std::size_t kPiece = 1 << 20;
    const std::uint64_t end = views::run_detail(db_, run).log_bytes();  // also says when there is no such run
    LogText piece;
    for (std::uint64_t offset = 0; offset < end; offset += piece.text().size()) {
      piece.set_offset(offset);
      piece.set_text(storage::MetricStore{db_}.log(run, offset, kPiece));
      if (piece.text().empty()) break;
      sink(piece);
    }
  }

  void export_points(const std::string& name, const std::function<void(const ExportBlock&)>& sink) override {
    if (const auto archive = storage::archive_kind(db_);
        archive && archive->points != storage::KeptPoints::kAll)
      context_.note(archive->points == storage::KeptPoints::kNone
                        ? "this archive has no metric points: only their summaries, of which tables are made"
                        : fmt::format("this archive's curves are thinned to {} points; tables are of all",
                                      storage::ArchiveOptions::kThinTo));
    views::export_points(db_, name, sink);
  }

 private:
  const Context& context_;
  const std::filesystem::path file_;
  storage::UpToDate current_;  // an older file is read from a copy that is brought up to date
  storage::Database db_;
};

/// A results file whose marks of results made before a correction are those of another release.
std::unique_ptr<StoreSource> open_store(const Context& context, const std::filesystem::path& file) {
  auto source = std::make_unique<StoreSource>(context, file);
  if (source->is_older())
    context.note(
        fmt::format("{} is of an older version: read from a copy that was brought up to date, the file stays "
                    "as it is",
                    file.string()));
  if (const int known = source->known_version(); known != 0 && known != config::newest_result_version())
    context.note(fmt::format(
        "a scheduler of another release had {} last: it knows result versions up to {}, this one up "
        "to {}, so marks of results made before a correction may be missing; start a scheduler on it once",
        file.string(), known, config::newest_result_version()));
  if (source->is_empty() && !context.store_flag.empty())
    context.note(fmt::format(
        "{0} has no sweeps. If it was copied while in use, the newest results are still in the original's "
        "-wal file: copy it with sqlite3 results.db \".backup copy.db\"",
        file.string()));
  return source;
}

}  // namespace

SweepDetail Source::sweep(const std::string& name) {
  SweepDetail all = rows(name, 0);
  while (all.next() != 0) {
    SweepDetail page = rows(name, all.next());
    move_all(*page.mutable_trials(), *all.mutable_trials());
    all.set_next(page.next());
  }
  all.set_left_out(0);
  return all;
}

std::unique_ptr<Source> open_source(const Context& context) {
  if (!context.store_flag.empty()) return open_store(context, context.store_flag);
  const bool is_ours = context.scheduler() == "unix:" + context.socket().string();
  if (is_ours && std::filesystem::exists(context.default_store()) && !takes_connections(context.socket())) {
    auto source = open_store(context, context.default_store());
    const std::uint32_t under_way = source->under_way();
    context.note(fmt::format("no scheduler runs here: read from {}{}", context.default_store().string(),
                             under_way == 0
                                 ? ""
                                 : fmt::format("; {} {} running when the scheduler stopped",
                                               plural(under_way, "trial"), under_way == 1 ? "was" : "were")));
    return source;
  }
  return std::make_unique<SchedulerSource>(context);
}

}  // namespace abl::cli
