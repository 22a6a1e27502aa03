// SPDX-License-Identifier: Apache-2.0
#include "access/certificates.h"

#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <thread>

#include "access/reach.h"
#include "base/error.h"
#include "base/file.h"
#include "tests/temporary_folder.h"

namespace abl::access {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

class CertificatesTest : public testing::Test {
 protected:
  TemporaryFolder folder;
  Time now = SystemClock{}.now();
  TlsFiles files{.certificate = folder / "server.crt", .key = folder / "server.key"};

  void put(const Certificates& certificates) {
    write_file(files.certificate, certificates.certificate);
    write_file(files.key, certificates.key);
    fs::permissions(files.key, fs::perms{0600});
  }
  std::pair<Code, std::string> refusal(Time at) const {
    try {
      read_server_pem(files, at);
    } catch (const Error& error) {
      EXPECT_EQ(std::string{error.what()}.find('\n'), std::string::npos);
      return {error.code(), error.what()};
    }
    return {Code::kOk, ""};
  }
};

TEST_F(CertificatesTest, AFleetsOwnCertificateIsRight) {
  put(make_certificates({"gpu-head", "10.0.0.5", "fe80::1"}, now));
  EXPECT_EQ(refusal(now).second, "");
  EXPECT_EQ(refusal(now - 30min).second, "") << "of a clock that is behind";
}

TEST_F(CertificatesTest, EachThingThatIsWrongWithAFileIsNamedInOneLine) {
  EXPECT_EQ(refusal(now).first, Code::kNotFound);
  put(make_certificates({"gpu-head"}, now));
  EXPECT_THAT(refusal(now + 24h * 731).second,
              AllOf(HasSubstr(files.certificate.string()), HasSubstr("expired on 20")));
  EXPECT_THAT(refusal(now - 24h).second, HasSubstr("is not valid before 20"));

  fs::permissions(files.key, fs::perms{0640});
  EXPECT_EQ(refusal(now).first, Code::kPermissionDenied);
  EXPECT_THAT(refusal(now).second,
              AllOf(HasSubstr("open to other users (mode 0640)"), HasSubstr("chmod 600")));
  fs::permissions(files.key, fs::perms{0600});

  write_file(files.key, make_certificates({"gpu-head"}, now).key);
  EXPECT_THAT(refusal(now).second, HasSubstr("is not the key of"));
  write_file(files.key, "no key");
  EXPECT_THAT(refusal(now).second, HasSubstr("expected a private key in PEM"));
  write_file(files.certificate, "no certificate");
  EXPECT_THAT(refusal(now).second, HasSubstr("holds no certificate in PEM"));
  files.key.clear();
  EXPECT_THAT(refusal(now).second, HasSubstr("--tls-certificate without --tls-key"));
}

TEST_F(CertificatesTest, AKeyBehindAPasswordIsRefusedWithoutAQuestion) {
  put(make_certificates({"gpu-head"}, now));
  write_file(files.key,
             "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIIBvTBXBgkqhkiG9w0BBQ0wSjApBgkqhkiG9w0BBQwwHAQI\n"
             "-----END ENCRYPTED PRIVATE KEY-----\n");
  EXPECT_THAT(refusal(now).second, HasSubstr("without a password"));
}

TEST_F(CertificatesTest, ANameThatIsNoneIsRefused) {
  for (const char* name : {"", "a b", "a,DNS:b", "-a", ".a", "ä.example", "a\n", "10.0.0.5/8"})
    EXPECT_THROW(make_certificates({name}, now), Error) << name;
  EXPECT_NO_THROW(make_certificates({"gpu-head.example.org", "10.0.0.5", "::1"}, now));
}

TEST_F(CertificatesTest, AuthoritiesAreReadFromAFileThatHasSome) {
  const auto file = folder / "ca.crt";
  write_file(file, make_certificates({"a"}, now).authority);
  EXPECT_THAT(read_authorities(file), HasSubstr("BEGIN CERTIFICATE"));
  write_file(file, "something else");
  EXPECT_THROW(read_authorities(file), Error);
  EXPECT_THROW(read_authorities(folder / "absent"), Error);
}

TEST_F(CertificatesTest, AnotherCertificateOfTheSameAuthorityIsForOtherNamesAndHasAKeyOfItsOwn) {
  const Certificates made = make_certificates({"gpu-head"}, now);
  const Signed authority{.certificate = made.authority, .key = made.authority_key};
  const Signed renewed =
      make_server_certificate(authority, {"gpu-head", "gpu-head.example.org", "localhost"}, now);
  EXPECT_NE(renewed.key, made.key);
  EXPECT_THAT(names_in(renewed.certificate), testing::UnorderedElementsAre("gpu-head", "gpu-head.example.org",
                                                                           "localhost", "127.0.0.1", "::1"));
  put({.authority = {}, .authority_key = {}, .certificate = renewed.certificate, .key = renewed.key});
  EXPECT_EQ(refusal(now).second, "");
  EXPECT_EQ(refusal(now + 24h * 729).second, "");
}

TEST_F(CertificatesTest, APairThatIsReplacedCanBeReadAtEachMoment) {
  const Certificates made = make_certificates({"gpu-head"}, now);
  put(made);
  const std::string before = read_server_pem(files, now).key;
  const Signed next =
      make_server_certificate({.certificate = made.authority, .key = made.authority_key}, {"gpu-head"}, now);
  for (const std::string& certificate : {made.certificate, next.certificate}) {  // ended after each step
    write_file(files.certificate, certificate);
    write_file(files.key, next.key + made.key);
    EXPECT_EQ(read_server_pem(files, now).key, certificate == next.certificate ? next.key : before);
    write_pair(files, next);
    EXPECT_EQ(read_server_pem(files, now).key, next.key);
    EXPECT_EQ(read_file(files.key), next.key) << "the key before is gone";
  }
  write_file(files.key, "no key");
  write_pair(files, next);
  EXPECT_EQ(read_server_pem(files, now).certificate, next.certificate);
}

TEST_F(CertificatesTest, NothingIsSignedForLongerThanItsAuthorityIsGoodNorByOneThatIsNot) {
  const Certificates made = make_certificates({"gpu-head"}, now - 24h * 3600);  // 50 of its days are left
  const Signed authority{.certificate = made.authority, .key = made.authority_key};
  const Signed late = make_server_certificate(authority, {"gpu-head"}, now);
  EXPECT_EQ(terms_of(late.certificate).at(0).ends, terms_of(made.authority).at(0).ends);
  EXPECT_EQ(terms_of(make_client_certificate(authority, "ada", now).certificate).at(0).ends,
            terms_of(made.authority).at(0).ends);
  EXPECT_THROW(make_server_certificate(authority, {"gpu-head"}, now + 24h * 51), Error);
  EXPECT_THROW(make_server_certificate({.certificate = made.authority, .key = made.key}, {"gpu-head"}, now),
               Error);
  EXPECT_THROW(make_server_certificate({.certificate = "", .key = ""}, {"gpu-head"}, now), Error);
}

TEST_F(CertificatesTest, WhatIsWrongWithAClientsFilesNamesTheFlagsOfClients) {
  const Certificates made = make_certificates({"gpu-head"}, now);
  const Signed own =
      make_client_certificate({.certificate = made.authority, .key = made.authority_key}, "ada", now);
  put({.authority = {}, .authority_key = {}, .certificate = own.certificate, .key = own.key});
  EXPECT_EQ(read_client_pem(files, now).certificate, own.certificate);
  const auto why = [&](Time at) {
    try {
      read_client_pem(files, at);
    } catch (const Error& error) {
      return std::string{error.what()};
    }
    return std::string{};
  };
  EXPECT_THAT(why(now + 24h * 731), AllOf(HasSubstr("--certificate "), HasSubstr(" expired on 20")));
  files.key.clear();
  EXPECT_EQ(why(now), "--certificate without --key: pass both");
}

/// Takes one connection, says what it is told to, and closes it when the other side has spoken.
class Listener {
 public:
  explicit Listener(std::string words) : fd_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)} {
    sockaddr_in here{.sin_family = AF_INET, .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof here;
    auto* const address = reinterpret_cast<sockaddr*>(&here);
    EXPECT_EQ(::bind(fd_, address, size), 0);
    EXPECT_EQ(::listen(fd_, 1), 0);
    EXPECT_EQ(::getsockname(fd_, address, &size), 0);
    port_ = ntohs(here.sin_port);
    thread_ = std::jthread{[this, words = std::move(words)] {
      const int taken = ::accept(fd_, nullptr, nullptr);
      std::array<char, 4096> heard{};
      EXPECT_GT(::read(taken, heard.data(), heard.size()), 0);
      EXPECT_EQ(::write(taken, words.data(), words.size()), static_cast<ssize_t>(words.size()));
      ::close(taken);
    }};
  }
  ~Listener() {
    thread_.join();
    ::close(fd_);
  }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  int fd_, port_ = 0;
  std::jthread thread_;
};

TEST_F(CertificatesTest, WhoClosesTheConnectionIsToldApartFromWhoSpeaksNoTls) {
  const Listener closes{""}, speaks_http{"HTTP/1.1 400 Bad Request\r\n\r\n"};
  EXPECT_EQ(
      tls_trouble(closes.address(), ""),
      closes.address() +
          " closes connections before TLS has begun: behind it is no scheduler just now, or one without "
          "TLS");
  EXPECT_EQ(tls_trouble(speaks_http.address(), ""),
            "there is no TLS at " + speaks_http.address() + " (wrong version number)");
}

}  // namespace
}  // namespace abl::access
