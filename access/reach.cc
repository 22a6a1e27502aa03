// SPDX-License-Identifier: Apache-2.0
#include "access/reach.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <netdb.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <optional>
#include <utility>

#include "access/listen_address.h"
#include "access/openssl.h"
#include "base/error.h"
#include "base/stop_on_signals.h"

namespace abl::access {
namespace {

using Kind = Trouble::Kind;

constexpr int kPatienceSeconds = 3;
/// What a client of HTTP/2 says first: every server of gRPC answers it, and an older one says what it is.
constexpr std::string_view kPreface{"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", 33};

/// "gpu-head:7071" or "[::1]:7071" -> host and port; nothing of another kind of address.
std::pair<std::string, std::string> parts_of(std::string address) {
  if (address.starts_with("unix:")) return {};
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon + 1 == address.size() ||
      address.find_first_not_of("0123456789", colon + 1) != std::string::npos)
    return {};
  std::string host = address.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (host.find('/') != std::string::npos) return {};
  return {host, address.substr(colon + 1)};
}

/// A connection, or why there is none.
class Line {
 public:
  explicit Line(const std::string& address) {
    const auto [host, port] = parts_of(address);
    if (host.empty()) {
      trouble_ = {Kind::kAddress,
                  fmt::format("'{}' is no address of a scheduler: expected HOST:PORT, such as gpu-head:7071",
                              address)};
      return;
    }
    // getaddrinfo takes a larger one for what is left of it in 16 bits
    std::uint16_t number = 0;
    const auto [end, wrong] = std::from_chars(port.data(), port.data() + port.size(), number);
    if (wrong != std::errc{} || end != port.data() + port.size() || number == 0) {
      trouble_ = {Kind::kAddress,
                  fmt::format("invalid port '{}' in '{}': expected 1 to 65535, such as {}:7071", port,
                              address, host)};
      return;
    }
    addrinfo wanted{}, *found = nullptr;
    wanted.ai_socktype = SOCK_STREAM;
    if (const int why = ::getaddrinfo(host.c_str(), port.c_str(), &wanted, &found); why != 0) {
      const bool later = why == EAI_AGAIN;
      trouble_ = {Kind::kUnknownHost,
                  fmt::format("host '{}' cannot be found ({}): {}", host, ::gai_strerror(why),
                              later ? "is this machine's name server reachable?"
                                    : "check its name, or pass its IP address")};
      return;
    }
    const std::unique_ptr<addrinfo, Freed<::freeaddrinfo>> addresses{found};
    const timeval patience{.tv_sec = kPatienceSeconds, .tv_usec = 0};
    int why = 0;
    for (const addrinfo* one = found; one; one = one->ai_next) {
      fd_ = ::socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
      if (fd_ < 0) continue;
      ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
      ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
      if (::connect(fd_, one->ai_addr, one->ai_addrlen) == 0) return;
      // of several addresses the one that says most
      why = why == 0 || errno == ECONNREFUSED ? errno : why;
      ::close(std::exchange(fd_, -1));
    }
    if (why == ECONNREFUSED)
      trouble_ = {Kind::kRefused,
                  fmt::format("no scheduler listens at {} (connection refused): is it started, and is this "
                              "the port of its --listen?",
                              address)};
    else if (why == EINPROGRESS || why == ETIMEDOUT || why == EAGAIN)
      trouble_ = {Kind::kUnreachable,
                  fmt::format("{} does not answer (no connection within {} s): is the machine up, and does "
                              "a firewall let port {} through?",
                              address, kPatienceSeconds, port)};
    else
      trouble_ = {Kind::kUnreachable, fmt::format("there is no way to {} ({})", address, std::strerror(why))};
  }
  ~Line() {
    if (fd_ >= 0) ::close(fd_);
  }
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;

  bool there() const { return fd_ >= 0; }
  int fd() const { return fd_; }
  const Trouble& trouble() const { return trouble_; }

