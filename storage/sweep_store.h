// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "storage/database.h"
#include "storage/types.h"

namespace abl::storage {

/// What a submission did.
struct Submitted {
  SweepId sweep = 0;
  std::uint32_t new_trials = 0, shared_trials = 0;
  std::uint32_t kept_trials = 0;  ///< of an extension: claims that stay
};

/// What a sweep becomes that grows, beside its new content.
struct Extension {
  /// A row whose configuration is another: its trials are others too.
  struct Replaced {
    std::string why{};
    std::optional<std::string> version{};  ///< where that of the command is all that changed: the one before
    bool longer = false;  ///< the same training for more epochs: from the checkpoints that there are
  };
  std::string author;
  std::vector<std::string> changes;          ///< for people, a line each
  std::map<std::string, Replaced> replaced;  ///< by row id
  bool resources = false;  ///< trials that wait get what the new content says of resources, retry and limits
};
struct Extended : Submitted {
  std::uint32_t former_trials = 0, continued_trials = 0;
  std::vector<RunId> unwanted;  ///< runs under way that nobody wants any more: the caller stops them
};
/// A content that a sweep has had.
struct SweepRevision {
  std::uint32_t revision = 1;
  Time time{};
  std::string author, file, text_sha256, changes_json;
  std::uint32_t new_trials = 0, former_trials = 0;
};
/// The same with its file.
struct RevisionText : SweepRevision {
  std::string text;
};
/// Why a row of a sweep with a rule for seeds has as many as it has.
struct RowGrowth {
  std::string row;
  std::uint32_t seeds = 0;
  bool open = true;  ///< it may get more
  std::string why;
  bool operator==(const RowGrowth&) const = default;
};
/// A trial that was a sweep's.
struct FormerTrial {
  std::string row, label;
  std::int64_t seed = 0;
  TrialId trial = 0;
  TrialState state = TrialState::kQueued;
  std::optional<RunId> run;
  std::uint32_t revision = 0;
  std::string why;
};

/// Which trials go back to the queue, or run again.
struct Retry {
  bool ended = true;  ///< failed and cancelled ones
  bool held = true;
  bool unfilled = false;     ///< completed ones that lack a metric which a column of the sweep takes
  bool before_mend = false;  ///< completed ones whose results are of an older version
  bool completed = false;    ///< every completed one
  std::optional<std::int64_t> seed{};  ///< of one row: that seed alone
};

/// Some rows of a sweep, by position: as many of them as have no more trials than that, whole rows, one at
/// least.
struct Rows {
  std::uint32_t first = 0, count = std::numeric_limits<std::uint32_t>::max();
  std::uint32_t most_trials = std::numeric_limits<std::uint32_t>::max();
  /// Last values of metrics of each trial at most; not given: its share of `SweepStore::kMostValues`.
  std::optional<std::uint32_t> values = std::nullopt;
};

/// Why trials wait of which nothing else is known, as the view trial_waiting says it.
inline constexpr const char* kPausedReason = "sweep is paused";
inline constexpr const char* kFullReason = "sweep runs as many trials at once as it may";
inline constexpr const char* kCanaryReason = "a few trials of its sweep run first: none has got through yet";

/// A claim as those see it who keep count of what waits.
struct SeenClaim {
  ClaimRecord claim;
  bool waits = false;       ///< wanted and queued
  std::uint32_t shape = 0;  ///< of the trial
  std::string own_reason;   ///< why it waits, where that is of it alone
};

/// Sweeps, their rows and columns, and their claims on trials.
/// Thread: the connection's.
class SweepStore {
 public:
  explicit SweepStore(Database& db) : db_{db} {}

  /// Stores a sweep with its rows, columns and claims. A trial that is there already (same identity, with the
  /// pinned fingerprint of its data or none yet) is claimed, not queued again; a cancelled or failed one goes
  /// back to the queue.
  /// Throws: Error{kAlreadyExists} when the name is taken.
  Submitted insert(const NewSweep& sweep, const std::vector<NewTrial>& trials, Time now);

