// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>

#include "ablate/v1/depot.grpc.pb.h"
#include "ablate/v1/workers.pb.h"
#include "base/clock.h"
#include "scheduler/access_control.h"
#include "scheduler/coordinator.h"
#include "scheduler/depot.h"
#include "storage/database.h"
#include "storage/read_pool.h"

namespace abl::scheduler {

/// So many bytes a second, whoever asks for them: each piece has its turn after those before it.
class Pace {
 public:
  using Steady = std::chrono::steady_clock::time_point;
  explicit Pace(std::uint64_t bytes_a_second) : rate_{bytes_a_second} {}
  /// How long a piece has to wait at this moment. 0: no bound.
  std::chrono::microseconds wait(std::uint64_t bytes, Steady now);

 private:
  const std::uint64_t rate_;
  Steady free_{};
};

/// The depot over gRPC. One thread of its own has its files and its pace: no other waits for its disk. Each
/// piece is a call, so that whoever sends waits for the answer before the next, and nothing piles up here.
class DepotService final : public ablate::v1::Depot::CallbackService {
 public:
  DepotService(const DepotOptions& options, const std::filesystem::path& store, const Clock& clock,
               AccessControl& access, Coordinator& coordinator);
  ~DepotService() override { stop(); }

  using Context = grpc::CallbackServerContext;
  using Unary = grpc::ServerUnaryReactor;
  Unary* PutCheckpoint(Context*, const ablate::v1::PutPieceRequest*, ablate::v1::PutPieceResponse*) override;
  Unary* Get(Context*, const ablate::v1::GetPieceRequest*, ablate::v1::GetPieceResponse*) override;
  Unary* PutData(Context*, const ablate::v1::PutPieceRequest*, ablate::v1::PutPieceResponse*) override;
  Unary* PushData(Context*, const ablate::v1::PushDataRequest*, ablate::v1::DataName*) override;
  Unary* RemoveData(Context*, const ablate::v1::RemoveDataRequest*, ablate::v1::DataName*) override;
  Unary* ListData(Context*, const ablate::v1::ListDataRequest*, ablate::v1::ListDataResponse*) override;
  Unary* RepinData(Context*, const ablate::v1::RepinDataRequest*, ablate::v1::RepinDataResponse*) override;

  /// Ends its thread: nobody calls any more. What an assignment is marked with stays.
  void stop();
  /// Drops from time to time what nobody will need any more. Thread: any.
  void tick();
  /// Says what of an assignment the depot has. Thread: any.
  void mark(ablate::v1::Assign& assign) const;
  /// How often runs bring their checkpoints; 0: there is no depot. Thread: any.
  Milliseconds every() const { return depot_.open() ? depot_.options().every : Milliseconds{0}; }
  const Depot& depot() const { return depot_; }
  const PushedData& pushed() const { return pushed_; }

 private:
  /// Work on the depot's thread, which is refused where too much waits already.
  template <class Response, class Work>
  Unary* on_its_thread(Context* context, Response* response, Work work);
  /// Has the coordinator see what is pushed by now. Thread: any.
  void tell_of_data();
  void tidy(storage::Database& db);
  void await_turn(std::uint64_t bytes);

  const Clock& clock_;
  AccessControl& access_;
  Coordinator& coordinator_;
  Depot depot_;
  PushedData pushed_;
  Pace pace_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  Time next_tidy_{};
  storage::ReadPool pool_;  // of one thread
};

}  // namespace abl::scheduler
