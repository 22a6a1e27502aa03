// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/instruments.h"
#include "views/table_cache.h"
#include "webhooks/observer.h"
#include "webhooks/post.h"

namespace abl::webhooks {

struct CourierOptions {
  std::filesystem::path store;
  /// What was told outlives the program here; by default `<store>.webhooks.json`.
  std::filesystem::path file;
  std::string dashboard{};  ///< its address, for links; empty: there is none
  /// At least so long from one look to the next: what happens meanwhile is told together.
  Milliseconds between{5000};
  Milliseconds first_wait{1000}, longest_wait{300'000};  ///< before another try of a post that was not taken
  Milliseconds patience{24 * 3600 *
                        1000};  ///< a post that nobody takes is dropped after so long, and that is logged
  std::function<Posted(const Webhook&, const Message&, std::stop_token)> post =
      [](const Webhook& webhook, const Message& message, std::stop_token stop) {
        return webhooks::post(webhook, message, stop);
      };
};

/// Tells webhooks what happens in a store, each on a thread of its own: one whose receiver is slow or gone
/// holds nobody up. What happens is read from the store and not kept: a scheduler that was stopped or killed
/// goes on where it was, so that a receiver hears of everything at least once; twice only with the same id.
/// Thread: one owner; `wake` and figures, any.
class Couriers {
 public:
  struct Figures {
    Tally taken, dropped, failed;  ///< posts; failed: tries
  };

  /// `tables`: outlives this. Throws: Error for a file of what was told that is not one.
  Couriers(std::vector<Webhook> webhooks, CourierOptions options, views::TableCache& tables);
  ~Couriers();
  Couriers(const Couriers&) = delete;
  Couriers& operator=(const Couriers&) = delete;

  /// Tells nothing more; figures stay.
  void stop();
  /// Something was committed. Not beside `stop`.
  void wake();
  const Figures& figures() const { return figures_; }

 private:
  class Courier;
  void save(const std::string& webhook, const Told& told);
  void write();

  const CourierOptions options_;
  views::TableCache& tables_;
  Figures figures_;
  std::mutex file_mutex_;
  std::string store_id_;
  std::map<std::string, Told> told_;  // as it stands in the file
  bool unsaved_ = false;              // it could not be written: said once
  std::vector<std::unique_ptr<Courier>> couriers_;
};

}  // namespace abl::webhooks
