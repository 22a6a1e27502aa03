// SPDX-License-Identifier: Apache-2.0
// What data sets' names stand for, which workers have that, and what is pinned anew.
#include "storage/data_pins.h"
#include "tests/scheduler/fixtures.h"

namespace abl::scheduler {
namespace {

using ablate::v1::RunEnded;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class CoordinatorDataTest : public CoordinatorTest {
 protected:
  static ablate::v1::Hello hello(const std::string& name, const std::string& fingerprint) {
    auto said = hello_of({.name = name, .data = {"cifar10"}});
    say_place(*said.add_data_places(), fingerprint);
    return said;
  }
  static void say_place(ablate::v1::DataPlace& place, const std::string& fingerprint) {
    place.set_name("cifar10");
    place.set_place("/data/cifar10");
    place.set_fingerprint(fingerprint);
  }
  FakeWorker join(const ablate::v1::Hello& said) {
    FakeWorker worker;
    worker.session = coordinator->open_session(said, worker.channel);
    settle();
    worker.look();
    return worker;
  }
  void has_now(FakeWorker& worker, const std::string& fingerprint) {
    ablate::v1::WorkerMessage message;
    say_place(*message.mutable_heartbeat()->add_data_places(), fingerprint);
    coordinator->receive(worker.session, message);
    settle();
    worker.look();
  }
  /// A worker completes a trial of this content, which pins it where nothing is pinned.
  void complete(FakeWorker& worker, std::uint32_t run, const std::string& fingerprint) {
    say(worker, started(run, 1, fingerprint));
    say(worker, measured(run, 2, 90));
    say(worker, ended(run, 3));
  }
  std::pair<Code, std::string> repin(const std::string& fingerprint, const std::string& from = "",
                                     bool dry_run = false) {
    const auto answer = answer_of([&](auto done) {
      coordinator->repin("cifar10", fingerprint, from, dry_run,
                         [this, done](std::exception_ptr error, const Coordinator::Repinned& result) {
                           repinned = result;
                           done(error);
                         });
    });
    settle();
    return answer;
  }
  std::string fingerprint_of(storage::TrialId id) { return trial(id).identity.data_fingerprint; }

  Coordinator::Repinned repinned;
};

TEST_F(CoordinatorDataTest, AWorkerThatSaysAnotherFingerprintGetsNoTrialOfThatName) {
  FakeWorker first = join(hello("first", "f1"));
  submit(sweep_of("s", 2, 1, "cifar10"));
  ASSERT_THAT(first.take_assigned(), SizeIs(1));
  complete(first, 1, "f1");
  disconnect(first);  // with the second trial's run
  pass(60s);
  FakeWorker second = join(hello("second", "f2"));
  pass(2s);
  EXPECT_THAT(second.take_assigned(), IsEmpty());
  EXPECT_THAT(trial(2).reason, HasSubstr("data 'cifar10' on worker 'second' has the fingerprint f2"));
  EXPECT_THAT(trial(2).reason, HasSubstr("this store's results are of f1"));
  ASSERT_THAT(coordinator->data()["cifar10"], SizeIs(1));
  EXPECT_EQ(coordinator->data()["cifar10"][0].fingerprint(), "f2");
  EXPECT_THAT(coordinator->data()["cifar10"][0].trouble(), HasSubstr("results are of f1"));

  has_now(second, "f1");
  EXPECT_THAT(second.take_assigned(), SizeIs(1)) << "its data were mended, and nobody started it anew";
}

TEST_F(CoordinatorDataTest, DataThatARunFoundToBeOthersAreUsedAgainWhenTheWorkerSaysSo) {
  FakeWorker first = join(hello("first", "f1"));
  submit(sweep_of("s", 3, 1, "cifar10"));
  complete(first, 1, "f1");
  disconnect(first);
  pass(60s);
  FakeWorker second = join(hello("second", ""));  // it has not read them yet
  const auto assigned = second.take_assigned();
  ASSERT_THAT(assigned, SizeIs(1));
  EXPECT_EQ(assigned[0].data_fingerprint(), "f1");
  say(second, started(assigned[0].run(), 1, "f2"));
  EXPECT_THAT(second.take_said(), testing::Contains(HasSubstr("fenced")));
  pass(2s);
  EXPECT_THAT(second.take_assigned(), IsEmpty());
  has_now(second, "f2");
  EXPECT_THAT(second.take_assigned(), IsEmpty());
  has_now(second, "f1");
  EXPECT_THAT(second.take_assigned(), SizeIs(1));
}

TEST_F(CoordinatorDataTest, WhatIsPinnedAnewHoldsForWhatComesAndNotForWhatIsThere) {
  FakeWorker worker = join(hello("first", "f1"));
  submit(sweep_of("s", 3, 1, "cifar10"));
  complete(worker, 1, "f1");
  say(worker, started(2, 1, "f1"));
  auto wrote = batch_of(2, 2);
  wrote.add_checkpoints()->set_path("/runs/2/1/checkpoint-10");
  wrote.mutable_checkpoints(0)->set_step(10);
  wrote.mutable_checkpoints(0)->set_sha256(std::string(64, 'a'));
  say(worker, wrote);

  EXPECT_EQ(repin("", "nobody").first, Code::kNotFound);
  EXPECT_EQ(repin("with a space").first, Code::kInvalidArgument);
  EXPECT_EQ(repin("f2", "", /*dry_run=*/true).first, Code::kOk);
  EXPECT_EQ(repinned.before, "f1");
  EXPECT_EQ(repinned.trials, 1u);
  EXPECT_EQ(repinned.waiting, 1u);
  EXPECT_EQ(read([](storage::Database& db) { return storage::DataPins{db}.all(); })["cifar10"], "f1");
  EXPECT_EQ(repin("f2").first, Code::kOk);

  say(worker, ended(2, 3, RunEnded::STATUS_STOPPED));
  EXPECT_THAT(worker.take_assigned(), SizeIs(2)) << "those of before";
  pass(2s);
  EXPECT_THAT(worker.take_assigned(), IsEmpty()) << "it has what was pinned before";
  has_now(worker, "f2");
  auto assigned = worker.take_assigned();
  ASSERT_THAT(assigned, SizeIs(1));
  EXPECT_EQ(assigned[0].data_fingerprint(), "f2");
  EXPECT_THAT(assigned[0].checkpoints(), IsEmpty()) << "a checkpoint of other images is not gone on from";
  complete(worker, assigned[0].run(), "f2");
  EXPECT_EQ(fingerprint_of(1), "f1") << "a result keeps what it is of";
  EXPECT_EQ(fingerprint_of(static_cast<storage::TrialId>(assigned[0].trial())), "f2");
  EXPECT_EQ(trial(1).state, storage::TrialState::kCompleted);
}

TEST_F(CoordinatorDataTest, ATrialThatWaitsGivesWayToTheSameOneOfTheContentThatIsPinnedAgain) {
  FakeWorker worker = join(hello("first", "f1"));
  submit(sweep_of("s", 1, 1, "cifar10"));
  complete(worker, 1, "f1");
  repin("f2");
  auto again = sweep_of("again", 1, 1, "cifar10");
  submit(again);
  EXPECT_EQ(fingerprint_of(2), "f2") << "the same configuration of other images is another trial";
  repin("f1");
  pass(2s);
  EXPECT_EQ(trial(2).state, storage::TrialState::kCancelled);
  EXPECT_THAT(trial(2).reason, HasSubstr("trial 1 took its place"));
  EXPECT_THAT(worker.take_assigned(), SizeIs(1)) << "the first; nothing is trained twice";
}

TEST_F(CoordinatorDataTest, ANameThatNobodyHasUsedCannotBePinnedAnew) {
  submit(sweep_of("s", 1, 1, "cifar10"));
  const auto [code, why] = repin("f2");
  EXPECT_EQ(code, Code::kNotFound);
  EXPECT_THAT(why, HasSubstr("no results of data 'cifar10' here"));
}

TEST_F(CoordinatorDataTest, APushedDataSetIsForEveryWorkerThatCanFetchIt) {
  stop();
  writer = std::make_unique<storage::Writer>(folder / "results.db");
  coordinator = std::make_unique<Coordinator>(*writer, clock, policy, feed);
  std::map<std::string, std::string> pushed;
  coordinator->serve_depot([](ablate::v1::Assign& assign) { assign.set_data_sha256("of the pushed one"); },
                           [&] { return pushed; }, 1s);
  coordinator->recover();
  auto cannot = hello_of({.name = "old"}), can = hello_of({.name = "new"});
  can.set_takes_depot(true);
  FakeWorker old = join(cannot), worker = join(can);
  submit(sweep_of("s", 1, 1, "cifar10"));
  EXPECT_THAT(worker.take_assigned(), IsEmpty());
  pushed = {{"cifar10", "f1"}};
  answer_of([&](auto done) { coordinator->look_at_data(done); });
  settle();
  const auto assigned = worker.take_assigned();
  ASSERT_THAT(assigned, SizeIs(1));
  EXPECT_EQ(assigned[0].data_sha256(), "of the pushed one");
  EXPECT_THAT(old.take_assigned(), IsEmpty());

  complete(worker, 1, "f1");
  ASSERT_EQ(repin("f2").first, Code::kOk);
  submit(sweep_of("more", 2, 1, "cifar10"));
  EXPECT_THAT(worker.take_assigned(), IsEmpty()) << "what was pushed is not what the name stands for now";
  pushed = {{"cifar10", "f2"}};
  answer_of([&](auto done) { coordinator->look_at_data(done); });
  settle();
  EXPECT_THAT(worker.take_assigned(), SizeIs(1));
}

}  // namespace
}  // namespace abl::scheduler
