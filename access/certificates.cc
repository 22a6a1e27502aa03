// SPDX-License-Identifier: Apache-2.0
#include "access/certificates.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "access/listen_address.h"
#include "access/openssl.h"
#include "access/token.h"
#include "base/error.h"
#include "base/file.h"

namespace abl::access {
namespace {

namespace fs = std::filesystem;

using Extension = std::unique_ptr<X509_EXTENSION, Freed<X509_EXTENSION_free>>;

constexpr long kDay = 24 * 3600;
constexpr long kServerDays = 730, kAuthorityDays = 3650;
const std::vector<std::string> kThisMachine{"localhost", "127.0.0.1", "::1"};

std::string text_of(const Memory& memory) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(memory.get(), &data);
  return {data, static_cast<std::size_t>(size)};
}

void expect(bool done, const char* what) {
  if (!done) throw Error{Code::kInternal, fmt::format("cannot {}: {}", what, openssl_reason())};
}

std::string read_pem(const fs::path& file, const char* what) {
  std::error_code unknown;
  if (!fs::exists(file, unknown))
    throw Error{Code::kNotFound, fmt::format("{} {}: no such file", what, file.string())};
  if (fs::is_directory(file, unknown))
    throw Error{Code::kInvalidArgument, fmt::format("{} {}: is a folder", what, file.string())};
  if (::access(file.c_str(), R_OK) != 0)
    throw Error{Code::kPermissionDenied, fmt::format("{} {}: permission denied", what, file.string())};
  return read_file(file);
}

/// "DNS:gpu-head,IP:10.0.0.5", with the names of the machine itself.
std::string alternative_names(std::vector<std::string> names) {
  constexpr std::size_t kLongestHost = 253;
  std::erase_if(names, [](const std::string& name) { return std::ranges::count(kThisMachine, name) > 0; });
  names.insert(names.end(), kThisMachine.begin(), kThisMachine.end());
  std::string text;
  for (const std::string& name : names) {
    const bool host =
        !name.empty() && name.size() <= kLongestHost && name.front() != '-' && name.front() != '.' &&
        name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-") ==
            std::string::npos;
    if (!is_ip_address(name) && !host)
      throw Error{Code::kInvalidArgument,
                  fmt::format("invalid name '{}': expected a host name or an IP address", name)};
    text += fmt::format("{}{}:{}", text.empty() ? "" : ",", is_ip_address(name) ? "IP" : "DNS", name);
  }
  return text;
}

Key new_key() {
  Key key{EVP_EC_gen("P-256")};
  expect(key != nullptr, "make a key");
  return key;
}

/// A certificate of `key` that `issuer_key` has signed. `issuer`: nothing where it signs itself.
Certificate sign(const Key& key, const std::string& name, long days, Time now, const X509* issuer,
                 const Key& issuer_key, const std::vector<std::pair<int, std::string>>& extensions) {
  Certificate certificate{X509_new()};
  expect(certificate != nullptr, "make a certificate");
  X509* const x509 = certificate.get();
  X509_set_version(x509, X509_VERSION_3);
  unsigned char serial[16];
  expect(RAND_bytes(serial, sizeof serial) == 1, "get random bits");
  serial[0] &= 0x7f;  // a positive number
  const std::unique_ptr<BIGNUM, Freed<BN_free>> number{BN_bin2bn(serial, sizeof serial, nullptr)};
  BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(x509));
  std::time_t begin =
      std::chrono::system_clock::to_time_t(now) - 3600;  // other machines' clocks may be behind
  X509_time_adj_ex(X509_getm_notBefore(x509), 0, 0, &begin);
  X509_time_adj_ex(X509_getm_notAfter(x509), static_cast<int>(days), kDay / 24, &begin);
  if (const ASN1_TIME* last = issuer ? X509_get0_notAfter(issuer) : nullptr;
      last && ASN1_TIME_compare(last, X509_get0_notAfter(x509)) < 0)
    X509_set1_notAfter(x509, last);  // beyond it nobody would take this one
  X509_set_pubkey(x509, key.get());
  X509_NAME* const subject = X509_get_subject_name(x509);
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  X509_set_issuer_name(x509, issuer ? X509_get_subject_name(issuer) : subject);
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer ? const_cast<X509*>(issuer) : x509, x509, nullptr, nullptr, 0);
  for (const auto& [kind, value] : extensions) {
    const Extension extension{X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str())};
    expect(extension != nullptr && X509_add_ext(x509, extension.get(), -1) == 1, "describe a certificate");
  }
  expect(X509_sign(x509, issuer_key.get(), EVP_sha256()) > 0, "sign a certificate");
  return certificate;
}

