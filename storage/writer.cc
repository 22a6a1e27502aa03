// SPDX-License-Identifier: Apache-2.0
#include "storage/writer.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <future>
#include <utility>
#include <vector>

#include "base/fail_point.h"
#include "base/log.h"

namespace abl::storage {

Writer::Writer(const std::filesystem::path& file, LogLimit limit)
    : db_{file, Database::Mode::kWrite},
      limit_{limit},
      patience_{limit.patience},
      thread_{[this] { run(); }} {}

void Writer::observe(Observer observer) {
  call([&](Database& db) {
    if (!observer_) db.note_touched();
    observer_ = std::move(observer);
  });
}

Writer::~Writer() {
  {
    const std::lock_guard lock{mutex_};
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
  if (const std::string why = db_.displaced(); !why.empty()) {
    log_error("{}; {}", why, rescued());
    return;
  }
  if (!db_.empty_log(limit_.patience))
    log_warning("{}: not everything could be brought into this file; its log {}-wal belongs to it, copy both",
                db_.file().string(), db_.file().filename().string());
}

void Writer::post(Job job, Done done) {
  {
    const std::lock_guard lock{mutex_};
    queue_.push_back({std::move(job), std::move(done), std::chrono::steady_clock::now()});
  }
  wake_.notify_one();
}

void Writer::post_and_wait(Job job) {
  std::promise<void> settled;
  std::exception_ptr failure;
  post(std::move(job), [&](std::exception_ptr error) {
    failure = std::move(error);  // moved all the way: this thread alone drops what it catches
    settled.set_value();
  });
  settled.get_future().get();
  if (failure) std::rethrow_exception(std::move(failure));
}

void Writer::run() {
  std::unique_lock lock{mutex_};
  for (;;) {
    wake_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    if (queue_.empty()) return;
    auto group = std::exchange(queue_, {});
    under_way_ = group.size();
    under_way_since_ = group.front().posted;
    lock.unlock();
    commit_group(std::move(group));
    shorten_log();
    lock.lock();
    under_way_ = 0;
  }
}

Writer::Backlog Writer::backlog() {
  const std::lock_guard lock{mutex_};
  const std::size_t jobs = under_way_ + queue_.size();
  if (jobs == 0) return {};
  return {jobs,
          std::chrono::steady_clock::now() - (under_way_ > 0 ? under_way_since_ : queue_.front().posted)};
}

void Writer::shorten_log() {
  if (db_.log_bytes() < limit_.bytes) return;
  const auto wait = patience_.at(std::chrono::steady_clock::now());
  if (!wait) return;
  if (db_.empty_log(*wait)) return patience_.succeeded();
  if (!patience_.failed(std::chrono::steady_clock::now())) return;
  log_warning("{}-wal has {} MiB: somebody has been reading the same state for more than {} ms",
              db_.file().string(), db_.log_bytes() >> 20, limit_.patience.count());
}

/// Copies, once, what the connection still reads, and says where it is.
const std::string& Writer::rescued() {
  if (rescued_) return *rescued_;
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  const std::filesystem::path copy = fmt::format("{}.rescued-{:%Y%m%d-%H%M%S}", db_.file().string(), utc);
  try {
    db_.copy_to(copy);
    rescued_ = fmt::format("its contents were saved to {}, which can replace it", copy.string());
  } catch (const std::exception& error) {
    rescued_ = fmt::format("its contents could not be saved: {} (try 'ablate export')", error.what());
  }
  return *rescued_;
}

void Writer::commit_group(std::deque<Entry> group) {
  std::vector<std::exception_ptr> errors(group.size());
  figures_.jobs.add(group.size());
  try {
    if (const std::string why = db_.displaced(); !why.empty())
      throw Error{Code::kDataLoss, why + ": nothing is being stored; " + rescued() +
                                       "; stop the scheduler and start it again"};
    rescued_.reset();  // the file is back
    const auto begun = std::chrono::steady_clock::now();
    Transaction transaction{db_, Transaction::kImmediate};
    for (std::size_t i = 0; i < group.size(); ++i) {
      if (group.size() == 1) {  // it is undone with its transaction
        group[i].job(db_);
        break;
      }
      try {
        Transaction job{db_, Transaction::kSavepoint};
        group[i].job(db_);
        job.commit();
      } catch (...) {
        errors[i] = std::current_exception();
        if (!db_.in_transaction()) throw;  // a full disk has undone the whole group
      }
    }
    fail_point(FailPoint::kBeforeCommit);
    transaction.commit();
    figures_.seconds.add(std::chrono::steady_clock::now() - begun);
    figures_.jobs_a_commit.add(static_cast<double>(group.size()));
    figures_.commits.add();
  } catch (const Error& error) {  // one object for each job: their threads share nothing
    figures_.failed.add();
    for (auto& failure : errors) failure = std::make_exception_ptr(Error{error.code(), error.what()});
  } catch (...) {
    figures_.failed.add();
    errors.assign(group.size(), std::current_exception());
  }
  fail_point(FailPoint::kAfterCommit);
  db_.end_statements();  // of jobs that threw halfway
  const bool committed = std::ranges::any_of(errors, [](const auto& error) { return !error; });
  if (Touched touched = db_.take_touched(); observer_ && committed && !touched.empty())
    observer_(db_, std::move(touched));
  for (std::size_t i = 0; i < group.size(); ++i)
    if (group[i].done) group[i].done(std::move(errors[i]));
}

}  // namespace abl::storage
