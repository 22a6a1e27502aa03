// SPDX-License-Identifier: Apache-2.0
#include "web/server/sign_in.h"

#include <fmt/format.h>

#include <algorithm>

#include "access/token.h"
#include "base/error.h"
#include "base/sha256.h"
#include "web/server/static_files.h"
#include "web/server/target.h"

namespace abl::web {
namespace {

constexpr std::string_view kBearer = "Bearer ";
constexpr std::size_t kLongestPath = 2000;
constexpr const char* kNotSignedIn =
    "not signed in: sign in at /sign-in, or send a token as 'Authorization: Bearer TOKEN'";
constexpr const char* kTooOften = "too many attempts were refused: try again in a minute";

std::string escaped(std::string_view text) {
  std::string safe;
  for (const char c : text) switch (c) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      case '\'':
        safe += "&#39;";
        break;
      default:
        safe += c;
    }
  return safe;
}

std::string percent_encoded(std::string_view text) {
  std::string encoded;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view{"-._~/"}.find(c) != std::string_view::npos;
    encoded += plain ? std::string{c} : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return encoded;
}

/// The value of one cookie of several: "a=1; b=2".
std::string_view cookie_in(std::string_view cookies, std::string_view name) {
  while (!cookies.empty()) {
    const std::size_t end = std::min(cookies.find(';'), cookies.size());
    std::string_view one = cookies.substr(0, end);
    one.remove_prefix(std::min(one.find_first_not_of(' '), one.size()));
    if (one.starts_with(name) && one.size() > name.size() && one[name.size()] == '=')
      return one.substr(name.size() + 1);
    cookies.remove_prefix(std::min(end + 1, cookies.size()));
  }
  return {};
}

/// The app's own, whose name has the hash of its content in it; none in a build without the app.
std::string style_sheet() {
  for (const EmbeddedFile& file : embedded_app().files)
    if (file.path.ends_with(".css")) return fmt::format(R"(<link rel="stylesheet" href="/{}">)", file.path);
  return {};
}

constexpr std::string_view kForm = R"(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Sign in · ablate</title>
<link rel="icon" href="/favicon.svg" type="image/svg+xml">
{style}
</head>
<body>
<main class="sign-in">
<h1>Sign in to ablate</h1>
<form method="post" action="/sign-in">
<label for="token">Token</label>
<input id="token" name="token" type="password" autocomplete="off" spellcheck="false" required autofocus{describes}>
<input name="to" type="hidden" value="{to}">
{why}<button type="submit">Sign in</button>
</form>
<p>It begins with <code>abl_</code>. An admin makes one with <code>ablate token create --role viewer</code>.</p>
</main>
</body>
</html>
)";

}  // namespace

std::string own_path(std::string_view to) {
  const bool plain = std::ranges::all_of(to, [](char c) { return c > ' ' && c < '\x7f' && c != '\\'; });
  const bool own = to.starts_with('/') && !to.starts_with("//") && !to.starts_with("/sign-");
  return std::string{plain && own && to.size() <= kLongestPath ? to : std::string_view{"/"}};
}

SignIn::SignIn(Doorkeeper& doorkeeper, const Clock& clock, std::uint16_t port)
    : doorkeeper_{doorkeeper}, clock_{clock}, cookie_{fmt::format("__Host-ablate-{}", port)} {}

Doorkeeper::Holder SignIn::recognise(std::string_view token, const std::string& peer) {
  const Rate::Steady::time_point now = Rate::Steady::now();
  if (!failures_.allows(peer, now)) throw Error{Code::kResourceExhausted, kTooOften};
  try {
    return doorkeeper_.recognise(token);
  } catch (const Error& error) {
    failures_.take(peer, now);
    doorkeeper_.note({}, "SignIn", peer, error.what());
    throw;
  }
}

SignIn::Sessions::iterator SignIn::find(std::string_view cookies) {
  const std::string_view secret = cookie_in(cookies, cookie_);
  if (secret.empty()) return sessions_.end();
  const auto found = sessions_.find(sha256_hex(secret));
  if (found == sessions_.end()) return found;
  if (found->second.ends > clock_.now() && doorkeeper_.why_over(found->second.holder.token).empty())
    return found;
  sessions_.erase(found);
  return sessions_.end();
}

Visit SignIn::admit(std::string_view authorization, std::string_view cookies, const std::string& peer) {
  if (!authorization.empty()) {
    if (!authorization.starts_with(kBearer))
      throw Error{Code::kUnauthenticated, "the authorization is not 'Bearer TOKEN'"};
    return {.holder = recognise(authorization.substr(kBearer.size()), peer)};
  }
  const auto session = find(cookies);
  if (session == sessions_.end()) throw Error{Code::kUnauthenticated, kNotSignedIn};
  return {.holder = session->second.holder, .session = session->first};
}

