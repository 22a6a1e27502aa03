// SPDX-License-Identifier: Apache-2.0
#include "access/tls.h"

#include <fmt/format.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/error.h"
#include "base/log.h"

namespace abl::access {
namespace {

constexpr unsigned kLookAgainSeconds = 1;

/// Which file it is, and which state of it; empty where there is none.
std::string state_of(const std::filesystem::path& file) {
  struct stat now {};
  if (::stat(file.c_str(), &now) != 0) return {};
  return fmt::format("{}:{}:{}:{}.{}:{:o}", now.st_dev, now.st_ino, now.st_size, now.st_mtim.tv_sec,
                     now.st_mtim.tv_nsec, now.st_mode);
}
std::string state_of(const TlsFiles& files) {
  return fmt::format("{} {} {}", state_of(files.certificate), state_of(files.key),
                     state_of(files.client_authorities));
}

}  // namespace

/// A text in memory that has the path of a file: gRPC's provider reads files, and takes what is in them
/// however wrong it is, so it gets those that hold only what was found right.
class ServerCertificate::Copy {
 public:
  Copy() : fd_{::memfd_create("ablate-tls", MFD_CLOEXEC)} {
    if (fd_ < 0) throw system_error("cannot keep a certificate in memory", errno);
  }
  ~Copy() { ::close(fd_); }
  Copy(const Copy&) = delete;
  Copy& operator=(const Copy&) = delete;
  std::string path() const { return fmt::format("/proc/self/fd/{}", fd_); }
  void put(const std::string& text) {
    const auto size = static_cast<ssize_t>(text.size());
    if (::pwrite(fd_, text.data(), text.size(), 0) != size || ::ftruncate(fd_, size) != 0)
      throw system_error("cannot keep a certificate in memory", errno);
  }

 private:
  const int fd_;
};

ServerCertificate::ServerCertificate(TlsFiles files, Time now)
    : files_{std::move(files)},
      seen_{state_of(files_)},
      last_look_{seen_},
      certificate_{std::make_unique<Copy>()},
      key_{std::make_unique<Copy>()},
      client_authorities_{std::make_unique<Copy>()} {
  publish(read_server_pem(files_, now));
}

ServerCertificate::~ServerCertificate() = default;

void ServerCertificate::publish(ServerPem pem) {
  key_->put(pem.key);
  certificate_->put(pem.certificate);
  client_authorities_->put(pem.client_authorities);
  const std::lock_guard lock{mutex_};
  current_ = std::make_shared<const ServerPem>(std::move(pem));
}

std::shared_ptr<const ServerPem> ServerCertificate::current() const {
  const std::lock_guard lock{mutex_};
  return current_;
}

void ServerCertificate::look_again(Time now) {
  tell_of_ends(now);
  const std::string state = state_of(files_);
  if (std::exchange(last_look_, state) != state || state == seen_) return;
  seen_ = state;
  try {
    ServerPem pem = read_server_pem(files_, now);
    const auto before = current();
    if (pem.certificate == before->certificate && pem.key == before->key &&
        pem.client_authorities == before->client_authorities)
      return;
    log_info("serving TLS with the new certificate in {}, good until {}", files_.certificate.string(),
             pem.terms.empty() ? "an unknown date" : day_of(pem.terms.front().ends));
    publish(std::move(pem));
    told_ = {};
  } catch (const Error& error) {
    log_error("the new certificate is not used, the one before stays: {}", error.what());
  }
}

void ServerCertificate::tell_of_ends(Time now) {
  if (now - told_ < std::chrono::hours{24}) return;
  told_ = now;
  for (const CertificateTerm& term : current()->terms)
    if (term.ends - now < kTellBeforeEnd)
      log_warning("the certificate of {} {} on {}: {}", term.name, term.ends < now ? "ended" : "ends",
                  day_of(term.ends),
                  term.authority
                      ? "an authority is not renewed: make a new fleet, and give everybody its ca.crt"
                      : "'ablate init-fleet --renew' makes a new one");
}

std::shared_ptr<grpc::ServerCredentials> ServerCertificate::credentials() const {
  using grpc::experimental::FileWatcherCertificateProvider;
  const bool asks = !files_.client_authorities.empty();
  grpc::experimental::TlsServerCredentialsOptions options{std::make_shared<FileWatcherCertificateProvider>(
      key_->path(), certificate_->path(), asks ? client_authorities_->path() : "", kLookAgainSeconds)};
  options.watch_identity_key_cert_pairs();
  if (asks) options.watch_root_certs();
  options.set_cert_request_type(asks ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                                     : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE);
  return grpc::experimental::TlsServerCredentials(options);
}

std::shared_ptr<grpc::ChannelCredentials> channel_credentials(const ClientAccess& access) {
  if (!access.tls) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions options{.pem_root_certs = access.authorities};
  if (access.own.given()) {
    const ServerPem own = read_client_pem(access.own, SystemClock{}.now());
    options.pem_cert_chain = own.certificate;
    options.pem_private_key = own.key;
  }
  auto channel = grpc::SslCredentials(options);
  if (access.token.empty()) return channel;
  return grpc::CompositeChannelCredentials(channel, grpc::AccessTokenCredentials(access.token));
}

}  // namespace abl::access
