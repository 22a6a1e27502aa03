// SPDX-License-Identifier: Apache-2.0
#include "access/certificates.h"

#include <arpa/inet.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <netdb.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>

#include "access/listen_address.h"
#include "access/token.h"
#include "base/error.h"
#include "base/file.h"
#include "base/stop_on_signals.h"

namespace abl::access {
namespace {

namespace fs = std::filesystem;

template <auto free>
struct Freed {
  void operator()(auto* object) const { free(object); }
};
using Certificate = std::unique_ptr<X509, Freed<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;
using Memory = std::unique_ptr<BIO, Freed<BIO_free_all>>;
using Context = std::unique_ptr<SSL_CTX, Freed<SSL_CTX_free>>;
using Session = std::unique_ptr<SSL, Freed<SSL_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, Freed<X509_EXTENSION_free>>;

constexpr long kDay = 24 * 3600;
constexpr long kServerDays = 730, kAuthorityDays = 3650;

Memory memory_of(std::string_view text) {
  return Memory{BIO_new_mem_buf(text.data(), static_cast<int>(text.size()))};
}

std::string text_of(const Memory& memory) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(memory.get(), &data);
  return {data, static_cast<std::size_t>(size)};
}

std::string date_of(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return "an unknown date";
  return fmt::format("{:%Y-%m-%d at %H:%M} UTC", parts);
}

/// What OpenSSL has noted since it was last asked, for people.
std::string openssl_reason() {
  const unsigned long code = ERR_peek_last_error();
  ERR_clear_error();
  const char* reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  return reason ? reason : "unknown";
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

int refuse_password(char*, int, int, void*) { return -1; }  // instead of a question on the terminal

/// "DNS:gpu-head,IP:10.0.0.5", with the names of the machine itself.
std::string alternative_names(const std::vector<std::string>& names) {
  constexpr std::size_t kLongestHost = 253;
  std::string text;
  for (const std::string& name : names) {
    const bool host =
        !name.empty() && name.size() <= kLongestHost && name.front() != '-' && name.front() != '.' &&
        name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-") ==
            std::string::npos;
    if (!is_ip_address(name) && !host)
      throw Error{Code::kInvalidArgument,
                  fmt::format("invalid name '{}': expected a host name or an IP address", name)};
    text += fmt::format("{}:{},", is_ip_address(name) ? "IP" : "DNS", name);
  }
  return text + "DNS:localhost,IP:127.0.0.1,IP:::1";
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

/// "gpu-head:7071" or "[::1]:7071" -> host and port; nothing of another kind of address.
std::pair<std::string, std::string> parts_of(std::string address) {
  if (address.starts_with("unix:")) return {};
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos) return {};
  std::string host = address.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return {host, address.substr(colon + 1)};
}

/// A connection within some seconds, or -1.
int connect_to(const std::string& host, const std::string& port) {
  addrinfo wanted{}, *found = nullptr;
  wanted.ai_socktype = SOCK_STREAM;
  if (::getaddrinfo(host.c_str(), port.c_str(), &wanted, &found) != 0) return -1;
  const std::unique_ptr<addrinfo, Freed<::freeaddrinfo>> addresses{found};
  const timeval patience{.tv_sec = 3, .tv_usec = 0};
  for (const addrinfo* address = found; address; address = address->ai_next) {
    const int fd = ::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) continue;
    ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (::connect(fd, address->ai_addr, address->ai_addrlen) == 0) return fd;
    ::close(fd);
  }
  return -1;
}

bool add_authorities(SSL_CTX* context, const std::string& text) {
  const Memory memory = memory_of(text);
  bool any = false;
  for (;;) {
    const Certificate authority{PEM_read_bio_X509(memory.get(), nullptr, refuse_password, nullptr)};
    if (!authority) break;
    any = X509_STORE_add_cert(SSL_CTX_get_cert_store(context), authority.get()) == 1 || any;
  }
  ERR_clear_error();  // the end of the text is one
  return any;
}

/// The names that a certificate is for.
std::vector<std::string> names_of(X509* certificate) {
  std::vector<std::string> names;
  const std::unique_ptr<GENERAL_NAMES, Freed<GENERAL_NAMES_free>> all{
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr))};
  for (int i = 0; all && i < sk_GENERAL_NAME_num(all.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(all.get(), i);
    if (name->type == GEN_DNS)
      names.emplace_back(reinterpret_cast<const char*>(ASN1_STRING_get0_data(name->d.dNSName)),
                         static_cast<std::size_t>(ASN1_STRING_length(name->d.dNSName)));
    if (name->type != GEN_IPADD) continue;
    char text[INET6_ADDRSTRLEN]{};
    const bool v4 = ASN1_STRING_length(name->d.iPAddress) == 4;
    if (v4 || ASN1_STRING_length(name->d.iPAddress) == 16)
      if (::inet_ntop(v4 ? AF_INET : AF_INET6, ASN1_STRING_get0_data(name->d.iPAddress), text, sizeof text))
        names.emplace_back(text);
  }
  return names;
}

