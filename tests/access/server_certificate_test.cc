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
  certificate.look_again(now);
  EXPECT_EQ(certificate.current()->certificate, first);
  write_secret(files.key, second.key);
  certificate.look_again(now);
  EXPECT_EQ(certificate.current()->certificate, second.certificate);
  EXPECT_THAT(certificate.current()->names, testing::Contains("gpu-head-2"));

  fs::remove(files.key);
  certificate.look_again(now);
  put(make_certificates({"gpu-head"}, now - std::chrono::hours{24 * 731}));  // expired
  certificate.look_again(now);
  write_secret(files.certificate, "no certificate");
  certificate.look_again(now);
  EXPECT_EQ(certificate.current()->certificate, second.certificate);
  EXPECT_EQ(certificate.current()->key, second.key);
}

TEST_F(ServerCertificateTest, BeginsWithNothingThatIsNotSound) {
  EXPECT_THROW((ServerCertificate{files, now}), Error);
}

}  // namespace
}  // namespace abl::access
