// SPDX-License-Identifier: Apache-2.0
#include "webhooks/courier.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <nlohmann/json.hpp>
#include <stop_token>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"

namespace abl::webhooks {
namespace {

using Steady = std::chrono::steady_clock;

nlohmann::json json_of(const Told& told) {
  auto complete = nlohmann::json::object(), cells = nlohmann::json::object();
  for (const auto& [sweep, with] : told.complete) complete[std::to_string(sweep)] = with;
  for (const auto& [sweep, names] : told.cells) cells[std::to_string(sweep)] = names;
  return {{"upto", told.upto},
          {"until", told.until},
          {"since_ms", told.since.time_since_epoch().count()},
          {"complete", std::move(complete)},
          {"cells", std::move(cells)}};
}

/// Throws: nlohmann::json::exception, std::exception for a text that is no number.
Told told_in(const nlohmann::json& json) {
  Told told{.upto = json.at("upto").get<std::int64_t>(),
            .until = json.at("until").get<std::int64_t>(),
            .since = Time{Milliseconds{json.at("since_ms").get<std::int64_t>()}}};
  for (const auto& [sweep, with] : json.at("complete").items())
    told.complete[static_cast<storage::SweepId>(std::stoul(sweep))] = with.get<std::string>();
  for (const auto& [sweep, names] : json.at("cells").items())
    told.cells[static_cast<storage::SweepId>(std::stoul(sweep))] = names.get<std::set<std::string>>();
  return told;
}

}  // namespace

/// One webhook. Thread: its own.
class Couriers::Courier {
 public:
  Courier(Couriers& all, Webhook webhook, Told told)
      : all_{all},
        webhook_{std::move(webhook)},
        told_{std::move(told)},
        db_{all.options_.store, storage::Database::Mode::kReadOnly},
        thread_{[this](std::stop_token stop) { run(std::move(stop)); }} {}

  void wake() {
    {
      const std::lock_guard lock{mutex_};
      woken_ = true;
    }
    wake_.notify_all();
  }
  void ask_to_stop() { thread_.request_stop(); }

