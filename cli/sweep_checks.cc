// SPDX-License-Identifier: Apache-2.0
#include "cli/sweep_checks.h"

#include <pwd.h>
#include <unistd.h>

#include <fmt/format.h>

#include <optional>
#include <vector>

#include "cli/client.h"
#include "cli/provenance.h"
#include "planning/plan.h"
#include "planning/plan_time.h"
#include "planning/validate.h"
#include "storage/database.h"
#include "sweeps/paper_sweeps.h"
#include "sweeps/sweep_spec.h"
#include "sweeps/whole_file.h"

namespace abl::cli {
namespace {

using namespace ablate::v1;
using namespace std::chrono_literals;

constexpr auto kPlanDeadline = 120s;  // counting starts a trainer
constexpr auto kSubmitDeadline = 60s;

/// The scheduler's answer; nothing when none answers and none was asked for by name.
template <class Ask>
auto from_scheduler(const Context& context, const Ask& ask)
    -> std::optional<decltype(ask(std::declval<Client&>()))> {
  if (!context.store_flag.empty()) return std::nullopt;
  try {
    Client client{context};
    return ask(client);
  } catch (const Error& error) {
    if (error.code() != Code::kUnavailable || !context.scheduler_flag.empty()) throw;
    return std::nullopt;
  }
}

/// What `ask` answers about a file. A refusal is a text to gRPC, of limited length: the scheduler is asked
/// for all problems and their places.
template <class Ask>
auto with_problems(Client& client, const SweepFile& file, const Ask& ask) {
  try {
    return ask();
  } catch (const Error& error) {
    if (error.code() != Code::kInvalidArgument) throw;
    ValidateRequest request;
    *request.mutable_file() = file;
    const auto answer = client.call(&Sweeps::Stub::Validate, request);
    std::vector<sweeps::Problem> problems;
    for (const Problem& found : answer.problems()) problems.push_back(planning::problem_of(found));
    if (problems.empty()) throw;
    throw sweeps::SweepFileError{std::move(problems)};
  }
}

SweepPlan plan_here(const Context& context, const SweepFile& file, const std::vector<Calibration>& measured) {
  const auto spec = planning::parse(file);
  const std::filesystem::path store =
      context.store_flag.empty() ? context.default_store() : std::filesystem::path{context.store_flag};
  std::optional<storage::Database> db;
  if (!context.store_flag.empty() || std::filesystem::exists(store))
    db.emplace(store, storage::Database::Mode::kReadOnly);
  context.note(db ? fmt::format("planned without a scheduler, with the results in {}", store.string())
                  : fmt::format("planned without a scheduler: none answers at {}, and nothing is stored yet",
                                context.scheduler()));
  storage::Database* cache = db ? &*db : nullptr;
  std::vector<storage::Calibration> fresh;
  for (const auto& message : measured)
    if (auto calibration = planning::calibration_of(message, SystemClock{}.now()))
      fresh.push_back(*std::move(calibration));
  return planning::plan(spec, cache, planning::ModelCounter{}.count(sweeps::models_of(spec), cache), fresh);
}

}  // namespace

SweepFile read_sweep_file(const std::filesystem::path& written, const std::string& scale, int seeds) {
  auto read = sweeps::read_whole(sweeps::sweep_file_of(written), scale, seeds);
  SweepFile sweep;
  sweep.set_path(std::move(read.path));
  sweep.set_folder(std::move(read.folder));
  sweep.set_text(std::move(read.text));
  return sweep;
}

void add_scale(CLI::App& app, std::string& scale) {
  app.add_option("--scale", scale,
                 "A smaller study of the same rows, of scales.yaml beside the file: cifar, demo [full]")
      ->type_name("NAME");
}

ValidateResponse validate(const Context& context, const std::filesystem::path& file,
                          const std::string& scale) {
  ValidateRequest request;
  ValidateResponse unread;
  try {
    *request.mutable_file() = read_sweep_file(file, scale);
  } catch (const sweeps::SweepFileError& error) {
    planning::add_problems(error, unread);
    return unread;
  } catch (const Error& error) {  // names the file
    unread.add_problems()->set_message(error.what());
    return unread;
  }
  const auto answer =
      from_scheduler(context, [&](Client& client) { return client.call(&Sweeps::Stub::Validate, request); });
  if (answer) return *answer;
  if (context.store_flag.empty())
    context.note(fmt::format("checked without a scheduler: none answers at {}", context.scheduler()));
  return planning::validate(request.file());
}

SweepPlan plan(const Context& context, const SweepFile& file, const std::vector<Calibration>& fresh) {
  PlanRequest request;
  *request.mutable_file() = file;
  for (const auto& calibration : fresh) *request.add_calibrations() = calibration;
  const auto answer = from_scheduler(context, [&](Client& client) {
    return with_problems(client, file,
                         [&] { return client.call(&Sweeps::Stub::Plan, request, kPlanDeadline); });
  });
  return answer ? *answer : plan_here(context, file, fresh);
}

SubmitResponse submit(const Context& context, const SubmitRequest& request) {
  SubmitRequest whole = request;
  if (!whole.has_provenance()) *whole.mutable_provenance() = provenance_of(request.file());
  Client client{context};
  return with_problems(client, request.file(),
                       [&] { return client.call(&Sweeps::Stub::Submit, whole, kSubmitDeadline); });
}

std::string problem_text(const Problem& problem) { return planning::problem_of(problem).text(); }

std::string user_name() {
  if (const char* name = std::getenv("USER"); name && *name) return name;
  const passwd* user = ::getpwuid(::geteuid());  // unset in containers and under cron
  return user ? user->pw_name : "";
}

}  // namespace abl::cli
