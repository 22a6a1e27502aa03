// SPDX-License-Identifier: Apache-2.0
#include <boost/asio/buffer.hpp>
#include <boost/beast/http.hpp>

#include "access/request_guard.h"
#include "base/error.h"
#include "tests/fuzz/target.h"
#include "tests/temporary_folder.h"
#include "tests/web/demo_store.h"
#include "views/table_cache.h"
#include "web/server/answer.h"
#include "web/server/routes.h"
#include "web/server/sign_in.h"
#include "web/server/target.h"

namespace abl::fuzz {
namespace {

namespace http = boost::beast::http;

/// A store with every kind of thing in it, and what reads it.
struct Shop {
  TemporaryFolder folder;
  web::DemoStore store{folder / "results.db"};
  storage::Database db{folder / "results.db", storage::Database::Mode::kReadOnly};
  views::TableCache tables{folder / "results.db"};
};

}  // namespace

/// The bytes of a connection up to the answer: what `web::serve` does, without a socket.
void read_http_request(std::string_view bytes) {
  static Shop shop;
  http::request_parser<http::empty_body> parser;
  parser.eager(true);
  boost::beast::error_code ec;
  parser.put(boost::asio::buffer(bytes.data(), bytes.size()), ec);
  if (ec || !parser.is_header_done()) return;
  const auto& request = parser.get();
  const auto field = [&](std::string_view name) -> std::optional<std::string_view> {
    const auto found = request.find(name);
    return found == request.end() ? std::nullopt : std::optional<std::string_view>{found->value()};
  };
  if (const auto why = access::refusal({.host = request[http::field::host],
                                        .origin = field("Origin"),
                                        .site = field("Sec-Fetch-Site").value_or(""),
                                        .mode = field("Sec-Fetch-Mode").value_or("")}))
    require(!why->empty(), "a refusal says why");
  const std::string to = web::own_path(request.target());  // where a sign-in leads back to
  require(to.starts_with('/') && !to.starts_with("//") && to.find('\\') == std::string::npos,
          "a sign-in leads nowhere else: " + to);
  try {
    const web::Target target = web::parse_target(request.target());
    for (const std::string& segment : target.path)
      require(!segment.empty() && segment.find('\0') == std::string::npos, "a segment is a name");
    const web::Answer answer = web::api_answer(target, shop.db, shop.tables);
    require(answer.status >= 200 && answer.status < 600 && answer.status != 500, "no request is our fault");
    for (const auto& [name, value] : answer.headers)
      require(value.find_first_of("\r\n") == std::string::npos, "no header ends early: " + value);
  } catch (const Error& error) {
    require(error.code() == Code::kInvalidArgument, "a target that is none is bad input");
    require(std::string_view{error.what()}.find('\n') == std::string_view::npos, "a message is one line");
  }
}

}  // namespace abl::fuzz
