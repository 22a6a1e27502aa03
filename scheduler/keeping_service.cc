// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "scheduler/answer.h"
#include "scheduler/depot.h"
#include "scheduler/services.h"
#include "views/views.h"

namespace abl::scheduler {

namespace v1 = ablate::v1;

v1::KeptPlace kept_in(const Depot& depot, const PushedData& pushed) {
  v1::KeptPlace place;
  place.set_name("Depot");
  if (!depot.open()) {
    place.set_note(
        "This scheduler has none: checkpoints stay with their workers (ablate-scheduler "
        "--depot-limit-mib).");
    return place;
  }
  const DepotOptions& options = depot.options();
  place.set_path(std::filesystem::absolute(options.folder));
  place.set_bytes(depot.used());
  place.set_limit(options.limit);
  place.set_note(
      fmt::format("Copies for machines that lack them: no result is lost with them. {} MiB of its "
                  "disk stay free for the results file.",
                  options.keep_free >> 20));
  views::add_kept(
      place, "Checkpoints",
      "The newest of a run. It goes when a newer one is there, or when its trial has completed or was "
      "cancelled and nobody waits for its weights. Where there is no room, those go that were used longest "
      "ago.",
      "ablate-scheduler --depot-limit-mib");
  v1::Kept& data =
      views::add_kept(place, "Data sets that were pushed",
                      "Half of the depot at most. Kept until somebody removes them.", "ablate data rm");
  data.set_unit("data sets");
  data.set_used(pushed.all().size());
  data.set_limit(PushedData::kMost);
  views::add_kept(place, "Uploads that broke off",
                  "An hour after the last piece came; two minutes where there is no room.");
  return place;
}

v1::KeptPlace kept_of_pilots() {
  v1::KeptPlace place;
  place.set_name("Folders of the fleet");
  views::add_kept(place, "Pilots that ended",
                  "Of each queue the folders of the last 20 that ended, and of the last 10 that failed.");
  return place;
}

grpc::ServerUnaryReactor* KeepingService::GetRetention(grpc::CallbackServerContext*,
                                                       const v1::RetentionRequest*, v1::Retention* response) {
  return answer(pool_, response,
                [this](storage::Database& db) { return views::retention(db, db.file(), others_); });
}

}  // namespace abl::scheduler
