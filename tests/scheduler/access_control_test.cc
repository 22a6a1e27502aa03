// SPDX-License-Identifier: Apache-2.0
// Who may call what, over real connections.
#include "scheduler/access_control.h"

#include <arpa/inet.h>
#include <google/protobuf/descriptor.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "access/listen_address.h"
#include "access/reach.h"
#include "access/tls.h"
#include "access/token.h"
#include "base/file.h"
#include "scheduler/server.h"
#include "tests/scheduler/fixtures.h"
#include "tests/scheduler/services_fixture.h"

namespace abl::scheduler {
namespace {

namespace fs = std::filesystem;
using namespace ablate::v1;
using storage::Role;
using testing::HasSubstr;

TEST(MethodRule, EveryMethodOfTheContractHasOne) {
  int methods = 0;
  for (const auto& entry : fs::directory_iterator{fs::path{ABLATE_SOURCE_DIR} / "proto" / "ablate" / "v1"}) {
    if (entry.path().extension() != ".proto") continue;
    const auto* file = google::protobuf::DescriptorPool::generated_pool()->FindFileByName(
        "ablate/v1/" + entry.path().filename().string());
    ASSERT_TRUE(file) << entry.path();
    for (int i = 0; i < file->service_count(); ++i)
      for (int j = 0; j < file->service(i)->method_count(); ++j, ++methods)
        EXPECT_TRUE(rule_of("/" + file->service(i)->full_name() + "/" + file->service(i)->method(j)->name()))
            << file->service(i)->method(j)->full_name() << " has no rule: nobody may call it";
  }
  EXPECT_GT(methods, 30);
}

TEST(MethodRule, WhatIsInNoTableIsForNobody) {
  for (const char* method : {"", "/", "/ablate.v1.Sweeps/", "/ablate.v1.Sweeps/Submit2",
                             "/ablate.v1.sweeps/Submit", "/grpc.channelz.v1.Channelz/GetServers"})
    EXPECT_FALSE(rule_of(method)) << method;
}

/// A scheduler with a socket and with TLS on a port of this machine.
class AccessControlTest : public testing::Test {
 protected:
  AccessControlTest() {
    const auto made = access::make_certificates({"gpu-head"}, SystemClock{}.now());
    authorities = made.authority;
    authority_key = made.authority_key;
    access::write_secret(folder / "server.crt", made.certificate);
    access::write_secret(folder / "server.key", made.key);
    start();
  }
  /// Beside what all have.
  void start(ServerOptions options = {}) {
    owner.reset();
    server.reset();
    options.scheduler = {.store = folder / "results.db", .trainer = folder / "no-trainer"};
    options.listen = {"unix:" + (folder / "s.sock").string(), "127.0.0.1:0"};
    options.tls.certificate = folder / "server.crt";
    options.tls.key = folder / "server.key";
    server = std::make_unique<SchedulerServer>(options);
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // not the one to the server before
    owner = grpc::CreateCustomChannel(server->addresses()[0], grpc::InsecureChannelCredentials(), arguments);
    address = server->addresses()[1];
  }
  access::Signed authority() const { return {.certificate = authorities, .key = authority_key}; }
  std::shared_ptr<grpc::Channel> channel(const std::string& token) const {
    return grpc::CreateChannel(
        address, access::channel_credentials({.tls = true, .authorities = authorities, .token = token}));
  }
  template <class Stub, class Request, class Response>
  static grpc::Status call(const std::shared_ptr<Stub>& stub,
                           grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                           const Request& request, Response* response) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds{60});
    context.set_wait_for_ready(true);
    return ((*stub).*method)(&context, request, response);
  }
  grpc::Status list(const std::shared_ptr<grpc::Channel>& channel) const {
    ListSweepsResponse response;
    return call(std::shared_ptr<Sweeps::Stub>{Sweeps::NewStub(channel)}, &Sweeps::Stub::ListSweeps,
                ListSweepsRequest{}, &response);
  }
  grpc::Status cancel(const std::shared_ptr<grpc::Channel>& channel, const std::string& sweep) const {
    SweepRequest request;
    request.set_sweep(sweep);
    SweepSummary response;
    return call(std::shared_ptr<Sweeps::Stub>{Sweeps::NewStub(channel)}, &Sweeps::Stub::CancelSweep, request,
                &response);
  }
  std::shared_ptr<Access::Stub> access_of(const std::shared_ptr<grpc::Channel>& channel) const {
    return Access::NewStub(channel);
  }
  grpc::Status create(const access::Token& token, TokenRole role, const std::string& name,
                      const std::shared_ptr<grpc::Channel>& by, std::time_t expires = 0) {
    CreateTokenRequest request;
    request.set_id(token.id());
    request.set_sha256(token.digest());
    request.set_role(role);
    request.set_name(name);
    if (expires != 0) request.mutable_expires()->set_seconds(expires);
    if (role == TOKEN_ROLE_JOIN) request.mutable_expires()->set_seconds(std::time(nullptr) + 3600);
    TokenInfo info;
    return call(access_of(by), &Access::Stub::CreateToken, request, &info);
  }
  access::Token made(TokenRole role, const std::string& name) {
    access::Token token = access::Token::make();
    const grpc::Status status = create(token, role, name, owner);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return token;
  }
  void revoke(const access::Token& token) {
    RevokeTokenRequest request;
    request.set_id(token.id());
    TokenInfo info;
    EXPECT_TRUE(call(access_of(owner), &Access::Stub::RevokeToken, request, &info).ok());
  }
  grpc::Status join(const access::Token& token, const access::Token& own, const std::string& worker) {
    JoinRequest request;
    request.set_worker(worker);
    request.set_id(own.id());
    request.set_sha256(own.digest());
    TokenInfo info;
    return call(access_of(channel(token.text())), &Access::Stub::Join, request, &info);
  }

