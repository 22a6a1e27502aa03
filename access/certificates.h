// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/clock.h"

namespace abl::access {

/// What a server shows of itself, in PEM: its certificate with those between it and the authority's, and its
/// key.
struct TlsFiles {
  std::filesystem::path certificate, key;
  bool given() const { return !certificate.empty() || !key.empty(); }
};

/// What such files hold.
struct ServerPem {
  std::string certificate, key;
  std::vector<std::string> names;  ///< the hosts and addresses that the certificate is for
};
/// Throws: Error in one line that names the file: kNotFound, kPermissionDenied (not readable, or a key that
/// others may read), kInvalidArgument (no PEM, expired, not valid yet, of another key).
ServerPem read_server_pem(const TlsFiles& files, Time now);

/// An authority of one's own and a certificate that it has signed, in PEM.
struct Certificates {
  std::string authority, authority_key, certificate, key;
};
/// `names`: by which clients reach the server, hosts and IP addresses. The server's certificate is good for
/// 730 days, the authority's for 3650.
/// Throws: Error{kInvalidArgument} for a name that is none.
Certificates make_certificates(const std::vector<std::string>& names, Time now);

/// Why a client that trusts these authorities (PEM; empty: the system's) cannot speak TLS with the server at
/// "host:port": another authority, another name, expired, no TLS there. Empty: it can, or nobody answers.
/// Takes some seconds at most.
std::string tls_trouble(const std::string& address, const std::string& authorities);
/// Whether TLS, with whatever certificate, is spoken at "host:port". Takes some seconds at most.
bool speaks_tls(const std::string& address);

/// Throws: Error naming the file where it holds no certificate in PEM. Returns: its text.
std::string read_authorities(const std::filesystem::path& file);

}  // namespace abl::access