std::string pem_of(const Certificate& certificate) {
  const Memory memory{BIO_new(BIO_s_mem())};
  expect(PEM_write_bio_X509(memory.get(), certificate.get()) == 1, "write a certificate");
  return text_of(memory);
}
std::string pem_of(const Key& key) {
  const Memory memory{BIO_new(BIO_s_mem())};
  expect(PEM_write_bio_PrivateKey(memory.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) == 1,
         "write a key");
  return text_of(memory);
}

/// An authority that is there, to sign with.
struct Signer {
  Certificate certificate;
  Key key;
};
Signer signer_of(const Signed& authority, Time now) {
  auto certificates = certificates_in(authority.certificate);
  Signer signer{.certificate = certificates.empty() ? nullptr : std::move(certificates.front()),
                .key = key_in(authority.key)};
  if (!signer.certificate || !signer.key)
    throw Error{Code::kInvalidArgument,
                "the fleet's authority: expected a certificate and a key without a password, in PEM"};
  if (X509_check_private_key(signer.certificate.get(), signer.key.get()) != 1) {
    ERR_clear_error();
    throw Error{Code::kInvalidArgument, "the fleet's authority: ca.key is not the key of ca.crt"};
  }
  std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  if (X509_cmp_time(X509_get0_notAfter(signer.certificate.get()), &seconds) < 0)
    throw Error{Code::kFailedPrecondition,
                fmt::format("the fleet's authority expired on {}: what it signs is worth nothing; move the "
                            "fleet's folder away and make a new one",
                            date_of(X509_get0_notAfter(signer.certificate.get())))};
  return signer;
}

Signed server_certificate(const Signer& authority, const std::vector<std::string>& names, Time now) {
  const std::string alternatives = alternative_names(names);
  const Key key = new_key();
  const Certificate certificate =
      sign(key, "ablate-scheduler", kServerDays, now, authority.certificate.get(), authority.key,
           {{NID_basic_constraints, "critical,CA:FALSE"},
            {NID_key_usage, "critical,digitalSignature"},
            {NID_ext_key_usage, "serverAuth"},
            {NID_subject_key_identifier, "hash"},
            {NID_authority_key_identifier, "keyid:always"},
            {NID_subject_alt_name, alternatives}});
  return {.certificate = pem_of(certificate) + pem_of(authority.certificate), .key = pem_of(key)};
}

/// Of the keys in a text that of a certificate, in PEM; empty: it is not there.
std::string key_of(X509* certificate, const std::string& pem) {
  std::string found;
  for (const Key& key : keys_in(pem))
    if (found.empty() && X509_check_private_key(certificate, key.get()) == 1) found = pem_of(key);
  ERR_clear_error();
  return found;
}

/// Where files of a server or a client were named.
struct Flags {
  const char *certificate, *key;
};
ServerPem read_pair(const TlsFiles& files, Time now, const Flags& flags) {
  if (files.certificate.empty())
    throw Error{Code::kInvalidArgument,
                fmt::format("{} without {}: pass both", flags.key, flags.certificate)};
  if (files.key.empty())
    throw Error{Code::kInvalidArgument,
                fmt::format("{} without {}: pass both", flags.certificate, flags.key)};
  std::string certificate_text = read_pem(files.certificate, flags.certificate);
  const auto chain = certificates_in(certificate_text);
  const std::string certificate_name = fmt::format("{} {}", flags.certificate, files.certificate.string());
  if (chain.empty()) throw Error{Code::kInvalidArgument, certificate_name + ": holds no certificate in PEM"};
  X509* const certificate = chain.front().get();
  std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  if (X509_cmp_time(X509_get0_notAfter(certificate), &seconds) < 0)
    throw Error{Code::kInvalidArgument,
                fmt::format("{} expired on {}: put a new one in its place", certificate_name,
                            date_of(X509_get0_notAfter(certificate)))};
  if (X509_cmp_time(X509_get0_notBefore(certificate), &seconds) > 0)
    throw Error{Code::kInvalidArgument,
                fmt::format("{} is not valid before {}: is this machine's clock right?", certificate_name,
                            date_of(X509_get0_notBefore(certificate)))};
  const std::string key_text = read_pem(files.key, flags.key);
  expect_private(files.key, flags.key);
  const std::string key_name = fmt::format("{} {}", flags.key, files.key.string());
  if (!key_in(key_text))
    throw Error{Code::kInvalidArgument, key_name + ": expected a private key in PEM without a password"};
  std::string key = key_of(certificate, key_text);
  if (key.empty())
    throw Error{Code::kInvalidArgument,
                fmt::format("{} is not the key of {}", key_name, files.certificate.string())};
  return {.certificate = certificate_text,
          .key = std::move(key),
          .client_authorities = {},
          .names = names_of(certificate),
          .terms = terms_of(certificate_text)};
}

}  // namespace

