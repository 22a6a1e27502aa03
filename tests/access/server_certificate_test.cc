// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "access/tls.h"
#include "access/token.h"
#include "base/error.h"
#include "base/file.h"
#include "tests/temporary_folder.h"

namespace abl::access {
namespace {

namespace fs = std::filesystem;

class ServerCertificateTest : public testing::Test {
 protected:
  std::string put(const Certificates& made) {
    write_secret(files.certificate, made.certificate);
    write_secret(files.key, made.key);
    return made.certificate;
  }
  /// As the ticker does it: what has changed is read when it has stood still.
  void look(ServerCertificate& certificate) const {
    certificate.look_again(now);
    certificate.look_again(now);
  }
  TemporaryFolder folder;
  const Time now = SystemClock{}.now();
  const TlsFiles files{.certificate = folder / "server.crt", .key = folder / "server.key"};
};

TEST_F(ServerCertificateTest, TakesOverWhatIsSoundAndKeepsWhatItHasOtherwise) {
  const std::string first = put(make_certificates({"gpu-head"}, now));
  ServerCertificate certificate{files, now};
  EXPECT_EQ(certificate.current()->certificate, first);
  EXPECT_THAT(certificate.current()->names, testing::Contains("gpu-head"));

  const auto second = make_certificates({"gpu-head-2"}, now);
  write_secret(files.certificate, second.certificate);  // its key is not there yet
  look(certificate);
  EXPECT_EQ(certificate.current()->certificate, first);
  write_secret(files.key, second.key);
  look(certificate);
  EXPECT_EQ(certificate.current()->certificate, second.certificate);
  EXPECT_THAT(certificate.current()->names, testing::Contains("gpu-head-2"));

  fs::remove(files.key);
  look(certificate);
  put(make_certificates({"gpu-head"}, now - std::chrono::hours{24 * 731}));  // expired
  look(certificate);
  write_secret(files.certificate, "no certificate");
  look(certificate);
  EXPECT_EQ(certificate.current()->certificate, second.certificate);
  EXPECT_EQ(certificate.current()->key, second.key);
}

TEST_F(ServerCertificateTest, WhatIsBeingWrittenIsNotRead) {
  const std::string first = put(make_certificates({"gpu-head"}, now));
  ServerCertificate certificate{files, now};
  const auto second = make_certificates({"gpu-head-2"}, now);
  write_secret(files.key, second.key);
  certificate.look_again(now);
  write_secret(files.certificate, second.certificate);  // between two looks
  certificate.look_again(now);
  EXPECT_EQ(certificate.current()->certificate, first) << "it has only just changed";
  certificate.look_again(now);
  EXPECT_EQ(certificate.current()->certificate, second.certificate);
}

TEST_F(ServerCertificateTest, KnowsUntilWhenEachOfItsCertificatesIsGood) {
  put(make_certificates({"gpu-head"}, now));
  const auto clients = make_certificates({"elsewhere"}, now - std::chrono::hours{24});
  write_secret(folder / "clients.crt", clients.authority);
  const ServerCertificate certificate{
      {.certificate = files.certificate, .key = files.key, .client_authorities = folder / "clients.crt"},
      now};
  const auto terms = certificate.current()->terms;
  ASSERT_EQ(terms.size(), 3U) << "the server's, its authority's, that of clients";
  EXPECT_EQ(terms[0].name, "ablate-scheduler");
  EXPECT_FALSE(terms[0].authority);
  EXPECT_NEAR(Seconds{terms[0].ends - now}.count(), 730 * 86400.0, 2 * 3600.0);
  EXPECT_TRUE(terms[1].authority);
  EXPECT_NEAR(Seconds{terms[1].ends - now}.count(), 3650 * 86400.0, 2 * 3600.0);
}

TEST_F(ServerCertificateTest, BeginsWithNothingThatIsNotSound) {
  EXPECT_THROW((ServerCertificate{files, now}), Error);
}

}  // namespace
}  // namespace abl::access
