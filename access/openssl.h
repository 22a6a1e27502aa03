// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace abl::access {

/// OpenSSL's objects, which go with their owner.
template <auto free>
struct Freed {
  void operator()(auto* object) const { free(object); }
};
using Certificate = std::unique_ptr<X509, Freed<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;
using Memory = std::unique_ptr<BIO, Freed<BIO_free_all>>;
using Context = std::unique_ptr<SSL_CTX, Freed<SSL_CTX_free>>;
using Session = std::unique_ptr<SSL, Freed<SSL_free>>;

Memory memory_of(std::string_view text);
/// All certificates in a text of PEM, in their order.
std::vector<Certificate> certificates_in(std::string_view pem);
/// Nothing: there is none, or it has a password, for which nobody is asked.
Key key_in(std::string_view pem);
/// All that have none, in their order.
std::vector<Key> keys_in(std::string_view pem);

/// "2026-11-24 at 11:13 UTC".
std::string date_of(const ASN1_TIME* time);
/// The hosts and addresses that a certificate is for.
std::vector<std::string> names_of(X509* certificate);
/// "ablate fleet": the common name of whom a certificate is of.
std::string common_name(const X509_NAME* name);
/// What OpenSSL has noted since it was last asked, for people.
std::string openssl_reason();

}  // namespace abl::access
