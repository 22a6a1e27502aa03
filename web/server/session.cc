// SPDX-License-Identifier: Apache-2.0
#include "web/server/session.h"

#include <fmt/format.h>
#include <poll.h>

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stop_token>
#include <variant>

#include "ablate/v1/access.pb.h"
#include "access/request_guard.h"
#include "views/json.h"
#include "web/server/encoding.h"
#include "web/server/routes.h"
#include "web/server/static_files.h"

namespace abl::web {
namespace {

using namespace std::chrono_literals;
namespace http = beast::http;
using Parser = http::request_parser<http::empty_body>;
using Request = http::request<http::empty_body>;
using Response = http::response<http::string_body>;

constexpr auto kDeadline = 30s;
constexpr auto kLookForPeer = 250ms;  // whether a peer has left that has sent its next request already
constexpr std::uint64_t kFormBytes = 4096;
constexpr int kTooLong = 413, kTooSlow = 408, kNotAllowed = 405, kNoLength = 411, kNotJson = 415;
constexpr std::uint32_t kHeaderBytes =
    64 * 1024;  ///< room for a metrics request that names some thousand runs

/// On every answer: nothing but our own files is loaded, nobody frames us, types are believed.
constexpr std::pair<const char*, const char*> kSecurity[] = {
    {"Content-Security-Policy",
     "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'none'; "
     "frame-ancestors 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
};

std::optional<std::string_view> field_of(const Request& request, std::string_view name) {
  const auto found = request.find(name);
  return found == request.end() ? std::nullopt : std::optional<std::string_view>{found->value()};
}

bool is_of_api(std::string_view target) {
  return target == "/api" || target.starts_with("/api/") || target.starts_with("/api?");
}

/// Kinds of addresses that are not of the API: what programs ask for that watch over this one; everything
/// else; and what is answered before anybody looks where it leads.
constexpr std::string_view kMetrics = "/metrics", kHealth = "/healthz", kApp = "/", kRefused = "refused",
                           kWhoAmI = "/api/v1/whoami", kSchema = "/api/v1/schema", kSignIn = "/sign-in";

std::string_view path_of(const Request& request) {
  const std::string_view target = request.target();
  return target.substr(0, target.find('?'));
}

bool is_page(const Request& request) {
  const std::string_view path = path_of(request);
  const bool reads = request.method() == http::verb::get || request.method() == http::verb::head;
  return reads && !is_of_api(path) && path != kMetrics && path != kHealth;
}

/// To sign in or out: all that is ever posted.
bool is_posted_form(const Request& request) {
  return request.method() == http::verb::post &&
         (path_of(request) == SignIn::kPage || path_of(request) == SignIn::kOut);
}

/// That something be done, rather than shown.
bool is_action(const Request& request) { return path_of(request).starts_with("/api/v1/actions/"); }

std::string_view authorization_of(const Request& request) { return request[http::field::authorization]; }

Answer not_served(const Request& request, const std::string& why, const char* allowed) {
  Answer answer =
      error_answer(kNotAllowed, Code::kUnimplemented,
                   fmt::format("{} is not served: {}", std::string_view{request.method_string()}, why));
  answer.headers.emplace_back("Allow", allowed);
  return answer;
}

/// Why what is asked for is not done, as far as its header tells; or nothing. What another page could have a
/// browser send (a form, a text, whatever it asks nobody for first) is none of it: not with this type, and
/// not from there. A script that shows a token says by that who it is; no browser does so by itself.
std::optional<Answer> action_objection(const Parser& parser, const Site& site) {
  const Request& request = parser.get();
  if (!site.actions.open()) return not_served(request, ActionDesk::kReadOnly, "GET, HEAD");
  if (request.method() != http::verb::post)
    return not_served(request, "what is to be done is posted", "POST");
  if (authorization_of(request).empty() && request["Sec-Fetch-Site"] != "same-origin")
    return error_answer(Code::kPermissionDenied,
                        "only the dashboard's own pages may have something done: expected "
                        "'Sec-Fetch-Site: same-origin', or a token");
  std::string_view type = request[http::field::content_type];
  type = type.substr(0, type.find_first_of("; "));
  if (!beast::iequals(type, "application/json"))
    return error_answer(kNotJson, Code::kInvalidArgument,
                        "the body is not JSON: expected 'Content-Type: application/json'");
  if (parser.chunked() || !parser.content_length())
    return error_answer(kNoLength, Code::kInvalidArgument, "the body has no length: expected Content-Length");
  if (*parser.content_length() > ActionDesk::kMostBytes)
    return error_answer(kTooLong, Code::kInvalidArgument,
                        fmt::format("the body has {} bytes, expected {} at most", *parser.content_length(),
                                    ActionDesk::kMostBytes));
  return std::nullopt;
}

/// Why nobody who comes by this connection may change anything, or empty. Where people sign in, their roles
/// say; elsewhere it is the user of this machine who runs the dashboard, and not whoever else is here.
std::string why_changes_nothing(Stream& stream, const Site& site) {
  if (!site.actions.open() || site.sign_in) return {};
  const auto user = access::user_of_peer(stream.descriptor());
  if (user && access::is_own_user(*user)) return {};
  return "this dashboard has no sign-in: only programs of the user who runs it may have something done";
}

/// Why a request is not looked at any further, or nothing.
std::optional<Answer> objection(const Parser& parser, const Stream& stream, const Site& site) {
  const Request& request = parser.get();
  std::shared_ptr<const access::ServerPem> pem;
  if (site.options.certificate) pem = site.options.certificate->current();
  if (const auto why = access::refusal({.host = request[http::field::host],
                                        .origin = field_of(request, "Origin"),
                                        .site = field_of(request, "Sec-Fetch-Site").value_or(""),
                                        .mode = field_of(request, "Sec-Fetch-Mode").value_or(""),
                                        .page = is_page(request),
                                        .secure = stream.secure()},
                                       pem ? std::span{pem->names} : std::span<const std::string>{}))
    return error_answer(Code::kPermissionDenied, *why);
  if (site.sign_in && is_posted_form(request)) return std::nullopt;
  if (is_action(request)) return action_objection(parser, site);
  if (request.method() != http::verb::get && request.method() != http::verb::head)
    return not_served(request, "this address is read, with GET and HEAD", "GET, HEAD");
  if (parser.chunked() || parser.content_length().value_or(0) > 0)
    return error_answer(kTooLong, Code::kInvalidArgument, "the request has a body, expected none");
  return std::nullopt;
}

/// Ends when the peer closes its side while an answer is looked for, and says so to `abandoned`.
net::awaitable<void> leaving(Stream& stream, std::stop_source abandoned) {
  co_await stream.socket().async_wait(net::ip::tcp::socket::wait_read, net::use_awaitable);
  char next = 0;
  beast::error_code ec;
  const std::size_t size = stream.socket().receive(net::buffer(&next, 1), net::socket_base::message_peek, ec);
  if (size == 0 || ec) {
    abandoned.request_stop();
    co_return;
  }
  // the next request is there already, or a goodbye of TLS: behind it the end is to be looked for
  for (net::steady_timer timer{stream.get_executor()};;) {
    timer.expires_after(kLookForPeer);
    co_await timer.async_wait(net::use_awaitable);
    pollfd peer{.fd = stream.socket().native_handle(), .events = POLLRDHUP, .revents = 0};
    if (::poll(&peer, 1, 0) <= 0) continue;
    abandoned.request_stop();
    co_return;
  }
}

Answer metrics_answer(const Site& site) {
  Exposition exposition;
  if (site.options.monitor) site.options.monitor->expose(exposition);
  site.requests.expose(exposition);
  exposition.gauge("ablate_http_event_streams", "Event streams of dashboards that are open.")
      .add(static_cast<double>(site.hub.readers()));
  exposition.gauge("ablate_build_info", "Always 1; the labels say which version this is.")
      .add(1, {{"version", site.options.version}});
  exposition.add_process();
  return Answer{.type = Exposition::kType, .body = exposition.text()};
}

/// `whole`: with the reasons, which are for those who may look.
Answer health_answer(const Site& site, bool whole) {
  std::vector<Monitor::Ailment> ailments;
  if (site.options.monitor) ailments = site.options.monitor->ailments();
  std::error_code unknown;
  if (site.options.watch_store && !std::filesystem::exists(site.options.store, unknown))
    ailments.push_back({"store", site.options.store.string() + " is gone"});
  nlohmann::ordered_json health;
  health["status"] = ailments.empty() ? "ok" : "unhealthy";
  if (whole) health["version"] = site.options.version;
  for (const auto& [check, message] : ailments)
    if (whole) health["reasons"].push_back({{"check", check}, {"message", message}});
  return Answer{.status = ailments.empty() ? 200 : 503,
                .body = health.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n"};
}

/// Which of few kinds of address it is, for figures: what people send is no label.
std::string route_of(const Target& target) {
  for (const std::string_view route : {kWhoAmI, kSchema, ActionDesk::kPath})
    if (match(route, target.path)) return std::string{route};
  if (!target.path.empty() && target.path.front() == "api") return api_route(target);
  for (const std::string_view route : {kMetrics, kHealth})
    if (match(route, target.path)) return std::string{route};
  return std::string{match(SignIn::kPage, target.path) ? kSignIn : kApp};
}

Actions::Asker asker_of(const std::optional<Visit>& visit) {
  return visit ? Actions::Asker{visit->holder} : std::nullopt;
}

/// Of an address that takes no parameters.
std::optional<Answer> parameters_refused(const Target& target) {
  try {
    views::Query{.name = {}, .parameters = target.query, .declared = {}}.check();
    return std::nullopt;
  } catch (const Error& error) {
    return error_answer(error.code(), error.what());
  }
}

/// As the messages of `ablate.v1.Access` have it.
Answer who_am_i(const Target& target, const std::optional<Visit>& visit, const std::string& no_events,
                Stream& stream, const Site& site) {
  if (auto refused = parameters_refused(target)) return *refused;
  ablate::v1::Caller caller;
  caller.set_no_events(no_events);
  caller.set_name(visit ? visit->holder.name : "local");
  const std::string role = visit ? visit->holder.role : "admin";
  for (const auto known :
       {ablate::v1::TOKEN_ROLE_VIEWER, ablate::v1::TOKEN_ROLE_SUBMITTER, ablate::v1::TOKEN_ROLE_ADMIN})
    if (beast::iequals(ablate::v1::TokenRole_Name(known), "TOKEN_ROLE_" + role)) caller.set_role(known);
  if (visit) caller.mutable_token()->set_id(visit->holder.token);
  site.actions.introduce(asker_of(visit), why_changes_nothing(stream, site), caller);
  return Answer{.body = views::to_json(caller)};
}

/// What everybody may have: the app's files are those of the source code.
bool is_for_everybody(const Target& target) {
  return !target.path.empty() && (target.path.front() == "assets" || target.path.front() == "favicon.svg");
}

/// A page that leads to itself. A browser that follows a link from another site sends no cookie that is
/// SameSite=Strict; what this page asks for comes from here, with the cookie.
Answer once_more(std::string_view target) {
  Answer answer{.type = "text/html; charset=utf-8",
                .body = "<!doctype html><title>ablate</title><p>One moment…</p>\n"};
  answer.headers.emplace_back("Refresh", "0; url=" + own_path(target));
  return answer;
}

Streams::Owner owner_of(const std::optional<Visit>& visit, const Stream& stream) {
  return {.token = visit ? visit->holder.token : "", .address = peer_of(stream.peer())};
}

/// What who gets no event stream is answered. A browser does not tell its page: that asks who it is.
Answer no_events(const Streams& streams, const Streams::Owner& owner) {
  Answer answer =
      error_answer(streams.has_too_many(owner) ? 429 : 503, Code::kResourceExhausted, streams.why_not(owner));
  answer.headers.emplace_back("Retry-After", "10");
  return answer;
}

/// What somebody is answered who may not look.
Answer turned_away(const Request& request, const Error& why) {
  if (is_page(request) && authorization_of(request).empty()) {
    const std::string_view site = field_of(request, "Sec-Fetch-Site").value_or("");
    if (site == "cross-site" || site == "same-site") return once_more(request.target());
    return SignIn::redirect(request.target());
  }
  const bool often = why.code() == Code::kResourceExhausted;
  Answer answer = often ? error_answer(429, why.code(), why.what()) : error_answer(why.code(), why.what());
  if (often) answer.headers.emplace_back("Retry-After", "60");
  if (why.code() == Code::kUnauthenticated) answer.headers.emplace_back("WWW-Authenticate", "Bearer");
  return answer;
}

/// Who asks; nothing where nobody signs in. Or what to answer instead.
std::variant<std::optional<Visit>, Answer> admit(const Request& request, const Stream& stream, Site& site) {
  if (!site.sign_in) return std::nullopt;
  try {
    return site.sign_in->admit(authorization_of(request), request[http::field::cookie],
                               peer_of(stream.peer()));
  } catch (const Error& error) {
    return turned_away(request, error);
  }
}

Answer sign_in_page(const Target& target, const std::optional<Visit>& visit) {
  std::string to = "/";
  for (const auto& [name, value] : target.query)
    if (name == "to") to = value;
  if (!visit) return SignIn::page(to);
  Answer answer{.status = 303, .type = "text/plain; charset=utf-8", .body = "signed in\n"};
  answer.headers.emplace_back("Location", own_path(to));
  return answer;
}

/// Nothing: the peer has left.
net::awaitable<std::optional<Answer>> answer(const Request& request, Target target,
                                             std::optional<Visit> visit, Stream& stream, Site& site,
                                             const std::string& route) {
  if (route == kMetrics) co_return metrics_answer(site);
  if (route == kHealth) co_return health_answer(site, true);
  if (route == kWhoAmI)
    co_return who_am_i(target, visit, site.streams.why_not(owner_of(visit, stream)), stream, site);
  Taken taken =
      taken_by(request[http::field::accept_encoding], request[http::field::if_none_match], request["A-IM"]);
  if (route == kSchema) {
    if (auto refused = parameters_refused(target)) co_return refused;
    Answer schema = site.actions.schema();
    encode(schema, taken);
    co_return schema;
  }
  if (target.path.empty() || target.path.front() != "api") {
    Answer found = static_answer(embedded_app(), target,
                                 request[http::field::accept].find("text/html") != std::string_view::npos,
                                 site.hub.place());
    encode(found, taken);  // what is large is there in Brotli, and kept by browsers until the next release
    co_return found;
  }
  using namespace net::experimental::awaitable_operators;
  std::stop_source abandoned;
  net::awaitable<Answer> found =
      site.readers.answer(std::move(target), std::move(taken), abandoned.get_token());
  net::awaitable<void> left = leaving(stream, abandoned);
  std::variant<Answer, std::monostate> first = co_await (std::move(found) || std::move(left));
  if (first.index() != 0) co_return std::nullopt;
  co_return std::move(std::get<0>(first));
}

bool wants_events(const Request& request) {
  return request.method() == http::verb::get &&
         (request.target() == "/api/v1/events" || request.target().starts_with("/api/v1/events?"));
}

/// The id of the last event that the reader has had. A browser sends it as a header when it connects again by
/// itself; a page that does so cannot set one. Throws: Error{kInvalidArgument}.
std::optional<std::string> last_event(const Request& request, const Target& target) {
  const views::Query query{.name = {}, .parameters = target.query, .declared = kEventsParameters};
  query.check();
  if (const auto sent = field_of(request, "Last-Event-ID")) return std::string{*sent};
  return query.has("after") ? std::optional{query.text("after")} : std::nullopt;
}

Response response_of(Answer answer, bool keep_alive) {
  Response response{static_cast<http::status>(answer.status), 11};
  for (const auto& [field, value] : kSecurity) response.set(field, value);
  response.set(http::field::cache_control, answer.cache);
  if (answer.status != 304) response.set(http::field::content_type, answer.type);
  for (const auto& [name, value] : answer.headers) response.set(name, value);
  response.keep_alive(keep_alive);
  response.body() = std::move(answer.body);
  if (answer.status != 304) response.prepare_payload();
  return response;
}

/// The deadline is one for some progress, not for the whole.
net::awaitable<void> send(Stream& stream, Outbox& outbox, Answer answer, bool keep_alive, bool head_only) {
  if (answer.body.size() > Outbox::kMostBytes) {
    answer =
        error_answer(Code::kInvalidArgument,
                     fmt::format("an answer of {} MiB, more than the {} MiB that one may have: ask for less",
                                 answer.body.size() >> 20, Outbox::kMostBytes >> 20));
  } else if (!outbox.make_room(answer.body.size())) {
    answer =
        error_answer(Code::kResourceExhausted, "too many long answers are being read: try again in a moment");
    answer.headers.emplace_back("Retry-After", "1");
  }
  Outbox::Entry entry{outbox, stream, answer.body.size()};
  Response response = response_of(std::move(answer), keep_alive);
  http::response_serializer<http::string_body> serializer{response};
  serializer.split(head_only);
  while (!(head_only ? serializer.is_header_done() : serializer.is_done())) {
    stream.expires_after(kDeadline);
    co_await http::async_write_some(stream, serializer, net::use_awaitable);
    entry.note_progress();
  }
}

/// The response line and headers of an event stream.
std::string event_stream_head() {
  http::response_header<> head;
  head.result(http::status::ok);
  head.version(11);
  for (const auto& [field, value] : kSecurity) head.set(field, value);
  head.set(http::field::content_type, "text/event-stream");
  head.set(http::field::cache_control, "no-store");
  head.set(http::field::connection, "close");  // the stream ends when the connection does
  return (std::ostringstream{} << head).str();
}

/// What a request that does not parse is answered, or nothing where the peer is simply gone.
std::optional<Answer> complaint(beast::error_code ec) {
  if (ec == http::error::header_limit)
    return error_answer(431, Code::kInvalidArgument,
                        fmt::format("the request's headers are longer than {} bytes", kHeaderBytes));
  if (ec.category() == beast::error_code{http::error::bad_method}.category() &&
      ec != http::error::end_of_stream && ec != http::error::partial_message)
    return error_answer(Code::kInvalidArgument, fmt::format("this is not an HTTP request: {}", ec.message()));
  return std::nullopt;
}

}  // namespace

RequestFigures::RequestFigures() {
  for (const std::string& route : api_routes()) routes_.try_emplace(route);
  for (const std::string_view route :
       {kMetrics, kHealth, kApp, kRefused, kWhoAmI, kSchema, ActionDesk::kPath, kSignIn})
    routes_.try_emplace(std::string{route});
}

void RequestFigures::add(std::string_view route, int status, std::chrono::steady_clock::duration time) {
  const auto found = routes_.find(route);
  if (found == routes_.end()) return;
  const auto kind = static_cast<std::size_t>(status / 100);
  if (kind < found->second.answers.size()) found->second.answers[kind].add();
  found->second.seconds.add(time);
}

void RequestFigures::expose(Exposition& exposition) const {
  exposition.counter("ablate_http_requests_total",
                     "Requests over HTTP by address and class of the answer's status.");
  for (const auto& [route, figures] : routes_)
    for (std::size_t kind = 2; kind < figures.answers.size(); ++kind)
      exposition.add(figures.answers[kind], {{"route", route}, {"code", std::to_string(kind) + "xx"}});
  exposition.histogram("ablate_http_request_seconds", "Time from a request to the beginning of its answer.");
  for (const auto& [route, figures] : routes_) exposition.add(figures.seconds, {{"route", route}});
}

namespace {

/// Reads the form of a sign-in, and does as it says.
net::awaitable<Answer> posted(Parser&& header, beast::flat_buffer& buffer, Visitor& visitor) {
  Stream& stream = visitor.stream;
  Site& site = *visitor.site;
  if (header.chunked() || header.content_length().value_or(0) > kFormBytes)
    co_return error_answer(kTooLong, Code::kInvalidArgument,
                           fmt::format("the form is longer than {} bytes", kFormBytes));
  http::request_parser<http::string_body> parser{std::move(header)};
  parser.body_limit(kFormBytes);
  co_await http::async_read(stream, buffer, parser, net::use_awaitable);
  visitor.guest.work();
  const auto& request = parser.get();
  const std::string_view target = request.target(), cookies = request[http::field::cookie];
  const std::string peer = peer_of(stream.peer());
  if (target.starts_with(SignIn::kPage)) co_return site.sign_in->sign_in(request.body(), cookies, peer);
  Answer answer = site.sign_in->sign_out(cookies, peer);
  site.hub.look_who_is_there();
  co_return answer;
}

/// Reads what follows a header, until `deadline`. False: it was not there by then, and what comes is not
/// read.
net::awaitable<bool> read_body(Stream& stream, beast::flat_buffer& buffer,
                               http::request_parser<http::string_body>& parser,
                               std::chrono::milliseconds deadline) {
  enum class State { kReading, kTooLate, kOver };
  const auto state = std::make_shared<State>(State::kReading);  // the timer may speak when this is over
  net::steady_timer timer{stream.get_executor(), deadline};
  timer.async_wait([state, &stream](beast::error_code stopped) {
    if (stopped || *state != State::kReading) return;
    *state = State::kTooLate;
    beast::error_code ignored;
    stream.socket().cancel(ignored);
  });
  stream.expires_after(deadline + kDeadline);
  beast::error_code ec;
  co_await http::async_read(stream, buffer, parser, net::redirect_error(net::use_awaitable, ec));
  const bool late = *state == State::kTooLate;
  *state = State::kOver;
  if (ec && !late) throw beast::system_error{ec};
  co_return !late;
}

struct Acted {
  std::optional<Answer> answer;  ///< nothing: the peer has left
  bool read = false;             ///< the body, as a whole: what follows is the next request
};
/// Reads what is to be done, and has it done.
net::awaitable<Acted> acted(Parser&& header, beast::flat_buffer& buffer, Visitor& visitor, std::string method,
                            std::optional<Visit> visit) {
  Stream& stream = visitor.stream;
  Site& site = *visitor.site;
  if (std::string why = why_changes_nothing(stream, site); !why.empty())
    co_return Acted{error_answer(Code::kPermissionDenied, why)};
  if (site.actions.full()) {
    Answer busy = error_answer(
        Code::kResourceExhausted,
        fmt::format("{} requests are being done already: try again in a moment", ActionDesk::kMostAtOnce));
    busy.headers.emplace_back("Retry-After", "1");
    co_return Acted{std::move(busy)};
  }
  const ActionDesk::Place place{site.actions};
  http::request_parser<http::string_body> parser{std::move(header)};
  parser.body_limit(ActionDesk::kMostBytes);
  if (!co_await read_body(stream, buffer, parser, site.options.limits.body))
    co_return Acted{
        error_answer(kTooSlow, Code::kDeadlineExceeded,
                     fmt::format("the body was not there within {} s",
                                 std::chrono::duration<double>(site.options.limits.body).count()))};
  visitor.guest.work();
  using namespace net::experimental::awaitable_operators;
  std::stop_source abandoned;
  net::awaitable<Answer> done = site.actions.act(asker_of(visit), std::move(method),
                                                 std::move(parser.get().body()), abandoned.get_token());
  net::awaitable<void> left = leaving(stream, abandoned);
  std::variant<Answer, std::monostate> first = co_await (std::move(done) || std::move(left));
  if (first.index() != 0) co_return Acted{};
  co_return Acted{std::move(std::get<0>(first)), true};
}

/// What is known at once: who is not let in, and what is for everybody. Nothing: to be looked for.
struct AtTheDoor {
  std::optional<Answer> answer;
  Target target;
  std::optional<Visit> visit;
  std::string route{kRefused};
};
AtTheDoor at_the_door(const Parser& parser, const Stream& stream, Site& site) {
  AtTheDoor door;
  const Request& request = parser.get();
  if (site.sign_in && !site.rate.take(peer_of(stream.peer()), Rate::Steady::now())) {
    door.answer = error_answer(429, Code::kResourceExhausted, "too many requests: try again in a moment");
    door.answer->headers.emplace_back("Retry-After", "1");
    return door;
  }
  door.answer = objection(parser, stream, site);
  if (door.answer) return door;
  try {
    door.target = parse_target(request.target());
  } catch (const Error& error) {
    door.answer = error_answer(error.code(), error.what());
    return door;
  }
  if (is_action(request) != match(ActionDesk::kPath, door.target.path).has_value()) {
    door.answer = error_answer(Code::kNotFound, "unknown path: expected /api/v1/actions/NAME");
    return door;
  }
  door.route = route_of(door.target);
  if (is_for_everybody(door.target) || is_posted_form(request)) return door;
  auto admitted = admit(request, stream, site);
  if (auto* visit = std::get_if<std::optional<Visit>>(&admitted)) door.visit = std::move(*visit);
  const bool refused = admitted.index() == 1;
  if (site.sign_in && door.route == kSignIn)
    door.answer = sign_in_page(door.target, door.visit);
  else if (refused && door.route == kHealth)
    door.answer = health_answer(site, false);
  else if (refused)
    door.answer = std::move(std::get<Answer>(admitted));
  return door;
}

/// Serves one request. False: the connection is to be closed.
net::awaitable<bool> serve_one(Visitor& visitor, beast::flat_buffer& buffer) {
  using Steady = std::chrono::steady_clock;
  Site& site = *visitor.site;
  Stream& stream = visitor.stream;
  Parser parser;
  parser.header_limit(kHeaderBytes);
  parser.body_limit(
      boost::none);  // a body is read of a sign-in alone: another request that has one is refused
  stream.expires_after(kDeadline);
  beast::error_code ec;
  co_await http::async_read_header(stream, buffer, parser, net::redirect_error(net::use_awaitable, ec));
  if (ec) {
    if (auto refused = complaint(ec)) co_await send(stream, site.outbox, std::move(*refused), false, false);
    co_return false;  // or a normal goodbye
  }
  const Steady::time_point asked = Steady::now();
  AtTheDoor door = at_the_door(parser, stream, site);
  const bool head_only = parser.get().method() == http::verb::head;
  const bool has_body = parser.chunked() || parser.content_length().value_or(0) > 0;
  // what follows what is refused may be a body: not ours to read
  bool keep_alive = parser.get().keep_alive() && !(door.answer && (has_body || door.route == kRefused));
  if (!door.answer && is_posted_form(parser.get())) {
    door.answer = co_await posted(std::move(parser), buffer, visitor);
    keep_alive = keep_alive && door.answer->status != kTooLong;
  } else if (!door.answer && door.route == ActionDesk::kPath) {
    Acted done = co_await acted(std::move(parser), buffer, visitor,
                                *match(ActionDesk::kPath, door.target.path), door.visit);
    if (!done.answer) co_return false;
    door.answer = std::move(done.answer);
    keep_alive = keep_alive && done.read;
  }
  visitor.guest.work();
  const bool events = !door.answer && wants_events(parser.get());
  Streams::Owner owner = owner_of(door.visit, stream);
  std::optional<std::string> after;
  if (events) {
    if (!site.streams.why_not(owner).empty())
      door.answer = no_events(site.streams, owner);
    else
      try {
        after = last_event(parser.get(), door.target);
      } catch (const Error& error) {
        door.answer = error_answer(error.code(), error.what());
      }
  }
  if (!door.answer && events) {
    const Streams::Place place{site.streams, std::move(owner)};
    std::function<std::string()> why_over = [&site, visit = door.visit] {
      return visit ? site.sign_in->why_over(*visit) : std::string{};
    };
    co_await site.hub.stream_to(stream, event_stream_head(), std::move(after), std::move(why_over));
    co_return false;
  }
  if (!door.answer)
    door.answer = co_await answer(parser.get(), std::move(door.target), std::move(door.visit), stream, site,
                                  door.route);
  if (!door.answer) co_return false;
  site.requests.add(door.route, door.answer->status, Steady::now() - asked);
  visitor.guest.read();
  co_await send(stream, site.outbox, std::move(*door.answer), keep_alive, head_only);
  visitor.guest.rest();
  co_return keep_alive;
}

}  // namespace

net::awaitable<void> serve(std::unique_ptr<Visitor> visitor) {
  Stream& stream = visitor->stream;
  if (stream.secure() && !co_await stream.shake_hands()) {
    Answer answer = error_answer(Code::kInvalidArgument, "this port speaks TLS: ask for https://");
    co_await send(stream, visitor->site->outbox, std::move(answer), false, false);
  } else {
    beast::flat_buffer buffer;
    while (co_await serve_one(*visitor, buffer)) {
    }
  }
  co_await stream.goodbye();
}

}  // namespace abl::web
