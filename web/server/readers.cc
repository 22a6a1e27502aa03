// SPDX-License-Identifier: Apache-2.0
#include "web/server/readers.h"

#include <boost/asio/associated_executor.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <utility>

#include "web/server/routes.h"

namespace abl::web {

using storage::Database;

Readers::Readers(std::filesystem::path store, int threads)
    : store_{std::move(store)},
      watched_{store_, Database::Mode::kReadOnly},
      pool_{static_cast<std::size_t>(threads)} {}

net::awaitable<Answer> Readers::answer(Target target) {
  return on_pool<Answer>([this, target = std::move(target)] { return query(target); });
}

net::awaitable<bool> Readers::changed() {
  return on_pool<bool>([this] {
    const std::int64_t now = watched_.data_version();
    return std::exchange(seen_, now) != now;
  });
}

void Readers::stop() { pool_.join(); }

/// Posts `work` to the pool and its result back to where the coroutine runs. It is not cancelled: a query
/// that has begun ends.
template <class T>
net::awaitable<T> Readers::on_pool(std::function<T()> work) {
  co_return co_await net::async_initiate<const net::use_awaitable_t<>, void(std::exception_ptr, T)>(
      [this](auto handler, std::function<T()> job) {
        auto back = net::make_work_guard(handler);  // the network has something to wait for
        net::post(pool_,
                  [handler = std::move(handler), job = std::move(job), back = std::move(back)]() mutable {
                    T result{};
                    std::exception_ptr error;
                    try {
                      result = job();
                    } catch (...) {
                      error = std::current_exception();
                    }
                    net::post(back.get_executor(),
                              [handler = std::move(handler), error, result = std::move(result)]() mutable {
                                handler(error, std::move(result));
                              });
                  });
      },
      net::use_awaitable, std::move(work));
}

Answer Readers::query(const Target& target) {
  std::unique_ptr<Database> db;
  try {
    db = take();
  } catch (const Error& error) {
    return error_answer(error.code(), error.what());
  }
  Answer answer = api_answer(target, *db);
  idle_.lock()->push_back(std::move(db));
  return answer;
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
