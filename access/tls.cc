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
  return state_of(files.certificate) + " " + state_of(files.key);
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
      certificate_{std::make_unique<Copy>()},
      key_{std::make_unique<Copy>()} {
  publish(read_server_pem(files_, now));
}

ServerCertificate::~ServerCertificate() = default;

void ServerCertificate::publish(ServerPem pem) {
  key_->put(pem.key);
  certificate_->put(pem.certificate);
  const std::lock_guard lock{mutex_};
  current_ = std::make_shared<const ServerPem>(std::move(pem));
}

std::shared_ptr<const ServerPem> ServerCertificate::current() const {
  const std::lock_guard lock{mutex_};
  return current_;
}

void ServerCertificate::look_again(Time now) {
  std::string state = state_of(files_);
  if (state == seen_) return;
  seen_ = std::move(state);
  try {
    ServerPem pem = read_server_pem(files_, now);
    const auto before = current();
    if (pem.certificate == before->certificate && pem.key == before->key) return;
    publish(std::move(pem));
    log_info("serving TLS with the new certificate in {}", files_.certificate.string());
  } catch (const Error& error) {
    log_error("the new certificate is not used, the one before stays: {}", error.what());
  }
}

std::shared_ptr<grpc::ServerCredentials> ServerCertificate::credentials() const {
  using grpc::experimental::FileWatcherCertificateProvider;
  grpc::experimental::TlsServerCredentialsOptions options{std::make_shared<FileWatcherCertificateProvider>(
      key_->path(), certificate_->path(), kLookAgainSeconds)};
  options.watch_identity_key_cert_pairs();
  options.set_cert_request_type(GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE);
  return grpc::experimental::TlsServerCredentials(options);
}

std::shared_ptr<grpc::ChannelCredentials> channel_credentials(const ClientAccess& access) {
  if (!access.tls) return grpc::InsecureChannelCredentials();
  auto channel = grpc::SslCredentials({.pem_root_certs = access.authorities});
  if (access.token.empty()) return channel;
  return grpc::CompositeChannelCredentials(channel, grpc::AccessTokenCredentials(access.token));
}

}  // namespace abl::access
