// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "access/tls.h"

namespace abl::access {

/// Why a scheduler is not reached.
struct Trouble {
  enum class Kind {
    kNone,         ///< a scheduler is there, as far as can be seen without a token
    kAddress,      ///< no HOST:PORT
    kUnknownHost,  ///< its name stands for no address
    kRefused,      ///< nothing listens there
    kUnreachable,  ///< no way there, or nobody answers
    kSilent,       ///< somebody lets one connect, and says nothing
    kClosed,       ///< or ends the connection before it is known who it is: a proxy with nothing behind it, a
                   ///< scheduler that is stopped, or whose certificate is exchanged, just now
    kPlain,        ///< it speaks no TLS, and TLS was wanted
    kTls,          ///< it speaks TLS, and none was wanted
    kHttp,         ///< the port of a dashboard, or of another server of pages
    kElse,         ///< what answered is certainly something else
    kCertificate,  ///< its certificate is not to be trusted
    kNoCertificate,  ///< it wants one of its clients, and this one has none
    kOurCertificate  ///< it does not take the one that this client has
  };
  Kind kind = Kind::kNone;
  std::string text{};  ///< one line that names the address; empty: nothing is wrong
};

/// Looks, with connections of its own, and within some seconds. Of a Unix socket it knows nothing.
Trouble look_for_trouble(const std::string& address, const ClientAccess& access);

/// Why a client that trusts these authorities (PEM; empty: the system's) cannot speak TLS with the server at
/// "host:port": another authority, another name, expired, no TLS there. Empty: it can, or nobody answers.
std::string tls_trouble(const std::string& address, const std::string& authorities);
/// Whether TLS, with whatever certificate, is spoken at "host:port".
bool speaks_tls(const std::string& address);

/// What a server shows of itself to whoever asks, in PEM, as it comes; empty: nobody speaks TLS there.
std::string shown_certificates(const std::string& address);

}  // namespace abl::access
