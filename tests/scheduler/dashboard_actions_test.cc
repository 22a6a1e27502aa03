// SPDX-License-Identifier: Apache-2.0
// What is done from the dashboard: by the same services, roles and audit as over gRPC.
#include "scheduler/dashboard_actions.h"

#include <nlohmann/json.hpp>

#include <future>

#include "tests/scheduler/fixtures.h"
#include "tests/scheduler/services_fixture.h"
#include "views/json.h"

namespace abl::scheduler {
namespace {

using nlohmann::json;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class DashboardActionsTest : public testing::Test {
 protected:
  DashboardActionsTest() {
    scheduler_ = std::make_unique<Scheduler>(
        SchedulerOptions{.store = folder_ / "results.db", .trainer = folder_ / "no-trainer"}, clock_);
    grpc::ServerBuilder builder;
    scheduler_->register_services(builder);
    std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> notes;
    notes.push_back(scheduler_->access().interceptors());
    builder.experimental().SetInterceptorCreators(std::move(notes));
    server_ = builder.BuildAndStart();
    channel_ = server_->InProcessChannel({});
    actions_ = std::make_unique<DashboardActions>(scheduler_->access());
    actions_->connect(channel_);
  }
  ~DashboardActionsTest() override {
    actions_.reset();
    scheduler_->coordinator().close_sessions();
    server_->Shutdown(std::chrono::system_clock::now() + 5s);
    server_->Wait();
    server_.reset();
    scheduler_.reset();
  }

  /// A token, and who holds it.
  web::Actions::Asker holder(TokenRole role, const std::string& name) {
    const access::Token token = access::Token::make();
    CreateTokenRequest request;
    request.set_id(token.id());
    request.set_sha256(token.digest());
    request.set_role(role);
    request.set_name(name);
    Patience context;
    TokenInfo info;
    EXPECT_TRUE(Access::NewStub(channel_)->CreateToken(&context, request, &info).ok());
    return web::Doorkeeper::Holder{.token = token.id(), .name = name, .role = "as it says", .expires = {}};
  }
  web::Answer act(const std::string& method, const json& request, const web::Actions::Asker& who = {}) {
    return act_text(method, request.dump(), who);
  }
  web::Answer act_text(const std::string& method, const std::string& request,
                       const web::Actions::Asker& who = {}) {
    std::promise<web::Answer> answered;
    actions_->act(who, method, request, {},
                  [&](web::Answer answer) { answered.set_value(std::move(answer)); });
    return answered.get_future().get();
  }
  static void expect_error(const web::Answer& answer, int status, const std::string& words) {
    EXPECT_EQ(answer.status, status) << answer.body;
    EXPECT_THAT(json::parse(answer.body).at("message").get<std::string>(), HasSubstr(words));
  }
  web::Answer submit(const std::string& name, const web::Actions::Asker& who = {}) {
    return act("Submit",
               {{"file", {{"path", name + ".yaml"}, {"text", file_of(name).text()}}}, {"owner", "me"}}, who);
  }
  std::vector<std::string> audit(std::size_t lines) {
    std::vector<std::string> texts;
    while (texts.size() < lines) {  // a line is stored after its call has ended
      Patience context;
      ListAuditResponse response;
      EXPECT_TRUE(Access::NewStub(channel_)->ListAudit(&context, {}, &response).ok());
      texts.clear();
      for (const auto& line : response.lines())
        texts.push_back(fmt::format("{} {} {}: {}", line.who(), line.what(), line.target(), line.outcome()));
    }
    return texts;
  }
  std::vector<std::string> may(const web::Actions::Asker& who) const {
    Caller caller;
    actions_->introduce(who, caller);
    return {caller.may().begin(), caller.may().end()};
  }
  using Caller = ablate::v1::Caller;

  TemporaryFolder folder_;
  SystemClock clock_;
  std::unique_ptr<Scheduler> scheduler_;
  std::unique_ptr<grpc::Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<DashboardActions> actions_;
};

TEST_F(DashboardActionsTest, AnswersWhatTheServiceAnswers) {
  const web::Answer submitted = submit("study");
  EXPECT_EQ(submitted.status, 200) << submitted.body;
  EXPECT_EQ(json::parse(submitted.body).at("new_trials"), 2);
  EXPECT_EQ(json::parse(submitted.body).at("sweep").at("owner"), "me")
      << "nobody signs in: as over the socket";
  const json paused = json::parse(act("PauseSweep", {{"sweep", "study"}}).body);
  EXPECT_EQ(paused.at("state"), "SWEEP_STATE_PAUSED");
  Patience context;
  SweepRequest request;
  request.set_sweep("study");
  SweepDetail detail;
  ASSERT_TRUE(Sweeps::NewStub(channel_)->GetSweep(&context, request, &detail).ok());
  EXPECT_EQ(json::parse(views::to_json(detail.summary())).at("state"), paused.at("state"));
  EXPECT_EQ(json::parse(act("ResumeSweep", {{"sweep", "study"}}).body).at("state"), "SWEEP_STATE_ACTIVE");
}

TEST_F(DashboardActionsTest, ErrorsAreTheServices) {
  expect_error(act("PauseSweep", {{"sweep", "nothing"}}), 404, "nothing");
  expect_error(act("Submit", {{"file", {{"path", "a.yaml"}, {"text", "ablate: 1\nnmae: a\n"}}}}), 400,
               "a.yaml:2:1");
  submit("study");
  auto other = file_of("study").text();
  other.replace(other.find("seeds: [0]"), 10, "seeds: [1]");
  expect_error(act("Submit", {{"file", {{"path", "study.yaml"}, {"text", other}}}}), 409,
               "already exists with different content");
}

TEST_F(DashboardActionsTest, WhatIsNoRequestIsRefusedWithTheNearestName) {
  expect_error(act("PauseSweeps", json::object()), 404, "did you mean 'PauseSweep'?");
  expect_error(act(std::string(1000, 'x'), json::object()), 404, "unknown action");
  expect_error(act("PauseSweep", {{"swep", "study"}}), 400, "did you mean 'sweep'?");
  expect_error(act_text("PauseSweep", "sweep=study"), 400, "invalid JSON at byte 1");
  expect_error(act_text("PauseSweep", std::string(1000, '[')), 400, "nested more than");
}

TEST_F(DashboardActionsTest, NoSweepIsRemovedThere) {
  for (const char* method : {"RemoveSweep", "Session", "Join", "Access.CreateToken", ""})
    expect_error(act(method, json::object()), 404, "unknown action");
}

TEST_F(DashboardActionsTest, ARoleMayDoWhatItMayOverGrpc) {
  submit("study");
  const auto vic = holder(TOKEN_ROLE_VIEWER, "vic"), sue = holder(TOKEN_ROLE_SUBMITTER, "sue"),
             ada = holder(TOKEN_ROLE_ADMIN, "ada");
  expect_error(act("CancelSweep", {{"sweep", "study"}}, vic), 403,
               "role viewer may not do this (CancelSweep): it needs role submitter");
  expect_error(act("DrainWorker", {{"name", "w"}}, sue), 403, "it needs role admin");
  expect_error(act("DrainWorker", {{"name", "w"}}, ada), 404, "");  // it was let in
  EXPECT_EQ(act("PauseSweep", {{"sweep", "study"}}, sue).status, 200);
  EXPECT_THAT(may(vic), ElementsAre("Validate"));
  EXPECT_THAT(may(sue), AllOf(Contains("Submit"), Contains("CancelTrial"), Not(Contains("DrainWorker"))));
  EXPECT_THAT(may(ada), Contains("DrainWorker"));
  EXPECT_EQ(may({}).size(), may(ada).size()) << "this machine's user";
}

TEST_F(DashboardActionsTest, AnAdminMakesAndRevokesTokensThere) {
  const auto sue = holder(TOKEN_ROLE_SUBMITTER, "sue"), ada = holder(TOKEN_ROLE_ADMIN, "ada");
  const access::Token token = access::Token::make();
  const json request{
      {"id", token.id()}, {"sha256", token.digest()}, {"role", "TOKEN_ROLE_VIEWER"}, {"name", "vic"}};
  expect_error(act("CreateToken", request, sue), 403, "it needs role admin");
  expect_error(act("ListTokens", json::object(), sue), 403, "it needs role admin");
  const web::Answer made = act("CreateToken", request, ada);
  ASSERT_EQ(made.status, 200) << made.body;
  EXPECT_EQ(json::parse(made.body).at("made_by"), "ada");
  const web::Answer listed = act("ListTokens", json::object(), ada);
  EXPECT_THAT(listed.body, HasSubstr(token.id()));
  EXPECT_THAT(made.body + listed.body, Not(HasSubstr(token.digest()))) << "its digest stays there";
  EXPECT_EQ(json::parse(act("RevokeToken", {{"id", token.id()}}, ada).body).at("why_not"),
            "this token is revoked");
}

TEST_F(DashboardActionsTest, WhoRevokesTheirOwnTokenIsAnsweredAndOut) {
  const auto ada = holder(TOKEN_ROLE_ADMIN, "ada");
  EXPECT_EQ(act("RevokeToken", {{"id", ada->token}}, ada).status, 200);
  expect_error(act("ListTokens", json::object(), ada), 401, "this token is revoked");
}

TEST_F(DashboardActionsTest, AnAdminReadsTheAuditThere) {
  const auto sue = holder(TOKEN_ROLE_SUBMITTER, "sue"), ada = holder(TOKEN_ROLE_ADMIN, "ada");
  submit("study");
  act("PauseSweep", {{"sweep", "study"}}, sue);
  expect_error(act("ListAudit", json::object(), sue), 403, "it needs role admin");
  audit(5);  // all of it is stored
  const json lines = json::parse(act("ListAudit", {{"who", "sue"}, {"most", 1}}, ada).body).at("lines");
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].at("what"), "ListAudit (dashboard)");
  const json older =
      json::parse(act("ListAudit", {{"who", "sue"}, {"before", lines[0].at("key")}}, ada).body).at("lines");
  ASSERT_EQ(older.size(), 1u);
  EXPECT_EQ(older[0].at("what"), "PauseSweep (dashboard)");
  EXPECT_EQ(older[0].at("target"), "study");
  EXPECT_EQ(json::parse(act("ListAudit", {{"what", "Submit"}}, ada).body).at("lines").size(), 1u);
}

