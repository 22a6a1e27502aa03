// SPDX-License-Identifier: Apache-2.0
// The depot as workers see it.
#include "scheduler/depot_service.h"

#include <gmock/gmock.h>

#include <optional>

#include "base/file.h"
#include "base/sha256.h"
#include "storage/depot_store.h"
#include "tests/scheduler/services_fixture.h"

namespace abl::scheduler {
namespace {

using testing::HasSubstr;

TEST(Pace, EachPieceHasItsTurnAfterThoseBefore) {
  Pace pace{1000};
  const Pace::Steady begin{1h};
  EXPECT_EQ(pace.wait(500, begin), 0us);
  EXPECT_EQ(pace.wait(500, begin), 500ms);
  EXPECT_EQ(pace.wait(1, begin + 200ms), 800ms);
  EXPECT_EQ(pace.wait(500, begin + 10s), 0us) << "what nobody used is not saved up";
  EXPECT_EQ(pace.wait(500, begin + 10s), 500ms);
  Pace unbounded{0};
  EXPECT_EQ(unbounded.wait(1 << 30, begin), 0us);
  EXPECT_EQ(unbounded.wait(1 << 30, begin), 0us);
}

class DepotServiceTest : public ServicesTest {
 protected:
  /// The next assignment to a worker.
  static Assign assignment(ScriptedWorker& worker) {
    for (SchedulerMessage message = worker.hear(); message.body_case() != SchedulerMessage::BODY_NOT_SET;
         message = worker.hear())
      if (message.has_assign()) return message.assign();
    ADD_FAILURE() << "no assignment";
    return {};
  }
  static void hear_acknowledgement(ScriptedWorker& worker) {
    while (!worker.hear().has_ack()) {
    }
  }
  /// The run says that it wrote a checkpoint of this content.
  void checkpoint(ScriptedWorker& worker, const Assign& assign, std::uint32_t step,
                  const std::string& content, std::optional<RunEnded::Status> ended = {}) {
    RunBatch batch;
    batch.set_run(assign.run());
    batch.set_token(assign.token());
    batch.set_seq(++batches[assign.run()]);
    batch.mutable_started()->set_total_steps(100);
    auto& said = *batch.add_checkpoints();
    said.set_step(step);
    said.set_path("/runs/checkpoint-" + std::to_string(step));
    said.set_sha256(sha256_hex(content));
    if (ended) {
      batch.mutable_ended()->set_status(*ended);
      batch.mutable_ended()->set_asked(true);
      batch.mutable_ended()->set_retryable(true);
    }
    worker.say(batch);
    hear_acknowledgement(worker);
  }
  static Blob blob_of(const Assign& assign, const std::string& content) {
    Blob blob;
    blob.set_sha256(sha256_hex(content));
    blob.set_bytes(content.size());
    blob.set_run(assign.run());
    blob.set_token(assign.token());
    return blob;
  }
  grpc::Status put(const Blob& blob, const std::string& piece, std::uint64_t offset = 0) {
    Patience context;
    PutPieceRequest request;
    *request.mutable_blob() = blob;
    request.set_offset(offset);
    request.set_piece(piece);
    return depot->PutCheckpoint(&context, request, &have);
  }
  grpc::Status get(const Blob& blob, bool damaged = false) {
    Patience context;
    GetPieceRequest request;
    *request.mutable_blob() = blob;
    request.set_damaged(damaged);
    return depot->Get(&context, request, &got);
  }
  std::filesystem::path blob_file(const Assign& assign, const std::string& content) const {
    return folder.path() / "results.db.depot" / ("trial-" + std::to_string(assign.trial())) /
           sha256_hex(content);
  }

