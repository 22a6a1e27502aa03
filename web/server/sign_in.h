// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "web/server/answer.h"
#include "web/server/peers.h"
#include "web/server/server.h"

namespace abl::web {

/// Who asks, and by what.
struct Visit {
  Doorkeeper::Holder holder;
  std::string session;  ///< the digest of its cookie; empty: a token with each request
};

/// Who has signed in: by a token once, and by a cookie from then on, of which the SHA-256 alone is kept, in
/// memory. A session ends after kLongest, with its token, and when somebody signs out. There are kMost at
/// most, and kMostOfOne of one token: the oldest goes.
/// Thread: the network thread.
class SignIn {
 public:
  static constexpr auto kLongest = std::chrono::hours{12};
  static constexpr std::size_t kMost = 1024, kMostOfOne = 32;
  static constexpr std::string_view kPage = "/sign-in", kOut = "/sign-out";

  /// `port`: of the dashboard: two on one machine have cookies of their own.
  SignIn(Doorkeeper& doorkeeper, const Clock& clock, std::uint16_t port);

  /// What a request shows: its fields Authorization and Cookie.
  /// Throws: Error{kUnauthenticated} in one line that says how to sign in, {kPermissionDenied} of a token
  /// that is for something else, {kResourceExhausted} of a peer that was refused too often.
  Visit admit(std::string_view authorization, std::string_view cookies, const std::string& peer);
  /// Why a visit is over; empty: it goes on.
  std::string why_over(const Visit& visit);

  /// The page that asks for a token. `to`: where it leads, a path of ours or it is forgotten. `why`: why the
  /// last attempt was refused.
  static Answer page(std::string_view to, std::string_view why = "", int status = 200);
  /// Leads to it, and from there back to `target`.
  static Answer redirect(std::string_view target);
  /// What its form has sent.
  Answer sign_in(std::string_view form, std::string_view cookies, const std::string& peer);
  Answer sign_out(std::string_view cookies, const std::string& peer);

 private:
  struct Session {
    Doorkeeper::Holder holder;
    Time made, ends;
  };
  using Sessions = std::map<std::string, Session, std::less<>>;

  Doorkeeper::Holder recognise(std::string_view token, const std::string& peer);
  Sessions::iterator find(std::string_view cookies);
  void make_room_for(const std::string& token);
  std::string cookie(std::string_view value, std::chrono::seconds age) const;

  Doorkeeper& doorkeeper_;
  const Clock& clock_;
  const std::string cookie_;
  Sessions sessions_;
  Rate failures_{10, 1.0 / 6};
};

/// A path of this dashboard, as it may stand behind a sign-in: what a browser could read as an address
/// elsewhere is "/".
std::string own_path(std::string_view to);

}  // namespace abl::web
