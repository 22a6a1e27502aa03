// SPDX-License-Identifier: Apache-2.0
#include "webhooks/courier.h"

#include <atomic>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "tests/error_of.h"
#include "tests/storage/fixtures.h"

namespace abl::webhooks {
namespace {

using namespace std::chrono_literals;
using storage::StoreTest;
using storage::sweep_of;
using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

/// Who takes posts, and what he answers.
class Receiver {
 public:
  Posted take(const Webhook& webhook, const Message& message) {
    const std::lock_guard lock{mutex_};
    const Posted answer = answers_.empty() ? Posted{.status = 200, .why = "HTTP 200 OK"} : answers_.front();
    if (!answers_.empty()) answers_.erase(answers_.begin());
    ++tries_;
    if (answer.taken()) taken_.push_back(webhook.name + ' ' + message.event + ' ' + message.id);
    changed_.notify_all();
    return answer;
  }
  void will_answer(std::vector<Posted> answers) {
    const std::lock_guard lock{mutex_};
    answers_ = std::move(answers);
  }
  bool has_taken(std::size_t count) {
    std::unique_lock lock{mutex_};
    return changed_.wait_for(lock, 30s, [&] { return taken_.size() >= count; });
  }
  bool was_tried(int times) {
    std::unique_lock lock{mutex_};
    return changed_.wait_for(lock, 30s, [&] { return tries_ >= times; });
  }
  std::vector<std::string> taken() {
    const std::lock_guard lock{mutex_};
    return taken_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Posted> answers_;
  std::vector<std::string> taken_;
  int tries_ = 0;
};

class CourierTest : public StoreTest {
 protected:
  CourierTest() { submit(sweep_of("s", 1, 2)); }

  CourierOptions options() {
    return {.store = folder / "results.db",
            .file = {},
            .between = 1ms,
            .first_wait = 1ms,
            .longest_wait = 4ms,
            .post = [this](const Webhook& webhook, const Message& message, std::stop_token) {
              return receiver.take(webhook, message);
            }};
  }
  static Webhook webhook(const std::string& name = "lab") {
    return {.name = name, .url = {}, .events = {Event::kSweepComplete, Event::kRowFailed}, .sweeps = {}};
  }
  nlohmann::json stored() { return nlohmann::json::parse(read_file(folder / "results.db.webhooks.json")); }

