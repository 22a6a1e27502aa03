// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/depot_link.h"

#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>

#include "base/error.h"

namespace abl::agent {
namespace {

using namespace std::chrono_literals;
using ablate::v1::Depot;

constexpr auto kPiecePatience = 5min;  // with one piece: at the end of a file all of it may be read again
constexpr auto kLookAtOrders = 100ms;  // between two looks whether to go on

/// One call, which is cancelled when it is not to go on.
template <class Request, class Response, class Start>
Response call(const Request& request, const GoOn& go_on, const Start& start) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPiecePatience);
  Response response;
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<grpc::Status> status;
  start(&context, &request, &response, [&](const grpc::Status& ended) {
    const std::lock_guard lock{mutex};
    status = ended;
    changed.notify_all();  // with the lock: who waits may then be gone
  });
  std::unique_lock lock{mutex};
  while (!status) {
    if (changed.wait_for(lock, kLookAtOrders, [&] { return status.has_value(); })) break;
    lock.unlock();
    const bool goes_on = go_on(0ms);
    lock.lock();
    if (goes_on || status) continue;
    lock.unlock();
    context.TryCancel();
    lock.lock();
    changed.wait(lock, [&] { return status.has_value(); });
  }
  if (!status->ok()) throw Error{static_cast<Code>(status->error_code()), status->error_message()};
  return response;
}

void fill(ablate::v1::Blob& blob, const ForRun& run, const std::string& sha256) {
  blob.set_sha256(sha256);
  blob.set_run(run.run);
  blob.set_token(run.token);
}

}  // namespace

DepotLink::DepotLink(std::string address, access::ClientAccess access)
    : address_{std::move(address)}, access_{std::move(access)} {}

DepotLink::Stub DepotLink::stub() {
  const std::lock_guard lock{mutex_};
  if (!stub_) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 5000);
    try {
      stub_ = Depot::NewStub(
          grpc::CreateCustomChannel(address_, access::channel_credentials(access_), arguments));
    } catch (
        const Error& error) {  // a certificate of its own that has expired, or is gone: until it is renewed
      throw Error{Code::kUnavailable, error.what()};
    }
  }
  return stub_;
}

/// Who gets no answer connects anew next time: a certificate of its own may have been renewed.
template <class Ask>
auto DepotLink::with_stub(const Ask& ask) {
  const Stub used = stub();
  try {
    return ask(*used);
  } catch (const Error& error) {
    if (error.code() == Code::kUnavailable || error.code() == Code::kUnauthenticated) {
      const std::lock_guard lock{mutex_};
      if (stub_ == used) stub_.reset();
    }
    throw;
  }
}

bool DepotLink::send(const ForRun& run, const std::filesystem::path& file, const std::string& sha256,
                     std::uint64_t bytes, const GoOn& go_on) {
  const auto put = [&](std::uint64_t offset, std::string_view piece) {
    ablate::v1::PutPieceRequest request;
    fill(*request.mutable_blob(), run, sha256);
    request.mutable_blob()->set_bytes(bytes);
    request.set_offset(offset);
    request.set_piece(piece.data(), piece.size());
    const auto answer = with_stub([&](Depot::Stub& depot) {
      return call<ablate::v1::PutPieceRequest, ablate::v1::PutPieceResponse>(
          request, go_on, [&](auto* context, auto* asked, auto* response, auto then) {
            depot.async()->PutCheckpoint(context, asked, response, std::move(then));
          });
    });
    return PieceTaken{.have = answer.have(), .whole = answer.whole()};
  };
  return send_in_pieces(file, bytes, put, go_on);
}

bool DepotLink::fetch(const ForRun& run, const std::filesystem::path& file, const std::string& sha256,
                      std::uint64_t bytes, const GoOn& go_on) {
  const auto get = [&](std::uint64_t offset, bool damaged) {
    ablate::v1::GetPieceRequest request;
    fill(*request.mutable_blob(), run, sha256);
    request.set_offset(offset);
    request.set_most(kPieceBytes);
    request.set_damaged(damaged);
    try {
      auto answer = with_stub([&](Depot::Stub& depot) {
        return call<ablate::v1::GetPieceRequest, ablate::v1::GetPieceResponse>(
            request, go_on, [&](auto* context, auto* asked, auto* response, auto then) {
              depot.async()->Get(context, asked, response, std::move(then));
            });
      });
      return PieceGot{.bytes = std::move(*answer.mutable_piece()), .whole = answer.bytes()};
    } catch (const Error& error) {  // what the depot lacks now, room or descriptors, may be no want of ours
      throw Error{is_of_the_copy(error.code()) ? error.code() : Code::kUnavailable, error.what()};
    }
  };
  return fetch_in_pieces(file, sha256, bytes, get, go_on);
}

}  // namespace abl::agent
