// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <vector>

#include "ablate/v1/pages.pb.h"
#include "base/last_lines.h"
#include "base/utf8.h"
#include "storage/sweep_store.h"
#include "views/convert.h"
#include "views/read.h"

namespace abl::views {
namespace {

namespace v1 = ablate::v1;
using storage::Database;
using storage::Statement;

constexpr std::uint64_t kMostEvents = 500, kUsualEvents = 100;
/// State changes, of whichever sweep, that one read looks at: what is older is for the next one.
constexpr std::int64_t kTransitionsLookedAt = 50'000;
constexpr std::size_t kLongestReason = 500;

/// The list that an event is of. Each goes by numbers of its own, which the clock has no say in.
enum EventList { kTransitions, kRequests, kRevisions };
constexpr std::size_t kEventLists = 3;

/// How far a reader has come in each list: the lowest number that they have.
using EventPlace = std::array<std::int64_t, kEventLists>;

struct Event {
  std::int64_t number = 0;
  Time time{};
  v1::SweepEvent message;
  bool is_end = false;  ///< no event: what is older was not looked at
};
using Events = std::vector<Event>;  // newest first

std::string event_place_text(const EventPlace& place) {
  return fmt::format("{}-{}-{}", place[0], place[1], place[2]);
}

EventPlace read_event_place(const std::string& text) {
  EventPlace place{};
  const char* at = text.data();
  const char* const end = at + text.size();
  bool is_place = true;
  for (std::size_t list = 0; list < kEventLists && is_place; ++list) {
    const auto [stop, error] = std::from_chars(at, end, place[list]);
    is_place = error == std::errc{} && place[list] >= 0 &&
               (list + 1 == kEventLists ? stop == end : stop != end && *stop == '-');
    at = stop + 1;
  }
  if (!is_place)
    throw Error{Code::kInvalidArgument,
                fmt::format("before: '{}' is not the `next` of an answer, such as 120-7-2", text)};
  return place;
}

/// Behind the newest of all.
EventPlace event_place_of_newest(Database& db, const storage::SweepRecord& sweep) {
  return db
      .prepared(
          "SELECT (SELECT COALESCE(MAX(id), 0) FROM transition), (SELECT COALESCE(MAX(id), 0) FROM audit)")
      .one([&](const Statement& row) {
        return EventPlace{row.integer(0) + 1, row.integer(1) + 1, std::int64_t{sweep.revision} + 1};
      })
      .value();
}

/// What became of the trials that the sweep has now: one more than `most`, if there are so many. A trial of
/// several rows is said with the first of them.
Events transitions(Database& db, const storage::SweepRecord& sweep, std::int64_t before, std::uint32_t most) {
  const std::int64_t from = std::max<std::int64_t>(0, before - 1 - kTransitionsLookedAt);
  Events events = db.prepared(R"sql(
          SELECT n.id, n.time_ms, n.state, COALESCE(n.run_id, 0), n.reason, st.seed, MIN(st.row),
                 (SELECT r.id FROM sweep_row r WHERE r.sweep_id = :sweep AND r.position = st.row)
          FROM transition n CROSS JOIN sweep_trial st INDEXED BY sweep_trial_trial
          ON st.trial_id = n.trial_id AND st.sweep_id = :sweep
          WHERE n.id < :before AND n.id > :from GROUP BY n.id ORDER BY n.id DESC LIMIT :most)sql")
                      .bind(":sweep", sweep.id)
                      .bind(":before", before)
                      .bind(":from", from)
                      .bind(":most", most + 1)
                      .all([](const Statement& row) {
                        Event event{.number = row.integer(0), .time = row.time(1)};
                        event.message.set_state(to_proto(storage::trial_state(row.text(2))));
                        event.message.set_run(static_cast<std::uint32_t>(row.integer(3)));
                        event.message.set_reason(first_line(valid_utf8(row.text(4)), kLongestReason));
                        event.message.set_seed(row.integer(5));
                        event.message.set_row(row.text(7));
                        return event;
                      });
  if (events.size() > most) return events;
  const auto end = db.prepared(R"sql(SELECT time_ms, (SELECT MIN(id) FROM transition) <= :from FROM transition
                        WHERE id > :from ORDER BY id LIMIT 1)sql")
                       .bind(":from", from)
                       .one([](const Statement& row) {
                         return std::pair{row.time(0), row.integer(1) != 0};
                       });
  if (end && end->second)
    events.push_back({.number = from + 1, .time = end->first, .message = {}, .is_end = true});
  return events;
}

/// What was asked for by the sweep's name since there is a sweep of that name; those that named a file are
/// its revisions. Looks at the whole audit at most, of which 100,000 lines are kept.
Events requests(Database& db, const storage::SweepRecord& sweep, std::int64_t before, std::uint32_t most) {
  return db
      .prepared(R"sql(
          SELECT id, time_ms, replace(what, ' (dashboard)', '') AS request, who FROM audit
          WHERE id < :before AND target = :sweep AND outcome = 'ok' AND time_ms >= :created
            AND (request LIKE '%Sweep' OR request = 'CancelTrial') AND request <> 'ExtendSweep'
          ORDER BY id DESC LIMIT :most)sql")
      .bind(":before", before)
      .bind(":sweep", sweep.name)
      .bind(":created", sweep.created)
      .bind(":most", most + 1)
      .all([](const Statement& row) {
        Event event{.number = row.integer(0), .time = row.time(1)};
        event.message.set_request(row.text(2));
        event.message.set_who(row.text(3));
        return event;
      });
}

/// Its submission, and each extension.
Events revisions(Database& db, const storage::SweepRecord& sweep, std::int64_t before, std::uint32_t most) {
  const auto event_of = [](std::int64_t revision, Time time, const std::string& who) {
    Event event{.number = revision, .time = time};
    event.message.set_request(revision == 1 ? "Submit" : "ExtendSweep");
    event.message.set_who(who);
    return event;
  };
  Events events =
      db.prepared(R"sql(SELECT revision, time_ms, author FROM sweep_revision
                                    WHERE sweep_id = :sweep AND revision > 1 AND revision < :before
                                    ORDER BY revision DESC LIMIT :most)sql")
          .bind(":sweep", sweep.id)
          .bind(":before", before)
          .bind(":most", most + 1)
          .all([&](const Statement& row) { return event_of(row.integer(0), row.time(1), row.text(2)); });
  if (before > 1 && events.size() <= most) events.push_back(event_of(1, sweep.created, sweep.owner));
  return events;
}

v1::SweepEventsResponse sweep_events(Database& db, const std::string& name, std::uint32_t count,
                                     const std::string& before) {
  const storage::Transaction snapshot{db, storage::Transaction::kRead};
  const auto sweep = storage::SweepStore{db}.get_brief(name);
  EventPlace place = before.empty() ? event_place_of_newest(db, sweep) : read_event_place(before);
  const std::array<Events, kEventLists> lists{transitions(db, sweep, place[kTransitions], count),
                                              requests(db, sweep, place[kRequests], count),
                                              revisions(db, sweep, place[kRevisions], count)};
  std::array<std::size_t, kEventLists> taken{};
  v1::SweepEventsResponse message;
  for (;;) {
    std::optional<std::size_t> newest_list;
    for (std::size_t list = 0; list < kEventLists; ++list)
      if (taken[list] < lists[list].size() &&
          (!newest_list || lists[list][taken[list]].time > lists[*newest_list][taken[*newest_list]].time))
        newest_list = list;
    if (!newest_list) return message;  // all of them
    const Event& event = lists[*newest_list][taken[*newest_list]];
    const bool is_full = message.events_size() == static_cast<int>(count);
    if (!is_full) place[*newest_list] = event.number;
    if (is_full || event.is_end) {
      message.set_next(event_place_text(place));
      return message;
    }
    ++taken[*newest_list];
    auto& said = *message.add_events() = event.message;
    *said.mutable_time() = to_proto(event.time);
  }
}

}  // namespace

extern const Read kSweepEventsRead{
    .path = "sweeps/*/events",
    .of = &kSweepOfPath,
    .about = "What was asked of the sweep and what became of its trials, newest first",
    .parameters = {{.name = "count",
                    .about = "Events to return at most; fewer where many of other sweeps lie between",
                    .number = Range{.lowest = 1, .highest = kMostEvents, .otherwise = kUsualEvents}},
                   {.name = "before", .about = "Only older ones; to continue, `next` of the last answer"}},
    .message = v1::SweepEventsResponse::descriptor,
    .answer =
        [](const Query& query, const Stored& stored) {
          return to_json(sweep_events(stored.db, query.name, query.number("count"), query.text("before")));
        },
};

}  // namespace abl::views