/// How it went to begin TLS with a server.
struct Handshake {
  bool reached = false, done = false;
  bool closed = false, silent = false;  // by the server, before it was done
  long verdict = X509_V_OK;             // on its certificate
  std::string reason;
  Certificate shown;
};

/// Keeps the server's certificate: of a handshake that fails, OpenSSL has none afterwards.
int keep_shown(int sound, X509_STORE_CTX* verification) {
  auto* session =
      static_cast<SSL*>(X509_STORE_CTX_get_ex_data(verification, SSL_get_ex_data_X509_STORE_CTX_idx()));
  auto* handshake = static_cast<Handshake*>(SSL_get_app_data(session));
  X509* const shown = X509_STORE_CTX_get0_cert(verification);
  if (handshake && shown && X509_up_ref(shown) == 1) handshake->shown.reset(shown);
  return sound;
}

/// `authorities`: nothing where any certificate will do.
Handshake shake_hands(const std::string& address, const std::string* authorities) {
  Handshake handshake;
  const auto [host, port] = parts_of(address);
  if (host.empty()) return handshake;
  const int fd = connect_to(host, port);
  if (fd < 0) return handshake;
  struct Close {
    int fd;
    ~Close() { ::close(fd); }
  } const close{fd};
  const Context context{SSL_CTX_new(TLS_client_method())};
  const Session session{context ? SSL_new(context.get()) : nullptr};
  if (!session) return handshake;
  handshake.reached = true;
  if (authorities) {
    if (authorities->empty())
      SSL_CTX_set_default_verify_paths(context.get());
    else
      add_authorities(context.get(), *authorities);
    SSL_set_verify(session.get(), SSL_VERIFY_PEER, keep_shown);
    SSL_set_app_data(session.get(), &handshake);
    if (is_ip_address(host))
      X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session.get()), host.c_str());
    else
      SSL_set1_host(session.get(), host.c_str());
  }
  if (!is_ip_address(host)) SSL_set_tlsext_host_name(session.get(), host.c_str());
  const unsigned char h2[] = {2, 'h', '2'};
  SSL_set_alpn_protos(session.get(), h2, sizeof h2);
  SSL_set_fd(session.get(), fd);
  ERR_clear_error();
  const WithoutSigpipe quiet;
  const int result = SSL_connect(session.get());
  const int error = SSL_get_error(session.get(), result);
  handshake.done = result == 1;
  handshake.closed = error == SSL_ERROR_SYSCALL || error == SSL_ERROR_ZERO_RETURN ||
                     ERR_GET_REASON(ERR_peek_last_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING;
  handshake.silent = error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE;
  handshake.verdict = SSL_get_verify_result(session.get());
  handshake.reason = openssl_reason();
  return handshake;
}

}  // namespace

