// SPDX-License-Identifier: Apache-2.0
#include "scheduler/counter.h"

#include "base/log.h"
#include "scheduler/status.h"

namespace abl::scheduler {

Counter::Counter(const std::filesystem::path& store, planning::ModelCounter counter, Coordinator& coordinator)
    : counter_{std::move(counter)}, coordinator_{coordinator}, pool_{store, 1} {}

void Counter::count(std::vector<std::string> models, Job job, std::stop_token stop) {
  pool_.post(
      [this, models = std::move(models), job = std::move(job), stop](storage::Database& db) {
        std::stop_source either;
        const auto ask = [&] { either.request_stop(); };
        const std::stop_callback ours{stop_.get_token(), ask}, theirs{stop, ask};
        planning::ModelCounter::Result result;
        std::map<std::string, std::map<std::string, double>> fresh;
        try {
          if (!models.empty() && !either.stop_requested())
            result = counter_.count(models, &db, &fresh, either.get_token());
        } catch (const std::exception& error) {
          result.missing = error.what();
        }
        if (!fresh.empty())
          coordinator_.store_counts(std::move(fresh), [](std::exception_ptr error) {
            if (error) log_warning("counts are not kept: {}", message_of(error));
          });
        job(db, result);
      },
      stop);
}

void Counter::fill(const std::string& sweep, std::vector<std::string> models, ChangeFeed& feed, Job then) {
  count(std::move(models), [sweep, &feed, then = std::move(then)](
                               storage::Database& db, const planning::ModelCounter::Result& result) {
    if (!result.missing.empty())
      log_warning({{"sweep", sweep}}, "sweep {}: counts are missing: {}", sweep, result.missing);
    if (then) then(db, result);
    feed.publish({sweep});
  });
}

}  // namespace abl::scheduler
