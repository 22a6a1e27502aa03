// SPDX-License-Identifier: Apache-2.0
#include "access/tls.h"

#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>

namespace abl::access {
namespace {

constexpr unsigned kLookAgainSeconds = 2;

}  // namespace

std::shared_ptr<grpc::ServerCredentials> server_credentials(const TlsFiles& files) {
  using grpc::experimental::FileWatcherCertificateProvider;
  grpc::experimental::TlsServerCredentialsOptions options{std::make_shared<FileWatcherCertificateProvider>(
      files.key.string(), files.certificate.string(), kLookAgainSeconds)};
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