ServerPem read_server_pem(const TlsFiles& files, Time now) {
  if (files.certificate.empty())
    throw Error{Code::kInvalidArgument, "--tls-key without --tls-certificate: pass both"};
  if (files.key.empty())
    throw Error{Code::kInvalidArgument, "--tls-certificate without --tls-key: pass both"};
  std::string certificate_text = read_pem(files.certificate, "--tls-certificate");
  const Memory certificate_memory = memory_of(certificate_text);
  const Certificate certificate{
      PEM_read_bio_X509(certificate_memory.get(), nullptr, refuse_password, nullptr)};
  const std::string certificate_name = "--tls-certificate " + files.certificate.string();
  if (!certificate) throw Error{Code::kInvalidArgument, certificate_name + ": holds no certificate in PEM"};
  std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  if (X509_cmp_time(X509_get0_notAfter(certificate.get()), &seconds) < 0)
    throw Error{Code::kInvalidArgument,
                fmt::format("{} expired on {}: put a new one in its place", certificate_name,
                            date_of(X509_get0_notAfter(certificate.get())))};
  if (X509_cmp_time(X509_get0_notBefore(certificate.get()), &seconds) > 0)
    throw Error{Code::kInvalidArgument,
                fmt::format("{} is not valid before {}: is this machine's clock right?", certificate_name,
                            date_of(X509_get0_notBefore(certificate.get())))};
  std::string key_text = read_pem(files.key, "--tls-key");
  expect_private(files.key, "--tls-key");
  const Memory key_memory = memory_of(key_text);
  const Key key{PEM_read_bio_PrivateKey(key_memory.get(), nullptr, refuse_password, nullptr)};
  const std::string key_name = "--tls-key " + files.key.string();
  ERR_clear_error();
  if (!key)
    throw Error{Code::kInvalidArgument, key_name + ": expected a private key in PEM without a password"};
  if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    ERR_clear_error();
    throw Error{Code::kInvalidArgument,
                fmt::format("{} is not the key of {}", key_name, files.certificate.string())};
  }
  std::vector<std::string> names = names_of(certificate.get());
  return {.certificate = std::move(certificate_text), .key = std::move(key_text), .names = std::move(names)};
}

Certificates make_certificates(const std::vector<std::string>& names, Time now) {
  const std::string alternatives = alternative_names(names);
  const Key authority_key = new_key(), key = new_key();
  const Certificate authority =
      sign(authority_key, "ablate fleet", kAuthorityDays, now, nullptr, authority_key,
           {{NID_basic_constraints, "critical,CA:TRUE,pathlen:0"},
            {NID_key_usage, "critical,keyCertSign,cRLSign"},
            {NID_subject_key_identifier, "hash"}});
  const Certificate certificate =
      sign(key, "ablate-scheduler", kServerDays, now, authority.get(), authority_key,
           {{NID_basic_constraints, "critical,CA:FALSE"},
            {NID_key_usage, "critical,digitalSignature"},
            {NID_ext_key_usage, "serverAuth"},
            {NID_subject_key_identifier, "hash"},
            {NID_authority_key_identifier, "keyid:always"},
            {NID_subject_alt_name, alternatives}});
  return {.authority = pem_of(authority),
          .authority_key = pem_of(authority_key),
          .certificate = pem_of(certificate),
          .key = pem_of(key)};
}

std::string read_authorities(const fs::path& file) {
  std::string text = read_pem(file, "--ca");
  const Context context{SSL_CTX_new(TLS_client_method())};
  expect(context != nullptr, "prepare TLS");
  if (!add_authorities(context.get(), text))
    throw Error{Code::kInvalidArgument, fmt::format("--ca {}: holds no certificate in PEM", file.string())};
  return text;
}

bool speaks_tls(const std::string& address) { return shake_hands(address, nullptr).done; }

std::string tls_trouble(const std::string& address, const std::string& authorities) {
  const auto [reached, done, closed, silent, verdict, reason, shown] = shake_hands(address, &authorities);
  if (!reached || done || silent) return {};
  const std::string host = parts_of(address).first;
  switch (verdict) {
    case X509_V_OK:
      if (closed)
        return fmt::format(
            "{} closes connections before TLS has begun: behind it is no scheduler just now, or one without "
            "TLS",
            address);
      return fmt::format("there is no TLS at {} ({})", address, reason);
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return fmt::format("the certificate of {} expired{}: its administrator has to replace it", address,
                         shown ? " on " + date_of(X509_get0_notAfter(shown.get())) : "");
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return fmt::format("the certificate of {} is not valid yet: is this machine's clock right?", address);
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return fmt::format("the certificate of {} is not for {}{}", address, host,
                         shown ? fmt::format(" (it is for {})", fmt::join(names_of(shown.get()), ", ")) : "");
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
      return fmt::format(
          "the certificate of {} is signed by {}: it is another server, or --ca is another "
          "fleet's file",
          address,
          authorities.empty() ? "no authority that this machine knows"
                              : "another authority than the one that is trusted");
    default:
      return fmt::format("the certificate of {} is refused: {}", address,
                         X509_verify_cert_error_string(verdict));
  }
}

}  // namespace abl::access