  TemporaryFolder folder;
  std::string authorities, authority_key, address;
  std::unique_ptr<SchedulerServer> server;
  std::shared_ptr<grpc::Channel> owner;
};

TEST_F(AccessControlTest, TheSocketIsItsOwnersAndThePortAsksForAToken) {
  EXPECT_TRUE(list(owner).ok());
  const grpc::Status nobody = list(channel(""));
  EXPECT_EQ(nobody.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_THAT(nobody.error_message(), HasSubstr("a token is needed here"));
  const grpc::Status stranger = list(channel(access::Token::make().text()));
  EXPECT_EQ(stranger.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_THAT(stranger.error_message(), HasSubstr("this token is not known here"));
  EXPECT_EQ(list(channel("rubbish")).error_code(), grpc::StatusCode::UNAUTHENTICATED);
}

TEST_F(AccessControlTest, TheRightPublicPartWithAnotherSecretIsRefused) {
  const access::Token token = made(TOKEN_ROLE_ADMIN, "ada");
  EXPECT_TRUE(list(channel(token.text())).ok());
  std::string other = token.text();
  other[20] = other[20] == 'A' ? 'B' : 'A';
  EXPECT_EQ(list(channel(other)).error_code(), grpc::StatusCode::UNAUTHENTICATED);
}

TEST_F(AccessControlTest, AViewerReadsAndChangesNothing) {
  const auto viewer = channel(made(TOKEN_ROLE_VIEWER, "vic").text());
  EXPECT_TRUE(list(viewer).ok());
  const grpc::Status refused = cancel(viewer, "study");
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(refused.error_message(),
              HasSubstr("role viewer may not do this (CancelSweep): it needs role submitter"));
  EXPECT_EQ(create(access::Token::make(), TOKEN_ROLE_ADMIN, "vic", viewer).error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
}

TEST_F(AccessControlTest, ASubmitterChangesSweepsAndMakesNoTokens) {
  const auto submitter = channel(made(TOKEN_ROLE_SUBMITTER, "sue").text());
  EXPECT_EQ(cancel(submitter, "study").error_code(), grpc::StatusCode::NOT_FOUND) << "it was let in";
  EXPECT_EQ(create(access::Token::make(), TOKEN_ROLE_VIEWER, "x", submitter).error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
}

TEST_F(AccessControlTest, AJoinTokenLetsOneWorkerInAndDoesNothingElse) {
  const access::Token token = made(TOKEN_ROLE_JOIN, "a worker"), own = access::Token::make();
  EXPECT_EQ(list(channel(token.text())).error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_TRUE(join(token, own, "gpu-01").ok());
  EXPECT_TRUE(join(token, own, "gpu-01").ok()) << "it did not hear the answer";
  const grpc::Status second = join(token, access::Token::make(), "gpu-02");
  EXPECT_EQ(second.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_THAT(second.error_message(), HasSubstr("used already"));
  EXPECT_EQ(list(channel(own.text())).error_code(), grpc::StatusCode::PERMISSION_DENIED)
      << "a worker's token is for its stream alone";
}

TEST_F(AccessControlTest, OfTheDepotEachRoleGetsItsOwnAndNobodyElseAnything) {
  using Code = grpc::StatusCode;
  const access::Token own = access::Token::make();
  ASSERT_TRUE(join(made(TOKEN_ROLE_JOIN, "a worker"), own, "gpu-01").ok());
  using Stub = ablate::v1::Depot::Stub;
  const auto all_of = [&](const std::string& token) {
    const std::shared_ptr<Stub> depot{ablate::v1::Depot::NewStub(channel(token))};
    PutPieceResponse put;
    GetPieceResponse got;
    DataName name;
    ListDataResponse list;
    RepinDataResponse repinned;
    return std::vector<Code>{call(depot, &Stub::PutCheckpoint, PutPieceRequest{}, &put).error_code(),
                             call(depot, &Stub::Get, GetPieceRequest{}, &got).error_code(),
                             call(depot, &Stub::PutData, PutPieceRequest{}, &put).error_code(),
                             call(depot, &Stub::PushData, PushDataRequest{}, &name).error_code(),
                             call(depot, &Stub::RemoveData, RemoveDataRequest{}, &name).error_code(),
                             call(depot, &Stub::ListData, ListDataRequest{}, &list).error_code(),
                             call(depot, &Stub::RepinData, RepinDataRequest{}, &repinned).error_code()};
  };
  constexpr Code kNo = Code::PERMISSION_DENIED, kAsked = Code::INVALID_ARGUMENT;  // it was let in
  using testing::ElementsAre;
  EXPECT_THAT(all_of(""), testing::Each(Code::UNAUTHENTICATED));
  EXPECT_THAT(all_of(made(TOKEN_ROLE_JOIN, "another").text()), testing::Each(kNo));
  EXPECT_THAT(all_of(own.text()), ElementsAre(kAsked, kAsked, kNo, kNo, kNo, kNo, kNo));
  EXPECT_THAT(all_of(made(TOKEN_ROLE_VIEWER, "vic").text()),
              ElementsAre(kNo, kNo, kNo, kNo, kNo, Code::OK, kNo));
  EXPECT_THAT(all_of(made(TOKEN_ROLE_SUBMITTER, "sue").text()),
              ElementsAre(kNo, kNo, kAsked, kAsked, kNo, Code::OK, kNo));
  EXPECT_THAT(all_of(made(TOKEN_ROLE_ADMIN, "ada").text()),
              ElementsAre(kNo, kNo, kAsked, kAsked, Code::NOT_FOUND, Code::OK, kAsked));
}

TEST_F(AccessControlTest, AWorkersStreamEndsWhenItsTokenIsRevoked) {
  const access::Token own = access::Token::make();
  ASSERT_TRUE(join(made(TOKEN_ROLE_JOIN, "a worker"), own, "gpu-01").ok());
  const auto stub = WorkerLink::NewStub(channel(own.text()));
  const auto hello = [](const std::string& name) {
    WorkerMessage message;
    message.mutable_hello()->set_name(name);
    message.mutable_hello()->set_host("h");
    message.mutable_hello()->set_instance("i");
    message.mutable_hello()->set_lowest_protocol(1);
    message.mutable_hello()->set_highest_protocol(1);
    return message;
  };
  SchedulerMessage said;
  {
    grpc::ClientContext context;
    const auto stream = stub->Session(&context);
    stream->Write(hello("gpu-02"));
    EXPECT_FALSE(stream->Read(&said));
    EXPECT_THAT(stream->Finish().error_message(), HasSubstr("this token belongs to worker gpu-01"));
  }
  grpc::ClientContext context;
  const auto stream = stub->Session(&context);
  stream->Write(hello("gpu-01"));
  ASSERT_TRUE(stream->Read(&said));
  EXPECT_TRUE(said.has_welcome());
  revoke(own);
  while (stream->Read(&said)) {
  }
  EXPECT_FALSE(stream->Finish().ok());
  grpc::ClientContext again;
  const auto refused = stub->Session(&again);
  EXPECT_FALSE(refused->Read(&said));
  const grpc::Status status = refused->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(status.error_message(), "this token is revoked");
}

TEST_F(AccessControlTest, AStreamEndsWhenItsTokenExpires) {
  SubmitRequest request;
  *request.mutable_file() = file_of("study");
  SubmitResponse submitted;
  ASSERT_TRUE(
      call(std::shared_ptr<Sweeps::Stub>{Sweeps::NewStub(owner)}, &Sweeps::Stub::Submit, request, &submitted)
          .ok());
  const access::Token token = access::Token::make();
  ASSERT_TRUE(create(token, TOKEN_ROLE_VIEWER, "vic", owner, std::time(nullptr) + 3).ok());
  const auto viewer = channel(token.text());
  SweepRequest study;
  study.set_sweep("study");
  Patience context;
  const auto stream = Sweeps::NewStub(viewer)->WatchSweep(&context, study);
  SweepProgress progress;
  ASSERT_TRUE(stream->Read(&progress));
  while (stream->Read(&progress)) {
  }
  EXPECT_FALSE(stream->Finish().ok());
  const grpc::Status again = list(viewer);
  EXPECT_EQ(again.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_THAT(again.error_message(), HasSubstr("expired"));
}

TEST_F(AccessControlTest, HalfOpenConnectionsKeepNobodyOut) {
  const auto parsed = access::parse_listen_address(address);
  std::vector<std::unique_ptr<int, void (*)(int*)>> sockets;
  for (int i = 0; i < 500; ++i) {
    sockets.emplace_back(new int{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)}, [](int* fd) {
      ::close(*fd);
      delete fd;
    });
    sockaddr_in there{.sin_family = AF_INET, .sin_port = htons(parsed.port), .sin_addr = {}, .sin_zero = {}};
    ASSERT_EQ(::inet_pton(AF_INET, "127.0.0.1", &there.sin_addr), 1);
    ASSERT_EQ(::connect(*sockets.back(), reinterpret_cast<sockaddr*>(&there), sizeof there), 0);
  }
  EXPECT_TRUE(list(channel(made(TOKEN_ROLE_VIEWER, "vic").text())).ok());
}

TEST_F(AccessControlTest, ANewCertificateIsShownWithoutARestartAndABrokenOneIsNot) {
  access::write_secret(folder / "server.crt", "broken");
  const auto made = access::make_certificates({"gpu-head"}, SystemClock{}.now());
  EXPECT_EQ(access::tls_trouble(address, authorities), "");
  access::write_secret(folder / "server.key", made.key);
  access::write_secret(folder / "server.crt", made.certificate);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds{60};
  while (!access::tls_trouble(address, made.authority).empty() &&
         std::chrono::steady_clock::now() < deadline) {
    EXPECT_TRUE(access::speaks_tls(address)) << "there is no time without one";
  }
  EXPECT_EQ(access::tls_trouble(address, made.authority), "");
}

TEST_F(AccessControlTest, WhoRevokesTheirOwnTokenIsAnsweredAndNoMoreAfterThat) {
  const access::Token own = made(TOKEN_ROLE_ADMIN, "ada");
  const auto admin = channel(own.text());
  SubmitRequest submit;
  *submit.mutable_file() = file_of("study");
  SubmitResponse submitted;
  ASSERT_TRUE(
      call(std::shared_ptr<Sweeps::Stub>{Sweeps::NewStub(admin)}, &Sweeps::Stub::Submit, submit, &submitted)
          .ok());
  SweepRequest study;
  study.set_sweep("study");
  Patience context;
  const auto stream = Sweeps::NewStub(admin)->WatchSweep(&context, study);
  SweepProgress progress;
  ASSERT_TRUE(stream->Read(&progress));
  RevokeTokenRequest request;
  request.set_id(own.id());
  TokenInfo info;
  const grpc::Status status = call(access_of(admin), &Access::Stub::RevokeToken, request, &info);
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(info.why_not(), "this token is revoked");
  while (stream->Read(&progress)) {
  }
  EXPECT_FALSE(stream->Finish().ok()) << "what else was under way with it has ended";
  EXPECT_EQ(list(admin).error_message(), "this token is revoked");
}

TEST_F(AccessControlTest, AWorkersStreamAndAWatchEndWhenTheirTokensExpire) {
  server.reset();
  const access::Token worker = access::Token::make();
  const Time now = SystemClock{}.now();
  {
    storage::Database db{folder / "results.db", storage::Database::Mode::kWrite};
    storage::TokenStore{db}.add({.record = {.id = worker.id(),
                                            .role = Role::kWorker,
                                            .name = "gpu-01",
                                            .made_by = "test",
                                            .created = now,
                                            .expires = now + std::chrono::seconds{5}},
                                 .sha256 = worker.digest()},
                                now);
  }
  start();
  WorkerMessage hello;
  hello.mutable_hello()->set_name("gpu-01");
  hello.mutable_hello()->set_host("h");
  hello.mutable_hello()->set_instance("i");
  hello.mutable_hello()->set_lowest_protocol(1);
  hello.mutable_hello()->set_highest_protocol(1);
  Patience context;
  const auto stream = WorkerLink::NewStub(channel(worker.text()))->Session(&context);
  SchedulerMessage said;
  stream->Write(hello);
  ASSERT_TRUE(stream->Read(&said));
  ASSERT_TRUE(said.has_welcome());
  while (stream->Read(&said)) {
  }
  EXPECT_FALSE(stream->Finish().ok());
  Patience later;
  const auto refused = WorkerLink::NewStub(channel(worker.text()))->Session(&later);
  EXPECT_FALSE(refused->Read(&said));
  EXPECT_THAT(refused->Finish().error_message(), HasSubstr("this token expired"));
  ListWorkersResponse workers;
  for (int look = 0; look < 1000; ++look) {  // the end of a session is a job of the coordinator
    ASSERT_TRUE(call(std::shared_ptr<Workers::Stub>{Workers::NewStub(owner)}, &Workers::Stub::ListWorkers,
                     ListWorkersRequest{}, &workers)
                    .ok());
    if (workers.workers_size() == 1 && !workers.workers(0).connected()) break;
  }
  ASSERT_EQ(workers.workers_size(), 1);
  EXPECT_FALSE(workers.workers(0).connected());
}

TEST_F(AccessControlTest, WhyAnAddressDoesNotAnswerIsSaidInOneLine) {
  using Kind = access::Trouble::Kind;
  const auto look = [&](const std::string& at, access::ClientAccess access) {
    const auto trouble = access::look_for_trouble(at, access);
    EXPECT_EQ(trouble.text.find('\n'), std::string::npos);
    return std::pair{trouble.kind, trouble.text};
  };
  EXPECT_EQ(look(address, {.tls = true, .authorities = authorities}).first, Kind::kNone);
  EXPECT_EQ(look(address, {}).first, Kind::kTls);
  const auto other = access::make_certificates({"gpu-head"}, SystemClock{}.now());
  EXPECT_EQ(look(address, {.tls = true, .authorities = other.authority}).first, Kind::kCertificate);

  const SchedulerServer plain{{.scheduler = {.store = folder / "plain.db", .trainer = folder / "no-trainer"},
                               .listen = {"127.0.0.1:0"},
                               .http_port = 0}};
  EXPECT_EQ(look(plain.addresses()[0], {}).first, Kind::kNone);
  const auto [kind, text] = look(plain.addresses()[0], {.tls = true, .authorities = authorities});
  EXPECT_EQ(kind, Kind::kPlain);
  EXPECT_THAT(text, HasSubstr("there is no TLS at " + plain.addresses()[0]));
  const std::string page = plain.dashboard().substr(std::string{"http://"}.size());
  for (const bool tls : {false, true})
    EXPECT_EQ(look(page.substr(0, page.find('/')), {.tls = tls, .authorities = authorities}).first,
              Kind::kHttp);

  start({.http_port = 0});
  const std::string secure = server->dashboard().substr(std::string{"https://"}.size());
  for (const bool tls : {false, true}) {
    const auto [of, why] = look(secure.substr(0, secure.find('/')), {.tls = tls, .authorities = authorities});
    EXPECT_EQ(of, Kind::kHttp) << why;
    EXPECT_THAT(why, HasSubstr("is not a scheduler's port"));
  }
}

/// A scheduler that asks its clients for certificates.
class MutualTlsTest : public AccessControlTest {
 protected:
  MutualTlsTest() {
    access::write_secret(folder / "ca.crt", authorities);
    start({.tls = {.client_authorities = folder / "ca.crt"}});
  }
  access::TlsFiles put(const access::Signed& own) {
    const access::TlsFiles files{.certificate = folder / "own.crt", .key = folder / "own.key"};
    access::write_secret(files.certificate, own.certificate);
    access::write_secret(files.key, own.key);
    return files;
  }
  access::ClientAccess with(const access::TlsFiles& own) const {
    return {.tls = true, .authorities = authorities, .token = token, .own = own};
  }
  /// `patient`: it connects again until it is let in.
  grpc::Status list_with(const access::ClientAccess& access, bool patient = false) const {
    ListSweepsResponse response;
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds{60});
    context.set_wait_for_ready(patient);
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return Sweeps::NewStub(grpc::CreateCustomChannel(address, access::channel_credentials(access), arguments))
        ->ListSweeps(&context, {}, &response);
  }
  /// What a client says who is refused.
  std::string refusal(const access::ClientAccess& access) const {
    EXPECT_EQ(list_with(access).error_code(), grpc::StatusCode::UNAVAILABLE);
    return access::look_for_trouble(address, access).text;
  }
  const Time now = SystemClock{}.now();
  const std::string token = made(TOKEN_ROLE_VIEWER, "vic").text();
};

TEST_F(MutualTlsTest, ACertificateOfItsAuthorityIsLetInAndAsksForATokenAllTheSame) {
  access::ClientAccess access = with(put(access::make_client_certificate(authority(), "ada", now)));
  const grpc::Status status = list_with(access);
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(access::look_for_trouble(address, access).text, "");
  access.token = access::Token::make().text();
  EXPECT_EQ(list_with(access).error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_TRUE(list(owner).ok()) << "the socket is its owner's as before";
}

TEST_F(MutualTlsTest, WithoutOneOrWithAnotherOneIsRefusedWithOneClearLine) {
  EXPECT_THAT(refusal(with({})),
              HasSubstr("wants a certificate of its clients: pass --certificate and --key"));

  const auto others = access::make_certificates({"elsewhere"}, now);
  EXPECT_THAT(
      refusal(with(put(access::make_client_certificate(
          {.certificate = others.authority, .key = others.authority_key}, "eve", now)))),
      HasSubstr("refuses the certificate of this client (of eve, signed by ablate fleet): expected one for "
                "clients, signed by an authority of its --client-ca"));

  const access::Signed server_s{.certificate = read_file(folder / "server.crt"),
                                .key = read_file(folder / "server.key")};
  EXPECT_THAT(refusal(with(put(server_s))), HasSubstr("expected one for clients"));
}

TEST_F(MutualTlsTest, AnExpiredOneIsNamedBeforeItIsShownAndIsNotLetIn) {
  const access::TlsFiles files =
      put(access::make_client_certificate(authority(), "ada", now - std::chrono::hours{24 * 731}));
  EXPECT_THROW(access::channel_credentials(with(files)), Error);
  EXPECT_THAT(access::look_for_trouble(address, with(files)).text,
              testing::AllOf(HasSubstr("--certificate "), HasSubstr(" expired on 20")));
  // and by a client that shows it all the same
  grpc::SslCredentialsOptions options{.pem_root_certs = authorities,
                                      .pem_private_key = read_file(files.key),
                                      .pem_cert_chain = read_file(files.certificate)};
  const auto channel = grpc::CreateChannel(
      address,
      grpc::CompositeChannelCredentials(grpc::SslCredentials(options), grpc::AccessTokenCredentials(token)));
  ListSweepsResponse response;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds{60});
  EXPECT_EQ(Sweeps::NewStub(channel)->ListSweeps(&context, {}, &response).error_code(),
            grpc::StatusCode::UNAVAILABLE);
}

TEST_F(MutualTlsTest, AnotherAuthorityOfClientsIsTakenOverWithoutARestart) {
  const auto others = access::make_certificates({"elsewhere"}, now);
  const auto access = with(put(access::make_client_certificate(
      {.certificate = others.authority, .key = others.authority_key}, "eve", now)));
  EXPECT_FALSE(list_with(access).ok());
  access::write_secret(folder / "ca.crt", others.authority);
  EXPECT_TRUE(list_with(access, true).ok());
}

TEST_F(AccessControlTest, ARevokedTokenIsRefusedFromThenOnAndAfterARestart) {
  const access::Token token = made(TOKEN_ROLE_VIEWER, "vic");
  const auto viewer = channel(token.text());
  EXPECT_TRUE(list(viewer).ok());
  revoke(token);
  EXPECT_EQ(list(viewer).error_message(), "this token is revoked");
  server.reset();
  server = std::make_unique<SchedulerServer>(
      ServerOptions{.scheduler = {.store = folder / "results.db", .trainer = folder / "no-trainer"},
                    .listen = {"127.0.0.1:0"},
                    .tls = {.certificate = folder / "server.crt", .key = folder / "server.key"}});
  address = server->addresses()[0];
  EXPECT_EQ(list(channel(token.text())).error_message(), "this token is revoked");
}

TEST_F(AccessControlTest, WhatOnlyAsksWhatWouldChangeIsNotWrittenDown) {
  const std::shared_ptr<Sweeps::Stub> sweeps = Sweeps::NewStub(owner);
  SubmitRequest submit;
  *submit.mutable_file() = file_of("study");
  SubmitResponse submitted;
  ASSERT_TRUE(call(sweeps, &Sweeps::Stub::Submit, submit, &submitted).ok());
  ExtendSweepRequest extend;
  std::string longer = kSweep;
  longer.replace(longer.find("[0]"), 3, "[0, 1]");
  *extend.mutable_file() = file_of("study", longer);
  extend.set_dry_run(true);
  ExtendSweepResponse extended;
  ASSERT_TRUE(call(sweeps, &Sweeps::Stub::ExtendSweep, extend, &extended).ok());
  extend.set_dry_run(false);
  ASSERT_TRUE(call(sweeps, &Sweeps::Stub::ExtendSweep, extend, &extended).ok());
  std::vector<std::string> lines;
  for (int look = 0; look < 1000 && lines.size() < 2; ++look) {  // a line is stored after its call has ended
    ListAuditResponse response;
    ASSERT_TRUE(call(access_of(owner), &Access::Stub::ListAudit, ListAuditRequest{}, &response).ok());
    lines.clear();
    for (const auto& line : response.lines()) lines.push_back(line.what());
  }
  EXPECT_THAT(lines, testing::UnorderedElementsAre("Submit", "ExtendSweep"));
}

TEST_F(AccessControlTest, ChangesAndRefusalsAreWrittenDown) {
  const access::Token sue = made(TOKEN_ROLE_SUBMITTER, "sue"), vic = made(TOKEN_ROLE_VIEWER, "vic");
  cancel(channel(sue.text()), "study");
  cancel(channel(vic.text()), "study");
  list(channel(vic.text()));
  std::vector<std::string> lines;
  for (int look = 0; look < 1000 && lines.size() < 4; ++look) {  // a line is stored after its call has ended
    ListAuditResponse response;
    ASSERT_TRUE(call(access_of(owner), &Access::Stub::ListAudit, ListAuditRequest{}, &response).ok());
    lines.clear();
    for (const auto& line : response.lines()) {
      EXPECT_EQ(line.ShortDebugString().find(sue.text().substr(17)), std::string::npos);
      lines.push_back(fmt::format("{} {} {}: {}", line.who(), line.what(), line.target(), line.outcome()));
    }
  }
  EXPECT_THAT(lines, testing::UnorderedElementsAre(
                         HasSubstr("local CreateToken sue: ok"), HasSubstr("local CreateToken vic: ok"),
                         HasSubstr("sue CancelSweep study: "), HasSubstr("vic CancelSweep : role viewer")));
}

TEST_F(AccessControlTest, PlainTextAndAnotherAuthorityGetNoAnswer) {
  EXPECT_TRUE(access::speaks_tls(address));
  EXPECT_EQ(access::tls_trouble(address, authorities), "");
  const auto other = access::make_certificates({"gpu-head"}, SystemClock{}.now());
  EXPECT_THAT(access::tls_trouble(address, other.authority), HasSubstr("another authority"));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds{60});
  ListSweepsResponse response;
  EXPECT_EQ(Sweeps::NewStub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()))
                ->ListSweeps(&context, {}, &response)
                .error_code(),
            grpc::StatusCode::UNAVAILABLE);
}

TEST_F(AccessControlTest, ACertificateForAnotherNameIsNamedAsSuch) {
  const auto made = access::make_certificates({"gpu-head"}, SystemClock{}.now());
  const std::string port = address.substr(address.rfind(':'));
  // all names of this machine are in it, but this one
  EXPECT_THAT(access::tls_trouble("127.0.0.2" + port, authorities),
              testing::AnyOf("", HasSubstr("is not for 127.0.0.2")));
}

TEST(ServerAccess, BeyondLoopbackASchedulerWantsTlsOrToBeTold) {
  const TemporaryFolder folder;
  const auto refusal = [&](ServerOptions options) {
    options.scheduler = {.store = folder / "results.db", .trainer = folder / "no-trainer"};
    try {
      const SchedulerServer server{options};
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::kInvalidArgument);
      return std::string{error.what()};
    }
    return std::string{};
  };
  EXPECT_THAT(refusal({.listen = {"0.0.0.0:0"}}), HasSubstr("--tls-certificate and --tls-key"));
  EXPECT_THAT(refusal({.listen = {"0.0.0.0:0"}}), HasSubstr("--insecure"));
  EXPECT_EQ(refusal({.listen = {"0.0.0.0:0"}, .insecure = true}), "");
  EXPECT_THAT(refusal({.listen = {"gpu-head:7071"}, .insecure = true}), HasSubstr("expected an IP address"));
  EXPECT_THAT(
      refusal({.listen = {"127.0.0.1:0"}, .insecure = true, .http_listen = "0.0.0.0:0"}),
      HasSubstr("--http-listen 0.0.0.0:0: beyond this machine the dashboard needs --tls-certificate"));
  EXPECT_THAT(refusal({.listen = {"127.0.0.1:0"}, .http_port = 0, .http_listen = "127.0.0.1:0"}),
              HasSubstr("pass one of them"));
}

}  // namespace
}  // namespace abl::scheduler