  /// Gives a sweep another content, under the name and standing that it has. Claims on trials of rows and
  /// seeds that both have stay, but for those of rows that are replaced: these, and what the new content does
  /// not have, become former trials, whose results stay in the store; those that nobody else wants are
  /// cancelled.
  Extended extend(SweepId sweep, const NewSweep& content, const std::vector<NewTrial>& trials,
                  const Extension& extension, Time now);
  /// The contents that an extended sweep has had, oldest first; none of one that was not.
  std::vector<SweepRevision> revisions(SweepId sweep) const;
  /// One of them; of a sweep that was not extended, the one that it has. 0: the newest. Nothing: there is
  /// none of that number.
  std::optional<RevisionText> text_of(const SweepRecord& sweep, std::uint32_t revision) const;
  std::vector<FormerTrial> former(SweepId sweep, std::uint32_t most) const;
  /// Of a sweep with a rule for seeds, in the order of its rows.
  std::vector<RowGrowth> growth(SweepId sweep) const;
  void set_growth(SweepId sweep, const RowGrowth& row, Time now);
  /// Claims, for a row, the trial of its first seed with this one in its place: one that is stored, or a new
  /// one; nothing where it has that seed. `turn`: as of OpenTrial::Claim. Throws: Error{kNotFound} for a row
  /// or a seed that is not there.
  using WithSeed = std::function<RenewedTrial(const TrialRecord&, std::int64_t seed)>;
  void add_seed(SweepId sweep, const std::string& row, int seed_index, Time now, const WithSeed& with_seed,
                double turn = 0);
  /// Claims, for a row's seed that has none, the trial of this document: one that is stored, or a new one
  /// with the settings of `like`.
  void claim_like(SweepId sweep, int row, int seed_index, std::int64_t seed, TrialId like,
                  const RenewedTrial& next, Time now);
  /// Parts that are given become the sweep's: a limit of 0 is none.
  void set_budget(SweepId sweep, const Budget& parts);

  std::optional<SweepRecord> find(const std::string& name) const;
  /// Throws: Error{kNotFound} naming the nearest sweep there is.
  SweepRecord get(const std::string& name) const;
  /// The same without text and canonical form, which may be megabytes.
  SweepRecord get_brief(const std::string& name) const;
  std::string text(SweepId sweep) const;  ///< the file as submitted
  static constexpr SweepId kNewest = std::numeric_limits<SweepId>::max();
  /// At most `count`, newest first, of those that were submitted before one; without text and canonical form.
  std::vector<SweepRecord> list(std::uint32_t count = std::numeric_limits<std::uint32_t>::max(),
                                SweepId before = kNewest) const;
  std::uint32_t count() const;
  /// The same of those that are neither pinned nor archived.
  std::vector<SweepRecord> list_others(std::uint32_t count, SweepId before = kNewest) const;
  /// The newest pinned ones that are not archived, newest first.
  std::vector<SweepRecord> pinned(std::uint32_t count) const;
  std::uint32_t count_archived() const;
  /// The id of the newest but so many; 0 where there are no more. For pages that have numbers: it passes over
  /// as many sweeps as it is told.
  SweepId newest_but(std::uint32_t others) const;
  void set_state(SweepId sweep, SweepState state, Time now);
  /// `canonical`: of the same sweep under that name.
  /// Throws: Error{kAlreadyExists}.
  void rename(SweepId sweep, const std::string& name, const std::string& canonical);
  std::optional<std::string> name_of(SweepId sweep) const;
  void set_priority(SweepId sweep, int priority);
  void set_weight(SweepId sweep, double weight);
  void set_preempts(SweepId sweep, bool preempts);
  /// Why trials of it are held that share what fails.
  std::vector<std::string> holds(SweepId sweep) const;
  /// Whether trials are held that share what fails; with it a few run first where many wait.
  void set_breaker(SweepId sweep, bool breaker);
  static constexpr std::uint32_t kCanaryFrom = 1000;  ///< so many queued trials are many
  void set_max_running(SweepId sweep, std::optional<std::uint32_t> trials);

  /// Last values of metrics in one answer of `claims`. Where there are more, each trial has its share: those
  /// that columns take, then by name.
  static constexpr std::uint32_t kMostValues = 100'000, kLeastValues = 16;

