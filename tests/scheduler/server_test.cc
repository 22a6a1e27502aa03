// SPDX-License-Identifier: Apache-2.0
// A scheduler with its ports: addresses, locks, health.
#include "scheduler/server.h"

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "ablate/v1/sweeps.grpc.pb.h"
#include "access/listen_address.h"
#include "tests/exposition.h"
#include "tests/scheduler/fixtures.h"

namespace abl::scheduler {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class ServerTest : public testing::Test {
 protected:
  ServerOptions options(const std::vector<std::string>& listen,
                        const std::string& store = "results.db") const {
    return {.scheduler = {.store = folder / store, .trainer = folder / "no-trainer"}, .listen = listen};
  }
  /// The error with which a server does not start.
  static std::pair<Code, std::string> refusal(const ServerOptions& options) {
    try {
      const SchedulerServer server{options};
    } catch (const Error& error) {
      return {error.code(), error.what()};
    }
    return {Code::kOk, ""};
  }
  std::string socket() const { return "unix:" + (folder / "scheduler.sock").string(); }

  static grpc::Status list_sweeps(const std::string& address) {
    const auto stub =
        ablate::v1::Sweeps::NewStub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds{60});
    context.set_wait_for_ready(true);
    ablate::v1::ListSweepsResponse response;
    return stub->ListSweeps(&context, {}, &response);
  }

  TemporaryFolder folder;
};

TEST_F(ServerTest, ServesOnASocketAndOnAPort) {
  const SchedulerServer server{options({socket(), "127.0.0.1:0"})};
  ASSERT_EQ(server.addresses().size(), 2u);
  for (const std::string& address : server.addresses()) EXPECT_TRUE(list_sweeps(address).ok()) << address;
}

TEST_F(ServerTest, TheHealthServiceAnswers) {
  const SchedulerServer server{options({socket()})};
  grpc::GenericStub stub{grpc::CreateChannel(socket(), grpc::InsecureChannelCredentials())};
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds{60});
  grpc::CompletionQueue queue;
  const grpc::Slice empty;
  const auto call =
      stub.PrepareUnaryCall(&context, "/grpc.health.v1.Health/Check", grpc::ByteBuffer{&empty, 1}, &queue);
  call->StartCall();
  grpc::ByteBuffer response;
  grpc::Status status;
  call->Finish(&response, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  ASSERT_TRUE(queue.Next(&tag, &ok));
  EXPECT_TRUE(status.ok()) << status.error_message();
  grpc::Slice answer;
  ASSERT_TRUE(response.DumpToSingleSlice(&answer).ok());
  EXPECT_EQ(std::string(answer.begin(), answer.end()), "\x08\x01") << "status: SERVING";
}

/// The body of what is answered at `path` of a dashboard, "http://127.0.0.1:8080/".
std::string http_get(const std::string& dashboard, const std::string& path) {
  const std::string address = dashboard.substr(7, dashboard.size() - 8);
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in place{.sin_family = AF_INET};
  place.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(fd, reinterpret_cast<const sockaddr*>(&place), sizeof place), 0);
  const std::string request =
      "GET " + path + " HTTP/1.1\r\nHost: " + address + "\r\nConnection: close\r\n\r\n";
  EXPECT_EQ(::write(fd, request.data(), request.size()), static_cast<ssize_t>(request.size()));
  std::string answer(1 << 20, '\0');
  std::size_t size = 0;
  for (ssize_t got; (got = ::read(fd, answer.data() + size, answer.size() - size)) > 0;)
    size += static_cast<std::size_t>(got);
  ::close(fd);
  answer.resize(size);
  return answer.substr(answer.find("\r\n\r\n") + 4);
}

TEST_F(ServerTest, FiguresOfTheSchedulerAreThoseOfItsParts) {
  auto with_dashboard = options({socket()});
  with_dashboard.http_port = 0;
  const SchedulerServer server{with_dashboard};
  ASSERT_TRUE(list_sweeps(socket()).ok());
  ASSERT_TRUE(list_sweeps(socket()).ok());
  const std::string calls = R"(ablate_rpcs_total{method="ablate.v1.Sweeps/ListSweeps",code="OK"})";
  auto samples = test::parse_exposition(http_get(server.dashboard(), "/metrics"));
  while (samples.at(calls) < 2)  // counted when gRPC lets go of the call, which its caller need not wait for
    samples = test::parse_exposition(http_get(server.dashboard(), "/metrics"));
  EXPECT_EQ(samples.at(calls), 2);
  EXPECT_EQ(samples.at(R"(ablate_rpc_seconds_count{method="ablate.v1.Sweeps/ListSweeps"})"), 2);
  EXPECT_FALSE(samples.contains(R"(ablate_rpc_seconds_count{method="ablate.v1.WorkerLink/Session"})"))
      << "a stream";
  EXPECT_GT(samples.at("ablate_store_commits_total"), 0);
  EXPECT_EQ(samples.at("ablate_store_writable"), 1);
  EXPECT_GT(
      samples.at(R"(ablate_store_bytes{part="file"})") + samples.at(R"(ablate_store_bytes{part="log"})"), 0);
  EXPECT_GT(samples.at("ablate_disk_free_bytes"), 0);
  EXPECT_EQ(samples.at(R"(ablate_trials{state="queued"})"), 0);
  EXPECT_EQ(samples.at(R"(ablate_workers{state="connected"})"), 0);
  EXPECT_EQ(samples.at(R"(ablate_runs_ended_total{state="completed"})"), 0);
  EXPECT_EQ(samples.at("ablate_watchers"), 0);
}

