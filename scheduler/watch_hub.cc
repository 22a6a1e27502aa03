// SPDX-License-Identifier: Apache-2.0
#include "scheduler/watch_hub.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include "scheduler/status.h"
#include "storage/queue_store.h"
#include "storage/removal.h"
#include "storage/trial_store.h"
#include "views/convert.h"
#include "views/views.h"

namespace abl::scheduler {
namespace {

using ablate::v1::SweepProgress;

constexpr std::uint32_t kTrialsAtOnce = 2000, kRowsShown = 1000;
constexpr std::size_t kReasonsSaid = 20;
/// Tables are read for so long ahead of their share of the time: the first changes are shown at once.
constexpr std::chrono::seconds kTablesAhead{1};
/// Of a table in a message: a row may have thousands of seeds.
constexpr std::size_t kMostTableBytes = 256 << 10;
/// Pages of all sweeps, for readers who begin.
constexpr std::size_t kMostPageBytes = 64 << 20;
/// Beyond so many touched trials everything is looked at: it costs no more.
constexpr std::size_t kMostTouched = 20'000;

/// Equal for equal messages: metrics are a map, which is written in another order each time unless told.
std::string bytes_of(const google::protobuf::Message& message) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream{&bytes};
    google::protobuf::io::CodedOutputStream coded{&stream};
    coded.SetSerializationDeterministic(true);
    message.SerializeToCodedStream(&coded);
  }
  return bytes;
}

const std::string& begins() {
  static const std::string kBytes = [] {
    SweepProgress part;
    part.set_begins(true);
    return bytes_of(part);
  }();
  return kBytes;
}

const std::string& more() {
  static const std::string kBytes = [] {
    SweepProgress part;
    part.set_more(true);
    return bytes_of(part);
  }();
  return kBytes;
}

std::string numbered(std::uint64_t number) {
  SweepProgress part;
  part.set_number(number);
  return bytes_of(part);
}

/// Last values of metrics of each trial: the same whoever reads it, so that equal trials are equal messages.
std::uint32_t values_each(const storage::SweepRecord& sweep) {
  using storage::SweepStore;
  return std::max(SweepStore::kLeastValues,
                  SweepStore::kMostValues / std::clamp(sweep.trials.total(), 1u, kTrialsAtOnce));
}

/// Throws: Error{kAborted} where a sweep was removed or has another name now: another may have its name.
void check_still_there(storage::Database& db, storage::SweepId sweep, const std::string& name) {
  const auto now = storage::SweepStore{db}.name_of(sweep);
  if (now == name) return;
  if (!now || storage::Removal{db}.left(sweep)) throw Error{Code::kAborted, "sweep " + name + " was removed"};
  throw Error{Code::kAborted, "sweep " + name + " was renamed: it is now " + *now};
}

}  // namespace

// --- what readers see ---

WatchedSweep::WatchedSweep(WatchHub& hub, std::string name)
    : hub_{hub}, name_{std::move(name)}, number_{hub.next_number()}, forgotten_{number_} {}

WatchedSweep::~WatchedSweep() { forget_pages(); }

void WatchedSweep::add(std::weak_ptr<Reader> reader) {
  const std::lock_guard lock{mutex_};
  readers_.push_back(std::move(reader));
}

std::size_t WatchedSweep::readers() const {
  const std::lock_guard lock{mutex_};
  return static_cast<std::size_t>(
      std::ranges::count_if(readers_, [](const auto& reader) { return !reader.expired(); }));
}

WatchPlace WatchedSweep::resume(std::uint64_t number) {
  const std::lock_guard lock{mutex_};
  if (number < forgotten_ || number > number_) return {};
  return {.number = number, .beginning = false, .begun = true};
}

