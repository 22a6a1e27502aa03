// SPDX-License-Identifier: Apache-2.0
#include "web/server/session.h"

#include <fmt/format.h>

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <sstream>
#include <stop_token>
#include <variant>

#include "access/request_guard.h"
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

/// Why a request is not looked at any further, or nothing.
std::optional<Answer> objection(const Parser& parser) {
  const Request& request = parser.get();
  if (const auto why = access::refusal({.host = request[http::field::host],
                                        .origin = field_of(request, "Origin"),
                                        .site = field_of(request, "Sec-Fetch-Site").value_or(""),
                                        .mode = field_of(request, "Sec-Fetch-Mode").value_or(""),
                                        .page = !is_of_api(request.target())}))
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

/// Nothing: the peer has left.
net::awaitable<std::optional<Answer>> answer(const Request& request, Stream& stream, Site& site) {
  Target target;
  try {
    target = parse_target(request.target());
  } catch (const Error& error) {
    co_return error_answer(error.code(), error.what());
  }
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

net::awaitable<void> serve(Stream stream, std::shared_ptr<Site> site) {
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
    if (auto refused = objection(parser)) {
      co_await send(stream, site->outbox, std::move(*refused), false,
                    head_only);  // what follows may be a body: not ours to read
      break;
    }
    if (wants_events(request))
      co_await site->hub.stream_to(stream, event_stream_head());  // ends by an exception alone
    keep_alive = request.keep_alive();
    std::optional<Answer> found = co_await answer(request, stream, *site);
    if (!found) break;
    co_await send(stream, site->outbox, std::move(*found), keep_alive, head_only);
  }
  beast::error_code ignored;
  stream.socket().shutdown(net::ip::tcp::socket::shutdown_send, ignored);
}

}  // namespace abl::web
