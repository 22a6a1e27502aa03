// SPDX-License-Identifier: Apache-2.0
#include "web/server/readers.h"

#include <fmt/format.h>

#include <boost/asio/associated_executor.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <exception>
#include <memory>
#include <optional>
#include <utility>

#include "web/server/routes.h"

namespace abl::web {

using storage::Database;

namespace {

/// Beyond so many a new request is told to come back: a browser asks for a handful at a time.
constexpr std::size_t kMostWaiting = 64;

}  // namespace

Readers::Readers(const std::filesystem::path& store, const storage::ChangeLog* log, views::OtherPlaces others)
    : others_{std::move(others)},
      tables_{store},
      watched_{store, Database::Mode::kReadOnly},
      quick_{store, 1},
      slow_{store, 2} {
  if (log) tables_.follow(*log);
}

net::awaitable<Answer> Readers::answer(Target target, Taken taken, std::stop_token abandoned) {
  storage::ReadPool& pool = is_quick(target) ? quick_ : slow_;
  if (const std::size_t waiting = pool.under_way(); waiting >= kMostWaiting) {
    Answer busy =
        error_answer(Code::kResourceExhausted,
                     fmt::format("{} requests are waiting already: try again in a moment", waiting));
    busy.headers.emplace_back("Retry-After", "1");
    co_return busy;
  }
  std::function<Answer(Database&)> work = [this, target = std::move(target),
                                           taken = std::move(taken)](Database& db) {
    try {
      if (db.stopped()) throw Error{Code::kCancelled, "request cancelled"};  // it left while it waited
      Answer answer = api_answer(target, db, tables_, others_);
      encode(answer, taken, deltas_, address_of(target));
      return answer;
    } catch (const Error& error) {
      return error_answer(error.code(), error.what());
    }
  };
  co_return co_await on_pool(pool, std::move(work), std::move(abandoned));
}

net::awaitable<bool> Readers::changed() {
  return on_pool<bool>(quick_, [this](Database&) {
    const std::int64_t now = watched_.data_version();
    return std::exchange(seen_, now) != now;
  });
}

void Readers::abandon_all() {
  quick_.abandon_all();
  slow_.abandon_all();
}

void Readers::stop() {
  abandon_all();
  quick_.finish();
  slow_.finish();
}

/// Posts `work` to the pool and its result back to where the coroutine runs. The coroutine waits for it
/// whatever happens: to end it early is to abandon the query.
template <class T>
net::awaitable<T> Readers::on_pool(storage::ReadPool& pool, std::function<T(Database&)> work,
                                   std::stop_token abandoned) {
  co_return co_await net::async_initiate<const net::use_awaitable_t<>, void(std::exception_ptr, T)>(
      [&pool](auto handler, std::function<T(Database&)> job, std::stop_token stop) {
        auto back = net::make_work_guard(handler);  // the network has something to wait for
        // shared, for a job of the pool can be copied and a handler cannot
        auto caller = std::make_shared<std::pair<decltype(handler), decltype(back)>>(std::move(handler),
                                                                                     std::move(back));
        pool.post(
            [caller = std::move(caller), job = std::move(job)](Database& db) {
              T result{};
              std::exception_ptr error;
              try {
                result = job(db);
              } catch (...) {
                error = std::current_exception();
              }
              net::post(caller->second.get_executor(),
                        [handler = std::move(caller->first), error, result = std::move(result)]() mutable {
                          handler(error, std::move(result));
                        });
            },
            std::move(stop));
      },
      net::use_awaitable, std::move(work), std::move(abandoned));
}

}  // namespace abl::web