WatchedSweep::Next WatchedSweep::next(WatchPlace& place) {
  const std::lock_guard lock{mutex_};
  if (failed_) return {.end = *failed_};
  if (place.number < forgotten_) place = {.number = number_};
  Next next;
  const Page* page = nullptr;
  if (place.beginning) {
    const auto found = pages_.find(place.row);
    next.wanted = found == pages_.end();
    if (next.wanted) wanted_pages_.insert(place.row);
    // the last has the table, which is read behind it
    if (!next.wanted && (found->second.next != 0 || !table_.empty())) page = &found->second;
    if (!page && !place.begun) return next;
  }
  const auto message = std::ranges::upper_bound(messages_, place.number, {}, &Message::number);
  // what was said before the page was read comes before it: nobody sees a trial go back
  if (message != messages_.end() && (!page || (place.begun && message->number <= page->number))) {
    place.number = message->number;
    next.message = message->bytes;
    return next;
  }
  if (page) {
    std::vector<grpc::Slice> parts;
    if (!place.begun) {
      parts.emplace_back(begins());
      place.number = std::max(place.number, page->number);
    }
    parts.push_back(page->trials);
    parts.emplace_back(state_);
    if (page->next != 0) {
      parts.emplace_back(more());
    } else {
      parts.emplace_back(table_);
      parts.emplace_back(numbered(place.number));
    }
    place.begun = true;
    place.beginning = page->next != 0;
    place.row = page->next;
    next.message = grpc::ByteBuffer{parts.data(), parts.size()};
    return next;
  }
  if (over_ && !place.beginning) next.end = grpc::Status::OK;
  return next;
}

void WatchedSweep::wake() {
  std::vector<std::shared_ptr<Reader>> readers;
  {
    const std::lock_guard lock{mutex_};
    std::erase_if(readers_, [&](const std::weak_ptr<Reader>& reader) {
      auto there = reader.lock();
      if (!there) return true;
      readers.push_back(std::move(there));
      return false;
    });
  }
  for (const auto& reader : readers) reader->woken();
}

void WatchedSweep::fail(const grpc::Status& status) {
  {
    const std::lock_guard lock{mutex_};
    failed_ = status;
  }
  wake();
}

/// Messages of these trials, of the state as it is, and of the table where it is another.
void WatchedSweep::say(const std::vector<Bytes>& trials, bool with_table) {
  {
    const std::lock_guard lock{mutex_};
    std::size_t said = 0;
    do {
      const std::size_t end = std::min<std::size_t>(trials.size(), said + kTrialsAtOnce);
      Bytes bytes;
      for (; said < end; ++said) bytes += trials[said];
      number_ = hub_.next_number();
      bytes += state_ + numbered(number_);
      if (with_table && said == trials.size()) bytes += table_;
      const grpc::Slice whole{bytes};
      messages_.push_back({.number = number_, .bytes = grpc::ByteBuffer{&whole, 1}, .size = bytes.size()});
      messages_bytes_ += bytes.size();
    } while (said < trials.size());
    while (messages_.size() > 1 && messages_bytes_ > hub_.limits_.message_bytes) {
      forgotten_ = messages_.front().number;
      messages_bytes_ -= messages_.front().size;
      messages_.pop_front();
    }
    last_said_ = Steady::now();
  }
  wake();
}

/// Nothing has changed for long: that is worth a word.
void WatchedSweep::beat() {
  {
    const std::lock_guard lock{mutex_};
    if (failed_ || over_ || state_.empty() || Steady::now() - last_said_ < WatchHub::kSilence) return;
  }
  say({}, false);
}

/// What a reader wants now is kept whatever else has to go.
void WatchedSweep::keep(std::uint32_t row, Page page) {
  if (hub_.pages_bytes_ + page.size > kMostPageBytes) forget_pages();
  forget_page_of(row);
  const std::lock_guard lock{mutex_};
  wanted_pages_.erase(row);
  hub_.pages_bytes_ += page.size;
  pages_.insert_or_assign(row, std::move(page));
}

void WatchedSweep::forget_page_of(std::uint32_t row) {
  const std::lock_guard lock{mutex_};
  auto page = pages_.upper_bound(row);
  if (page == pages_.begin()) return;
  --page;
  if (page->second.next != 0 && row >= page->second.next) return;
  hub_.pages_bytes_ -= page->second.size;
  pages_.erase(page);
}