  Receiver receiver;
  views::TableCache tables{folder / "results.db"};
};

TEST_F(CourierTest, WhatHappensIsPostedToEach) {
  Couriers couriers{{webhook("lab"), webhook("nightly")}, options(), tables};
  complete(1, 80);
  complete(2, 80);
  couriers.wake();
  ASSERT_TRUE(receiver.has_taken(2));
  EXPECT_THAT(receiver.taken(), testing::UnorderedElementsAre(HasSubstr("lab sweep-complete"),
                                                              HasSubstr("nightly sweep-complete")));
}

TEST_F(CourierTest, APostThatIsNotTakenIsTriedAgain) {
  receiver.will_answer({{.status = 0, .why = "connection refused"},
                        {.status = 503, .why = "HTTP 503"},
                        {.status = 429, .why = "HTTP 429", .retry_after = 0s}});
  Couriers couriers{{webhook()}, options(), tables};
  complete(1, 80);
  complete(2, 80);
  couriers.wake();
  ASSERT_TRUE(receiver.has_taken(1));
  EXPECT_EQ(couriers.figures().failed.value(), 3u);
  EXPECT_EQ(couriers.figures().dropped.value(), 0u);
}

TEST_F(CourierTest, ARefusedOneIsDroppedAndTheNextIsTold) {
  receiver.will_answer({{.status = 404, .why = "HTTP 404 Not Found"}});
  Couriers couriers{{webhook()}, options(), tables};
  complete(1, 80);
  complete(2, 80);
  couriers.wake();
  ASSERT_TRUE(receiver.was_tried(1));
  submit(sweep_of("t", 1, 1, "t"));
  complete(3, 80);
  couriers.wake();
  ASSERT_TRUE(receiver.has_taken(1));
  EXPECT_EQ(couriers.figures().dropped.value(), 1u);
  EXPECT_THAT(receiver.taken(), SizeIs(1));
}

TEST_F(CourierTest, WhatTakesAReceiverLongIsNotWaitedForAfterwards) {
  auto slow = options();
  slow.post = [this](const Webhook& webhook, const Message& message, std::stop_token) {
    std::this_thread::sleep_for(400ms);
    return receiver.take(webhook, message);
  };
  slow.longest_wait = 10min;
  Couriers couriers{{webhook()}, slow, tables};
  complete(1, 80);
  complete(2, 80);
  couriers.wake();
  ASSERT_TRUE(receiver.has_taken(1));
  const auto begun = std::chrono::steady_clock::now();
  submit(sweep_of("t", 1, 1, "t"));
  complete(3, 80);
  couriers.wake();
  ASSERT_TRUE(receiver.has_taken(2));
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 8s) << "twenty times as long as a post took";
}

TEST_F(CourierTest, WhatNobodyTakesForTooLongIsDropped) {
  receiver.will_answer(std::vector<Posted>(100'000, {.status = 503, .why = "HTTP 503", .retry_after = 0s}));
  auto impatient = options();
  impatient.patience = 20ms;
  Couriers couriers{{webhook()}, impatient, tables};
  complete(1, 80);
  complete(2, 80);
  couriers.wake();
  for (int i = 0; i < 3000 && couriers.figures().dropped.value() == 0; ++i) std::this_thread::sleep_for(10ms);
  EXPECT_EQ(couriers.figures().dropped.value(), 1u);
  EXPECT_GT(couriers.figures().failed.value(), 1u);
}

TEST_F(CourierTest, AnotherProgramGoesOnWhereThisOneWas) {
  {
    receiver.will_answer(std::vector<Posted>(100'000, {.status = 500, .why = "HTTP 500"}));
    Couriers couriers{{webhook()}, options(), tables};
    complete(1, 80);
    complete(2, 80);
    couriers.wake();
    ASSERT_TRUE(receiver.was_tried(2));
  }
  EXPECT_THAT(receiver.taken(), IsEmpty());
  receiver.will_answer({});
  {
    Couriers couriers{{webhook()}, options(), tables};
    ASSERT_TRUE(receiver.has_taken(1)) << "what nobody took is told by the next";
  }
  {
    Couriers couriers{{webhook()}, options(), tables};
    submit(sweep_of("t", 1, 1, "t"));
    complete(3, 80);
    couriers.wake();
    ASSERT_TRUE(receiver.has_taken(2));
  }
  EXPECT_THAT(receiver.taken(), SizeIs(2)) << "each once";
}

TEST_F(CourierTest, AWebhookThatTheFileHasAgainGoesOnWhereItWas) {
  { const Couriers couriers{{webhook("lab"), webhook("chat")}, options(), tables}; }
  { const Couriers couriers{{webhook("lab")}, options(), tables}; }
  complete(1, 80);
  complete(2, 80);
  const Couriers couriers{{webhook("lab"), webhook("chat")}, options(), tables};
  EXPECT_TRUE(receiver.has_taken(2));
}

TEST_F(CourierTest, WhatWasToldOfAnotherStoreSaysNothing) {
  write_file(
      folder / "results.db.webhooks.json",
      R"({"store":"another","webhooks":{"lab":{"upto":0,"until":0,"since_ms":0,"complete":{},"cells":{}}}})");
  complete(1, 80);
  complete(2, 80);
  Couriers couriers{{webhook()}, options(), tables};
  submit(sweep_of("t", 1, 1, "t"));
  complete(3, 80);
  couriers.wake();
  ASSERT_TRUE(receiver.has_taken(1));
  EXPECT_THAT(receiver.taken(), ElementsAre(HasSubstr("-2-sweep-complete")))
      << "of this store nothing was told, and s is not new";
}

TEST_F(CourierTest, AStoreFromABackupBeginsAnew) {
  write_file(
      folder / "results.db.webhooks.json",
      R"({"store":")" + db.store_id() +
          R"(","webhooks":{"lab":{"upto":999999,"until":0,"since_ms":0,"complete":{},"cells":{}},"gone":{"upto":1,"until":0,"since_ms":0,"complete":{},"cells":{}}}})");
  Couriers couriers{{webhook()}, options(), tables};
  complete(1, 80);
  complete(2, 80);
  couriers.wake();
  EXPECT_TRUE(receiver.has_taken(1));
}

TEST_F(CourierTest, AFileThatIsNotOursIsNotOverwritten) {
  write_file(folder / "results.db.webhooks.json", "hello");
  EXPECT_THAT(error_of([&] {
                Couriers{{webhook()}, options(), tables};
              }),
              AllOf(HasSubstr("results.db.webhooks.json"), HasSubstr("remove it")));
  EXPECT_EQ(read_file(folder / "results.db.webhooks.json"), "hello");
}

}  // namespace
}  // namespace abl::webhooks
