// SPDX-License-Identifier: Apache-2.0
// The event stream, and who publishes.
#include <gmock/gmock.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "storage/metric_store.h"
#include "tests/web/server_fixture.h"
#include "web/server/sse.h"

namespace abl::web {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

TEST_F(ServerTest, TellsEveryStreamWhatWasPublished) {
  HttpClient one{server_->port()}, two{server_->port()};
  for (HttpClient* client : {&one, &two}) {
    client->write("GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
    ASSERT_TRUE(client->read_until("retry: 2000\n\n"));
    EXPECT_THAT(client->seen(),
                AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), HasSubstr("Content-Type: text/event-stream\r\n")));
  }
  server_->publish({"msf \"sharing\"", 12});
  for (HttpClient* client : {&one, &two})
    EXPECT_TRUE(
        client->read_until("event: change\ndata: {\"sweep\":\"msf \\\"sharing\\\"\",\"run\":12}\nid: "));
}

/// The id of the last event in what a stream has sent.
std::string last_id(const std::string& seen) {
  const std::size_t at = seen.rfind("\nid: ") + 5;
  return seen.substr(at, seen.find('\n', at) - at);
}

TEST_F(ServerTest, AStreamGoesOnBehindTheLastEventThatItsReaderHad) {
  HttpClient first{server_->port()};
  first.write("GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
  ASSERT_TRUE(first.read_until("\nid: "));
  server_->publish({"had", 1});
  ASSERT_TRUE(first.read_until("\"had\",\"run\":1}\nid: "));
  ASSERT_TRUE(first.read_until("\n\n"));
  const std::string place = last_id(first.seen());
  for (int i = 0; i < 3; ++i) server_->publish({"missed", 2});
  server_->publish({"missed", 3});
  ASSERT_TRUE(first.read_until("\"missed\",\"run\":3}"));
  for (const std::string& how :
       {"/api/v1/events?after=" + place + " HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "/api/v1/events HTTP/1.1\r\nHost: localhost\r\nLast-Event-ID: " + place + "\r\n\r\n"}) {
    HttpClient again{server_->port()};
    again.write("GET " + how);
    EXPECT_TRUE(
        again.read_until("event: change\ndata: {\"sweep\":\"missed\",\"run\":2}\n\n"
                         "event: change\ndata: {\"sweep\":\"missed\",\"run\":3}\nid: "));
    EXPECT_THAT(again.seen(), Not(HasSubstr("had")));
  }
}

TEST_F(ServerTest, AReaderOfAnotherProcessOrOfLongAgoIsToldThatAnythingMayHaveChanged) {
  for (const char* place : {"0-0", "12345678-1", "nonsense", "", "-1"}) {
    HttpClient client{server_->port()};
    client.write(std::string{"GET /api/v1/events?after="} + place + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_TRUE(client.read_until("data: {\"sweep\":\"\",\"run\":0}\nid: ")) << place;
  }
  HttpClient new_one{server_->port()};
  new_one.write("GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
  ASSERT_TRUE(new_one.read_until("\nid: "));
  EXPECT_THAT(new_one.seen(), Not(HasSubstr("event: change"))) << "it has not read anything yet";
  expect_error(get("/api/v1/events?since=1"), 400, "INVALID_ARGUMENT",
               "unknown parameter 'since': expected after");
}

TEST(Changes, KeepsEachChangeOnceAndForgetsTheOldest) {
  Changes changes;
  const std::string start = changes.place();
  for (int i = 0; i < 100'000; ++i) changes.add({"busy", 1});
  EXPECT_EQ(changes.since(start), (std::set<storage::Change>{{"busy", 1}}));
  for (std::uint32_t run = 0; run < Changes::kMost; ++run) changes.add({"many", run});
  EXPECT_EQ(changes.since(start), (std::set<storage::Change>{storage::Change{}}));
  const std::string place = changes.place();
  EXPECT_THAT(changes.since(place), IsEmpty());
  changes.add({"next", 7});
  EXPECT_EQ(changes.since(place), (std::set<storage::Change>{{"next", 7}}));
  EXPECT_EQ(changes.since(place + "0"), (std::set<storage::Change>{storage::Change{}})) << "of the future";
  EXPECT_EQ(changes.since(place + "x"), (std::set<storage::Change>{storage::Change{}}));
}

TEST_F(ServerTest, AStreamThatHasNothingToSaySaysThatItLives) {
  ServerOptions quick = options();
  quick.heartbeat = std::chrono::milliseconds{20};
  const Server server{quick};
  HttpClient client{server.port()};
  client.write("GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
  for (int i = 0; i < 3; ++i)  // an event, which EventSource hands to the page; it never sees a comment
    EXPECT_TRUE(client.read_until("event: heartbeat\ndata: {\"every_ms\":20}\nid: "));
}

TEST_F(ServerTest, AStreamSaysAtOnceThatNothingCanBeStored) {
  ServerOptions slow = options();
  slow.heartbeat = std::chrono::hours{1};
  Server server{slow};
  HttpClient client{server.port()};
  client.write("GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
  ASSERT_TRUE(client.read_until("{\"every_ms\":3600000}\nid: "));
  server.set_trouble("the disk is full");
  EXPECT_TRUE(client.read_until(
      "event: heartbeat\ndata: {\"every_ms\":3600000,\"trouble\":\"the disk is full\"}\nid: "));
  server.set_trouble("");
  EXPECT_TRUE(client.read_until("{\"every_ms\":3600000}\nid: "));
}

TEST_F(ServerTest, ABurstOfTheSameChangeIsToldOnce) {
  HttpClient client{server_->port()};
  client.write("GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
  ASSERT_TRUE(client.read_until("retry: 2000\n\n"));
  for (int i = 0; i < 1000; ++i) server_->publish({"msf-sharing", 1});
  server_->publish({"last", 0});
  ASSERT_TRUE(client.read_until("\"last\""));
  std::size_t events = 0;
  for (std::size_t at = 0; (at = client.seen().find("event: change", at)) != std::string::npos; ++at)
    ++events;
  EXPECT_LT(events, 100);
}

TEST_F(ServerTest, WithoutAPublisherItSeesACommitOfAnotherProcess) {
  ServerOptions watching = options();
  watching.watch_store = true;
  const Server watcher{watching};
  HttpClient client{watcher.port()};
  client.write("GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
  ASSERT_TRUE(client.read_until("retry: 2000\n\n"));
  demo_->advance(10);
  EXPECT_TRUE(client.read_until("data: {\"sweep\":\"\",\"run\":0}"));
}

TEST_F(ServerTest, AnswersWithWhatWasJustCommitted) {
  const std::string address = "/api/v1/runs/" + std::to_string(demo_->running().at(0));
  HttpClient client{server_->port()};
  const int before = client.get(address).json().at("summary").at("step");
  demo_->advance(20);
  EXPECT_EQ(client.get(address).json().at("summary").at("step"), before + 20);
}

}  // namespace
}  // namespace abl::web