  std::map<std::uint32_t, std::uint64_t> batches;
  PutPieceResponse have;
  GetPieceResponse got;
  const std::string content = "weights after ten steps";
};

TEST_F(DepotServiceTest, TheNextRunOfATrialFetchesWhatTheOneBeforeBrought) {
  ASSERT_TRUE(submit(file_of("s")).ok());
  ScriptedWorker first{channel};
  first.hello(hello_of({.name = "first", .slots = 1}));
  const SchedulerMessage welcome = first.hear();
  EXPECT_EQ(welcome.welcome().depot_every_ms(), 5000u);
  const Assign assign = assignment(first);
  EXPECT_EQ(put(blob_of(assign, content), content).error_code(), grpc::StatusCode::NOT_FOUND)
      << "the run has not said that there is such a checkpoint";
  checkpoint(first, assign, 10, content);
  ASSERT_TRUE(put(blob_of(assign, content), content.substr(0, 5)).ok());
  EXPECT_FALSE(have.whole());
  EXPECT_EQ(have.have(), 5u);
  ASSERT_TRUE(put(blob_of(assign, content), content.substr(5), 5).ok());
  EXPECT_TRUE(have.whole());
  checkpoint(first, assign, 20, "never brought", RunEnded::STATUS_STOPPED);

  const Assign again = assignment(first);
  ASSERT_EQ(again.trial(), assign.trial());
  ASSERT_EQ(again.checkpoints_size(), 2);
  EXPECT_EQ(again.checkpoints(0).step(), 20u);
  EXPECT_EQ(again.checkpoints(0).depot_bytes(), 0u);
  EXPECT_EQ(again.checkpoints(1).step(), 10u);
  EXPECT_EQ(again.checkpoints(1).depot_bytes(), content.size());
  ASSERT_TRUE(get(blob_of(again, content)).ok());
  EXPECT_EQ(got.piece(), content);
  EXPECT_EQ(got.bytes(), content.size());
}

TEST_F(DepotServiceTest, WhoHasNotTheRunGetsNothingAndBringsNothing) {
  ASSERT_TRUE(submit(file_of("s")).ok());
  const auto worker = connect({.name = "first", .slots = 2});
  const Assign assign = assignment(*worker), other = assignment(*worker);
  checkpoint(*worker, assign, 10, content);
  ASSERT_TRUE(put(blob_of(assign, content), content).ok());
  Blob blob = blob_of(assign, content);
  blob.set_token("guessed");
  for (const std::string& token : {std::string{}, std::string{"guessed"}, other.token()}) {
    blob.set_token(token);
    EXPECT_EQ(put(blob, content).error_code(), grpc::StatusCode::PERMISSION_DENIED) << token;
    EXPECT_EQ(get(blob).error_code(), grpc::StatusCode::PERMISSION_DENIED) << token;
  }
  blob.set_run(4711);
  EXPECT_EQ(get(blob).error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(get(blob_of(other, content)).error_code(), grpc::StatusCode::PERMISSION_DENIED)
      << "it is a checkpoint of another trial";
  Blob path = blob_of(assign, content);
  path.set_sha256("../../results.db");
  EXPECT_EQ(get(path).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(put(path, content).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(DepotServiceTest, AWorkerThatTakesPartInARunFetchesItsDataAndCheckpoints) {
  PutPieceRequest piece;
  piece.mutable_blob()->set_sha256(sha256_hex("packed images"));
  piece.mutable_blob()->set_bytes(13);
  piece.set_piece("packed images");
  Patience brings, names;
  ASSERT_TRUE(depot->PutData(&brings, piece, &have).ok());
  PushDataRequest push;
  push.set_name("shapes");
  push.set_sha256(sha256_hex("packed images"));
  push.set_bytes(13);
  push.set_fingerprint("f1");
  DataName pushed;
  ASSERT_TRUE(depot->PushData(&names, push, &pushed).ok());

  std::string text = kSweep;
  text.replace(text.find("seeds:"), 0, "resources: {nodes: 2}\n");
  ASSERT_TRUE(submit(file_of("s", text)).ok());
  Hello lacks = hello_of({.name = "second", .data = {}, .address = "10.0.0.2"});
  lacks.set_takes_depot(true);
  const auto first = connect({.name = "first", .address = "10.0.0.1"});
  ScriptedWorker second{channel};
  second.hello(lacks);
  const Assign assign = assignment(*first);
  checkpoint(*first, assign, 10, content);
  ASSERT_TRUE(put(blob_of(assign, content), content).ok());
  RunBatch meets;
  meets.set_run(assign.run());
  meets.set_token(assign.token());
  meets.set_seq(++batches[assign.run()]);
  meets.set_rendezvous("10.0.0.1:4711");
  first->say(meets);
  const Assign part = assignment(second);
  EXPECT_EQ(part.gang().node(), 1u);
  EXPECT_EQ(part.data_sha256(), sha256_hex("packed images"));

  // over TLS each is known by its name
  storage::Database db{folder / "results.db", storage::Database::Mode::kReadOnly};
  const storage::DepotStore store{db};
  EXPECT_EQ(store.data_of(part.run(), {.worker = "second", .token = part.token()}), "shapes");
  EXPECT_NO_THROW(
      store.expect_readable(part.run(), {.worker = "second", .token = part.token()}, sha256_hex(content)));
  EXPECT_THROW(store.data_of(part.run(), {.worker = "third", .token = part.token()}), Error);
  EXPECT_THROW(store.written(part.run(), {.worker = "second", .token = part.token()}, sha256_hex(content)),
               Error)
      << "the first one brings them";
}

TEST_F(DepotServiceTest, AnUploadGoesOnAfterARestartOfTheScheduler) {
  ASSERT_TRUE(submit(file_of("s")).ok());
  auto worker = connect({.name = "first", .slots = 1});
  const Assign assign = assignment(*worker);
  checkpoint(*worker, assign, 10, content);
  ASSERT_TRUE(put(blob_of(assign, content), content.substr(0, 7)).ok());
  worker.reset();
  stop();
  start();
  ASSERT_TRUE(put(blob_of(assign, content), "").ok());
  EXPECT_EQ(have.have(), 7u);
  ASSERT_TRUE(put(blob_of(assign, content), content.substr(7), 7).ok());
  EXPECT_TRUE(have.whole());
}

TEST_F(DepotServiceTest, AFileThatWasDamagedOnTheDiskIsGivenToNobodyTwice) {
  ASSERT_TRUE(submit(file_of("s")).ok());
  const auto worker = connect({.name = "first", .slots = 1});
  const Assign assign = assignment(*worker);
  checkpoint(*worker, assign, 10, content);
  ASSERT_TRUE(put(blob_of(assign, content), content).ok());
  EXPECT_TRUE(get(blob_of(assign, content), /*damaged=*/true).ok()) << "it is not";
  clock.pass(1min);
  write_file(blob_file(assign, content), "weights after ten stepS");
  EXPECT_EQ(get(blob_of(assign, content), true).error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_FALSE(std::filesystem::exists(blob_file(assign, content)));
  ASSERT_TRUE(put(blob_of(assign, content), content).ok()) << "it may be brought again";
}

TEST_F(DepotServiceTest, WhatNobodyNeedsAnyMoreGoes) {
  ASSERT_TRUE(submit(file_of("s")).ok());
  const auto worker = connect({.name = "first", .slots = 1});
  const Assign assign = assignment(*worker);
  const std::string newer = "weights after twenty steps";
  const auto tidied = [&] {
    clock.pass(3min);
    scheduler->depot().tick();
    EXPECT_TRUE(get(blob_of(assign, "nothing")).error_code() != grpc::StatusCode::OK);  // its turn is after
  };
  checkpoint(*worker, assign, 10, content);
  ASSERT_TRUE(put(blob_of(assign, content), content).ok());
  checkpoint(*worker, assign, 20, newer);
  tidied();
  EXPECT_TRUE(std::filesystem::exists(blob_file(assign, content))) << "the newer one is not there yet";
  ASSERT_TRUE(put(blob_of(assign, newer), newer).ok());
  tidied();
  EXPECT_FALSE(std::filesystem::exists(blob_file(assign, content)));
  EXPECT_TRUE(std::filesystem::exists(blob_file(assign, newer)));
  checkpoint(*worker, assign, 30, "the last", RunEnded::STATUS_COMPLETED);
  tidied();
  EXPECT_FALSE(std::filesystem::exists(blob_file(assign, newer))) << "its trial is completed";
}

TEST_F(DepotServiceTest, PushedFilesStayWhileNobodyCanReadWhatTheyAre) {
  const std::filesystem::path data = folder.path() / "results.db.depot" / "data";
  const std::filesystem::path file = data / sha256_hex(content), names = data / "names.json";
  const auto begin_with = [&](const std::string& text) {
    stop();
    std::filesystem::create_directories(data);
    write_file(file, content);
    write_file(names, text);
    start();
    for (int i = 0; i < 2; ++i) {
      clock.pass(3min);
      scheduler->depot().tick();
      Assign nobody;
      EXPECT_FALSE(get(blob_of(nobody, content)).ok());  // its turn is after
    }
  };
  for (const char* text : {"{\"a\": ",
                           "{\"a\": {\"sha256\": \"../x\", \"fingerprint\": \"f\", \"bytes\": 1, "
                           "\"pushed_ms\": 1, \"by\": \"\"}}"}) {
    begin_with(text);
    EXPECT_TRUE(scheduler->depot().pushed().all().empty()) << text;
    EXPECT_TRUE(std::filesystem::exists(file)) << text;
    EXPECT_EQ(read_file(names), text);
  }
  begin_with("{}");
  EXPECT_FALSE(std::filesystem::exists(file));
}

}  // namespace
}  // namespace abl::scheduler
