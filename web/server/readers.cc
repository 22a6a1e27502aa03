// SPDX-License-Identifier: Apache-2.0
#include "web/server/readers.h"

#include <fmt/format.h>

#include <boost/asio/associated_executor.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <utility>

#include "web/server/routes.h"

namespace abl::web {

using storage::Database;

namespace {

/// Beyond so many a new request is told to come back: a browser asks for a handful at a time.
constexpr std::size_t kMostWaiting = 64;

}  // namespace

Readers::Readers(std::filesystem::path store)
    : store_{std::move(store)}, tables_{store_}, watched_{store_, Database::Mode::kReadOnly} {}

net::awaitable<Answer> Readers::answer(Target target, std::stop_token abandoned) {
  Lane& lane = is_quick(target) ? quick_ : slow_;
  if (lane.under_way >= kMostWaiting) {
    Answer busy = error_answer(
        Code::kResourceExhausted,
        fmt::format("{} requests are waiting already: try again in a moment", lane.under_way.load()));
    busy.headers.emplace_back("Retry-After", "1");
    co_return busy;
  }
  std::function<Answer()> work = [this, target = std::move(target), abandoned = std::move(abandoned)] {
    return query(target, abandoned);
  };
  co_return co_await on_pool(lane, std::move(work));
}

net::awaitable<bool> Readers::changed() {
  return on_pool<bool>(quick_, [this] {
    const std::int64_t now = watched_.data_version();
    return std::exchange(seen_, now) != now;
  });
}

void Readers::stop() {
  abandon_all();
  quick_.pool.join();
  slow_.pool.join();
}

/// Posts `work` to the lane and its result back to where the coroutine runs. The coroutine waits for it
/// whatever happens: to end it early is to abandon the query.
template <class T>
net::awaitable<T> Readers::on_pool(Lane& lane, std::function<T()> work) {
  ++lane.under_way;
  co_return co_await net::async_initiate<const net::use_awaitable_t<>, void(std::exception_ptr, T)>(
      [&lane](auto handler, std::function<T()> job) {
        auto back = net::make_work_guard(handler);  // the network has something to wait for
        net::post(lane.pool, [&lane, handler = std::move(handler), job = std::move(job),
                              back = std::move(back)]() mutable {
          T result{};
          std::exception_ptr error;
          try {
            result = job();
          } catch (...) {
            error = std::current_exception();
          }
          --lane.under_way;
          net::post(back.get_executor(),
                    [handler = std::move(handler), error, result = std::move(result)]() mutable {
                      handler(error, std::move(result));
                    });
        });
      },
      net::use_awaitable, std::move(work));
}

Answer Readers::query(const Target& target, const std::stop_token& abandoned) {
  if (abandoned.stop_requested() || abandoned_.stop_requested())
    return error_answer(Code::kCancelled, "nobody waits for this answer");  // it left while it waited
  try {
    std::unique_ptr<Database> db = take();
    Answer answer;
    {
      const storage::Reading turn{*db,
                                  [&] { return abandoned.stop_requested() || abandoned_.stop_requested(); }};
      answer = api_answer(target, *db, tables_);
    }
    idle_.lock()->push_back(std::move(db));
    return answer;
  } catch (const Error& error) {
    return error_answer(error.code(), error.what());
  }
}

/// There are never more connections than threads: each has at most one at a time.
std::unique_ptr<Database> Readers::take() {
  {
    auto idle = idle_.lock();
    if (!idle->empty()) {
      std::unique_ptr<Database> db = std::move(idle->back());
      idle->pop_back();
      return db;
    }
  }
  return std::make_unique<Database>(store_, Database::Mode::kReadOnly);
}

}  // namespace abl::web
