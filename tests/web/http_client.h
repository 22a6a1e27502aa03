// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace abl::web {

/// What came back.
struct Reply {
  int status = 0;
  std::string body;
  std::map<std::string, std::string> headers;  ///< names in lower case
  nlohmann::json json() const { return nlohmann::json::parse(body); }
};

/// One connection to a server on this machine, blocking, with a deadline of 20 s on every step: what is sent
/// is up to the test.
class HttpClient {
 public:
  explicit HttpClient(std::uint16_t port);

  /// A request with the headers given; Host is right unless one of them says otherwise.
  Reply send(const std::string& method, const std::string& target,
             const std::map<std::string, std::string>& headers = {});
  Reply get(const std::string& target, const std::map<std::string, std::string>& headers = {}) {
    return send("GET", target, headers);
  }
  /// Bytes as they are, then one answer.
  Reply raw(const std::string& text, bool head = false);
  /// Sends bytes, reads until `text` has come (true) or the server has closed the connection (false).
  bool read_until(const std::string& text);
  void write(const std::string& text);
  const std::string& seen() const { return seen_; }
  bool closed_by_server();
  /// Whether something can be read, now or within `wait`.
  bool has_answer(std::chrono::milliseconds wait);

 private:
  template <class F>
  boost::beast::error_code run(F start);

  std::uint16_t port_;
  boost::asio::io_context io_;
  boost::beast::tcp_stream stream_{io_};
  boost::beast::flat_buffer buffer_;
  std::string seen_;
};

}  // namespace abl::web
