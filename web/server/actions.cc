// SPDX-License-Identifier: Apache-2.0
#include "web/server/actions.h"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>

#include <memory>
#include <utility>

#include "base/error.h"

namespace abl::web {

void ActionDesk::introduce(const Actions::Asker& who, const std::string& why_not,
                           ablate::v1::Caller& caller) const {
  if (!actions_)
    caller.set_read_only(kReadOnly);
  else if (!why_not.empty())
    caller.set_read_only(why_not);
  else
    actions_->introduce(who, caller);
}

Answer ActionDesk::schema() const {
  if (!actions_)
    return error_answer(Code::kNotFound,
                        "only a scheduler's dashboard takes sweep files; this one shows a results file");
  return Answer{.body = actions_->schema()};
}

/// Starts the action, and posts its answer to the coroutine's executor.
struct ActionDesk::Begin {
  ActionDesk& desk;

  template <class Handler>
  void operator()(Handler handler, Actions::Asker who, std::string method, std::string request,
                  std::stop_token gone) const {
    auto back = net::make_work_guard(handler);  // keeps the network running until the answer comes
    // shared, since a std::function is copyable and a handler is not
    auto caller = std::make_shared<std::pair<Handler, decltype(back)>>(std::move(handler), std::move(back));
    std::function<void(Answer)> done = [caller](Answer answer) {
      net::post(caller->second.get_executor(), [caller, answer = std::move(answer)]() mutable {
        std::move(caller->first)(std::exception_ptr{}, std::move(answer));
      });
    };
    net::post(desk.reading_, [actions = desk.actions_, who = std::move(who), method = std::move(method),
                              request = std::move(request), gone = std::move(gone),
                              done = std::move(done)] { actions->act(who, method, request, gone, done); });
  }
};

net::awaitable<Answer> ActionDesk::act(Actions::Asker who, std::string method, std::string request,
                                       std::stop_token gone) {
  co_return co_await net::async_initiate<const net::use_awaitable_t<>, void(std::exception_ptr, Answer)>(
      Begin{*this}, net::use_awaitable, std::move(who), std::move(method), std::move(request),
      std::move(gone));
}

void ActionDesk::finish() {
  reading_.join();
  if (actions_) actions_->finish();
}

}  // namespace abl::web
