// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <filesystem>

#include "protocol/probe_results.h"
#include "storage/measured_store.h"
#include "storage/point_limit.h"
#include "storage/provenance_store.h"
#include "storage/token_store.h"
#include "storage/trial_store.h"
#include "views/read.h"

namespace abl::views {
namespace {

namespace v1 = ablate::v1;
namespace fs = std::filesystem;
using storage::Database;
using storage::TokenStore;
using storage::TrialStore;

/// 4000000 as "4,000,000".
std::string grouped(std::uint64_t number) {
  std::string text = fmt::format("{}", number);
  for (std::size_t at = text.size(); at > 3;) text.insert(at -= 3, 1, ',');
  return text;
}

std::uint64_t bytes_of(const fs::path& file) {
  std::error_code absent;
  const auto bytes = fs::file_size(file, absent);
  return absent ? 0 : bytes;
}

std::uint64_t number(Database& db, const char* sql) {
  const auto found = db.prepared(sql).one([](const storage::Statement& row) { return row.integer(0); });
  return static_cast<std::uint64_t>(found.value_or(0));
}

void count(v1::Kept& kept, const char* unit, std::optional<std::uint64_t> used,
           std::optional<std::uint64_t> limit) {
  kept.set_unit(unit);
  if (used) kept.set_used(*used);
  if (limit) kept.set_limit(*limit);
}

void add_results(v1::KeptPlace& place) {
  add_kept(
      place, "Sweeps, trials, runs and results",
      "Kept until somebody removes the sweep. Trials that another sweep has stay with it. The room becomes "
      "free for later results; the file does not become shorter.",
      "ablate rm");
  add_kept(place, "Files of sweeps", "Every version of a sweep's file is kept as long as its sweep.",
           "ablate rm");
  add_kept(place, "Metric points",
           fmt::format(
               "All of the first {} of a run (about 160 MB). Beyond that, a metric with more than {} points "
               "keeps one point in 4, then in 16, in 64 and so on, up to the end of its curve. All points "
               "count in tables and summaries.",
               grouped(storage::kWholeRun), grouped(storage::kWholeMetric)));
  add_kept(
      place, "Logs of runs",
      "64 MiB of each run (the worker's default). The middle of a longer log is left out; a line says how "
      "much.",
      "ablate-worker --log-limit-mib");
  add_kept(place, "What probes found",
           fmt::format("The newest of each run and probe, up to {} probes of a run.", protocol::kMostProbes));
  add_kept(place, "Checkpoints that are known",
           fmt::format("Of a run the {} of the highest steps. The files lie on the workers' disks.",
                       TrialStore::kMostCheckpoints));
  add_kept(
      place, "Steps of trials",
      fmt::format(
          "The newest {} state changes of trials (queued, leased, ended), from which time lines are drawn.",
          grouped(TrialStore::kMostTransitions)));
  add_kept(
      place, "Provenance",
      fmt::format(
          "The commit, diff and packages of a submission and of its extensions, up to {} for each sweep. "
          "After that, a new one replaces the last.",
          storage::ProvenanceStore::kMost));
}

void add_access(Database& db, v1::KeptPlace& place) {
  // lines are numbered without gaps, and only the oldest go
  count(add_kept(place, "Audit", fmt::format("The newest {} lines.", grouped(TokenStore::kMostAuditLines))),
        "lines", number(db, "SELECT COALESCE(MAX(id) - MIN(id) + 1, 0) FROM audit"),
        TokenStore::kMostAuditLines);
  count(
      add_kept(place, "Tokens",
               fmt::format(
                   "A token that has been revoked or used up, or has expired, is kept for {} days; one of a "
                   "fleet's workers for {} hours. Older ones are removed when the next token is created.",
                   TokenStore::kKeptAfterItsEnd.count() / 24, TokenStore::kPilotsKept.count())),
      "tokens", number(db, "SELECT COUNT(*) FROM access_token"), TokenStore::kMostTokens);
  count(add_kept(place, "Calibrations", "What 'ablate plan --measure' has measured: the newest."),
        "measurements", number(db, "SELECT COUNT(*) FROM calibration"),
        storage::MeasuredStore::kMostCalibrations);
}

/// Copies beside the results file: made before its schema changed, or before another was restored.
v1::KeptPlace copies_of(const fs::path& file) {
  constexpr int kMostLooked = 10'000;
  const std::string name = file.filename().string() + ".";
  std::uint64_t upgraded = 0, restored = 0;
  std::error_code failed;
  int looked = 0;
  for (fs::directory_iterator entry{fs::absolute(file).parent_path(), failed}, end;
       !failed && entry != end && ++looked < kMostLooked; entry.increment(failed)) {
    const std::string other = entry->path().filename();
    if (!other.starts_with(name)) continue;
    const std::string_view rest = std::string_view{other}.substr(name.size());
    if (rest.starts_with("before-restore-") || rest.starts_with("rescued-"))
      restored += bytes_of(entry->path());
    else if (rest.starts_with("v") && rest.find(".bak") != std::string_view::npos)
      upgraded += bytes_of(entry->path());
  }
  v1::KeptPlace place;
  place.set_name("Copies of the results file");
  place.set_bytes(upgraded + restored);
  place.set_note("Backups and archives lie where they were put; nothing here removes them.");
  count(
      add_kept(place, "Before an upgrade",
               "A release that changes the file's schema copies it first. Kept until somebody removes them.",
               "ablate gc"),
      "bytes", upgraded, {});
  count(add_kept(place, "Before a restore, and rescued",
                 "They may have the only copy of some results. Kept until somebody removes them by name.",
                 "ablate gc --only copies"),
        "bytes", restored, {});
  return place;
}

v1::KeptPlace folders_of_runs() {
  v1::KeptPlace place;
  place.set_name("Folders of workers");
  place.set_note("On the workers' own disks. 'ablate gc' says how much of a machine could go.");
  add_kept(
      place, "Checkpoints",
      "A training keeps its newest 2 and the best. They stay after its end until somebody removes those that "
      "are not needed: of a completed trial all but the newest 2, unless told otherwise.",
      "ablate gc --keep-checkpoints");
  add_kept(
      place, "Other files of runs",
      "Kept until 'ablate gc' removes the folder: of a trial that is in no sweep, or of a run that is not in "
      "the results file, one day after it was last written.",
      "ablate gc --older-than");
  add_kept(place, "Output on its way",
           "A worker keeps the output of a run until the scheduler has stored it. With 128 MiB waiting (the "
           "default) it pauses the run; no point is dropped.",
           "ablate-worker --spool-limit-mib");
  add_kept(place, "Data sets that were fetched",
           "10 GiB (the worker's default); the least recently used are removed first.",
           "ablate-worker --data-limit-mib");
  add_kept(
      place, "Logs of programs",
      "Of 'ablate up', in the folder logs of its home. Kept until somebody removes them while it does not "
      "run.",
      "ablate gc --only logs");
  return place;
}

}  // namespace

v1::Kept& add_kept(v1::KeptPlace& place, const std::string& what, const std::string& rule,
                   const std::string& setting) {
  v1::Kept& kept = *place.add_kept();
  kept.set_what(what);
  kept.set_rule(rule);
  kept.set_setting(setting);
  return kept;
}

v1::Retention retention(Database& db, const fs::path& file, const OtherPlaces& others) {
  v1::Retention message;
  v1::KeptPlace& results = *message.add_places();
  results.set_name("Results file");
  results.set_path(fs::absolute(file));
  results.set_bytes(bytes_of(file) + bytes_of(file.string() + "-wal"));
  {
    const storage::Transaction snapshot{db, storage::Transaction::kRead};
    const std::uint64_t room = number(db, "PRAGMA freelist_count") * number(db, "PRAGMA page_size");
    if (room > 0)
      results.set_note(fmt::format(
          "Of its bytes, {} are free for later results: what was removed leaves room in the file.",
          grouped(room)));
    add_results(results);
    add_access(db, results);
  }
  *message.add_places() = copies_of(file);
  if (others)
    for (v1::KeptPlace& place : others()) *message.add_places() = std::move(place);
  *message.add_places() = folders_of_runs();
  return message;
}

extern const Read kRetentionRead{
    .path = "retention",
    .about = "What is kept for how long, and how much of it there is",
    .message = v1::Retention::descriptor,
    .answer =
        [](const Query&, const Stored& stored) {
          return to_json(
              retention(stored.db, stored.db.file(), stored.others ? *stored.others : OtherPlaces{}));
        },
};

}  // namespace abl::views