 private:
  int fd_ = -1;
  Trouble trouble_;
};

/// What a server answers in plain text.
enum class Plain { kScheduler, kHttp, kTls, kElse, kClosed, kSilent };

/// What the first bytes of an answer are of; nothing: more may come that decide it.
std::optional<Plain> kind_of(std::string_view said) {
  constexpr std::string_view kHttp = "HTTP/1";
  if (said.starts_with(kHttp)) return Plain::kHttp;
  if (kHttp.starts_with(said)) return {};
  // a record of TLS: an alert, or a handshake, of version 3.x
  constexpr char kAlert = 21, kHandshake = 22, kVersion = 3;
  if (said[0] == kAlert || said[0] == kHandshake) {
    if (said.size() == 1) return {};
    return said[1] == kVersion ? Plain::kTls : Plain::kElse;
  }
  // a frame of HTTP/2: three bytes of length, of which settings need no more than two, and the type
  constexpr std::size_t kType = 3;
  constexpr char kSettings = 4;
  if (said[0] != 0) return Plain::kElse;
  if (said.size() <= kType) return {};
  return said[kType] == kSettings ? Plain::kScheduler : Plain::kElse;
}

/// A connection that ends before it is known who answers says nothing of who listens: a scheduler that is
/// stopped just now ends it as well, and so does a proxy with nothing behind.
Plain ask_plainly(const Line& line) {
  if (::send(line.fd(), kPreface.data(), kPreface.size(), MSG_NOSIGNAL) < 0) return Plain::kClosed;
  std::array<char, 16> answer{};
  std::size_t size = 0;
  for (;;) {
    const ssize_t more = ::recv(line.fd(), answer.data() + size, answer.size() - size, 0);
    if (more < 0 && errno == EINTR) continue;
    if (more < 0) return errno == EAGAIN || errno == EWOULDBLOCK ? Plain::kSilent : Plain::kClosed;
    if (more == 0) return Plain::kClosed;
    size += static_cast<std::size_t>(more);
    if (const auto kind = kind_of({answer.data(), size})) return *kind;
  }
}

/// How it went to begin TLS with a server.
struct Handshake {
  Trouble unreached;  // then nothing else
  bool done = false, speaks_http2 = false, asked_for_ours = false, went_away = false;
  bool closed = false, silent = false;  // by the server, before it was done
  bool refused = false;                 // with an alert of TLS
  bool is_other = false;                // what came was no TLS
  long verdict = X509_V_OK;             // on its certificate
  std::string reason;
  Certificate shown;
  std::string chain;  // in PEM
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

/// Shows what there is to be shown, and notes that it was asked for.
int note_request(SSL* session, void*) {
  static_cast<Handshake*>(SSL_get_app_data(session))->asked_for_ours = true;
  return 1;
}

void show_own(SSL* session, const ServerPem& own) {
  const auto chain = certificates_in(own.certificate);
  if (const Key key = key_in(own.key); key && !chain.empty()) {
    SSL_use_certificate(session, chain.front().get());
    SSL_use_PrivateKey(session, key.get());
  }
  ERR_clear_error();
}

std::string pem_of_chain(SSL* session) {
  const Memory memory{BIO_new(BIO_s_mem())};
  const STACK_OF(X509)* chain = SSL_get_peer_cert_chain(session);
  for (int i = 0; chain && i < sk_X509_num(chain); ++i)
    PEM_write_bio_X509(memory.get(), sk_X509_value(chain, i));
  char* data = nullptr;
  const long size = BIO_get_mem_data(memory.get(), &data);
  return {data, static_cast<std::size_t>(size)};
}

/// `authorities`: nothing where any certificate will do. `own`: nothing: one has none.
Handshake shake_hands(const std::string& address, const std::string* authorities,
                      const ServerPem* own = nullptr) {
  Handshake handshake;
  const Line line{address};
  const Context context{SSL_CTX_new(TLS_client_method())};
  const Session session{context ? SSL_new(context.get()) : nullptr};
  if (!line.there() || !session) {
    handshake.unreached = line.trouble();
    return handshake;
  }
  const std::string host = parts_of(address).first;
  SSL_set_app_data(session.get(), &handshake);
  SSL_set_cert_cb(session.get(), note_request, nullptr);
  if (own) show_own(session.get(), *own);
  if (authorities) {
    if (authorities->empty())
      SSL_CTX_set_default_verify_paths(context.get());
    else
      for (const Certificate& authority : certificates_in(*authorities))
        X509_STORE_add_cert(SSL_CTX_get_cert_store(context.get()), authority.get());
    SSL_set_verify(session.get(), SSL_VERIFY_PEER, keep_shown);
    if (is_ip_address(host))
      X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session.get()), host.c_str());
    else
      SSL_set1_host(session.get(), host.c_str());
  }
  if (!is_ip_address(host)) SSL_set_tlsext_host_name(session.get(), host.c_str());
  const unsigned char h2[] = {2, 'h', '2'};
  SSL_set_alpn_protos(session.get(), h2, sizeof h2);
  SSL_set_fd(session.get(), line.fd());
  ERR_clear_error();
  const WithoutSigpipe quiet;
  int result = 0, error = 0;
  do {
    errno = 0;
    result = SSL_connect(session.get());
    error = SSL_get_error(session.get(), result);
    // a socket with a time limit is interrupted when its process goes on after a stop, and that is no silence
  } while (error == SSL_ERROR_WANT_READ && errno == EINTR);
  handshake.done = result == 1;
  handshake.closed = error == SSL_ERROR_SYSCALL || error == SSL_ERROR_ZERO_RETURN ||
                     ERR_GET_REASON(ERR_peek_last_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING;
  handshake.refused = ERR_GET_REASON(ERR_peek_last_error()) > SSL_AD_REASON_OFFSET;
  handshake.is_other = ERR_GET_REASON(ERR_peek_last_error()) == SSL_R_WRONG_VERSION_NUMBER;
  handshake.silent = error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE;
  handshake.verdict = SSL_get_verify_result(session.get());
  handshake.reason = openssl_reason();
  if (!handshake.done) return handshake;
  handshake.chain = pem_of_chain(session.get());
  const unsigned char* chosen = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(session.get(), &chosen, &size);
  handshake.speaks_http2 = size == 2;
  if (!handshake.asked_for_ours || !handshake.speaks_http2) return handshake;
  // with TLS 1.3 a server looks at our certificate when we think that we are done: who lets us in speaks
  // first
  char first = 0;
  const int read = SSL_read(session.get(), &first, 1);
  if (read == 1 || SSL_get_error(session.get(), read) == SSL_ERROR_WANT_READ) return handshake;
  handshake.went_away = true;
  handshake.reason = openssl_reason();
  return handshake;
}

std::string about_certificate(const std::string& address, const Handshake& handshake, bool has_authorities) {
  X509* const shown = handshake.shown.get();
  switch (handshake.verdict) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return fmt::format("the certificate of {} expired{}: its administrator has to replace it", address,
                         shown ? " on " + date_of(X509_get0_notAfter(shown)) : "");
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return fmt::format("the certificate of {} is not valid yet: is this machine's clock right?", address);
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return fmt::format("the certificate of {} is not for {}{}", address, parts_of(address).first,
                         shown ? fmt::format(" (it is for {})", fmt::join(names_of(shown), ", ")) : "");
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
      if (!has_authorities)
        return fmt::format(
            "the certificate of {} is signed by an authority that this machine does not know: pass the "
            "fleet's "
            "own with --ca ca.crt",
            address);
      return fmt::format(
          "the certificate of {} is signed by another authority than the one that is trusted: it is another "
          "server, or --ca is another fleet's file",
          address);
    default:
      return fmt::format("the certificate of {} is refused: {}", address,
                         X509_verify_cert_error_string(handshake.verdict));
  }
}