std::vector<CertificateTerm> terms_of(const std::string& pem) {
  std::vector<CertificateTerm> terms;
  for (const Certificate& certificate : certificates_in(pem)) {
    std::tm end{};
    if (ASN1_TIME_to_tm(X509_get0_notAfter(certificate.get()), &end) != 1) continue;
    terms.push_back({.name = common_name(X509_get_subject_name(certificate.get())),
                     .authority = X509_check_ca(certificate.get()) == 1,
                     .ends = Time{std::chrono::seconds{::timegm(&end)}}});
  }
  return terms;
}

std::vector<std::string> names_in(const std::string& pem) {
  const auto chain = certificates_in(pem);
  return chain.empty() ? std::vector<std::string>{} : names_of(chain.front().get());
}

std::string day_of(Time time) {
  return fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::chrono::system_clock::to_time_t(time)));
}

ServerPem read_server_pem(const TlsFiles& files, Time now) {
  ServerPem pem = read_pair(files, now, {.certificate = "--tls-certificate", .key = "--tls-key"});
  if (!files.client_authorities.empty())
    pem.client_authorities = read_authorities(files.client_authorities, "--client-ca");
  for (CertificateTerm& term : terms_of(pem.client_authorities))
    if (std::ranges::count(pem.terms, term) == 0) pem.terms.push_back(std::move(term));
  return pem;
}

ServerPem read_client_pem(const TlsFiles& files, Time now) {
  return read_pair(files, now, {.certificate = "--certificate", .key = "--key"});
}

void write_pair(const TlsFiles& files, const Signed& made) {
  std::string before;
  if (std::error_code unknown; fs::exists(files.certificate, unknown) && fs::exists(files.key, unknown))
    if (const auto chain = certificates_in(read_file(files.certificate)); !chain.empty())
      before = key_of(chain.front().get(), read_file(files.key));
  write_secret(files.key, made.key + before);
  write_secret(files.certificate, made.certificate);
  if (!before.empty()) write_secret(files.key, made.key);
}

Certificates make_certificates(const std::vector<std::string>& names, Time now) {
  Signer authority{.certificate = nullptr, .key = new_key()};
  authority.certificate = sign(authority.key, "ablate fleet", kAuthorityDays, now, nullptr, authority.key,
                               {{NID_basic_constraints, "critical,CA:TRUE,pathlen:0"},
                                {NID_key_usage, "critical,keyCertSign,cRLSign"},
                                {NID_subject_key_identifier, "hash"}});
  Signed server = server_certificate(authority, names, now);
  return {.authority = pem_of(authority.certificate),
          .authority_key = pem_of(authority.key),
          .certificate = std::move(server.certificate),
          .key = std::move(server.key)};
}

Signed make_server_certificate(const Signed& authority, const std::vector<std::string>& names, Time now) {
  return server_certificate(signer_of(authority, now), names, now);
}

Signed make_client_certificate(const Signed& authority, const std::string& name, Time now) {
  const Signer signer = signer_of(authority, now);
  const Key key = new_key();
  const Certificate certificate = sign(key, name, kServerDays, now, signer.certificate.get(), signer.key,
                                       {{NID_basic_constraints, "critical,CA:FALSE"},
                                        {NID_key_usage, "critical,digitalSignature"},
                                        {NID_ext_key_usage, "clientAuth"},
                                        {NID_subject_key_identifier, "hash"},
                                        {NID_authority_key_identifier, "keyid:always"}});
  return {.certificate = pem_of(certificate), .key = pem_of(key)};
}

std::string read_authorities(const fs::path& file, const char* flag) {
  std::string text = read_pem(file, flag);
  if (certificates_in(text).empty())
    throw Error{Code::kInvalidArgument,
                fmt::format("{} {}: holds no certificate in PEM", flag, file.string())};
  return text;
}

}  // namespace abl::access
