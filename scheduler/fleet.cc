// SPDX-License-Identifier: Apache-2.0
#include "scheduler/fleet.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <functional>
#include <set>
#include <tuple>
#include <utility>

#include "base/error.h"

namespace abl::scheduler {
namespace {

/// Those that it was given, and those that every worker has.
storage::Labels labels_of(const ablate::v1::Hello& hello) {
  storage::Labels labels{{"host", hello.host()}, {"name", hello.name()}};
  labels.insert(hello.labels().begin(), hello.labels().end());
  return labels;
}

void add_reason(std::string& all, const std::string& why) { all += (all.empty() ? "" : "; ") + why; }

}  // namespace

std::string Ailments::text() const {
  if (!trouble.empty()) return trouble;
  std::string all;
  for (const auto* gone : {&data, &weights})
    for (const auto& [name, why] : *gone) add_reason(all, why);
  for (const auto& [wanted, why] : wrong_weights) add_reason(all, why);
  return all;
}

WorkerState& Fleet::state(std::uint64_t session) {
  return *std::ranges::lower_bound(workers_, session, {}, &WorkerState::session);
}

/// What placement knows of a slot.
void Fleet::mark(const Entry& entry, std::uint32_t slot) {
  auto& slots = state(entry.session->id).slots;
  const auto marked = std::ranges::find(slots, slot, &SlotState::index);
  if (marked == slots.end()) return;  // of a worker that has fewer than it once had
  const auto line = entry.lines.find(slot);
  const std::size_t runs = line == entry.lines.end() ? 0 : line->second.runs.size();
  marked->busy = runs > 0;
  marked->ahead = runs > 1 ? static_cast<int>(runs) - 1 : 0;
  marked->slow = runs > 0 && (line->second.slow || !entry.runs.at(line->second.runs.front()).quick ||
                              entry.runs.at(line->second.runs.front()).memory_bytes > 0);
  marked->clearing = runs == 1 && entry.runs.at(line->second.runs.front()).stopping;
  marked->sharing = 0, marked->used = 0;
  if (std::ranges::any_of(entry.parts,
                          [slot](const auto& part) { return std::ranges::count(part.second, slot) > 0; })) {
    marked->busy = marked->slow = true;
    marked->clearing = false;
    return;
  }
  if (runs != 1) return;
  std::set<storage::RunId> executing = line->second.beside;
  executing.insert(line->second.runs.front());
  if (executing.size() > 1) marked->clearing = false;
  const auto shares = [&](storage::RunId run) {
    const Held& held = entry.runs.at(run);
    marked->used += held.memory_bytes;
    return held.memory_bytes > 0 && !held.stopping;
  };
  if (std::ranges::all_of(executing, shares)) marked->sharing = static_cast<int>(executing.size());
}

/// Before a run of a line comes or goes: how long those that execute have been as many as they are.
void Fleet::count_shared(Entry& entry, Line& line, Time now) {
  const double time = static_cast<double>((now - std::exchange(line.changed, now)).count());
  if (line.beside.empty() || line.runs.empty()) return;
  const double others = static_cast<double>(line.beside.size()) * time;
  entry.runs.at(line.runs.front()).shared_ms += others;
  for (const storage::RunId run : line.beside) entry.runs.at(run).shared_ms += others;
}

std::vector<storage::RunId> Fleet::executing(std::uint64_t session, std::uint32_t slot) const {
  const auto entry = entries_.find(session);
  if (entry == entries_.end()) return {};
  const auto line = entry->second.lines.find(slot);
  if (line == entry->second.lines.end() || line->second.runs.empty()) return {};
  std::vector<storage::RunId> runs{line->second.beside.begin(), line->second.beside.end()};
  runs.push_back(line->second.runs.front());
  return runs;
}

double Fleet::beside(storage::RunId run, Time now) const {
  const auto session = session_of_run_.find(run);
  if (session == session_of_run_.end()) return 0;
  const Entry& entry = entries_.at(session->second);
  const Held& held = entry.runs.at(run);
  if (held.slots.empty()) return 0;
  const auto line = entry.lines.find(held.slots.front());
  if (line == entry.lines.end()) return 0;
  double shared = held.shared_ms;
  if (line->second.beside.contains(run) || (!line->second.runs.empty() && line->second.runs.front() == run))
    shared += static_cast<double>(line->second.beside.size()) *
              static_cast<double>((now - line->second.changed).count());
  const auto whole = static_cast<double>((now - held.leased).count());
  return whole > 0 ? shared / whole : 0;
}

void Fleet::count_priority(const Held& held, int sign) {
  if (held.slots.empty()) return;
  auto& count = priorities_[held.priority];
  count += static_cast<std::size_t>(sign);
  if (count == 0) priorities_.erase(held.priority);
}

/// What placement knows of a worker's files.
void Fleet::note_files(const Entry& entry) {
  WorkerState& worker = state(entry.session->id);
  worker.trouble = entry.ailments.trouble;
  const ablate::v1::Hello& hello = entry.session->hello;
  worker.data.names = {hello.data().begin(), hello.data().end()};
  if (hello.takes_depot() && hello.result_version() > 0)
    worker.data.names.insert(pushed_.begin(), pushed_.end());
  worker.data.gone = entry.ailments.data;
  worker.data.wrong = other_data(entry);
  worker.weights.gone = entry.ailments.weights;
  worker.weights.wrong = entry.wrong_weights;
  for (const auto& [wanted, why] : entry.ailments.wrong_weights)
    worker.weights.wrong.emplace(wanted, fmt::format("worker {}: {}", worker.name, why));
}

/// Data sets of which a worker has another version: by what it says, otherwise by what a run there has said.
std::map<Wanted, std::string> Fleet::other_data(const Entry& entry) const {
  std::map<Wanted, std::string> wrong;
  for (const auto& [wanted, how] : entry.wrong_data) {
    const auto said = entry.data.find(wanted.name);
    if (said == entry.data.end() || said->second.fingerprint().empty()) wrong.emplace(wanted, how);
  }
  for (const auto& [name, place] : entry.data) {
    const auto pinned = pins_.find(name);
    if (pinned == pins_.end() || place.fingerprint().empty() || place.fingerprint() == pinned->second)
      continue;
    wrong[{name}] = fmt::format(
        "data '{}' on worker '{}' has the fingerprint {}, this store's results are of {}; give the worker "
        "the "
        "same data, or the data another name, or see 'ablate data repin --help'",
        name, entry.session->hello.name(), place.fingerprint(), pinned->second);
  }
  return wrong;
}

bool Fleet::set_data(std::map<std::string, std::string> pins, std::set<std::string> pushed) {
  if (pins_ == pins && pushed_ == pushed) return false;
  pins_ = std::move(pins);
  pushed_ = std::move(pushed);
  for (const auto& [id, entry] : entries_) note_files(entry);
  return true;
}

bool Fleet::has_data(std::uint64_t session,
                     const google::protobuf::RepeatedPtrField<ablate::v1::DataPlace>& places) {
  const auto entry = entries_.find(session);
  if (entry == entries_.end() || places.empty()) return false;
  std::map<std::string, ablate::v1::DataPlace> said;
  for (const auto& place : places) said[place.name()] = place;
  const auto differs = [](const auto& one, const auto& other) {
    return one.first != other.first || one.second.fingerprint() != other.second.fingerprint();
  };
  const bool news =
      said.size() != entry->second.data.size() ||
      std::mismatch(said.begin(), said.end(), entry->second.data.begin(), std::not_fn(differs)).first !=
          said.end();
  entry->second.data = std::move(said);
  if (news) note_files(entry->second);
  return news;
}

std::map<std::string, std::vector<ablate::v1::DataOnWorker>> Fleet::data() const {
  std::map<std::string, std::vector<ablate::v1::DataOnWorker>> all;
  for (const auto& [id, entry] : entries_) {
    const WorkerState& worker = *std::ranges::lower_bound(workers_, id, {}, &WorkerState::session);
    for (const std::string& name : entry.session->hello.data()) {
      auto& on = all[name].emplace_back();
      on.set_worker(worker.name);
      on.set_connected(true);
      if (const auto place = entry.data.find(name); place != entry.data.end()) {
        on.set_place(place->second.place());
        on.set_fingerprint(place->second.fingerprint());
      }
      if (const auto gone = worker.data.gone.find(name); gone != worker.data.gone.end())
        on.set_trouble(gone->second);
      else if (const auto wrong = worker.data.wrong.find({name}); wrong != worker.data.wrong.end())
        on.set_trouble(wrong->second);
    }
  }
  return all;
}

std::shared_ptr<const Session> Fleet::add(std::shared_ptr<const Session> session,
                                          const std::vector<storage::RunUnderWay>& runs, Time now,
                                          const std::vector<storage::RunPart>& parts) {
  const ablate::v1::Hello& hello = session->hello;
  std::shared_ptr<const Session> replaced = session_of(hello.name());
  if (replaced) remove(replaced->id);
  Entry entry{.session = session, .last_heard = now, .ailments = Ailments::of(hello)};
  for (const storage::RunUnderWay& run : runs) {
    entry.runs[run.id] = {.priority = run.priority, .resumable = !run.command, .stopping = run.asked_to_stop};
    session_of_run_[run.id] = session->id;
  }
  WorkerState worker{.name = hello.name(),
                     .host = hello.host(),
                     .labels = labels_of(hello),
                     .session = session->id,
                     .result_version = static_cast<int>(hello.result_version()),
                     .allows_commands = hello.allows_commands(),
                     .takes_sources = hello.takes_sources(),
                     .joins = !hello.address().empty(),
                     .draining = hello.draining(),
                     .data = {.names = {hello.data().begin(), hello.data().end()}},
                     .weights = {.names = {hello.weights().begin(), hello.weights().end()}}};
  if (hello.has_time_left_ms()) {
    constexpr std::uint64_t kLongest = std::chrono::milliseconds{std::chrono::years{1000}}.count();
    worker.left = Milliseconds{std::min(hello.time_left_ms(), kLongest)};
    worker.ends = now + worker.left;
    // of one that connects again more than is left
    worker.whole = std::max(worker.left, Milliseconds{std::min(hello.time_in_all_ms(), kLongest)});
  }
  for (const ablate::v1::Slot& slot : hello.slots()) {
    worker.slots.push_back({.index = slot.index(),
                            .cuda = slot.device().starts_with("cuda"),
                            .memory = static_cast<double>(slot.memory_bytes())});
    std::vector<storage::RunId> there{slot.run()};
    there.insert(there.end(), slot.beside().begin(), slot.beside().end());
    for (const storage::RunId id : there) {
      const auto run = entry.runs.find(id);
      if (run == entry.runs.end() || std::ranges::count(run->second.slots, slot.index()) > 0) continue;
      run->second.slots.push_back(slot.index());
      Line& line = entry.lines[slot.index()];
      if (line.runs.empty())
        line = {.runs = {id}, .changed = now, .since = now};
      else
        line.beside.insert(id);
    }
  }
  for (const storage::RunPart& part : parts) entry.parts[part.run] = part.slots;
  for (auto& [id, held] : entry.runs) held.leased = now;  // from now on it is known what is beside it
  for (const storage::RunUnderWay& run : runs) {
    const bool waits = std::ranges::any_of(run.slots, [&](std::uint32_t slot) {
      const auto line = entry.lines.find(slot);
      return line != entry.lines.end() && line->second.runs.front() < run.id;
    });
    if (!waits || !entry.runs.at(run.id).slots.empty()) continue;
    entry.runs.at(run.id).slots = run.slots;
    for (const std::uint32_t slot : run.slots) {
      Line& line = entry.lines[slot];
      if (line.runs.empty()) line.since = now;
      line.runs.push_back(run.id);
    }
  }
  workers_.insert(std::ranges::lower_bound(workers_, session->id, {}, &WorkerState::session),
                  std::move(worker));
  for (const auto& place : hello.data_places()) entry.data[place.name()] = place;
  const Entry& added = entries_.emplace(session->id, std::move(entry)).first->second;
  for (const auto& [slot, line] : added.lines) mark(added, slot);
  for (const auto& [run, slots] : added.parts)
    for (const std::uint32_t slot : slots) mark(added, slot);
  for (const auto& [run, held] : added.runs) count_priority(held, +1);
  note_files(added);
  return replaced;
}

bool Fleet::remove(std::uint64_t session) {
  const auto entry = entries_.find(session);
  if (entry == entries_.end()) return false;
  for (const auto& [run, held] : entry->second.runs) {
    session_of_run_.erase(run);
    count_priority(held, -1);
  }
  entries_.erase(entry);
  std::erase_if(workers_, [session](const WorkerState& worker) { return worker.session == session; });
  return true;
}

void Fleet::heard(std::uint64_t session, Time now) {
  if (const auto entry = entries_.find(session); entry != entries_.end()) entry->second.last_heard = now;
}

bool Fleet::first_batch(std::uint64_t session, storage::RunId run) {
  const auto entry = entries_.find(session);
  return entry != entries_.end() && entry->second.heard_of.insert(run).second;
}

bool Fleet::drain(std::uint64_t session) {
  return entries_.contains(session) && !std::exchange(state(session).draining, true);
}

void Fleet::set_drained(const std::string& worker, const std::optional<std::string>& reason) {
  if (const auto session = session_of(worker)) state(session->id).drained = reason;
}

void Fleet::set_quarantine(const std::string& worker, const std::optional<std::string>& why, Time until) {
  const auto session = session_of(worker);
  if (!session) return;
  Entry& entry = entries_.at(session->id);
  entry.rests_until = until;
  if (!why) entry.probe = 0;
  state(session->id).quarantine = why;
  state(session->id).resting = why.has_value();
}

bool Fleet::end_rests(Time now) {
  bool any = false;
  for (auto& [id, entry] : entries_) {
    WorkerState& worker = state(id);
    if (!worker.quarantine || !worker.resting || entry.probe != 0 || entry.rests_until > now) continue;
    worker.resting = false;
    any = true;
  }
  return any;
}

bool Fleet::is_probe(storage::RunId run) const {
  const auto session = session_of_run_.find(run);
  return session != session_of_run_.end() && entries_.at(session->second).probe == run;
}

bool Fleet::could_go_elsewhere(const Demand& demand, const std::string& worker) const {
  return std::ranges::any_of(workers_, [&](const WorkerState& other) {
    return other.name != worker && !other.quarantine && could_take(demand, other);
  });
}

bool Fleet::ails(std::uint64_t session, const Ailments& ailments) {
  const auto entry = entries_.find(session);
  if (entry == entries_.end()) return false;
  // its own word takes the place of ours: it takes that back when its file is the wanted one
  for (const auto& [wanted, how] : ailments.wrong_weights) entry->second.wrong_weights.erase(wanted);
  const bool news = entry->second.ailments != ailments;
  entry->second.ailments = ailments;
  note_files(entry->second);
  return news;
}

void Fleet::occupy(std::uint64_t session, storage::RunId run, const std::vector<std::uint32_t>& slots,
                   const Kind& kind, Time now) {
  const auto entry = entries_.find(session);
  if (entry == entries_.end()) return;
  Held& held = entry->second.runs[run];
  if (state(session).quarantine && entry->second.rests_until <= now) entry->second.probe = run;
  held = {.slots = slots,
          .priority = kind.priority,
          .resumable = kind.resumable,
          .quick = kind.quick,
          .memory_bytes = kind.memory_bytes,
          .leased = now};
  count_priority(held, +1);
  session_of_run_[run] = session;
  for (const std::uint32_t slot : slots) {
    Line& line = entry->second.lines[slot];
    count_shared(entry->second, line, now);
    if (line.runs.empty()) line.since = now, line.slow = false;
    if (kind.beside && !line.runs.empty())
      line.beside.insert(run);
    else
      line.runs.push_back(run);
    mark(entry->second, slot);
  }
}

void Fleet::release(storage::RunId run, Time now) {
  const auto session = session_of_run_.find(run);
  if (session == session_of_run_.end()) return;
  Entry& entry = entries_.at(session->second);
  session_of_run_.erase(session);
  for (const std::uint32_t slot : entry.runs.at(run).slots) {
    Line& line = entry.lines.at(slot);
    count_shared(entry, line, now);
    if (line.beside.erase(run) == 0) {
      if (line.runs.front() == run) line.since = now, line.slow = false;
      std::erase(line.runs, run);
      if (line.runs.empty() && !line.beside.empty())
        line.runs.push_front(line.beside.extract(line.beside.begin()).value());
    }
    mark(entry, slot);
  }
  if (entry.probe == run) entry.probe = 0;  // which leaves it resting, until a tick looks
  count_priority(entry.runs.at(run), -1);
  entry.runs.erase(run);
  entry.heard_of.erase(run);
}

void Fleet::occupy_part(std::uint64_t session, storage::RunId run, const std::vector<std::uint32_t>& slots) {
  const auto entry = entries_.find(session);
  if (entry == entries_.end()) return;
  entry->second.parts[run] = slots;
  for (const std::uint32_t slot : slots) mark(entry->second, slot);
}

bool Fleet::release_part(std::uint64_t session, storage::RunId run) {
  const auto entry = entries_.find(session);
  if (entry == entries_.end()) return false;
  const auto part = entry->second.parts.extract(run);
  if (part.empty()) return false;
  for (const std::uint32_t slot : part.mapped()) mark(entry->second, slot);
  return true;
}

std::vector<std::shared_ptr<const Session>> Fleet::sessions_with_part_of(storage::RunId run) const {
  std::vector<std::shared_ptr<const Session>> sessions;
  for (const auto& [id, entry] : entries_)
    if (entry.parts.contains(run)) sessions.push_back(entry.session);
  return sessions;
}

void Fleet::mark_slow(const Placement& placement) {
  for (SlotState& slot : state(placement.session).slots)
    if (std::ranges::find(placement.slots, slot.index) != placement.slots.end()) slot.slow = true;
}

void Fleet::unmark(const Placement& placement) {
  const auto unmark_of = [&](std::uint64_t session, const std::vector<std::uint32_t>& slots) {
    const auto entry = entries_.find(session);
    if (entry == entries_.end()) return;
    for (const std::uint32_t slot : slots) mark(entry->second, slot);
  };
  unmark_of(placement.session, placement.slots);
  for (const Placement::Part& part : placement.parts) unmark_of(part.session, part.slots);
}

bool Fleet::note_time(Time now) {
  bool any = false;
  for (WorkerState& worker : workers_) {
    if (!worker.ends) continue;
    worker.left = std::max(Milliseconds{0}, *worker.ends - now);
    any = true;
  }
  return any;
}

bool Fleet::any_free() const {
  return std::ranges::any_of(workers_, [](const WorkerState& worker) {
    return !worker.draining && !worker.drained && !worker.resting && worker.trouble.empty() &&
           std::ranges::any_of(worker.slots, [](const SlotState& slot) { return !slot.busy; });
  });
}

template <class Wanted>
std::vector<storage::RunId> Fleet::recall_if(Wanted wanted) {
  std::vector<storage::RunId> recalled;
  for (auto& [id, entry] : entries_)
    for (const auto& [slot, line] : entry.lines)
      for (std::size_t i = 1; i < line.runs.size(); ++i) {
        Held& held = entry.runs.at(line.runs[i]);
        if (held.recalled || !wanted(entry, line, held)) continue;
        held.recalled = true;
        recalled.push_back(line.runs[i]);
      }
  return recalled;
}

std::vector<storage::RunId> Fleet::recall_for(const Demand& trial, int priority) {
  if (priorities_.empty() || priorities_.begin()->first >= priority) return {};  // as nearly always
  return recall_if([&](const Entry& entry, const Line&, const Held& held) {
    return held.priority < priority && could_take(trial, state(entry.session->id));
  });
}

std::vector<storage::RunId> Fleet::preempt_for(const Demand& trial, int priority, std::size_t trials) {
  std::vector<storage::RunId> preempted;
  if (priorities_.empty() || priorities_.begin()->first >= priority) return preempted;
  if (trial.split.most_nodes > 1) return preempted;  // on one worker alone that would not help
  const auto needed = static_cast<std::size_t>(std::max(1, trial.gpus));
  struct Way {
    Entry* entry = nullptr;
    std::size_t clear = 0;                                            // slots that are free, or soon will be
    std::vector<std::tuple<int, Milliseconds, storage::RunId>> runs;  // that may give way, the first first
  };
  std::vector<Way> ways;
  for (auto& [id, entry] : entries_) {
    if (!could_take(trial, state(id))) continue;
    Way& way = ways.emplace_back(Way{.entry = &entry});
    for (const SlotState& slot : state(id).slots) {
      if (trial.gpus > 0 && !slot.cuda) continue;
      const auto line = entry.lines.find(slot.index);
      if (line == entry.lines.end() || line->second.runs.empty()) {
        if (!slot.busy) ++way.clear;  // else a lease for it is on its way
        continue;
      }
      if (!line->second.beside.empty()) continue;  // several would have to go for one
      const storage::RunId run = line->second.runs.front();
      const Held& held = entry.runs.at(run);
      if (held.stopping)
        ++way.clear;
      else if (held.resumable && held.priority < priority && held.slots.front() == slot.index)
        way.runs.emplace_back(held.priority, -line->second.since.time_since_epoch(), run);
    }
    std::ranges::sort(way.runs);
  }
  for (std::size_t i = 0; i < trials; ++i) {
    Way* best = nullptr;
    std::size_t best_runs = 0, best_slots = 0;
    for (Way& way : ways) {
      std::size_t runs = 0, slots = way.clear;
      while (slots < needed && runs < way.runs.size())
        slots += way.entry->runs.at(std::get<storage::RunId>(way.runs[runs++])).slots.size();
      if (slots >= needed && (!best || runs < best_runs)) best = &way, best_runs = runs, best_slots = slots;
    }
    if (!best) break;
    for (std::size_t run = 0; run < best_runs; ++run) {
      const auto id = std::get<storage::RunId>(best->runs[run]);
      Held& held = best->entry->runs.at(id);
      held.stopping = true;
      for (const std::uint32_t slot : held.slots) mark(*best->entry, slot);
      preempted.push_back(id);
    }
    best->runs.erase(best->runs.begin(), best->runs.begin() + static_cast<std::ptrdiff_t>(best_runs));
    best->clear = best_slots - needed;
  }
  return preempted;
}

void Fleet::not_preempted(const std::vector<storage::RunId>& runs) {
  for (const storage::RunId run : runs)
    if (const auto session = session_of_run_.find(run); session != session_of_run_.end()) {
      Entry& entry = entries_.at(session->second);
      Held& held = entry.runs.at(run);
      held.stopping = false;
      for (const std::uint32_t slot : held.slots) mark(entry, slot);
    }
}

std::vector<storage::RunId> Fleet::recall_behind(Time since) {
  for (auto& [id, entry] : entries_)
    for (auto& [slot, line] : entry.lines)
      if (!line.slow && !line.runs.empty() && line.since < since) {
        line.slow = true;
        mark(entry, slot);
      }
  return recall_if([&](const Entry&, const Line& line, const Held&) { return line.since < since; });
}

std::vector<storage::RunId> Fleet::recall_of(const std::string& worker) {
  return recall_if(
      [&](const Entry& entry, const Line&, const Held&) { return entry.session->hello.name() == worker; });
}

void Fleet::refuse_data(std::uint64_t session, const std::string& data, const std::string& reason) {
  const auto entry = entries_.find(session);
  if (entry == entries_.end()) return;
  entry->second.wrong_data[{data}] = reason;
  note_files(entry->second);
}

void Fleet::refuse_weights(std::uint64_t session, const Wanted& weights, const std::string& reason) {
  const auto entry = entries_.find(session);
  if (entry == entries_.end()) return;
  entry->second.wrong_weights[weights] = reason;
  note_files(entry->second);
}

std::string Fleet::trouble(std::uint64_t session, const Ailments& said) const {
  std::string all = said.text();
  const auto entry = entries_.find(session);
  if (!said.trouble.empty() || entry == entries_.end()) return all;
  const auto other = other_data(entry->second);
  for (const auto* wrong : {&other, &entry->second.wrong_weights})
    for (const auto& [wanted, how] : *wrong)
      if (!said.wrong_weights.contains(wanted)) add_reason(all, how);
  return all;
}

std::shared_ptr<const Session> Fleet::session_of(const std::string& worker) const {
  for (const auto& [id, entry] : entries_)
    if (entry.session->hello.name() == worker) return entry.session;
  return nullptr;
}

std::shared_ptr<const Session> Fleet::session(std::uint64_t id) const {
  const auto entry = entries_.find(id);
  return entry == entries_.end() ? nullptr : entry->second.session;
}

std::shared_ptr<const Session> Fleet::session_with(storage::RunId run) const {
  const auto found = session_of_run_.find(run);
  return found == session_of_run_.end() ? nullptr : entries_.at(found->second).session;
}

std::vector<std::shared_ptr<const Session>> Fleet::all() const {
  std::vector<std::shared_ptr<const Session>> sessions;
  for (const auto& [id, entry] : entries_) sessions.push_back(entry.session);
  return sessions;
}

std::vector<std::shared_ptr<const Session>> Fleet::silent(const LeasePolicy& policy, Time now) const {
  std::vector<std::shared_ptr<const Session>> sessions;
  for (const auto& [id, entry] : entries_)
    if (policy.silent(entry.last_heard, now)) sessions.push_back(entry.session);
  return sessions;
}

namespace {

std::string list_of(const google::protobuf::RepeatedPtrField<std::string>& names) {
  return nlohmann::json(std::vector<std::string>{names.begin(), names.end()}).dump();
}

}  // namespace

void check_hello(const ablate::v1::Hello& hello, std::uint32_t lowest_protocol,
                 std::uint32_t highest_protocol) {
  if (hello.name().empty()) throw Error{Code::kInvalidArgument, "a worker without a name said hello"};
  if (hello.highest_protocol() < lowest_protocol || hello.lowest_protocol() > highest_protocol) {
    const bool older = hello.highest_protocol() < lowest_protocol;
    throw Error{
        Code::kFailedPrecondition,
        fmt::format(
            "worker {} (release {}, protocol {} to {}) is {} than this scheduler (release {}, protocol "
            "{} to {}): {}",
            hello.name(), hello.version().empty() ? "unknown" : hello.version(), hello.lowest_protocol(),
            hello.highest_protocol(), older ? "older" : "newer", ABLATE_VERSION, lowest_protocol,
            highest_protocol,
            older ? "install release " ABLATE_VERSION
                    " there ('ablate bundle' packs it), and start it with the same --home and --name"
                  : "upgrade the scheduler first, or start a worker of release " ABLATE_VERSION)};
  }
  std::set<std::uint32_t> indices;
  for (const ablate::v1::Slot& slot : hello.slots())
    if (!indices.insert(slot.index()).second)
      throw Error{Code::kInvalidArgument,
                  fmt::format("worker {} has two slots of index {}", hello.name(), slot.index())};
}

storage::WorkerRecord worker_record(const ablate::v1::Hello& hello, Time now) {
  nlohmann::json slots = nlohmann::json::array();
  for (const ablate::v1::Slot& slot : hello.slots())
    slots.push_back({{"index", slot.index()},
                     {"device", slot.device()},
                     {"name", slot.name()},
                     {"threads", slot.threads()},
                     {"memory_bytes", slot.memory_bytes()}});
  return {.name = hello.name(),
          .host = hello.host(),
          .instance = hello.instance(),
          .version = hello.version(),
          .slots_json = slots.dump(),
          .data_json = list_of(hello.data()),
          .weights_json = list_of(hello.weights()),
          .result_version = static_cast<int>(hello.result_version()),
          .allows_commands = hello.allows_commands(),
          .connected = true,
          .last_heartbeat = now,
          .trouble = Ailments::of(hello).text(),
          .labels = labels_of(hello)};
}

}  // namespace abl::scheduler