void WatchedSweep::forget_pages() {
  const std::lock_guard lock{mutex_};
  for (const auto& [row, page] : pages_) hub_.pages_bytes_ -= page.size;
  pages_.clear();
}

bool WatchedSweep::has_work() const {
  const std::lock_guard lock{mutex_};
  return !failed_ && (more_to_read_ || !wanted_pages_.empty());
}

bool WatchedSweep::has_failed() const {
  const std::lock_guard lock{mutex_};
  return failed_.has_value();
}

bool WatchedSweep::table_waits() const {
  const std::lock_guard lock{mutex_};
  return table_waits_;
}

std::optional<storage::SweepId> WatchedSweep::id() const {
  const std::lock_guard lock{mutex_};
  return id_;
}

// --- the work ---

void WatchedSweep::work(storage::Database& db, Marks marks) {
  {
    const std::lock_guard lock{mutex_};
    if (failed_) return;
  }
  grpc::Status status = status_of([&] { look(db, std::move(marks)); });
  if (status.ok()) return;
  // its table is read by its name, which may have become another's since the rest was read
  if (const auto known = id())
    if (grpc::Status gone = status_of([&] { check_still_there(db, *known, name_); }); !gone.ok())
      status = std::move(gone);
  fail(status);
}

void WatchedSweep::look(storage::Database& db, Marks marks) {
  news_.clear();
  Bytes state;
  {
    const storage::Transaction snapshot{db, storage::Transaction::kRead};
    const storage::SweepStore sweeps{db};
    if (const auto known = id()) check_still_there(db, *known, name_);
    const std::uint32_t revision = std::exchange(record_, sweeps.get_brief(name_)).revision;
    if (id() && record_.revision != revision) begin_anew();
    for (const storage::RunId run : marks.runs)
      if (const auto trial = sweeps.trial_of(run)) marks.trials.insert(*trial);
    for (const storage::TrialId trial : marks.trials)
      for (const auto& claim : sweeps.seen_claims(record_.id, trial, values_each(record_))) {
        // nobody has heard of it: it will be read, or is a seed that the sweep has got since
        if (seen(claim.claim).hash == 0 && (!scanned_ || scan_)) {
          scan_again_ = scan_again_ || static_cast<std::uint32_t>(claim.claim.row) < scan_.value_or(0);
          continue;
        }
        if (Noted noted = note(claim); noted.is_new) {
          news_.push_back(std::move(noted.bytes));
          forget_page_of(static_cast<std::uint32_t>(claim.claim.row));
        }
      }
    if (marks.all && scan_.value_or(0) > 0) scan_again_ = true;
    if (marks.all && !scan_) scan_ = 0;
    if (scan_) {
      const std::uint32_t row = *scan_;
      Page page = read_page(db, row);
      scan_.reset();
      if (page.next != 0) scan_ = page.next;
      scanned_ = scanned_ || !scan_;
      if (!scan_ && std::exchange(scan_again_, false)) scan_ = 0;
      keep(row, std::move(page));
    }
    std::optional<std::uint32_t> wanted;
    {
      const std::lock_guard lock{mutex_};
      id_ = record_.id;
      more_to_read_ = scan_.has_value();
      if (!wanted_pages_.empty()) wanted = *wanted_pages_.begin();
    }
    if (wanted) keep(*wanted, read_page(db, *wanted));
    state = state_of(db);
  }
  const bool is_complete = scanned_ && !scan_ && !record_.is_open();
  bool is_new = false;
  {
    const std::lock_guard lock{mutex_};
    if (state_.empty()) last_said_ = Steady::now();  // with the pages, which have the first state
    is_new = !state_.empty() && state_ != state;
    table_changed_ = table_changed_ || marks.table || state_ != state || !news_.empty();
    state_ = std::move(state);
    over_ = over_ && is_complete;
  }
  wake();  // a page may be there, which need not wait for the table
  const bool is_first = !std::exchange(is_begun_, true);
  const bool with_table = read_table(db, is_complete) && !is_first;
  if (is_new || with_table || !news_.empty()) say(news_, with_table);
  if (is_complete) {
    const std::lock_guard lock{mutex_};
    over_ = true;
  }
  wake();
}

