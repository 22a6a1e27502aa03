// SPDX-License-Identifier: Apache-2.0
#include "tests/web/http_client.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <stdexcept>

namespace abl::web {

namespace net = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;

namespace {
constexpr std::chrono::seconds kDeadline{20};
}  // namespace

HttpClient::HttpClient(std::uint16_t port) : port_{port} {
  stream_.connect({net::ip::make_address("127.0.0.1"), port});
}

/// `start` begins one operation and stores its outcome; the deadline is the stream's.
template <class F>
beast::error_code HttpClient::run(F start) {
  beast::error_code outcome;
  stream_.expires_after(kDeadline);
  start([&](beast::error_code ec, std::size_t) { outcome = ec; });
  io_.restart();
  io_.run();
  return outcome;
}

Reply HttpClient::send(const std::string& method, const std::string& target,
                       const std::map<std::string, std::string>& headers) {
  std::string text = fmt::format("{} {} HTTP/1.1\r\n", method, target);
  if (!headers.contains("Host")) text += fmt::format("Host: 127.0.0.1:{}\r\n", port_);
  for (const auto& [name, value] : headers) text += fmt::format("{}: {}\r\n", name, value);
  return raw(text + "\r\n", method == "HEAD");
}

Reply HttpClient::raw(const std::string& text, bool head) {
  write(text);
  http::response_parser<http::string_body> parser;
  parser.skip(head);
  parser.body_limit(boost::none);
  if (const auto ec = run([&](auto done) { http::async_read(stream_, buffer_, parser, done); }))
    throw std::runtime_error{"no answer: " + ec.message()};
  Reply reply{.status = static_cast<int>(parser.get().result_int()), .body = parser.get().body()};
  for (const auto& field : parser.get()) {
    std::string name{field.name_string()};
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    reply.headers[name] = std::string{field.value()};
  }
  return reply;
}

void HttpClient::write(const std::string& text) {
  if (const auto ec = run([&](auto done) { net::async_write(stream_, net::buffer(text), done); }))
    throw std::runtime_error{"cannot send: " + ec.message()};
}

bool HttpClient::read_until(const std::string& text) {
  const auto deadline = std::chrono::steady_clock::now() + kDeadline;
  while (seen_.find(text) == std::string::npos) {
    if (std::chrono::steady_clock::now() > deadline) return false;  // heartbeats come for ever
    std::array<char, 4096> chunk;
    std::size_t count = 0;
    const auto ec = run([&](auto done) {
      stream_.async_read_some(net::buffer(chunk), [&count, done](beast::error_code e, std::size_t n) {
        count = n;
        done(e, n);
      });
    });
    seen_.append(chunk.data(), count);
    if (ec) return false;
  }
  return true;
}

bool HttpClient::has_answer(std::chrono::milliseconds wait) {
  pollfd socket{.fd = stream_.socket().native_handle(), .events = POLLIN, .revents = 0};
  return ::poll(&socket, 1, static_cast<int>(wait.count())) > 0;
}

bool HttpClient::closed_by_server() {
  std::array<char, 1> byte;
  const auto ec = run([&](auto done) { stream_.async_read_some(net::buffer(byte), done); });
  return ec == net::error::eof || ec == net::error::connection_reset;
}

}  // namespace abl::web
