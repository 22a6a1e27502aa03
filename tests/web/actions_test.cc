// SPDX-License-Identifier: Apache-2.0
// What is posted to have something done, as far as HTTP goes: who may send what.
#include "web/server/actions.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "tests/temporary_folder.h"
#include "tests/web/demo_store.h"
#include "tests/web/http_client.h"

namespace abl::web {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// Notes what it is asked; "Wait" is answered when somebody leaves or it finishes.
class FakeActions final : public Actions {
 public:
  void introduce(const Asker& who, ablate::v1::Caller& caller) const override {
    if (!who || who->role == "admin") caller.add_may("PauseSweep");
    caller.set_owner(who ? who->name : "owner");
  }
  const std::string& schema() const override { return schema_; }
  void act(const Asker& who, const std::string& method, const std::string& request, std::stop_token gone,
           std::function<void(Answer)> done) override {
    bool waits = false;
    {
      const std::lock_guard lock{mutex};
      asked.push_back(fmt::format("{} {} {}", who ? who->name : "local", method, request.substr(0, 40)));
      bytes = request.size();
      waits = method == "Wait" && !finished;
      if (waits) waiting = done;
      changed.notify_all();
    }
    if (waits)
      when_gone.emplace(gone, [this] { answer_waiting(); });  // it may be so already
    else
      done(Answer{.body = R"({"name":"demo"})"});
  }
  void finish() override {
    {
      const std::lock_guard lock{mutex};
      finished = true;
    }
    answer_waiting();
  }
  void answer_waiting() {
    std::function<void(Answer)> tell;
    {
      const std::lock_guard lock{mutex};
      tell = std::exchange(waiting, nullptr);
      if (tell) ++given_up;
      changed.notify_all();
    }
    if (tell) tell(error_answer(Code::kCancelled, "given up"));
  }
  /// Until it is so.
  template <class Condition>
  void await(Condition condition) {
    std::unique_lock lock{mutex};
    changed.wait(lock, condition);
  }

  std::vector<std::string> asked;
  std::size_t bytes = 0;
  int given_up = 0;
  bool finished = false;
  std::function<void(Answer)> waiting;
  std::optional<std::stop_callback<std::function<void()>>> when_gone;
  std::mutex mutex;
  std::condition_variable changed;

 private:
  const std::string schema_ = R"({"title":"a sweep"})";
};

class Door final : public Doorkeeper {
 public:
  Holder recognise(std::string_view token) override {
    if (token != "vera" && token != "ada")
      throw Error{Code::kUnauthenticated, "this token is not known here"};
    return {.token = std::string{token},
            .name = std::string{token},
            .role = token == "ada" ? "admin" : "viewer",
            .expires = {}};
  }
  std::string why_over(const std::string&) const override { return {}; }
  void note(const Holder&, const std::string&, const std::string&, const std::string&) override {}
};

class ActionsTest : public testing::Test {
 protected:
  ActionsTest() : demo_{folder_ / "results.db"} { start(); }
  void start(Limits limits = {}, bool with_actions = true, Doorkeeper* door = nullptr) {
    server_.reset();
    actions_ = std::make_unique<FakeActions>();
    server_.emplace(ServerOptions{.store = folder_ / "results.db",
                                  .doorkeeper = door,
                                  .actions = with_actions ? actions_.get() : nullptr,
                                  .limits = limits});
  }
  using Headers = std::map<std::string, std::string>;
  /// As the dashboard's own pages send it, but for what `headers` says otherwise; "" leaves one out.
  std::string request(const std::string& target, const std::string& body, Headers headers = {}) const {
    Headers all{{"Host", fmt::format("127.0.0.1:{}", server_->port())},
                {"Content-Type", "application/json"},
                {"Sec-Fetch-Site", "same-origin"},
                {"Content-Length", std::to_string(body.size())}};
    for (const auto& [name, value] : headers) all[name] = value;
    std::string text = fmt::format("POST {} HTTP/1.1\r\n", target);
    for (const auto& [name, value] : all)
      if (!value.empty()) text += fmt::format("{}: {}\r\n", name, value);
    return text + "\r\n" + body;
  }
  Reply post(const std::string& target, const std::string& body, const Headers& headers = {}) const {
    return HttpClient{server_->port()}.raw(request(target, body, headers));
  }
  Reply pause(const Headers& headers = {}) const {
    return post("/api/v1/actions/PauseSweep", R"({"sweep":"demo"})", headers);
  }
  static void expect_error(const Reply& reply, int status, const std::string& words) {
    EXPECT_EQ(reply.status, status) << reply.body;
    const std::string message = reply.json().at("message").get<std::string>();
    EXPECT_THAT(message, HasSubstr(words));
    EXPECT_EQ(message.find('\n'), std::string::npos);
  }