 private:
  void run(std::stop_token stop) {
    while (!stop.stop_requested()) {
      const auto begun = Steady::now();
      Round round;
      try {
        round = look(db_, all_.tables_, webhook_, told_);
      } catch (const std::exception& error) {  // a disk that fails, a file that was replaced: others say so
        log_warning("webhook {}: cannot look at the store: {}", webhook_.name, error.what());
        if (!wait(stop, all_.options_.longest_wait, /*until_woken=*/false)) return;
        continue;
      }
      const auto took = std::chrono::duration_cast<Milliseconds>(Steady::now() - begun);
      if (round.lost > 0)
        log_warning(
            "webhook {}: {} steps of trials are older than what the store remembers, and were not told",
            webhook_.name, round.lost);
      if (!tell(round, stop)) return;
      if (round.more) continue;
      // looking at a large table takes its time: no more than a twentieth of a processor's
      if (!wait(stop, std::max(all_.options_.between, 20 * took), false)) return;
      if (!wait(stop, Milliseconds{60'000}, true)) return;
    }
  }

  /// False: the program stops before all is told.
  bool tell(Round& round, const std::stop_token& stop) {
    if (round.told.upto == told_.upto) return true;
    if (!round.happenings.empty()) {
      told_.until = round.told.upto;  // after a restart the same round again, whatever has happened since
      all_.save(webhook_.name, told_);
    }
    for (const Happening& happening : round.happenings)
      if (!deliver(message_of(happening, webhook_, all_.options_.dashboard), stop)) return false;
    told_ = std::move(round.told);
    all_.save(webhook_.name, told_);
    return true;
  }

  /// False: the program stops, and the message was not taken.
  bool deliver(const Message& message, const std::stop_token& stop) {
    const auto begun = Steady::now();
    Milliseconds pause = all_.options_.first_wait;
    bool said = false;
    while (!stop.stop_requested()) {
      const Posted posted = all_.options_.post(webhook_, message, stop);
      if (posted.taken()) {
        all_.figures_.taken.add();
        return true;
      }
      if (stop.stop_requested()) return false;
      all_.figures_.failed.add();
      const bool too_long = Steady::now() - begun >= all_.options_.patience;
      if (posted.refused() || too_long) {
        all_.figures_.dropped.add();
        log_warning("webhook {}: {} dropped: {}{}", webhook_.name, message.id, posted.why,
                    posted.refused() ? "" : ", for too long");
        return true;
      }
      if (!std::exchange(said, true))
        log_warning("webhook {}: {} was not taken ({}); it is tried again for up to {} h", webhook_.name,
                    message.id, posted.why,
                    std::chrono::duration_cast<std::chrono::hours>(all_.options_.patience).count());
      const Milliseconds asked =
          posted.retry_after
              ? Milliseconds{std::min<std::chrono::seconds>(*posted.retry_after, std::chrono::hours{1})}
              : Milliseconds{0};
      if (!wait(stop, std::max(pause, asked), false)) return false;
      pause = std::min(2 * pause, all_.options_.longest_wait);
    }
    return false;
  }

  /// False: the program stops.
  bool wait(const std::stop_token& stop, Milliseconds time, bool until_woken) {
    std::unique_lock lock{mutex_};
    wake_.wait_for(lock, stop, time, [&] { return until_woken && woken_; });
    if (until_woken) woken_ = false;
    return !stop.stop_requested();
  }

  Couriers& all_;
  const Webhook webhook_;
  Told told_;
  storage::Database db_;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  bool woken_ = false;
  std::jthread thread_;  // last: what it uses is there
};

Couriers::Couriers(std::vector<Webhook> webhooks, CourierOptions options, views::TableCache& tables)
    : options_{[&] {
        if (options.file.empty()) options.file = options.store.string() + ".webhooks.json";
        return std::move(options);
      }()},
      tables_{tables} {
  storage::Database db{options_.store, storage::Database::Mode::kReadOnly};
  store_id_ = db.store_id();
  if (std::filesystem::exists(options_.file)) try {
      const auto stored = nlohmann::json::parse(read_file(options_.file));
      if (stored.at("store") == store_id_)  // what was told of another store says nothing of this one
        for (const auto& [name, told] : stored.at("webhooks").items()) told_[name] = told_in(told);
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {
      throw Error{
          Code::kDataLoss,
          fmt::format("{}: expected what this program writes there ({}); remove it to tell webhooks of what "
                      "happens from now on",
                      options_.file.string(), error.what())};
    }
  const Told nothing = told_nothing(db, SystemClock{}.now());
  for (Webhook& webhook : webhooks) {
    Told& told = told_.try_emplace(webhook.name, nothing).first->second;
    if (told.upto > nothing.upto) told = nothing;  // the store was restored from a backup
    forget_removed(db, told);
  }
  // One that is not in the file is perhaps in the next: it goes on where it was.
  constexpr std::size_t kMostKept = 100;
  for (auto one = told_.begin(); one != told_.end();) {
    const bool wanted =
        std::ranges::any_of(webhooks, [&](const Webhook& webhook) { return webhook.name == one->first; });
    one = wanted || told_.size() <= kMostKept ? std::next(one) : told_.erase(one);
  }
  write();  // whoever is new begins here, also where this program ends before it has told anything
  const auto begin = told_;  // couriers change it as soon as they are there
  for (Webhook& webhook : webhooks) {
    const Told& told = begin.at(webhook.name);
    couriers_.push_back(std::make_unique<Courier>(*this, std::move(webhook), told));
  }
}

Couriers::~Couriers() { stop(); }

void Couriers::stop() {
  for (const auto& courier : couriers_) courier->ask_to_stop();
  couriers_.clear();
}

void Couriers::wake() {
  for (const auto& courier : couriers_) courier->wake();
}

void Couriers::save(const std::string& webhook, const Told& told) {
  const std::lock_guard lock{file_mutex_};
  told_[webhook] = told;
  write();
}

void Couriers::write() {
  nlohmann::json json{{"store", store_id_}, {"webhooks", nlohmann::json::object()}};
  for (const auto& [name, one] : told_) json["webhooks"][name] = json_of(one);
  try {
    write_file_atomically(options_.file, json.dump());
    unsaved_ = false;
  } catch (const Error& error) {
    if (!std::exchange(unsaved_, true))
      log_warning("what webhooks were told cannot be stored: after a restart they hear it again ({})",
                  error.what());
  }
}

}  // namespace abl::webhooks