/// The sweep was extended: its rows are others, and everybody gets all of them.
void WatchedSweep::begin_anew() {
  forget_pages();
  seen_.clear();
  own_reasons_.clear();
  waiting_shapes_.clear();
  forecast_due_ = {};
  scan_ = 0;
  scan_again_ = scanned_ = false;
  table_changed_ = true;
  const std::lock_guard lock{mutex_};
  number_ = forgotten_ = hub_.next_number();
  messages_.clear();
  messages_bytes_ = 0;
  table_.clear();  // the last page of a beginning waits for the new one
  over_ = false;
}

/// Some rows as they stand now. What of it was said as something else is news.
WatchedSweep::Page WatchedSweep::read_page(storage::Database& db, std::uint32_t row) {
  const auto claims = storage::SweepStore{db}.seen_claims(
      record_.id, {.first = row, .most_trials = kTrialsAtOnce, .values = values_each(record_)});
  Bytes trials;
  for (const auto& claim : claims) {
    Noted noted = note(claim);
    trials += noted.bytes;
    if (noted.is_known && noted.is_new) news_.push_back(std::move(noted.bytes));
  }
  Page page{.size = trials.size(), .trials = grpc::Slice{trials}};
  if (!claims.empty())
    if (const auto next = static_cast<std::uint32_t>(claims.back().claim.row) + 1; next < record_.rows)
      page.next = next;
  const std::lock_guard lock{mutex_};
  page.number = number_;
  return page;
}

WatchedSweep::Seen& WatchedSweep::seen(const storage::ClaimRecord& claim) {
  const std::size_t seeds = std::max(1u, record_.seeds);
  const std::size_t place =
      static_cast<std::size_t>(claim.row) * seeds + static_cast<std::size_t>(claim.seed_index);
  if (place >= seen_.size()) seen_.resize(std::max<std::size_t>(place + 1, seeds * record_.rows));
  return seen_[place];
}

/// A trial as a part of a message. Why it waits, where others wait for the same, is said of all together.
WatchedSweep::Noted WatchedSweep::note(const storage::SeenClaim& claim) {
  SweepProgress part;
  ablate::v1::TrialSummary& trial = *part.add_trials();
  trial = views::to_proto(claim.claim);
  if (claim.waits && claim.own_reason.empty()) trial.clear_reason();
  Seen& before = seen(claim.claim);
  Noted noted{.bytes = bytes_of(part), .is_known = before.hash != 0};
  Seen now{.hash = std::max<std::size_t>(1, std::hash<std::string>{}(noted.bytes)),
           .shape = claim.shape,
           .waits = claim.waits};
  noted.is_new = now.hash != before.hash;
  if (claim.waits && !claim.own_reason.empty())
    now.own_reason = &own_reasons_.try_emplace(claim.own_reason, 0).first->first;
  count_waiting(now, +1);
  count_waiting(before, -1);
  before = now;
  return noted;
}

void WatchedSweep::count_waiting(const Seen& seen, int by) {
  if (!seen.waits) return;
  const auto count = [by](auto& counts, const auto& key) {
    const auto found = counts.try_emplace(key, 0).first;
    found->second += static_cast<std::uint32_t>(by);
    if (found->second == 0) counts.erase(found);
  };
  if (seen.own_reason)
    count(own_reasons_, *seen.own_reason);
  else
    count(waiting_shapes_, seen.shape);
}