  TemporaryFolder folder_;
  DemoStore demo_;
  std::unique_ptr<FakeActions> actions_;
  std::optional<Server> server_;
};

TEST_F(ActionsTest, WhatIsPostedIsDoneAndAnswered) {
  const Reply reply = pause();
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, R"({"name":"demo"})");
  EXPECT_EQ(reply.headers.at("content-type"), "application/json");
  EXPECT_EQ(reply.headers.at("cache-control"), "no-store");
  EXPECT_THAT(actions_->asked, ElementsAre(R"(local PauseSweep {"sweep":"demo"})"));
}

TEST_F(ActionsTest, OneConnectionHasSeveralDone) {
  HttpClient client{server_->port()};
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client.raw(request("/api/v1/actions/PauseSweep", "{}")).status, 200);
  EXPECT_EQ(client.get("/api/v1/workers").status, 200);
  EXPECT_EQ(actions_->asked.size(), 3u);
}

TEST_F(ActionsTest, OnlyOurOwnPagesMayAsk) {
  expect_error(pause({{"Sec-Fetch-Site", "cross-site"}}), 403, "a cross-site request is refused");
  expect_error(pause({{"Sec-Fetch-Site", "same-site"}}), 403, "a same-site request is refused");
  expect_error(pause({{"Sec-Fetch-Site", "none"}}), 403, "only the dashboard's own pages");
  expect_error(pause({{"Sec-Fetch-Site", ""}}), 403, "only the dashboard's own pages");
  expect_error(pause({{"Origin", "http://evil.example"}}), 403, "Origin 'http://evil.example' is refused");
  expect_error(pause({{"Origin", "null"}}), 403, "Origin 'null' is refused");
  expect_error(pause({{"Host", "evil.example"}}), 403, "Host 'evil.example' is refused");
  expect_error(pause({{"Host", fmt::format("127.0.0.1.evil.example:{}", server_->port())}}), 403,
               "is refused");
  EXPECT_THAT(actions_->asked, IsEmpty());
  EXPECT_EQ(pause({{"Origin", fmt::format("http://127.0.0.1:{}", server_->port())}}).status, 200);
}

TEST_F(ActionsTest, WhatAFormCanSendIsNotTaken) {
  for (const char* type : {"", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data",
                           "text/plain; charset=application/json", "application/jsonp"})
    expect_error(pause({{"Content-Type", type}}), 415, "expected 'Content-Type: application/json'");
  EXPECT_THAT(actions_->asked, IsEmpty());
  EXPECT_EQ(pause({{"Content-Type", "Application/JSON; charset=utf-8"}}).status, 200);
}

TEST_F(ActionsTest, ABodyHasALengthAndABound) {
  const std::string most(ActionDesk::kMostBytes, ' ');
  EXPECT_EQ(post("/api/v1/actions/Submit", most).status, 200);
  EXPECT_EQ(actions_->bytes, most.size());
  // refused by its header alone: nobody waits for what follows
  expect_error(HttpClient{server_->port()}.raw(request(
                   "/api/v1/actions/Submit", "", {{"Content-Length", std::to_string(most.size() + 1)}})),
               413, "expected 10485760 at most");
  expect_error(HttpClient{server_->port()}.raw(request(
                   "/api/v1/actions/Submit", "", {{"Content-Length", ""}, {"Transfer-Encoding", "chunked"}})),
               411, "expected Content-Length");
  expect_error(
      HttpClient{server_->port()}.raw(request("/api/v1/actions/Submit", "", {{"Content-Length", ""}})), 411,
      "expected Content-Length");
  EXPECT_EQ(actions_->asked.size(), 1u);
}

TEST_F(ActionsTest, ABodyThatDoesNotComeIsNotWaitedForAndNothingIsDone) {
  start({.body = 50ms});
  HttpClient client{server_->port()};
  expect_error(client.raw(request("/api/v1/actions/Submit", "{", {{"Content-Length", "100"}})), 408,
               "the body was not there within 0.05 s");
  EXPECT_TRUE(client.closed_by_server());
  EXPECT_THAT(actions_->asked, IsEmpty());
}

TEST_F(ActionsTest, WhatFollowsARefusedBodyIsNotTakenForARequest) {
  for (const char* target : {"/api/v1/actions/PauseSweep", "/api/v1/actions/a/b", "/api/v1/actions/",
                             "/api/v1/workers", "/nowhere"}) {
    HttpClient client{server_->port()};
    const std::string hidden = request("/api/v1/actions/PauseSweep", "{}");
    client.raw(request(target, hidden, {{"Content-Type", "text/plain"}}));
    EXPECT_TRUE(client.closed_by_server()) << target;
  }
  EXPECT_THAT(actions_->asked, IsEmpty());
}

