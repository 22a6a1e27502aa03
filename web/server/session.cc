// SPDX-License-Identifier: Apache-2.0
#include "web/server/session.h"

#include <fmt/format.h>

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stop_token>
#include <variant>

#include "access/request_guard.h"
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
constexpr std::string_view kMetrics = "/metrics", kHealth = "/healthz", kApp = "/", kRefused = "refused";

bool is_page(std::string_view target) {
  const std::string_view path = target.substr(0, target.find('?'));
  return !is_of_api(target) && path != kMetrics && path != kHealth;
}

/// Why a request is not looked at any further, or nothing.
std::optional<Answer> objection(const Parser& parser) {
  const Request& request = parser.get();
  if (const auto why = access::refusal({.host = request[http::field::host],
                                        .origin = field_of(request, "Origin"),
                                        .site = field_of(request, "Sec-Fetch-Site").value_or(""),
                                        .mode = field_of(request, "Sec-Fetch-Mode").value_or(""),
                                        .page = is_page(request.target())}))
    return error_answer(Code::kPermissionDenied, *why);
  if (request.method() != http::verb::get && request.method() != http::verb::head) {
    Answer answer = error_answer(405, Code::kUnimplemented,
                                 fmt::format("{} is not served: the dashboard only reads, with GET and HEAD",
                                             std::string_view{request.method_string()}));
    answer.headers.emplace_back("Allow", "GET, HEAD");
    return answer;
  }
  if (parser.chunked() || parser.content_length().value_or(0) > 0)
    return error_answer(413, Code::kInvalidArgument, "the request has a body, expected none");
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
  // the next request is there already: whether its sender leaves shows when that is read
  net::steady_timer for_ever{stream.get_executor(), net::steady_timer::time_point::max()};
  co_await for_ever.async_wait(net::use_awaitable);
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

Answer health_answer(const Site& site) {
  std::vector<Monitor::Ailment> ailments;
  if (site.options.monitor) ailments = site.options.monitor->ailments();
  std::error_code unknown;
  if (site.options.watch_store && !std::filesystem::exists(site.options.store, unknown))
    ailments.push_back({"store", site.options.store.string() + " is gone"});
  nlohmann::ordered_json health;
  health["status"] = ailments.empty() ? "ok" : "unhealthy";
  health["version"] = site.options.version;
  for (const auto& [check, message] : ailments)
    health["reasons"].push_back({{"check", check}, {"message", message}});
  return Answer{.status = ailments.empty() ? 200 : 503,
                .body = health.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n"};
}

/// Which of few kinds of address it is, for figures: what people send is no label.
std::string route_of(const Target& target) {
  if (!target.path.empty() && target.path.front() == "api") return api_route(target);
  for (const std::string_view route : {kMetrics, kHealth})
    if (match(route, target.path)) return std::string{route};
  return std::string{kApp};
}

/// Nothing: the peer has left.
net::awaitable<std::optional<Answer>> answer(const Request& request, Stream& stream, Site& site,
                                             std::string& route) {
  Target target;
  try {
    target = parse_target(request.target());
  } catch (const Error& error) {
    co_return error_answer(error.code(), error.what());
  }
  route = route_of(target);
  if (route == kMetrics) co_return metrics_answer(site);
  if (route == kHealth) co_return health_answer(site);
  if (target.path.empty() || target.path.front() != "api")
    co_return static_answer(embedded_app(), target, request[http::field::if_none_match],
                            request[http::field::accept].find("text/html") != std::string_view::npos);
  using namespace net::experimental::awaitable_operators;
  std::stop_source abandoned;
  net::awaitable<Answer> found = site.readers.answer(std::move(target), abandoned.get_token());
  net::awaitable<void> left = leaving(stream, abandoned);
  std::variant<Answer, std::monostate> first = co_await (std::move(found) || std::move(left));
  if (first.index() != 0) co_return std::nullopt;
  co_return std::move(std::get<0>(first));
}

bool wants_events(const Request& request) {
  return request.method() == http::verb::get &&
         (request.target() == "/api/v1/events" || request.target().starts_with("/api/v1/events?"));
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
  for (const std::string_view route : {kMetrics, kHealth, kApp, kRefused})
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

net::awaitable<void> serve(Stream stream, std::shared_ptr<Site> site) {
  using Steady = std::chrono::steady_clock;
  beast::flat_buffer buffer;
  for (bool keep_alive = true; keep_alive;) {
    Parser parser;
    parser.header_limit(kHeaderBytes);
    parser.body_limit(boost::none);  // no body is ever read: a request that has one is refused
    stream.expires_after(kDeadline);
    beast::error_code ec;
    co_await http::async_read_header(stream, buffer, parser, net::redirect_error(net::use_awaitable, ec));
    if (ec) {
      if (auto refused = complaint(ec))
        co_await send(stream, site->outbox, std::move(*refused), false, false);
      break;  // or a normal goodbye
    }
    const Request& request = parser.get();
    const bool head_only = request.method() == http::verb::head;
    const Steady::time_point asked = Steady::now();
    if (auto refused = objection(parser)) {
      site->requests.add(kRefused, refused->status, Steady::now() - asked);
      co_await send(stream, site->outbox, std::move(*refused), false,
                    head_only);  // what follows may be a body: not ours to read
      break;
    }
    if (wants_events(request))
      co_await site->hub.stream_to(stream, event_stream_head());  // ends by an exception alone
    keep_alive = request.keep_alive();
    std::string route{kRefused};
    std::optional<Answer> found = co_await answer(request, stream, *site, route);
    if (!found) break;
    site->requests.add(route, found->status, Steady::now() - asked);
    co_await send(stream, site->outbox, std::move(*found), keep_alive, head_only);
  }
  beast::error_code ignored;
  stream.socket().shutdown(net::ip::tcp::socket::shutdown_send, ignored);
}

}  // namespace abl::web
