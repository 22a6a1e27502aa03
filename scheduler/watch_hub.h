// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ablate/v1/sweeps.pb.h"
#include "scheduler/change_feed.h"
#include "scheduler/coordinator.h"
#include "scheduler/lane.h"
#include "storage/sweep_store.h"
#include "views/table_cache.h"

namespace abl::scheduler {

class WatchHub;

/// How far one reader is with what is said of a sweep.
struct WatchPlace {
  std::uint64_t number = 0;  ///< of the last message that he has
  bool beginning = true;     ///< pages of a beginning follow
  bool begun = false;        ///< he has the first of them
  std::uint32_t row = 0;     ///< of the next of them
};

/// A sweep that somebody watches, once for all who do. What is said of it are messages with ever higher
/// numbers, made once and sent to everybody as the same bytes; the newest are kept, and each reader takes one
/// after the other, at his own pace. Who begins, or is so slow that what he lacks is no longer kept, gets
/// every trial page by page.
class WatchedSweep {
 public:
  WatchedSweep(WatchHub& hub, std::string name);
  ~WatchedSweep();
  WatchedSweep(const WatchedSweep&) = delete;
  WatchedSweep& operator=(const WatchedSweep&) = delete;

  /// What comes next for a reader: a message, or the end, or neither, until he is woken.
  struct Next {
    std::optional<grpc::ByteBuffer> message;
    std::optional<grpc::Status> end;
    bool wanted = false;  ///< something has to be read for him: `WatchHub::request`
  };
  /// Thread: any, one at a time for a place.
  Next next(WatchPlace& place);
  /// Where a reader goes on who had a message of this number, where what followed is kept.
  WatchPlace resume(std::uint64_t number);

  /// Somebody who is told when there may be more for him. Thread: of `woken`, any.
  class Reader {
   public:
    virtual ~Reader() = default;
    virtual void woken() = 0;
  };
  void add(std::weak_ptr<Reader> reader);
  std::size_t readers() const;

 private:
  friend class WatchHub;
  using Bytes = std::string;  // a part of a SweepProgress; parts, one behind the other, are a message as well
  struct Message {
    std::uint64_t number = 0;
    grpc::ByteBuffer bytes;
    std::size_t size = 0;
  };
  /// Some rows as they stood after a message.
  struct Page {
    std::uint64_t number = 0;
    std::uint32_t next = 0;  // row; 0: there is none
    std::size_t size = 0;
    grpc::Slice trials;
  };
  /// A trial of a row as it was last said.
  struct Seen {
    std::size_t hash = 0;  // 0: not said yet
    const std::string* own_reason =
        nullptr;  // why it waits, where that is of it alone; a key of `own_reasons_`
    std::uint32_t shape = 0;
    bool waits = false;
  };

  /// What changed, as far as it is known.
  struct Marks {
    bool all = false;    ///< any trial of it may have
    bool table = false;  ///< its table may have, though no trial did
    std::set<storage::RunId> runs;
    std::set<storage::TrialId> trials;
  };

  // The hub's work, of one thread at a time.
  /// One step, which is bounded: many sweeps may be watched.
  void work(storage::Database& db, Marks marks);
  void look(storage::Database& db, Marks marks);
  void begin_anew();
  Page read_page(storage::Database& db, std::uint32_t row);
  struct Noted {
    Bytes bytes;
    bool is_known = false, is_new = false;  ///< said before; and as another
  };
  Noted note(const storage::SeenClaim& claim);
  Seen& seen(const storage::ClaimRecord& claim);
  void count_waiting(const Seen& seen, int by);
  void add_waiting(storage::Database& db, ablate::v1::SweepProgress& state) const;
  Bytes state_of(storage::Database& db);
  bool read_table(storage::Database& db, bool at_once);

  void say(const std::vector<Bytes>& trials, bool with_table);
  void keep(std::uint32_t row, Page page);
  void forget_page_of(std::uint32_t row);
  void forget_pages();
  void fail(const grpc::Status& status);
  void wake();
  void beat();
  bool has_work() const;
  bool has_failed() const;
  bool table_waits() const;  ///< until it is due
  std::optional<storage::SweepId> id() const;