TEST_F(ActionsTest, ItIsPostedAndNothingElseIs) {
  for (const char* method : {"GET", "HEAD", "PUT", "DELETE", "OPTIONS"}) {
    const Reply reply = HttpClient{server_->port()}.send(method, "/api/v1/actions/PauseSweep",
                                                         {{"Sec-Fetch-Site", "same-origin"}});
    EXPECT_EQ(reply.status, 405) << method;
    EXPECT_EQ(reply.headers.at("allow"), "POST");
  }
  // an address that only decoded is one of these
  EXPECT_EQ(HttpClient{server_->port()}.get("/api/v1/%61ctions/PauseSweep").status, 404);
  EXPECT_EQ(post("/api/v1/%61ctions/PauseSweep", "{}").status, 405);
  for (const char* target : {"/api/v1/actions/a/b", "/api/v1/actions/"})
    EXPECT_EQ(post(target, "{}").status, 404);
  expect_error(post("/api/v1/workers", "{}"), 405, "this address is read, with GET and HEAD");
  EXPECT_THAT(actions_->asked, IsEmpty());
}

TEST_F(ActionsTest, ADashboardOfAResultsFileRefusesInOneLine) {
  start({}, false);
  const Reply reply = pause();
  expect_error(reply, 405, "this dashboard shows a results file, which is read-only");
  EXPECT_EQ(reply.headers.at("allow"), "GET, HEAD");
  const auto caller = HttpClient{server_->port()}.get("/api/v1/whoami").json();
  EXPECT_EQ(caller.at("may").size(), 0u);
  EXPECT_EQ(caller.at("read_only"), "this dashboard shows a results file, which is read-only");
  EXPECT_EQ(HttpClient{server_->port()}.get("/api/v1/schema").status, 404);
}

TEST_F(ActionsTest, WhoAmISaysWhatMayBeDone) {
  const auto caller = HttpClient{server_->port()}.get("/api/v1/whoami").json();
  EXPECT_EQ(caller.at("may"), nlohmann::json{"PauseSweep"});
  EXPECT_EQ(caller.at("owner"), "owner");
  EXPECT_EQ(caller.at("read_only"), "");
}

TEST_F(ActionsTest, TheSchemaIsReadAndKept) {
  const Reply schema = HttpClient{server_->port()}.get("/api/v1/schema");
  EXPECT_EQ(schema.body, R"({"title":"a sweep"})");
  EXPECT_EQ(HttpClient{server_->port()}
                .get("/api/v1/schema", {{"If-None-Match", schema.headers.at("etag")}})
                .status,
            304);
}

TEST_F(ActionsTest, WhileOneWaitsOthersAreServed) {
  HttpClient client{server_->port()};
  client.write(request("/api/v1/actions/Wait", "{}"));
  actions_->await([&] { return actions_->waiting != nullptr; });
  EXPECT_EQ(pause().status, 200);
  EXPECT_EQ(HttpClient{server_->port()}.get("/api/v1/workers").status, 200);
  actions_->answer_waiting();
  EXPECT_TRUE(client.read_until("given up"));
}

TEST_F(ActionsTest, WhoLeavesIsNotWaitedFor) {
  {
    HttpClient client{server_->port()};
    client.write(request("/api/v1/actions/Wait", "{}"));
    actions_->await([&] { return actions_->waiting != nullptr; });
  }
  actions_->await([&] { return actions_->given_up == 1; });
}

TEST_F(ActionsTest, AServerThatStopsAnswersWhatIsUnderWay) {
  HttpClient client{server_->port()};
  client.write(request("/api/v1/actions/Wait", "{}"));
  actions_->await([&] { return actions_->waiting != nullptr; });
  server_.reset();
  EXPECT_TRUE(actions_->finished);
  EXPECT_EQ(actions_->waiting, nullptr);
}

TEST_F(ActionsTest, WherePeopleSignInItIsDoneForWhomTheTokenIs) {
  Door door;
  start({}, true, &door);
  expect_error(pause(), 401, "not signed in");
  expect_error(pause({{"Authorization", "Bearer nobody"}}), 401, "this token is not known here");
  EXPECT_THAT(actions_->asked, IsEmpty());
  // a script that shows a token need not say that it is a page of ours
  EXPECT_EQ(pause({{"Authorization", "Bearer vera"}, {"Sec-Fetch-Site", ""}}).status, 200);
  EXPECT_THAT(actions_->asked, ElementsAre(R"(vera PauseSweep {"sweep":"demo"})"));
  expect_error(pause({{"Authorization", "Bearer vera"}, {"Sec-Fetch-Site", "cross-site"}}), 403,
               "is refused");
  const auto caller =
      HttpClient{server_->port()}.get("/api/v1/whoami", {{"Authorization", "Bearer vera"}}).json();
  EXPECT_EQ(caller.at("may").size(), 0u);
  EXPECT_EQ(caller.at("role"), "TOKEN_ROLE_VIEWER");
}

}  // namespace
}  // namespace abl::web