/// As the view trial_waiting has it, for a sweep that shares no trial with one that stands otherwise: by what
/// is kept of each trial, and not by a look at each.
void WatchedSweep::add_waiting(storage::Database& db, SweepProgress& state) const {
  std::map<std::string, std::uint32_t> reasons;
  const auto under_way = record_.trials.leased + record_.trials.running;
  const bool is_full = record_.max_running && under_way >= *record_.max_running;
  const bool is_tried = record_.canary && under_way > 0;
  const bool is_paused = record_.state != storage::SweepState::kActive;
  const std::string held_back = is_paused ? storage::kPausedReason : record_.spent;
  for (const auto& [reason, trials] : own_reasons_) reasons[held_back.empty() ? reason : held_back] += trials;
  for (const auto& [shape, trials] : waiting_shapes_)
    reasons[!held_back.empty() ? held_back
            : is_full          ? storage::kFullReason
            : is_tried         ? storage::kCanaryReason
                               : storage::QueueStore{db}.waiting(shape)] += trials;
  reasons.erase("");
  std::vector<std::pair<std::string, std::uint32_t>> sorted{reasons.begin(), reasons.end()};
  std::ranges::stable_sort(sorted, std::greater{}, &std::pair<std::string, std::uint32_t>::second);
  sorted.resize(std::min(sorted.size(), kReasonsSaid));
  for (const auto& [reason, trials] : sorted) {
    ablate::v1::Waiting& waiting = *state.add_waiting();
    waiting.set_reason(reason);
    waiting.set_trials(trials);
  }
}

/// What every message has.
WatchedSweep::Bytes WatchedSweep::state_of(storage::Database& db) {
  SweepProgress state;
  const auto begin = Steady::now();
  if (begin >= forecast_due_) {
    forecast_ = views::forecast_of(db, record_);
    forecast_due_ = begin + std::max<Steady::duration>(kForecastEvery,
                                                       hub_.limits_.table_share * (Steady::now() - begin));
  }
  *state.mutable_summary() = views::sweep_summary(record_, forecast_);
  state.set_trouble(hub_.coordinator_.trouble());
  if (scanned_) add_waiting(db, state);
  return bytes_of(state);
}

/// Brings the table up to date, where that is due. Returns: whether it is another.
bool WatchedSweep::read_table(storage::Database& db, bool at_once) {
  {
    const std::lock_guard lock{mutex_};
    at_once = at_once || table_.empty();
  }
  const auto begin = Steady::now();
  const bool is_due = table_changed_ && (at_once || begin + kTablesAhead >= tables_paid_);
  SweepProgress part;
  if (is_due) {
    *part.mutable_table() = hub_.tables_.table(db, name_)->part(
        {.count = kRowsShown, .with_baseline = true, .most_bytes = kMostTableBytes});
    table_changed_ = false;
    tables_paid_ = std::max(tables_paid_, begin) + hub_.limits_.table_share * (Steady::now() - begin);
  }
  Bytes table = bytes_of(part);
  const std::lock_guard lock{mutex_};
  table_waits_ = table_changed_;
  if (!is_due || table == table_) return false;
  table_ = std::move(table);
  return true;
}

// --- all of them ---

WatchHub::WatchHub(Lane& lane, ChangeFeed& feed, views::TableCache& tables, const Coordinator& coordinator,
                   Limits limits)
    : lane_{lane},
      feed_{feed},
      tables_{tables},
      coordinator_{coordinator},
      limits_{limits},
      number_{feed.log().number()},
      subscription_{feed.subscribe([this](const std::set<storage::Change>& changes) { changed(changes); })} {}

std::shared_ptr<WatchedSweep> WatchHub::open(const std::string& sweep) {
  const std::lock_guard lock{mutex_};
  if (watched().empty()) looked_up_to_ = feed_.log().number();  // before anything of it is read
  std::weak_ptr<WatchedSweep>& known = sweeps_[sweep];
  auto watched = known.lock();
  if (!watched || watched->has_failed()) {
    watched = std::make_shared<WatchedSweep>(*this, sweep);
    known = watched;
  }
  return watched;
}