TEST_F(DashboardActionsTest, ListsOfTokensAndOfTheAuditAreNotReadByTheWriter) {
  constexpr int kLines = 5000;
  const auto steps = [&] {
    return scheduler_->writer().call([](storage::Database& db) { return db.steps(); });
  };
  scheduler_->writer().call([&](storage::Database& db) {
    for (int i = 0; i < kLines; ++i)
      storage::TokenStore{db}.note({.time = clock_.now(), .who = "sue", .what = "Submit", .target = "study"});
  });
  const std::int64_t before = steps();
  const json none = json::parse(act("ListAudit", {{"who", "nobody"}}).body);
  EXPECT_TRUE(none.at("lines").empty());
  EXPECT_EQ(json::parse(act("ListAudit", {{"who", "sue"}, {"most", 1000}}).body).at("lines").size(), 1000u);
  EXPECT_EQ(act("ListTokens", json::object()).status, 200);
  EXPECT_LT(steps() - before, kLines / 10) << "it would have looked at each line";
}

TEST_F(DashboardActionsTest, WhoSubmitsOwnsIt) {
  const auto sue = holder(TOKEN_ROLE_SUBMITTER, "sue");
  EXPECT_EQ(json::parse(submit("study", sue).body).at("sweep").at("owner"), "sue") << "whatever it says";
  Caller caller;
  actions_->introduce(sue, caller);
  EXPECT_EQ(caller.owner(), "sue");
}