  /// Its trials by row, then seed; cancelled where the claim was withdrawn before the trial ended. All of
  /// them (a sweep has 100,000 at most), or those of some rows.
  std::vector<ClaimRecord> claims(SweepId sweep, const Rows& rows = {}) const;
  std::vector<SeenClaim> seen_claims(SweepId sweep, const Rows& rows) const;
  /// Where one trial stands in a sweep: in several rows, perhaps, or in none. `values`: as of Rows.
  std::vector<SeenClaim> seen_claims(SweepId sweep, TrialId trial, std::uint32_t values) const;
  /// The position of a row by its id; nothing where there is none.
  std::optional<int> row(SweepId sweep, const std::string& id) const;
  /// The runs of a sweep's trials, or of all, newest first: those before one (0: from the newest on), at most
  /// so many.
  std::vector<RunId> runs(std::optional<SweepId> sweep, RunId before, std::uint32_t count) const;
  /// Whether an active sweep claims a trial.
  bool is_wanted(TrialId trial) const;
  /// The runs under way of a sweep's trials that no other active sweep claims.
  std::vector<RunId> own_runs(SweepId sweep) const;
  /// The sweeps that claim a trial, and their names.
  std::vector<SweepId> claimants(TrialId trial) const;
  std::vector<std::string> names_of(TrialId trial) const;
  /// Every sweep that has it in its table, also where it has withdrawn its claim.
  std::vector<SweepId> sweeps_with(TrialId trial) const;
  /// The rows of a sweep that it stands in.
  std::vector<int> rows_with(SweepId sweep, TrialId trial) const;
  std::optional<TrialId> trial_of(RunId run) const;
  /// Where a trial stands in the sweeps that claim it: (sweep name, row id, label, seed).
  struct Position {
    std::string sweep, row, label;
    std::int64_t seed = 0;
  };
  std::vector<Position> positions(TrialId trial) const;

  /// Cancels a sweep: withdraws all its claims; queued trials without a claim are cancelled at once.
  /// Returns: the runs of leased and running trials that nobody claims any more: the caller stops them.
  std::vector<RunId> withdraw(SweepId sweep, Time now);
  /// The same of its claim for one row and seed: the sweep goes on.
  /// Throws: Error{kNotFound} where it has none, {kFailedPrecondition} of one whose trial has ended.
  std::vector<RunId> withdraw(SweepId sweep, const std::string& row, std::int64_t seed, Time now);
  /// Failed, cancelled and held trials of a sweep (of one row when given) go back to the queue, with all
  /// their retries; a cancelled sweep claims its trials again and is active: all of them, or those that run
  /// again where held or completed ones alone are wanted. A completed trial stays as it is, since other
  /// sweeps may have it filled and its runs are theirs: another one takes its place in this sweep, the one
  /// that another sweep has put there where there is one. `renewed` says what a trial of an older result
  /// version becomes. Returns how many were queued or replaced.
  /// Throws: Error{kNotFound} for a row, or a seed of it, that is not there.
  std::uint32_t retry(SweepId sweep, const std::string& row_id, Time now, const Renew& renewed,
                      Retry which = {});
  /// Claims on one trial (of one sweep when given, which then wants it) become claims on another, which is
  /// queued again when it failed or was cancelled.
  void claim_instead(std::optional<SweepId> sweep, TrialId trial, TrialId other);

 private:
  struct Claim {
    std::string label;
    TrialId trial = 0;
    bool withdrawn = false, completed = false, replaced = false;
  };
  using Claims = std::map<std::pair<std::string, std::int64_t>, Claim>;  // by row and seed
  Submitted fill(SweepId sweep, const NewSweep& content, const std::vector<NewTrial>& trials, Claims* kept,
                 Time now);
  std::uint32_t retry_sources(SweepId sweep, TrialId trial);
  void run_sources_again(SweepId sweep, TrialId trial, const Renew& renewed);
  bool renew_open(SweepId sweep, TrialId id, const Renew& renewed);
  bool run_again(SweepId sweep, const TrialRecord& trial, const Renew& renewed, Retry which);
  void claim(SweepId sweep, int row, int seed_index, std::int64_t seed, const TrialRecord& model,
             const RenewedTrial& next, Time now, double turn);
  TrialId copy_of(const TrialRecord& trial, const RenewedTrial& today,
                  std::optional<std::int64_t> seed = std::nullopt);
  void read_last_values(SweepId sweep, std::uint32_t values, std::vector<SeenClaim>& claims) const;
  std::vector<RunId> cancel_unclaimed(SweepId sweep, std::optional<TrialId> trial, Time now);
  void give_places_back(SweepId sweep, std::optional<TrialId> trial);
  std::string name_or_nothing(SweepId sweep) const;
  bool queue_again(TrialId trial, Retry which);
  void begin_canary(SweepId sweep);
  Database& db_;
};

}  // namespace abl::storage
