// SPDX-License-Identifier: Apache-2.0
#include "scheduler/depot_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/log.h"
#include "scheduler/answer.h"
#include "scheduler/status.h"
#include "storage/data_pins.h"
#include "storage/depot_store.h"
#include "storage/worker_store.h"
#include "views/convert.h"

namespace abl::scheduler {
namespace {

using namespace std::chrono_literals;
using storage::DepotStore;

constexpr auto kTidyDepotEvery = 30s;
constexpr std::size_t kMostPiecesWaiting = 64;  // pieces of up to 1 MiB each

storage::DepotStore::Holder holder(const Caller& caller, const ablate::v1::Blob& blob) {
  return {.worker = caller.local() ? "" : caller.name, .token = blob.token()};
}

ablate::v1::DataName data_name(const std::string& name, const PushedSet& set) {
  ablate::v1::DataName message;
  message.set_name(name);
  auto& pushed = *message.mutable_pushed();
  pushed.set_sha256(set.sha256);
  pushed.set_bytes(set.bytes);
  pushed.set_fingerprint(set.fingerprint);
  *pushed.mutable_pushed() = views::to_proto(set.pushed);
  pushed.set_by(set.by);
  return message;
}

}  // namespace

std::chrono::microseconds Pace::wait(std::uint64_t bytes, Steady now) {
  if (rate_ == 0) return {};
  const Steady begins = std::max(now, free_);
  free_ = begins + std::chrono::microseconds{bytes * 1'000'000 / rate_};
  return std::chrono::ceil<std::chrono::microseconds>(begins - now);
}

DepotService::DepotService(const DepotOptions& options, const std::filesystem::path& store,
                           const Clock& clock, AccessControl& access, Coordinator& coordinator)
    : clock_{clock},
      access_{access},
      coordinator_{coordinator},
      depot_{options, clock},
      pushed_{depot_.open() ? depot_.folder_of({}) : std::filesystem::path{}},
      pace_{options.rate},
      pool_{store, 1} {}

void DepotService::stop() {
  {
    const std::lock_guard lock{mutex_};
    stopping_ = true;
  }
  wake_.notify_all();
  pool_.finish();
}

template <class Response, class Work>
grpc::ServerUnaryReactor* DepotService::on_its_thread(Context* context, Response* response, Work work) {
  Caller caller;
  const grpc::Status known = status_of([&] {
    caller = access_.caller(*context);
    if (pool_.under_way() >= kMostPiecesWaiting)
      throw Error{Code::kUnavailable, "the depot is busy; try again later"};
  });
  if (!known.ok()) {
    auto* reactor = context->DefaultReactor();
    reactor->Finish(known);
    return reactor;
  }
  return answer(pool_, response, [caller, work](storage::Database& db) { return work(db, caller); });
}

/// On the depot's thread: a piece has its turn when those before it have had theirs.
void DepotService::await_turn(std::uint64_t bytes) {
  const auto wait = pace_.wait(bytes, std::chrono::steady_clock::now());
  std::unique_lock lock{mutex_};
  wake_.wait_for(lock, wait, [this] { return stopping_; });
}

grpc::ServerUnaryReactor* DepotService::PutCheckpoint(Context* context,
                                                      const ablate::v1::PutPieceRequest* request,
                                                      ablate::v1::PutPieceResponse* response) {
  return on_its_thread(context, response, [this, request](storage::Database& db, const Caller& caller) {
    const ablate::v1::Blob& blob = request->blob();
    check_digest(blob.sha256());
    const storage::TrialId trial = DepotStore{db}.written(blob.run(), holder(caller, blob), blob.sha256());
    await_turn(request->piece().size());
    const Depot::Have have =
        depot_.put({trial}, blob.sha256(), blob.bytes(), request->offset(), request->piece());
    ablate::v1::PutPieceResponse answer;
    answer.set_have(have.bytes);
    answer.set_whole(have.whole);
    return answer;
  });
}

grpc::ServerUnaryReactor* DepotService::Get(Context* context, const ablate::v1::GetPieceRequest* request,
                                            ablate::v1::GetPieceResponse* response) {
  return on_its_thread(context, response, [this, request](storage::Database& db, const Caller& caller) {
    const ablate::v1::Blob& blob = request->blob();
    check_digest(blob.sha256());
    const auto data = pushed_.find(DepotStore{db}.data_of(blob.run(), holder(caller, blob)));
    if (!data || data->sha256 != blob.sha256())
      DepotStore{db}.expect_readable(blob.run(), holder(caller, blob), blob.sha256());
    if (request->damaged()) {
      await_turn(depot_.bytes_of(blob.sha256()).value_or(0));  // all of it is read
      depot_.look_at(blob.sha256());
    }
    const std::size_t most = request->most() == 0 ? Depot::kMostPiece : request->most();
    await_turn(std::min(most, Depot::kMostPiece));
    Depot::Piece piece = depot_.get(blob.sha256(), request->offset(), most);
    ablate::v1::GetPieceResponse answer;
    answer.set_piece(std::move(piece.bytes));
    answer.set_bytes(piece.whole);
    return answer;
  });
}

grpc::ServerUnaryReactor* DepotService::PutData(Context* context, const ablate::v1::PutPieceRequest* request,
                                                ablate::v1::PutPieceResponse* response) {
  return on_its_thread(context, response, [this, request](storage::Database&, const Caller&) {
    const ablate::v1::Blob& blob = request->blob();
    await_turn(request->piece().size());
    const Depot::Have have = depot_.put({}, blob.sha256(), blob.bytes(), request->offset(), request->piece());
    ablate::v1::PutPieceResponse answer;
    answer.set_have(have.bytes);
    answer.set_whole(have.whole);
    return answer;
  });
}

grpc::ServerUnaryReactor* DepotService::PushData(Context* context, const ablate::v1::PushDataRequest* request,
                                                 ablate::v1::DataName* response) {
  return on_its_thread(context, response, [this, request](storage::Database& db, const Caller& caller) {
    check_digest(request->sha256());
    if (depot_.bytes_of(request->sha256()) != request->bytes())
      throw Error{Code::kFailedPrecondition, "the file is not in the depot: push it again"};
    if (request->fingerprint().empty() || request->fingerprint().size() > 300)
      throw Error{Code::kInvalidArgument, "a data set's fingerprint was expected, as trainers report it"};
    const auto pins = storage::DataPins{db}.all();
    if (const auto pinned = pins.find(request->name());
        pinned != pins.end() && pinned->second != request->fingerprint())
      throw Error{
          Code::kFailedPrecondition,
          fmt::format("the results under '{}' are of {}, and this is {}: push it under another name, or "
                      "have an admin pin the name anew first ('ablate data repin')",
                      request->name(), pinned->second, request->fingerprint())};
    pushed_.add(request->name(), {.sha256 = request->sha256(),
                                  .fingerprint = request->fingerprint(),
                                  .bytes = request->bytes(),
                                  .pushed = clock_.now(),
                                  .by = caller.name});
    tell_of_data();
    return data_name(request->name(), *pushed_.find(request->name()));
  });
}

grpc::ServerUnaryReactor* DepotService::RemoveData(Context* context,
                                                   const ablate::v1::RemoveDataRequest* request,
                                                   ablate::v1::DataName* response) {
  return on_its_thread(context, response, [this, request](storage::Database&, const Caller&) {
    const PushedSet removed = pushed_.remove(request->name());
    bool other = false;  // names it too
    for (const auto& [name, set] : pushed_.all()) other = other || set.sha256 == removed.sha256;
    if (!other) depot_.drop({}, removed.sha256);
    tell_of_data();
    return data_name(request->name(), removed);
  });
}

grpc::ServerUnaryReactor* DepotService::ListData(Context* context, const ablate::v1::ListDataRequest*,
                                                 ablate::v1::ListDataResponse* response) {
  return on_its_thread(context, response, [this](storage::Database& db, const Caller&) {
    std::map<std::string, ablate::v1::DataName> names;
    for (const storage::DataPins::Use& use : storage::DataPins{db}.uses()) {
      ablate::v1::DataName& name = names[use.name];
      name.set_fingerprint(use.fingerprint);
      name.set_run(use.run);
      if (use.since) *name.mutable_pinned() = views::to_proto(*use.since);
      name.set_trials(use.trials);
      name.set_other_trials(use.other_trials);
      name.set_waiting(use.waiting);
    }
    const auto connected = coordinator_.data();
    for (const auto& [name, workers] : connected)
      for (const auto& worker : workers) *names[name].add_workers() = worker;
    for (const storage::WorkerRecord& worker : storage::WorkerStore{db}.list()) {
      const auto has = nlohmann::json::parse(worker.data_json, nullptr, /*allow_exceptions=*/false);
      if (worker.connected || !has.is_array()) continue;
      for (const auto& name : has)
        if (name.is_string()) names[name.get<std::string>()].add_workers()->set_worker(worker.name);
    }
    for (const auto& [name, set] : pushed_.all())
      *names[name].mutable_pushed() = data_name(name, set).pushed();
    ablate::v1::ListDataResponse list;
    for (auto& [name, data] : names) {
      data.set_name(name);
      *list.add_names() = std::move(data);
    }
    list.set_depot_bytes(depot_.used());
    list.set_depot_limit(depot_.options().limit);
    return list;
  });
}

grpc::ServerUnaryReactor* DepotService::RepinData(Context* context,
                                                  const ablate::v1::RepinDataRequest* request,
                                                  ablate::v1::RepinDataResponse* response) {
  auto* reactor = context->DefaultReactor();
  if (request->fingerprint().empty() == request->from_worker().empty()) {
    reactor->Finish({grpc::StatusCode::INVALID_ARGUMENT, "a fingerprint or a worker's name was expected"});
    return reactor;
  }
  const grpc::Status posted = status_of([&] {
    coordinator_.repin(request->name(), request->fingerprint(), request->from_worker(), request->dry_run(),
                       [reactor, response, name = request->name()](std::exception_ptr error,
                                                                   const Coordinator::Repinned& done) {
                         if (error) return reactor->Finish(to_status(error));
                         response->set_name(name);
                         response->set_before(done.before);
                         response->set_fingerprint(done.fingerprint);
                         response->set_trials(done.trials);
                         response->set_waiting(done.waiting);
                         reactor->Finish(grpc::Status::OK);
                       });
  });
  if (!posted.ok()) reactor->Finish(posted);
  return reactor;
}

void DepotService::tell_of_data() {
  coordinator_.look_at_data([](std::exception_ptr) {});  // otherwise the next tick does
}

void DepotService::tick() {
  if (!depot_.open()) return;
  {
    const std::lock_guard lock{mutex_};
    if (clock_.steady() < next_tidy_) return;
    next_tidy_ = clock_.steady() + kTidyDepotEvery;
  }
  pool_.post([this](storage::Database& db) {
    try {
      tidy(db);
    } catch (const std::exception& error) {  // the next tick tries again
      log_warning("the depot is not tidied: {}", error.what());
    }
  });
}

/// Looks at each trial of which there are files: at most as many as the depot has room for.
void DepotService::tidy(storage::Database& db) {
  depot_.drop_stale();
  for (const DepotOwner owner : depot_.owners()) {
    if (owner.trial == 0) {
      if (!pushed_.readable()) continue;  // who knows which are named
      std::set<std::string> named;
      for (const auto& [name, set] : pushed_.all()) named.insert(set.sha256);
      for (const std::string& begun : depot_.begun(owner)) named.insert(begun);  // somebody is pushing it
      depot_.keep_only(owner, named);
      continue;
    }
    DepotStore::Wanted wanted = DepotStore{db}.wanted(owner.trial);
    // up to the newest that is whole: a newer one may be on its way
    if (const auto newest = depot_.first_whole(owner, wanted.any_of))
      wanted.any_of.erase(std::next(std::ranges::find(wanted.any_of, *newest)), wanted.any_of.end());
    wanted.all.insert(wanted.any_of.begin(), wanted.any_of.end());
    depot_.keep_only(owner, wanted.all);
  }
}

void DepotService::mark(ablate::v1::Assign& assign) const {
  if (!depot_.open()) return;
  for (auto& checkpoint : *assign.mutable_checkpoints())
    checkpoint.set_depot_bytes(depot_.bytes_of(checkpoint.sha256()).value_or(0));
  for (auto& source : *assign.mutable_sources())
    source.set_depot_bytes(depot_.bytes_of(source.sha256()).value_or(0));
  if (assign.data().empty()) return;
  const auto data = pushed_.find(assign.data());
  if (!data || !depot_.bytes_of(data->sha256)) return;
  const std::string& wanted = assign.data_fingerprint();  // pinned anew, perhaps, since they were pushed
  if (!wanted.empty() && wanted != data->fingerprint) return;
  assign.set_data_sha256(data->sha256);
  assign.set_data_bytes(data->bytes);
}

}  // namespace abl::scheduler
