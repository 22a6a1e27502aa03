// SPDX-License-Identifier: Apache-2.0
#include "webhooks/post.h"

#include <fmt/format.h>
#include <openssl/hmac.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl/ssl_stream.hpp>
#include <charconv>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

namespace abl::webhooks {
namespace {

namespace net = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using Request = http::request<http::string_body>;

constexpr std::uint64_t kLongestAnswer = 64 << 10;

Request request_of(const Webhook& webhook, const Message& message) {
  const Url& url = webhook.url;
  Request request{http::verb::post, url.target, 11};
  const std::string host = url.host.find(':') == std::string::npos ? url.host : '[' + url.host + ']';
  const bool usual = url.port == (url.tls ? 443 : 80);
  request.set(http::field::host, usual ? host : fmt::format("{}:{}", host, url.port));
  request.set(http::field::user_agent, "ablate/" ABLATE_VERSION);
  request.set(http::field::content_type, "application/json");
  request.set(http::field::connection, "close");
  request.set("Ablate-Event", message.event);
  request.set("Ablate-Delivery", message.id);
  if (!webhook.secret.empty()) request.set("Ablate-Signature", signature_of(message.body, webhook.secret));
  request.body() = message.body;
  request.prepare_payload();
  return request;
}

/// Seconds, as most write it; a date is none of these.
std::optional<std::chrono::seconds> seconds_in(std::string_view text) {
  long long seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc{} || end != text.data() + text.size() || seconds < 0) return std::nullopt;
  return std::chrono::seconds{seconds};
}

template <class Stream>
net::awaitable<Posted> exchange(Stream& stream, const Request& request) {
  co_await http::async_write(stream, request, net::use_awaitable);
  beast::flat_buffer buffer;
  http::response_parser<http::string_body> parser;
  parser.body_limit(kLongestAnswer);
  parser.header_limit(16 << 10);
  co_await http::async_read_header(stream, buffer, parser, net::use_awaitable);  // its body is nobody's
  Posted posted{.status = parser.get().result_int(),
                .why = fmt::format("HTTP {} {}", parser.get().result_int(),
                                   std::string_view{http::obsolete_reason(parser.get().result())})};
  if (const auto after = parser.get().find(http::field::retry_after); after != parser.get().end())
    posted.retry_after = seconds_in(std::string_view{after->value().data(), after->value().size()});
  co_return posted;
}

net::ssl::context context_for(const Webhook& webhook) {
  net::ssl::context context{net::ssl::context::tls_client};
  SSL_CTX_set_min_proto_version(context.native_handle(), TLS1_2_VERSION);
  if (webhook.ca.empty())
    context.set_default_verify_paths();
  else
    context.add_certificate_authority(net::buffer(webhook.ca));
  context.set_verify_mode(net::ssl::verify_peer);
  return context;
}

/// Its locals outlive what it waits for: the coroutine's frame owns the connection.
net::awaitable<Posted> posted(const Webhook& webhook, const Message& message, Milliseconds deadline) {
  const auto executor = co_await net::this_coro::executor;
  const Url& url = webhook.url;
  const Request request = request_of(webhook, message);
  net::ip::tcp::resolver resolver{executor};
  const auto places = co_await resolver.async_resolve(url.host, std::to_string(url.port), net::use_awaitable);
  beast::tcp_stream stream{executor};
  stream.expires_after(deadline);
  co_await stream.async_connect(places, net::use_awaitable);
  if (!url.tls) co_return co_await exchange(stream, request);
  net::ssl::context context = context_for(webhook);
  beast::ssl_stream<beast::tcp_stream&> secure{stream, context};
  boost::system::error_code is_name;
  net::ip::make_address(url.host, is_name);
  if (is_name) SSL_set_tlsext_host_name(secure.native_handle(), url.host.c_str());
  secure.set_verify_callback(net::ssl::host_name_verification{url.host});
  co_await secure.async_handshake(net::ssl::stream_base::client, net::use_awaitable);
  co_return co_await exchange(secure, request);
}

/// In people's words: what Asio says of a certificate names a line of OpenSSL.
std::string why_of(const boost::system::system_error& error, const Url& url) {
  const auto code = error.code();
  if (code == beast::error::timeout) return "no answer in time";
  if (code == http::error::end_of_stream || code == net::error::eof ||
      code == net::ssl::error::stream_truncated)
    return "the connection was closed without an answer";
  if (code.category() == net::error::get_ssl_category()) {
    if (code.message().find("certificate verify failed") != std::string::npos)
      return fmt::format(
          "the certificate of {} is not one that this machine trusts for it; expected ca_file for an "
          "authority of your own",
          url.host);
    return fmt::format("{} does not speak TLS as expected ({})", url.host, code.message());
  }
  if (code == net::error::host_not_found || code == net::error::host_not_found_try_again)
    return fmt::format("unknown host {}", url.host);
  return code.message();
}

/// A post under way.
struct Exchange {
  const Webhook webhook;
  const Message message;
  const Milliseconds deadline;
  std::mutex mutex;
  std::condition_variable_any ended;
  bool over = false;
  Posted result{.why = "no answer in time"};
  net::io_context* io = nullptr;  // while it runs
};

/// On a thread of its own, for nothing ends the lookup of a name: whoever gives up does not wait for that.
void run(const std::shared_ptr<Exchange>& exchange) {
  net::io_context io{1};
  {
    const std::lock_guard lock{exchange->mutex};
    if (exchange->over) return;
    exchange->io = &io;
  }
  Posted result = exchange->result;
  net::co_spawn(io, posted(exchange->webhook, exchange->message, exchange->deadline),
                [&](std::exception_ptr failed, Posted got) {
                  try {
                    if (failed) std::rethrow_exception(failed);
                    result = std::move(got);
                  } catch (const boost::system::system_error& error) {
                    result = {.why = why_of(error, exchange->webhook.url)};
                  } catch (const std::exception& error) {
                    result = {.why = error.what()};
                  }
                });
  io.run_for(exchange->deadline);
  {
    const std::lock_guard lock{exchange->mutex};
    exchange->io = nullptr;
    exchange->result = std::move(result);
    exchange->over = true;
  }
  exchange->ended.notify_all();
}

}  // namespace

std::string signature_of(const std::string& body, const std::string& secret) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
       reinterpret_cast<const unsigned char*>(body.data()), body.size(), digest, &size);
  std::string text = "sha256=";
  for (unsigned int i = 0; i < size; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

Posted post(const Webhook& webhook, const Message& message, std::stop_token stop, Milliseconds deadline) {
  const auto exchange =
      std::shared_ptr<Exchange>{new Exchange{.webhook = webhook, .message = message, .deadline = deadline}};
  std::thread{run, exchange}.detach();
  std::unique_lock lock{exchange->mutex};
  if (!exchange->ended.wait(lock, stop, [&] { return exchange->over; })) {
    exchange->over = true;
    if (exchange->io) exchange->io->stop();
  }
  return exchange->result;
}

}  // namespace abl::webhooks