  WatchHub& hub_;
  const std::string name_;

  using Steady = std::chrono::steady_clock;
  // Of the work alone.
  storage::SweepRecord record_;                            // without its texts
  std::vector<Seen> seen_;                                 // by row and seed
  std::vector<Bytes> news_;                                // trials of the next messages
  std::map<std::string, std::uint32_t> own_reasons_;       // how many trials wait for what is of them alone
  std::map<std::uint32_t, std::uint32_t> waiting_shapes_;  // how many others wait, by shape
  std::optional<std::uint32_t> scan_ = 0;                  // the row from which on everything is to be read
  bool scan_again_ = false;                                // once more when it is through
  bool scanned_ = false;                                   // everything was read once
  bool is_begun_ = false;                                  // something was read
  bool table_changed_ = true;
  static constexpr std::chrono::seconds kForecastEvery{1};  // it looks at a part of all sweeps
  std::optional<ablate::v1::Forecast> forecast_;
  Steady::time_point forecast_due_{};
  Steady::time_point tables_paid_{};  // until then those that were read take the share that they may

  mutable std::mutex mutex_;
  std::vector<std::weak_ptr<Reader>> readers_;
  std::deque<Message> messages_;
  std::size_t messages_bytes_ = 0;
  std::uint64_t number_, forgotten_;     // of the newest message; up to this one they are not kept
  std::map<std::uint32_t, Page> pages_;  // by their first rows
  std::set<std::uint32_t> wanted_pages_;
  Bytes state_, table_;  // as of the last look: summary, reasons, trouble; the table, as it was said last
  bool more_to_read_ = true, table_waits_ = false, over_ = false;
  std::optional<storage::SweepId> id_;
  Steady::time_point last_said_{};
  std::optional<grpc::Status> failed_;
};

/// All sweeps that somebody watches. It hears of changes, reads each changed trial of a watched sweep once,
/// and has no work where nobody watches. Thread: any.
class WatchHub {
 public:
  struct Limits {
    std::size_t message_bytes = 8 << 20;  ///< of messages of a sweep that are kept for readers who are behind
    int table_share = 20;  ///< tables take this part of the time at most: a long one comes less often
  };
  WatchHub(Lane& lane, ChangeFeed& feed, views::TableCache& tables, const Coordinator& coordinator,
           Limits limits);

  /// The sweep of that name, for its readers: gone when they are.
  std::shared_ptr<WatchedSweep> open(const std::string& sweep);
  /// Something has to be read for a reader.
  void request();
  /// How many watch, all sweeps together.
  std::size_t readers();

  static constexpr std::chrono::seconds kSilence{5};  ///< after so much a reader hears that nothing changed

 private:
  friend class WatchedSweep;
  using Sweeps = std::vector<std::shared_ptr<WatchedSweep>>;
  using Marks = std::map<std::string, WatchedSweep::Marks>;  // by sweep: those that are to be looked at
  void changed(const std::set<storage::Change>& changes);
  void post();
  void work(storage::Database& db);
  void mark_touched(storage::Database& db, const Sweeps& sweeps, Marks& marks);
  Sweeps watched();  // under mutex_
  std::uint64_t next_number() { return ++number_; }

  Lane& lane_;
  ChangeFeed& feed_;
  views::TableCache& tables_;
  const Coordinator& coordinator_;  // says what is wrong with the store
  const Limits limits_;
  std::atomic<std::uint64_t> number_;
  std::atomic<std::size_t> pages_bytes_ = 0;  // of all sweeps
  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<WatchedSweep>> sweeps_;
  Marks marks_;
  bool posted_ = false;
  std::uint64_t looked_up_to_ = 0;         // of the log
  ChangeFeed::Subscription subscription_;  // last: it may call at once
};

}  // namespace abl::scheduler
