// SPDX-License-Identifier: Apache-2.0
// How a stored sweep grows.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <utility>

#include "base/fail_point.h"
#include "base/sha256.h"
#include "scheduler/budget.h"
#include "scheduler/seed_growth.h"
#include "scheduler/sweep_control.h"
#include "scheduler/tuning.h"
#include "storage/removal.h"
#include "storage/sweep_store.h"
#include "storage/trial_store.h"
#include "sweeps/extension.h"

namespace abl::scheduler {
namespace {

/// The sweep that is to grow. Throws: as extend_sweep says.
storage::SweepRecord get_extendable(storage::Database& db, const std::string& name,
                                    const std::string& expected) {
  storage::SweepRecord sweep = storage::SweepStore{db}.get(name);
  storage::Removal{db}.refuse(sweep.id);
  if (sweep.state == storage::SweepState::kCancelled)
    throw Error{Code::kFailedPrecondition,
                fmt::format("sweep {0} is cancelled: take it up again with 'ablate retry {0}' first", name)};
  if (!expected.empty() && expected != sweep.canonical_hash)
    throw Error{
        Code::kAborted,
        fmt::format("sweep {} was changed by somebody else meanwhile: look at the changes again", name)};
  return sweep;
}

ExtensionDone extend(storage::Database& db, const sweeps::SweepSpec& spec, const ExtensionWish& wish,
                     Time now) {
  storage::SweepStore store{db};
  const storage::SweepRecord stored = get_extendable(db, spec.name, wish.expected);
  ExtensionDone done{.stored = stored.canonical_hash};
  if (!wish.dry_run) store.set_budget(stored.id, wish.budget);
  if (stored.canonical_hash == sha256_hex(spec.canonical)) {
    if (!wish.dry_run) refresh_budget(db, stored.id, now);
    return done;
  }
  sweeps::Growth growth = sweeps::growth(spec, stored.canonical);
  if (!growth.refused.empty())
    throw Error{Code::kFailedPrecondition, fmt::format("sweep {} cannot be extended to this file\n{}",
                                                       spec.name, fmt::join(growth.refused, "\n"))};
  storage::Extension extension{
      .author = wish.author, .changes = growth.changes, .resources = growth.resources};
  for (auto& [row, other] : growth.replaced)
    extension.replaced.emplace(
        row, storage::Extension::Replaced{.why = std::move(other.why),
                                          .version = std::move(other.version),
                                          .longer = other.longer && !spec.tune});  // it is tuned anew
  done.changed = true;
  done.changes = std::move(growth.changes);
  storage::Transaction trial_run{db, storage::Transaction::kSavepoint};  // undone where it is only asked
  done.trials = store.extend(stored.id, sweep_record(spec, {}), trial_records(spec), extension, now);
  if (spec.tune) {
    const storage::Extended tuning = extend_tuning(db, spec, stored.id, extension, now);
    done.trials.new_trials += tuning.new_trials;
    done.trials.shared_trials += tuning.shared_trials;
    done.trials.unwanted.insert(done.trials.unwanted.end(), tuning.unwanted.begin(), tuning.unwanted.end());
  }
  if (wish.dry_run) {
    done.trials.unwanted.clear();
    return done;
  }
  storage::TrialStore trials{db};
  trials.ask_to_stop(done.trials.unwanted, kExtended);
  for (const storage::SweepId sweep : with_tuning(db, stored.id)) trials.take_stops_back(sweep);
  if (wish.provenance) storage::ProvenanceStore{db}.add(stored.id, *wish.provenance, now);
  refresh_budget(db, stored.id, now);
  grow_seeds(db, stored.id, now);
  fail_point(FailPoint::kSubmit);
  trial_run.commit();
  return done;
}

}  // namespace

void extend_sweep(Coordinator& coordinator, sweeps::SweepSpec spec, ExtensionWish wish,
                  Coordinator::Answer<ExtensionDone> answer) {
  const auto done = std::make_shared<ExtensionDone>();
  const std::string name = spec.name;
  coordinator.change(
      name, wish.dry_run ? "compared with an extension that was not made (dry run)" : "extended",
      [done, spec = std::move(spec), wish = std::move(wish)](storage::Database& db,
                                                             Time now) -> Coordinator::Stops {
        *done = extend(db, spec, wish, now);
        return {done->trials.unwanted, kExtended};
      },
      [done, answer = std::move(answer)](std::exception_ptr error) {
        answer(error, error ? ExtensionDone{} : *done);
      });
}

}  // namespace abl::scheduler
