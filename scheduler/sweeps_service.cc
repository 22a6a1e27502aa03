// SPDX-License-Identifier: Apache-2.0
#include "scheduler/services.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/log.h"
#include "planning/plan.h"
#include "planning/plan_time.h"
#include "planning/validate.h"
#include "scheduler/annotation.h"
#include "scheduler/answer.h"
#include "scheduler/slow_answer.h"
#include "scheduler/status.h"
#include "scheduler/sweep_control.h"
#include "scheduler/table_stream.h"
#include "scheduler/watch_stream.h"
#include "storage/removal.h"
#include "storage/sweep_store.h"
#include "views/views.h"

namespace abl::scheduler {
namespace {

using ablate::v1::SweepSummary;

// What one answer holds at most, some megabytes each; the caller goes on with `next`.
constexpr std::uint32_t kMostRows = 10'000, kMostTrials = 2000, kMostSweeps = 10'000;

/// After a change, without a forecast: that looks at all sweeps.
SweepSummary read_summary(storage::Database& db, const std::string& sweep) {
  return views::sweep_summary(storage::SweepStore{db}.get_brief(sweep), std::nullopt);
}

/// The parts that are given; a limit of 0 is none.
/// Throws: Error{kInvalidArgument} for a number of hours that is none.
storage::Budget budget_of(const ablate::v1::Budget& request) {
  constexpr double kMostHours = 1e9;
  storage::Budget budget;
  if (request.has_max_gpu_hours()) {
    if (!(request.max_gpu_hours() >= 0 && request.max_gpu_hours() <= kMostHours))
      throw Error{Code::kInvalidArgument, fmt::format("max_gpu_hours {}: a number from 0 to {} was expected",
                                                      request.max_gpu_hours(), kMostHours)};
    budget.gpu_time = Milliseconds{std::llround(request.max_gpu_hours() * 3.6e6)};
    if (request.max_gpu_hours() > 0) budget.gpu_time = std::max(*budget.gpu_time, Milliseconds{1});
  }
  if (request.has_until()) budget.until = Time{std::chrono::seconds{request.until().seconds()}};
  return budget;
}

/// What a SubmitRequest and an AdjustSweepRequest have in common.
/// Throws: Error{kInvalidArgument} for an invalid weight.
template <class Request>
Standing standing_of(const Request& request) {
  Standing standing;
  if (request.has_priority()) standing.priority = request.priority();
  if (request.has_budget()) standing.budget = budget_of(request.budget());
  if (request.has_weight()) standing.weight = request.weight();
  if (request.has_breaker()) standing.breaker = request.breaker();
  if (request.has_preempt()) standing.preempts = request.preempt();
  if (request.has_max_running()) standing.max_running = request.max_running();
  if (standing.weight && !(*standing.weight > 0 && *standing.weight <= 1e6))
    throw Error{Code::kInvalidArgument,
                fmt::format("weight {}: a number above 0, at most 1000000, was expected", *standing.weight)};
  return standing;
}

Annotation annotation_of(const ablate::v1::AnnotateSweepRequest& request) {
  Annotation annotation{.add_tags = {request.add_tags().begin(), request.add_tags().end()},
                        .remove_tags = {request.remove_tags().begin(), request.remove_tags().end()}};
  if (request.has_pinned()) annotation.pinned = request.pinned();
  if (request.has_archived()) annotation.archived = request.archived();
  if (request.has_notes()) annotation.notes = request.notes();
  if (request.has_expected_notes()) annotation.expected_notes = request.expected_notes();
  return annotation;
}

/// What was measured for a plan, kept for later ones.
std::vector<storage::Calibration> keep_calibrations(Coordinator& coordinator,
                                                    const ablate::v1::PlanRequest& request) {
  std::vector<storage::Calibration> fresh;
  for (const auto& message : request.calibrations())
    if (auto calibration = planning::calibration_of(message, SystemClock{}.now()))
      fresh.push_back(*std::move(calibration));
  if (!fresh.empty())
    coordinator.keep_calibrations(fresh, [](std::exception_ptr error) {
      if (error) log_warning("calibrations are not kept: {}", message_of(error));
    });
  return fresh;
}

/// How long trials of a submitted sweep are predicted to take, kept for its forecasts.
void keep_predictions(Coordinator& coordinator, std::map<std::string, double> seconds, int gpus) {
  if (seconds.empty()) return;
  coordinator.keep_predictions(std::move(seconds), gpus, [](std::exception_ptr error) {
    if (error) log_warning("predicted times are not kept: {}", message_of(error));
  });
}

/// Predicts how long the trials of a sweep take once its models are counted.
auto predict_times(Coordinator& coordinator, const sweeps::SweepSpec& spec) {
  return [&coordinator, spec](storage::Database& db, const planning::ModelCounter::Result& counts) {
    try {
      keep_predictions(coordinator, planning::predictions(spec, db, counts.counts), spec.gpus);
    } catch (const std::exception& error) {
      log_warning("sweep {}: no times are predicted: {}", spec.name, error.what());
    }
  };
}

}  // namespace

void SweepsService::finish_with_summary(Unary* reactor, std::exception_ptr error, const std::string& sweep,
                                        SweepSummary* summary) {
  if (error) return reactor->Finish(to_status(error));
  pool_.post([=](storage::Database& db) {
    reactor->Finish(status_of([&] { *summary = read_summary(db, sweep); }));
  });
}

grpc::ServerUnaryReactor* SweepsService::Validate(Context*, const ablate::v1::ValidateRequest* request,
                                                  ablate::v1::ValidateResponse* response) {
  return slow_answer(pool_, slow_, response,
                     [request](storage::Database&) { return planning::validate(request->file()); });
}

grpc::ServerUnaryReactor* SweepsService::Plan(Context*, const ablate::v1::PlanRequest* request,
                                              ablate::v1::SweepPlan* response) {
  auto* reactor = new Cancellable;
  if (reactor->refused_by(slow_.full() || counter_.full())) return reactor;
  const auto plan = [=, this](storage::Database&) {
    const grpc::Status status = status_of([&] {
      const sweeps::SweepSpec spec = planning::parse(request->file());
      const auto fresh = keep_calibrations(coordinator_, *request);
      const auto answer = [=, this](storage::Database& db, const planning::ModelCounter::Result& counts) {
        reactor->Finish(status_of([&] {
          *response = planning::plan(spec, &db, counts, fresh);
          if (response->submitted())
            keep_predictions(coordinator_, planning::predictions(*response), spec.gpus);
        }));
      };
      counter_.count(models_of(spec), answer, reactor->stop_token());
    });
    if (!status.ok()) reactor->Finish(status);
  };
  slow_.post(plan, reactor->stop_token());
  return reactor;
}

grpc::ServerUnaryReactor* SweepsService::Submit(Context* context, const ablate::v1::SubmitRequest* request,
                                                ablate::v1::SubmitResponse* response) {
  auto* reactor = new Cancellable;
  if (reactor->refused_by(slow_.full())) return reactor;
  slow_.post([=, this](storage::Database& db) {
    const grpc::Status status = status_of([&] {
      sweeps::SweepSpec spec = planning::parse(request->file());
      for (const std::string& doubt : spec.doubts) response->add_notes(doubt);
      if (const std::string nobody = planning::missing_labels(spec, db); !nobody.empty())
        response->add_notes(nobody);
      auto answered = [=, this, name = spec.name, models = models_of(spec),
                       predict = predict_times(coordinator_, spec)](std::exception_ptr error,
                                                                    const Submission& submission) {
        response->set_created(submission.created);
        response->set_new_trials(submission.new_trials);
        response->set_shared_trials(submission.shared_trials);
        if (!error && submission.created)
          counter_.fill(name, models, feed_, predict);  // after the answer there may be no scheduler
        finish_with_summary(reactor, error, name, response->mutable_sweep());
      };
      Standing standing = standing_of(*request);
      standing.owner = request->owner();
      standing.tags = {request->tags().begin(), request->tags().end()};
      check(Annotation{.add_tags = standing.tags});
      if (request->has_provenance()) standing.provenance = views::provenance_record(request->provenance());
      if (const Caller caller = access_.caller(*context); !caller.local()) standing.owner = caller.name;
      submit_sweep(coordinator_, std::move(spec), std::move(standing), std::move(answered));
    });
    if (!status.ok()) reactor->Finish(status);
  });
  return reactor;
}

grpc::ServerUnaryReactor* SweepsService::ExtendSweep(Context* context,
                                                     const ablate::v1::ExtendSweepRequest* request,
                                                     ablate::v1::ExtendSweepResponse* response) {
  auto* reactor = new Cancellable;
  if (reactor->refused_by(slow_.full())) return reactor;
  slow_.post([=, this](storage::Database& db) {
    const grpc::Status status = status_of([&] {
      sweeps::SweepSpec spec = planning::parse(request->file());
      for (const std::string& doubt : spec.doubts) response->add_notes(doubt);
      if (const std::string nobody = planning::missing_labels(spec, db); !nobody.empty())
        response->add_notes(nobody);
      ExtensionWish wish{
          .author = request->by(), .dry_run = request->dry_run(), .expected = request->expected()};
      if (const Caller caller = access_.caller(*context); !caller.local()) wish.author = caller.name;
      if (request->has_budget()) wish.budget = budget_of(request->budget());
      if (request->has_provenance()) wish.provenance = views::provenance_record(request->provenance());
      auto answered = [=, this, name = spec.name, models = models_of(spec),
                       predict = predict_times(coordinator_, spec)](std::exception_ptr error,
                                                                    const ExtensionDone& done) {
        response->set_changed(done.changed);
        for (const std::string& change : done.changes) response->add_changes(change);
        response->set_new_trials(done.trials.new_trials);
        response->set_shared_trials(done.trials.shared_trials);
        response->set_kept_trials(done.trials.kept_trials);
        response->set_former_trials(done.trials.former_trials);
        response->set_continued_trials(done.trials.continued_trials);
        response->set_stored(done.stored);
        if (!error && done.changed && !request->dry_run()) counter_.fill(name, models, feed_, predict);
        finish_with_summary(reactor, error, name, response->mutable_sweep());
      };
      extend_sweep(coordinator_, std::move(spec), std::move(wish), std::move(answered));
    });
    if (!status.ok()) reactor->Finish(status);
  });
  return reactor;
}

grpc::ServerUnaryReactor* SweepsService::ListSweeps(Context*, const ablate::v1::ListSweepsRequest* request,
                                                    ablate::v1::ListSweepsResponse* response) {
  return answer(pool_, response, [request](storage::Database& db) {
    return views::list_sweeps(db, {.count = kMostSweeps}, request->after());
  });
}

grpc::ServerUnaryReactor* SweepsService::GetSweep(Context*, const ablate::v1::SweepRequest* request,
                                                  ablate::v1::SweepDetail* response) {
  return answer(pool_, response, [request](storage::Database& db) {
    return views::sweep_detail(
        db, request->sweep(),
        {.first = request->first(),
         .count = request->count() == 0 ? kMostRows : std::min(request->count(), kMostRows),
         .most_trials = request->trials() == 0 ? kMostTrials : std::min(request->trials(), kMostTrials)});
  });
}

grpc::ServerWriteReactor<ablate::v1::Table>* SweepsService::GetTable(
    Context*, const ablate::v1::SweepRequest* request) {
  return std::make_shared<TableStream>(pool_, slow_, tables_, *request)->start();
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* SweepsService::WatchSweep(Context*,
                                                                      const grpc::ByteBuffer* bytes) {
  grpc::ByteBuffer copy{*bytes};  // which reading consumes
  ablate::v1::SweepRequest request;
  const grpc::Status status =
      grpc::SerializationTraits<ablate::v1::SweepRequest>::Deserialize(&copy, &request);
  const auto stream = std::make_shared<WatchStream>(watched_, request.sweep());
  if (!status.ok()) stream->finish(status);
  return stream->start(request.since());
}

grpc::ServerUnaryReactor* SweepsService::CancelSweep(Context* context,
                                                     const ablate::v1::SweepRequest* request,
                                                     SweepSummary* response) {
  Unary* reactor = context->DefaultReactor();
  cancel_sweep(coordinator_, request->sweep(), [=, this](std::exception_ptr error) {
    finish_with_summary(reactor, error, request->sweep(), response);
  });
  return reactor;
}

grpc::ServerUnaryReactor* SweepsService::CancelTrial(Context* context,
                                                     const ablate::v1::CancelTrialRequest* request,
                                                     SweepSummary* response) {
  Unary* reactor = context->DefaultReactor();
  cancel_trial(coordinator_, request->sweep(), request->row(), request->seed(),
               [=, this](std::exception_ptr error) {
                 finish_with_summary(reactor, error, request->sweep(), response);
               });
  return reactor;
}

grpc::ServerUnaryReactor* SweepsService::AdjustSweep(Context* context,
                                                     const ablate::v1::AdjustSweepRequest* request,
                                                     SweepSummary* response) {
  Unary* reactor = context->DefaultReactor();
  const grpc::Status status = status_of([&] {
    adjust_sweep(coordinator_, request->sweep(), standing_of(*request), [=, this](std::exception_ptr error) {
      finish_with_summary(reactor, error, request->sweep(), response);
    });
  });
  if (!status.ok()) reactor->Finish(status);
  return reactor;
}

grpc::ServerUnaryReactor* SweepsService::PauseSweep(Context* context,
                                                    const ablate::v1::PauseSweepRequest* request,
                                                    SweepSummary* response) {
  Unary* reactor = context->DefaultReactor();
  pause_sweep(coordinator_, request->sweep(), request->stop_running(), [=, this](std::exception_ptr error) {
    finish_with_summary(reactor, error, request->sweep(), response);
  });
  return reactor;
}

grpc::ServerUnaryReactor* SweepsService::ResumeSweep(Context* context,
                                                     const ablate::v1::ResumeSweepRequest* request,
                                                     SweepSummary* response) {
  Unary* reactor = context->DefaultReactor();
  const grpc::Status status = status_of([&] {
    resume_sweep(coordinator_, request->sweep(),
                 request->has_budget() ? budget_of(request->budget()) : storage::Budget{},
                 [=, this](std::exception_ptr error) {
                   finish_with_summary(reactor, error, request->sweep(), response);
                 });
  });
  if (!status.ok()) reactor->Finish(status);
  return reactor;
}

grpc::ServerUnaryReactor* SweepsService::RetrySweep(Context* context,
                                                    const ablate::v1::RetrySweepRequest* request,
                                                    ablate::v1::RetrySweepResponse* response) {
  Unary* reactor = context->DefaultReactor();
  auto answered = [=, this](std::exception_ptr error, std::uint32_t retried) {
    response->set_retried(retried);
    finish_with_summary(reactor, error, request->sweep(), response->mutable_sweep());
  };
  if (request->has_seed() && (request->row().empty() || !request->rerun().empty())) {
    reactor->Finish(
        {grpc::StatusCode::INVALID_ARGUMENT, "a seed needs its row, and cannot be combined with rerun"});
    return reactor;
  }
  if (!request->rerun().empty()) {
    rerun_rows(coordinator_, request->sweep(), {request->rerun().begin(), request->rerun().end()}, answered);
    return reactor;
  }
  const bool completed = request->unfilled() || request->before_mend();
  retry_sweep(coordinator_, request->sweep(), request->row(),
              {.ended = !completed && !request->only_held(),
               .held = !completed,
               .unfilled = request->unfilled(),
               .before_mend = request->before_mend(),
               .seed = request->has_seed() ? std::optional{request->seed()} : std::nullopt},
              answered);
  return reactor;
}

grpc::ServerUnaryReactor* SweepsService::RemoveSweep(Context* context,
                                                     const ablate::v1::RemoveSweepRequest* request,
                                                     ablate::v1::RemoveSweepResponse* response) {
  const auto tell = [response](storage::Database& db, storage::SweepId sweep) {
    response->set_id(sweep);
    const auto left = storage::Removal{db}.left(sweep);
    response->set_gone(!left);
    response->set_trials(left ? left->trials : 0);
    response->set_stopping(left ? left->stopping : 0);
  };
  Unary* reactor = context->DefaultReactor();
  const auto answer = [=, this](std::exception_ptr error, storage::SweepId sweep) {
    if (error) return reactor->Finish(to_status(error));
    pool_.post([=](storage::Database& db) { reactor->Finish(status_of([&] { tell(db, sweep); })); });
  };
  if (request->id() != 0)
    answer(nullptr, request->id());
  else
    remove_sweep(coordinator_, request->sweep(), answer);
  return reactor;
}

grpc::ServerUnaryReactor* SweepsService::RenameSweep(Context* context,
                                                     const ablate::v1::RenameSweepRequest* request,
                                                     SweepSummary* response) {
  Unary* reactor = context->DefaultReactor();
  const grpc::Status status = status_of([&] {
    rename_sweep(coordinator_, request->sweep(), request->name(), [=, this](std::exception_ptr error) {
      finish_with_summary(reactor, error, request->name(), response);
    });
  });
  if (!status.ok()) reactor->Finish(status);
  return reactor;
}

grpc::ServerUnaryReactor* SweepsService::AnnotateSweep(Context* context,
                                                       const ablate::v1::AnnotateSweepRequest* request,
                                                       SweepSummary* response) {
  Unary* reactor = context->DefaultReactor();
  const grpc::Status status = status_of([&] {
    annotate_sweep(coordinator_, request->sweep(), annotation_of(*request),
                   [=, this](std::exception_ptr error) {
                     finish_with_summary(reactor, error, request->sweep(), response);
                   });
  });
  if (!status.ok()) reactor->Finish(status);
  return reactor;
}

grpc::ServerUnaryReactor* SweepsService::GetProvenance(Context*, const ablate::v1::SweepRequest* request,
                                                       ablate::v1::ProvenanceResponse* response) {
  return answer(pool_, response,
                [request](storage::Database& db) { return views::provenance(db, request->sweep()); });
}

grpc::ServerUnaryReactor* SweepsService::GetSweepText(Context*, const ablate::v1::SweepTextRequest* request,
                                                      ablate::v1::SweepText* response) {
  return slow_answer(pool_, slow_, response, [request](storage::Database& db) {
    return views::sweep_text(db, request->sweep(), request->revision());
  });
}

grpc::ServerUnaryReactor* SweepsService::GetTuning(Context*, const ablate::v1::SweepRequest* request,
                                                   ablate::v1::TuningResponse* response) {
  return answer(pool_, response, [request](storage::Database& db) {
    const std::uint32_t most = views::kMostTuningPoints;
    return views::tuning(db, request->sweep(),
                         {.first = request->first(),
                          .count = request->count() == 0 ? most : std::min(request->count(), most)});
  });
}

}  // namespace abl::scheduler
