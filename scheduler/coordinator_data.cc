// SPDX-License-Identifier: Apache-2.0
// What data sets' names stand for, and who has them.
#include <fmt/format.h>
#include <utility>

#include "base/log.h"
#include "scheduler/coordinator.h"
#include "storage/data_pins.h"

namespace abl::scheduler {

using storage::Database;

void Coordinator::note_data(std::map<std::string, std::string> pins) {
  std::set<std::string> pushed;  // of what was pushed before a name was pinned anew no run would be right
  for (const auto& [name, fingerprint] : pushed_ ? pushed_() : std::map<std::string, std::string>{})
    if (const auto pinned = pins.find(name); pinned == pins.end() || pinned->second == fingerprint)
      pushed.insert(name);
  if (fleet_.set_data(std::move(pins), std::move(pushed))) explain_now_ = true;
  *data_.lock() = fleet_.data();
}

void Coordinator::look_at_data(Answer<> answer) {
  commit([](Database& db) { return storage::DataPins{db}.all(); },
         [this, answer = std::move(answer)](std::exception_ptr error,
                                            const std::map<std::string, std::string>& pins) {
           if (!error) note_data(pins);
           answer(error);
           if (!error) look_at_queue();
         });
}

void Coordinator::repin(const std::string& name, const std::string& fingerprint,
                        const std::string& from_worker, bool dry_run, Answer<Repinned> answer) {
  commit(
      [=, this](Database& db) {
        Repinned result{.before = {}, .fingerprint = fingerprint};
        if (!from_worker.empty()) {
          for (const auto& [known, workers] : fleet_.data())
            for (const auto& on : workers)
              if (known == name && on.worker() == from_worker) result.fingerprint = on.fingerprint();
          if (result.fingerprint.empty())
            throw Error{Code::kNotFound,
                        fmt::format("worker '{}' has not said what its data '{}' are; 'ablate data ls' shows "
                                    "what workers have",
                                    from_worker, name)};
        }
        storage::DataPins pins{db};
        for (const auto& use : pins.uses())
          if (use.name == name) {
            result.before = use.fingerprint;
            result.trials = use.trials;
            result.waiting = use.waiting;
          }
        if (!dry_run || result.before.empty()) pins.repin(name, result.fingerprint);
        return result;
      },
      [=, this](std::exception_ptr error, const Repinned& result) {
        answer(error, result);
        if (error || dry_run) return;
        log_info("data '{}' stand for {} from now on, and stood for {}", name, result.fingerprint,
                 result.before);
        look_at_data([](std::exception_ptr) {});
      });
}

}  // namespace abl::scheduler