TEST_F(ServerTest, AResultsFileThatWasDeletedMakesTheSchedulerUnhealthy) {
  auto with_dashboard = options({socket()});
  with_dashboard.http_port = 0;
  const SchedulerServer server{with_dashboard};
  EXPECT_THAT(http_get(server.dashboard(), "/healthz"), HasSubstr(R"("status":"ok")"));
  std::filesystem::remove(folder / "results.db");
  std::string health;
  do health = http_get(server.dashboard(), "/healthz");  // until the next commit has found out
  while (health.find("unhealthy") == std::string::npos);
  EXPECT_THAT(health, AllOf(HasSubstr(R"("check":"store")"), HasSubstr("was deleted while it was in use")));
}

TEST_F(ServerTest, AnAnswerSaysWhichVersionGaveIt) {
  const SchedulerServer server{options({socket()})};
  const auto stub =
      ablate::v1::Sweeps::NewStub(grpc::CreateChannel(socket(), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  ablate::v1::ListSweepsResponse response;
  ASSERT_TRUE(stub->ListSweeps(&context, {}, &response).ok());
  EXPECT_EQ(context.GetServerTrailingMetadata().count("ablate-version"), 1U);
  EXPECT_EQ(context.GetServerTrailingMetadata().count("ablate-health-bin"), 0U);
}

TEST_F(ServerTest, APortInUseIsNamed) {
  const SchedulerServer first{options({"127.0.0.1:0"})};
  const std::string address = first.addresses().front();
  const auto [code, message] = refusal(options({address}, "other.db"));
  EXPECT_EQ(code, Code::kUnavailable);
  EXPECT_THAT(message,
              HasSubstr("port " + address.substr(address.rfind(':') + 1) + " on 127.0.0.1 is in use"));
}

TEST_F(ServerTest, AStoreHasOneScheduler) {
  const SchedulerServer first{options({"127.0.0.1:0"})};
  const auto [code, message] = refusal(options({"127.0.0.1:0"}));
  EXPECT_EQ(code, Code::kUnavailable);
  EXPECT_THAT(message, AllOf(HasSubstr("results.db"), HasSubstr(std::to_string(::getpid()))));
}

TEST_F(ServerTest, TheStoreIsFreeAgainAfterwards) {
  { const SchedulerServer first{options({socket()})}; }
  EXPECT_EQ(refusal(options({socket()})).first, Code::kOk);
}

TEST_F(ServerTest, AStoppedSchedulerLeavesOneWholeFile) {
  {
    const SchedulerServer server{options({socket()})};
    const auto stub =
        ablate::v1::Sweeps::NewStub(grpc::CreateChannel(socket(), grpc::InsecureChannelCredentials()));
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    ablate::v1::SubmitRequest request;
    request.mutable_file()->set_text(
        "ablate: 1\nname: s\nbase: {model: {preset: simple-vit-ti}, data: {name: shapes}, recipe: {use: "
        "demo}}\n"
        "rows: [{id: a, label: a}]\nseeds: [0]\ntable: {columns: [{name: acc, metric: val/top1}]}\n");
    ablate::v1::SubmitResponse response;
    const grpc::Status status = stub->Submit(&context, request, &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
  }
  std::filesystem::copy_file(folder / "results.db", folder / "copy.db");  // alone, without its log
  storage::Database copy{folder / "copy.db", storage::Database::Mode::kReadOnly};
  EXPECT_TRUE(storage::SweepStore{copy}.find("s"));
}

TEST_F(ServerTest, ARefusedStartLeavesNothingBehind) {
  const SchedulerServer first{options({"127.0.0.1:0"})};
  const auto left = [&] {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path()))
      if (!entry.path().filename().string().starts_with("results.db")) names.push_back(entry.path().string());
    return names;
  };
  // refused before anything is made, and in the middle: a socket's folder that cannot be made
  EXPECT_EQ(refusal(options({first.addresses()[0]}, "new/deep/other.db")).first, Code::kUnavailable);
  EXPECT_THAT(left(), testing::IsEmpty());
  EXPECT_NE(refusal(options({"unix:/proc/none/scheduler.sock"}, "new/deep/other.db")).first, Code::kOk);
  EXPECT_THAT(left(), testing::IsEmpty());
  auto taken = options({"127.0.0.1:0"}, "new/other.db");
  taken.http_port = access::parse_listen_address(first.addresses()[0]).port;
  EXPECT_EQ(refusal(taken).first, Code::kUnavailable);
  EXPECT_THAT(left(), testing::IsEmpty());
  EXPECT_EQ(refusal(options({"127.0.0.1:0"})).first, Code::kUnavailable);
  EXPECT_TRUE(std::filesystem::exists(folder / "results.db")) << "what another has is not touched";
  EXPECT_TRUE(std::filesystem::exists(folder / "results.db.lock"));
}

TEST_F(ServerTest, WhatASchedulerMakesIsItsUsersAlone) {
  const mode_t before = ::umask(022);
  {
    const SchedulerServer server{
        options({"unix:" + (folder / "home" / "run" / "s.sock").string()}, "home/results.db")};
    const auto mode = [&](const std::string& name) {
      return static_cast<int>(std::filesystem::status(folder / name).permissions());
    };
    for (const char* made : {"home", "home/run"}) EXPECT_EQ(mode(made), 0700) << made;
    for (const char* made : {"results.db", "results.db-wal", "results.db-shm", "results.db.lock"})
      EXPECT_EQ(mode(std::string{"home/"} + made), 0600) << made;
  }
  ::umask(before);
}

TEST_F(ServerTest, StoppingEndsTheProgramThatCounts) {
  const auto trainer = folder / "trainer";
  std::ofstream{trainer} << "#!/bin/sh\ntouch " << (folder / "counting").string() << "\nexec sleep 3600\n";
  std::filesystem::permissions(trainer, std::filesystem::perms::owner_all);
  auto with_trainer = options({socket()});
  with_trainer.scheduler.trainer = trainer;
  auto server = std::make_unique<SchedulerServer>(with_trainer);
  std::jthread plans{[this] {
    const auto stub =
        ablate::v1::Sweeps::NewStub(grpc::CreateChannel(socket(), grpc::InsecureChannelCredentials()));
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    ablate::v1::PlanRequest request;
    request.mutable_file()->set_text(
        "ablate: 1\nname: s\nbase: {model: {preset: simple-vit-ti}, data: {name: shapes}, recipe: {use: "
        "demo}}\n"
        "rows: [{id: a, label: a}]\nseeds: [0]\ntable: {columns: [{name: acc, metric: val/top1}]}\n");
    ablate::v1::SweepPlan response;
    const grpc::Status status = stub->Plan(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_THAT(response.counts_missing(), HasSubstr("stopped"));
  }};
  while (!std::filesystem::exists(folder / "counting"))
    std::this_thread::sleep_for(std::chrono::milliseconds{5});
  server.reset();  // the test's time runs out where this waits for the program
}

TEST_F(ServerTest, ALiveSocketIsNotTakenAway) {
  const SchedulerServer first{options({socket()})};
  const auto [code, message] = refusal(options({socket()}, "other.db"));
  EXPECT_EQ(code, Code::kUnavailable);
  EXPECT_THAT(message, HasSubstr("scheduler.sock"));
  EXPECT_TRUE(list_sweeps(socket()).ok()) << "the first still serves";
}

TEST_F(ServerTest, TheSocketOfADeadSchedulerIsReplaced) {
  sockaddr_un address{.sun_family = AF_UNIX};
  (folder / "scheduler.sock").string().copy(address.sun_path, sizeof address.sun_path - 1);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ::close(fd);  // the file stays, as after SIGKILL
  const SchedulerServer server{options({socket()})};
  EXPECT_TRUE(list_sweeps(socket()).ok());
}

TEST_F(ServerTest, ANewSocketFolderIsThisUsersAlone) {
  const SchedulerServer server{options({"unix:" + (folder / "run" / "scheduler.sock").string()})};
  struct stat status {};
  ASSERT_EQ(::stat((folder / "run").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
}

TEST_F(ServerTest, AFolderOpenToOthersHoldsNoSocket) {
  std::filesystem::create_directory(folder / "open");
  ::chmod((folder / "open").c_str(), 0755);
  const auto [code, message] = refusal(options({"unix:" + (folder / "open" / "scheduler.sock").string()}));
  EXPECT_EQ(code, Code::kPermissionDenied);
  EXPECT_THAT(message, AllOf(HasSubstr("mode 0755"), HasSubstr("chmod 700")));
}

TEST_F(ServerTest, ANetworkAddressIsRefused) {
  for (const char* address : {"0.0.0.0:7070", "192.168.1.5:7070", "[::]:7070"}) {
    const auto [code, message] = refusal(options({address}));
    EXPECT_EQ(code, Code::kInvalidArgument) << address;
    EXPECT_THAT(message, HasSubstr("loopback")) << address;
  }
}

TEST_F(ServerTest, WhatIsNoAddressSaysWhatWasExpected) {
  for (const char* address : {"7070", "unix:", "127.0.0.1:", "127.0.0.1:99999", ":7070"}) {
    const auto [code, message] = refusal(options({address}));
    EXPECT_EQ(code, Code::kInvalidArgument) << address;
    EXPECT_THAT(message, HasSubstr("expected")) << address;
  }
}

}  // namespace
}  // namespace abl::scheduler