Trouble dashboard_at(const std::string& address) {
  return {Kind::kHttp,
          fmt::format("{} answers browsers (a dashboard?), and is not a scheduler's port: expected that of "
                      "its --listen, such as {}:7071",
                      address, parts_of(address).first)};
}

Trouble says_nothing(const std::string& address) {
  return {Kind::kSilent,
          fmt::format("{} lets one connect and says nothing for {} s: is the scheduler stopped or "
                      "overloaded, or is this another program's port?",
                      address, kPatienceSeconds)};
}

/// Of what has answered, with something that no scheduler says.
Trouble is_none(const std::string& address) {
  return {Kind::kElse,
          fmt::format("what listens at {} is not a scheduler: expected the port of its --listen", address)};
}

Trouble trouble_with_tls(const std::string& address, const std::string& authorities, const ServerPem* own) {
  Handshake handshake = shake_hands(address, &authorities, own);
  if (handshake.unreached.kind != Kind::kNone) return std::move(handshake.unreached);
  if (handshake.verdict != X509_V_OK)
    return {Kind::kCertificate, about_certificate(address, handshake, !authorities.empty())};
  if (handshake.asked_for_ours && (!handshake.done || handshake.went_away)) {
    if (!own)
      return {Kind::kNoCertificate,
              fmt::format("the scheduler at {} wants a certificate of its clients: pass --certificate and "
                          "--key, which 'ablate init-fleet --client NAME' makes",
                          address)};
    const auto chain = certificates_in(own->certificate);
    return {Kind::kOurCertificate,
            fmt::format("the scheduler at {} refuses the certificate of this client{}: expected one for "
                        "clients, signed by an authority of its --client-ca",
                        address,
                        chain.empty() ? ""
                                      : fmt::format(" (of {}, signed by {})",
                                                    common_name(X509_get_subject_name(chain.front().get())),
                                                    common_name(X509_get_issuer_name(chain.front().get()))))};
  }
  if (handshake.done) return handshake.speaks_http2 ? Trouble{} : dashboard_at(address);
  if (handshake.silent) return says_nothing(address);
  const Trouble unfinished{
      Kind::kClosed,
      fmt::format("{} does not finish the TLS handshake ({}): is its certificate being replaced just now?",
                  address, handshake.reason)};
  if (handshake.refused) return unfinished;
  const Line line{address};
  if (!line.there()) return line.trouble();
  switch (ask_plainly(line)) {
    case Plain::kHttp:
      return dashboard_at(address);
    case Plain::kScheduler:
      return {Kind::kPlain, fmt::format("there is no TLS at {}: the scheduler there was started without "
                                        "--tls-certificate, or this is another one",
                                        address)};
    case Plain::kElse:
      return is_none(address);
    case Plain::kTls:
      return unfinished;
    case Plain::kClosed:
    case Plain::kSilent:
      break;
  }
  if (handshake.closed)
    return {Kind::kClosed,
            fmt::format("{} closes connections before TLS has begun: behind it is no scheduler "
                        "just now, or one without TLS",
                        address)};
  if (!handshake.is_other) return unfinished;
  return {Kind::kPlain, fmt::format("there is no TLS at {} ({})", address, handshake.reason)};
}