WatchHub::Sweeps WatchHub::watched() {
  Sweeps sweeps;
  std::erase_if(sweeps_, [&](const auto& entry) {
    auto sweep = entry.second.lock();
    if (!sweep) return true;
    sweeps.push_back(std::move(sweep));
    return false;
  });
  return sweeps;
}

std::size_t WatchHub::readers() {
  Sweeps sweeps;
  {
    const std::lock_guard lock{mutex_};
    sweeps = watched();
  }
  std::size_t readers = 0;
  for (const auto& sweep : sweeps) readers += sweep->readers();
  return readers;
}

void WatchHub::request() {
  const std::lock_guard lock{mutex_};
  post();
}

/// Under mutex_.
void WatchHub::post() {
  if (!std::exchange(posted_, true)) lane_.post([this](storage::Database& db) { work(db); });
}

void WatchHub::changed(const std::set<storage::Change>& changes) {
  Sweeps sweeps;
  {
    const std::lock_guard lock{mutex_};
    sweeps = watched();
    if (sweeps.empty()) {
      marks_.clear();
      return;
    }
    for (const storage::Change& change : changes) {
      if (change.sweep.empty() && change.run == 0)
        for (const auto& sweep : sweeps) marks_[sweep->name_];
      if (!sweeps_.contains(change.sweep)) continue;
      WatchedSweep::Marks& marks = marks_[change.sweep];
      if (change.run != 0)
        marks.runs.insert(change.run);
      else
        marks.table = true;  // counts of its architectures, say
    }
    for (const auto& sweep : sweeps)
      if (sweep->table_waits()) marks_[sweep->name_];
    if (!marks_.empty() || feed_.log().number() != looked_up_to_) post();
  }
  for (const auto& sweep : sweeps) sweep->beat();
}

/// Finds the watched sweeps that have what commits have touched in their tables.
void WatchHub::mark_touched(storage::Database& db, const Sweeps& sweeps, Marks& marks) {
  std::uint64_t from;
  {
    const std::lock_guard lock{mutex_};
    from = looked_up_to_;
  }
  const storage::ChangeLog::Since since = feed_.log().since(from);
  const bool is_much = !since.complete || since.touched.trials.size() > kMostTouched;
  std::map<storage::SweepId, std::string> names;
  for (const auto& sweep : sweeps) {
    if (const auto id = sweep->id()) names.emplace(*id, sweep->name_);
    if (is_much) marks[sweep->name_].all = true;
  }
  if (!is_much) {
    const storage::SweepStore store{db};
    for (const storage::TrialId trial : since.touched.trials)
      for (const storage::SweepId id : store.sweeps_with(trial))
        if (const auto name = names.find(id); name != names.end()) marks[name->second].trials.insert(trial);
    for (const storage::SweepId id : since.touched.sweeps)
      if (const auto name = names.find(id); name != names.end()) marks[name->second];
  }
  const std::lock_guard lock{mutex_};
  looked_up_to_ = std::max(looked_up_to_, since.number);
}

void WatchHub::work(storage::Database& db) {
  Sweeps sweeps;
  Marks marks;
  {
    const std::lock_guard lock{mutex_};
    sweeps = watched();
    marks = std::exchange(marks_, {});
  }
  try {
    mark_touched(db, sweeps, marks);
  } catch (const std::exception&) {  // nobody may hear less than what happened
    for (const auto& sweep : sweeps) marks[sweep->name_].all = true;
  }
  for (const auto& sweep : sweeps) {
    const auto marked = marks.find(sweep->name_);
    if (marked == marks.end() && !sweep->has_work()) continue;
    sweep->work(db, marked == marks.end() ? WatchedSweep::Marks{} : std::move(marked->second));
    // what an earlier one has left open would keep the next from seeing what is there now
    db.end_statements();
  }
  const std::lock_guard lock{mutex_};
  posted_ = false;
  sweeps = watched();  // and those that somebody has begun to watch meanwhile
  if (!marks_.empty() || std::ranges::any_of(sweeps, [](const auto& sweep) { return sweep->has_work(); }))
    post();
}

}  // namespace abl::scheduler
