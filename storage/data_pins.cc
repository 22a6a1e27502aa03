// SPDX-License-Identifier: Apache-2.0
#include "storage/data_pins.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/nearest_name.h"
#include "base/utf8.h"
#include "storage/sweep_store.h"
#include "storage/trial_store.h"

namespace abl::storage {

std::map<std::string, std::string> DataPins::all() const {
  std::map<std::string, std::string> pins;
  for (auto& [name, fingerprint] :
       db_.prepared("SELECT data, fingerprint FROM data_pin").all([](const Statement& row) {
         return std::pair{row.text(0), row.text(1)};
       }))
    pins.emplace(std::move(name), std::move(fingerprint));
  return pins;
}

std::vector<DataPins::Use> DataPins::uses() const {
  std::map<std::string, Use> uses;
  for (const Use& use : db_.prepared(R"sql(SELECT p.data, p.fingerprint, p.run_id, r.leased_ms
                                           FROM data_pin p JOIN run r ON r.id = p.run_id)sql")
                            .all([](const Statement& row) {
                              return Use{.name = row.text(0),
                                         .fingerprint = row.text(1),
                                         .run = static_cast<RunId>(row.integer(2)),
                                         .since = row.time(3)};
                            }))
    uses[use.name] = use;
  struct Count {
    std::string name, state, fingerprint;
    std::uint32_t trials = 0;
  };
  for (const Count& count :
       db_.prepared(R"sql(SELECT data, state, data_fingerprint, COUNT(*) FROM trial
                                               WHERE data <> '' AND state IN ('completed', 'queued', 'held')
                                               GROUP BY data, state, data_fingerprint)sql")
           .all([](const Statement& row) {
             return Count{row.text(0), row.text(1), row.text(2), static_cast<std::uint32_t>(row.integer(3))};
           })) {
    Use& use = uses[count.name];
    use.name = count.name;
    if (count.state != "completed")
      use.waiting += count.trials;
    else if (count.fingerprint == use.fingerprint)
      use.trials += count.trials;
    else
      use.other_trials += count.trials;
  }
  std::vector<Use> sorted;
  for (auto& [name, use] : uses) sorted.push_back(std::move(use));
  return sorted;
}

void DataPins::repin(const std::string& name, const std::string& fingerprint) {
  constexpr std::size_t kLongest = 300;
  if (fingerprint.empty() || fingerprint.size() > kLongest || valid_utf8(fingerprint) != fingerprint ||
      std::ranges::any_of(fingerprint, [](char c) { return static_cast<unsigned char>(c) <= ' '; }))
    throw Error{Code::kInvalidArgument,
                "invalid fingerprint: expected one as 'ablate data ls' or 'ablate data check' prints it"};
  db_.prepared("UPDATE data_pin SET fingerprint = :fingerprint WHERE data = :name")
      .bind(":fingerprint", fingerprint)
      .bind(":name", name)
      .run();
  if (db_.changes() > 0) return;
  std::vector<std::string> names;
  for (const auto& [known, pinned] : all()) names.push_back(known);
  throw Error{Code::kNotFound,
              fmt::format("no results of data '{}' here: its first run will pin what it has{}", name,
                          did_you_mean(name, names))};
}

bool DataPins::follow(TrialId trial) {
  const auto pinned = db_.prepared(R"sql(SELECT p.fingerprint FROM trial t JOIN data_pin p ON p.data = t.data
                                         WHERE t.id = :trial AND t.data_fingerprint NOT IN ('', p.fingerprint))sql")
                          .bind(":trial", trial)
                          .one([](const Statement& row) { return row.text(0); });
  if (!pinned) return true;
  Transaction transaction{db_, Transaction::kSavepoint};
  const TrialRecord record = TrialStore{db_}.get(trial);
  const auto same = db_.prepared(R"sql(
      SELECT o.id FROM trial t JOIN trial o ON o.config_hash = t.config_hash AND o.result_version = t.result_version
      WHERE t.id = :trial AND t.reusable = 1 AND o.reusable = 1 AND o.id <> t.id AND o.data_fingerprint IN ('', :pinned))sql")
                        .bind(":trial", trial)
                        .bind(":pinned", *pinned)
                        .one([](const Statement& row) { return static_cast<TrialId>(row.integer(0)); });
  if (same) {
    SweepStore{db_}.claim_instead({}, trial, *same);
    db_.prepared(
           "UPDATE trial SET state = 'cancelled', reason = :reason, replaced_by = :same WHERE id = :trial")
        .bind(":same", *same)
        .bind(":reason",
              fmt::format("trial {} took its place: data '{}' were pinned anew", *same, record.data))
        .bind(":trial", trial)
        .run();
  } else {
    db_.prepared("UPDATE trial SET data_fingerprint = :pinned, continues = NULL WHERE id = :trial")
        .bind(":pinned", *pinned)
        .bind(":trial", trial)
        .run();
    // a run that is lost, but that its silent worker may still have, computes with the other content
    db_.prepared("UPDATE run SET silent = 0 WHERE trial_id = :trial").bind(":trial", trial).run();
    db_.prepared("DELETE FROM checkpoint WHERE run_id IN (SELECT id FROM run WHERE trial_id = :trial)")
        .bind(":trial", trial)
        .run();
  }
  transaction.commit();
  return !same;
}

}  // namespace abl::storage
