// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/clock.h"

namespace abl::access {

/// What one shows of oneself, in PEM: a certificate with those between it and the authority's, and its key.
struct TlsFiles {
  std::filesystem::path certificate, key;
  /// Of a server: who connects has to have a certificate that one of these has signed. Empty: nobody has to.
  std::filesystem::path client_authorities{};
  bool given() const { return !certificate.empty() || !key.empty(); }
};

/// Until when a certificate is good.
struct CertificateTerm {
  std::string name;        ///< of whom it is: its common name
  bool authority = false;  ///< it signs others
  Time ends{};
  bool operator==(const CertificateTerm&) const = default;
};
/// Of all certificates in a text of PEM, in their order.
std::vector<CertificateTerm> terms_of(const std::string& pem);
/// The hosts and addresses that the first of them is for.
std::vector<std::string> names_in(const std::string& pem);
/// So long before the end of a certificate people are told.
constexpr std::chrono::hours kTellBeforeEnd{30 * 24};
/// "2026-11-24".
std::string day_of(Time time);

/// What such files hold.
struct ServerPem {
  std::string certificate, key, client_authorities;
  std::vector<std::string> names{};      ///< the hosts and addresses that the certificate is for
  std::vector<CertificateTerm> terms{};  ///< of the certificate, those behind it and the clients' authorities
};
/// Throws: Error in one line that names the file: kNotFound, kPermissionDenied (not readable, or a key that
/// others may read), kInvalidArgument (no PEM, expired, not valid yet, of another key). Of several keys in
/// the key's file that of the certificate is taken (`write_pair`).
ServerPem read_server_pem(const TlsFiles& files, Time now);
/// Of a client, likewise.
ServerPem read_client_pem(const TlsFiles& files, Time now);

/// A certificate and its key, in PEM.
struct Signed {
  std::string certificate, key;
};
/// Puts them where others may be by now. Whoever is ended between two of its steps leaves a pair that can be
/// read: the key's file has the key before as well until the certificate is there.
void write_pair(const TlsFiles& files, const Signed& made);

/// An authority of one's own and a server's certificate that it has signed, in PEM. The server's has the
/// authority's behind it, so that whoever serves it knows when that ends.
struct Certificates {
  std::string authority, authority_key, certificate, key;
};
/// `names`: by which clients reach the server, hosts and IP addresses. The server's certificate is good for
/// 730 days, the authority's for 3650.
/// Throws: Error{kInvalidArgument} for a name that is none.
Certificates make_certificates(const std::vector<std::string>& names, Time now);
/// Another certificate for a server, with another key, by an authority that there is; for 730 days, and no
/// longer than the authority's is good.
/// Throws: likewise, and where the authority's key is not its key or its certificate has expired.
Signed make_server_certificate(const Signed& authority, const std::vector<std::string>& names, Time now);
/// One by which somebody shows a server who they are. `name`: of the machine or the person.
Signed make_client_certificate(const Signed& authority, const std::string& name, Time now);

/// Throws: Error naming the file where it holds no certificate in PEM. Returns: its text. `flag`: where the
/// file was named.
std::string read_authorities(const std::filesystem::path& file, const char* flag = "--ca");

}  // namespace abl::access