Trouble trouble_in_plain_text(const std::string& address) {
  const auto asked = [&]() -> std::pair<Plain, Trouble> {
    const Line line{address};
    if (!line.there()) return {Plain::kSilent, line.trouble()};
    return {ask_plainly(line), {}};
  };
  const auto [plain, unreached] = asked();
  if (unreached.kind != Kind::kNone) return unreached;
  if (plain == Plain::kScheduler) return {};
  // a dashboard with TLS tells who speaks plainly of it in HTTP
  const Handshake tls = shake_hands(address, nullptr);
  if (tls.done && !tls.speaks_http2) return dashboard_at(address);
  if (tls.done || tls.asked_for_ours || tls.refused || plain == Plain::kTls)
    return {Kind::kTls, fmt::format("the scheduler at {} speaks TLS", address)};
  switch (plain) {
    case Plain::kHttp:
      return dashboard_at(address);
    case Plain::kElse:
      return is_none(address);
    case Plain::kSilent:
      return says_nothing(address);
    case Plain::kScheduler:
    case Plain::kTls:
    case Plain::kClosed:
      break;
  }
  if (tls.unreached.kind != Kind::kNone) return tls.unreached;  // it is gone meanwhile
  return {Kind::kClosed,
          fmt::format("{} closes connections without an answer: behind it is no scheduler just now, or "
                      "another program",
                      address)};
}

}  // namespace

Trouble look_for_trouble(const std::string& address, const ClientAccess& access) {
  if (address.starts_with("unix:")) return {};
  if (!access.tls) return trouble_in_plain_text(address);
  if (!access.own.given()) return trouble_with_tls(address, access.authorities, nullptr);
  try {
    const ServerPem own = read_client_pem(access.own, SystemClock{}.now());
    return trouble_with_tls(address, access.authorities, &own);
  } catch (const Error& error) {
    return {Kind::kOurCertificate, error.what()};
  }
}

std::string tls_trouble(const std::string& address, const std::string& authorities) {
  if (address.starts_with("unix:")) return {};
  const Trouble trouble = trouble_with_tls(address, authorities, nullptr);
  const bool unreached = trouble.kind == Kind::kAddress || trouble.kind == Kind::kUnknownHost ||
                         trouble.kind == Kind::kRefused || trouble.kind == Kind::kUnreachable ||
                         trouble.kind == Kind::kSilent;
  return unreached ? std::string{} : trouble.text;
}

bool speaks_tls(const std::string& address) { return shake_hands(address, nullptr).done; }

std::string shown_certificates(const std::string& address) { return shake_hands(address, nullptr).chain; }

}  // namespace abl::access