TEST_F(DashboardActionsTest, TheAuditSaysWhoAndThatItCameFromTheDashboard) {
  const auto vic = holder(TOKEN_ROLE_VIEWER, "vic"), sue = holder(TOKEN_ROLE_SUBMITTER, "sue");
  submit("study");
  act("PauseSweep", {{"sweep", "study"}}, sue);
  act("CancelSweep", {{"sweep", "study"}}, vic);
  act("Validate", {{"file", {{"text", ""}}}}, vic);  // changes nothing
  EXPECT_THAT(audit(5), testing::UnorderedElementsAre(
                            HasSubstr("local CreateToken vic"), HasSubstr("local CreateToken sue"),
                            "local Submit (dashboard) study.yaml: ok", "sue PauseSweep (dashboard) study: ok",
                            HasSubstr("vic CancelSweep (dashboard) : role viewer may not")));
}

TEST_F(DashboardActionsTest, ATokenThatHasEndedIsGoodForNothing) {
  const auto sue = holder(TOKEN_ROLE_SUBMITTER, "sue");
  submit("study", sue);
  Patience context;
  RevokeTokenRequest request;
  request.set_id(sue->token);
  TokenInfo info;
  ASSERT_TRUE(Access::NewStub(channel_)->RevokeToken(&context, request, &info).ok());
  expect_error(act("PauseSweep", {{"sweep", "study"}}, sue), 401, "this token is revoked");
  expect_error(
      act("PauseSweep", {{"sweep", "study"}},
          web::Doorkeeper::Holder{.token = "000000000000", .name = "eve", .role = "admin", .expires = {}}),
      401, "this token is not known here");
  Caller caller;
  actions_->introduce(sue, caller);
  EXPECT_THAT(caller.may(), IsEmpty());
  EXPECT_EQ(caller.read_only(), "this token is revoked");
}

TEST_F(DashboardActionsTest, NobodyElseMakesTheDashboardsPass) {
  const auto sue = holder(TOKEN_ROLE_SUBMITTER, "sue");
  for (const std::string& pass :
       {"0123456789012345678901234567890123456789012 " + sue->token, std::string{" "}}) {
    Patience context;
    context.AddMetadata("ablate-dashboard", pass);
    ablate::v1::Caller caller;
    ASSERT_TRUE(Access::NewStub(channel_)->WhoAmI(&context, {}, &caller).ok());
    EXPECT_EQ(caller.name(), "local") << "it is a call like any other";
  }
}

TEST_F(DashboardActionsTest, OnceItHasFinishedNothingIsBegun) {
  actions_->finish();
  expect_error(act("PauseSweep", {{"sweep", "study"}}), 503, "is starting or stopping");
}

}  // namespace
}  // namespace abl::scheduler