std::string SignIn::why_over(const Visit& visit) {
  if (std::string why = doorkeeper_.why_over(visit.holder.token); !why.empty()) return why;
  if (visit.session.empty()) return {};
  const auto session = sessions_.find(visit.session);
  if (session == sessions_.end()) return "you have signed out";
  return session->second.ends > clock_.now() ? "" : "the session has ended";
}

Answer SignIn::page(std::string_view to, std::string_view why, int status) {
  Answer answer{.status = status, .type = "text/html; charset=utf-8"};
  const std::string alert =
      why.empty() ? "" : fmt::format("<p id=\"why\" class=\"why\" role=\"alert\">{}</p>\n", escaped(why));
  answer.body = fmt::format(fmt::runtime(kForm), fmt::arg("style", style_sheet()),
                            fmt::arg("to", escaped(own_path(to))), fmt::arg("why", alert),
                            fmt::arg("describes", why.empty() ? "" : " aria-describedby=\"why\""));
  // the one form that there is; with no-referrer a browser would not say that it comes from here
  answer.headers.emplace_back("Referrer-Policy", "same-origin");
  answer.headers.emplace_back(
      "Content-Security-Policy",
      "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; "
      "frame-ancestors 'none'");
  return answer;
}

Answer SignIn::redirect(std::string_view target) {
  Answer answer{.status = 303, .type = "text/plain; charset=utf-8", .body = "sign in at /sign-in\n"};
  const std::string to = own_path(target);
  answer.headers.emplace_back(
      "Location", to == "/" ? std::string{kPage} : fmt::format("{}?to={}", kPage, percent_encoded(to)));
  return answer;
}

std::string SignIn::cookie(std::string_view value, std::chrono::seconds age) const {
  return fmt::format("{}={}; Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age={}", cookie_, value,
                     age.count());
}

void SignIn::make_room_for(const std::string& token) {
  std::erase_if(sessions_, [&](const auto& session) {
    return session.second.ends <= clock_.now() || !doorkeeper_.why_over(session.second.holder.token).empty();
  });
  const auto oldest = [&](bool of_one) {
    auto found = sessions_.end();
    for (auto session = sessions_.begin(); session != sessions_.end(); ++session) {
      if (of_one && session->second.holder.token != token) continue;
      if (found == sessions_.end() || session->second.made < found->second.made) found = session;
    }
    return found;
  };
  const auto of_one = std::ranges::count_if(
      sessions_, [&](const auto& session) { return session.second.holder.token == token; });
  if (static_cast<std::size_t>(of_one) >= kMostOfOne) sessions_.erase(oldest(true));
  if (sessions_.size() >= kMost) sessions_.erase(oldest(false));
}

Answer SignIn::sign_in(std::string_view form, std::string_view cookies, const std::string& peer) {
  std::string token, to;
  try {
    for (auto& [name, value] : parse_target("/?" + std::string{form}).query) {
      if (name == "token") token = std::move(value);
      if (name == "to") to = std::move(value);
    }
    Doorkeeper::Holder holder = recognise(token, peer);
    if (const auto before = find(cookies); before != sessions_.end()) sessions_.erase(before);
    make_room_for(holder.token);
    const Time now = clock_.now();
    const Time ends = std::min(now + kLongest, holder.expires.value_or(Time::max()));
    const std::string secret = access::random_secret();
    doorkeeper_.note(holder, "SignIn", peer, "ok");
    sessions_.emplace(sha256_hex(secret), Session{.holder = std::move(holder), .made = now, .ends = ends});
    Answer answer{.status = 303, .type = "text/plain; charset=utf-8", .body = "signed in\n"};
    answer.headers.emplace_back("Location", own_path(to));
    answer.headers.emplace_back("Set-Cookie",
                                cookie(secret, std::chrono::ceil<std::chrono::seconds>(ends - now)));
    return answer;
  } catch (const Error& error) {
    const bool often = error.code() == Code::kResourceExhausted;
    Answer answer = page(to, error.what(), often ? 429 : error.code() == Code::kPermissionDenied ? 403 : 401);
    if (often) answer.headers.emplace_back("Retry-After", "60");
    return answer;
  }
}

Answer SignIn::sign_out(std::string_view cookies, const std::string& peer) {
  if (const auto session = find(cookies); session != sessions_.end()) {
    doorkeeper_.note(session->second.holder, "SignOut", peer, "ok");
    sessions_.erase(session);
  }
  Answer answer{.status = 303, .type = "text/plain; charset=utf-8", .body = "signed out\n"};
  answer.headers.emplace_back("Location", std::string{kPage});
  answer.headers.emplace_back("Set-Cookie", cookie("", std::chrono::seconds{0}));
  return answer;
}

}  // namespace abl::web
