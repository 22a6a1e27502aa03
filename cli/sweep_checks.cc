// SPDX-License-Identifier: Apache-2.0
#include "cli/sweep_checks.h"

#include <pwd.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <optional>
#include <vector>

#include "base/file.h"
#include "base/utf8.h"
#include "cli/client.h"
#include "cli/paper_sweeps.h"
#include "cli/provenance.h"
#include "planning/plan.h"
#include "planning/plan_time.h"
#include "planning/validate.h"
#include "storage/database.h"
#include "sweeps/other_sweeps.h"
#include "sweeps/scale.h"
#include "sweeps/sweep_spec.h"

namespace abl::cli {
namespace {

using namespace ablate::v1;
using namespace std::chrono_literals;

constexpr auto kPlanDeadline = 120s;  // counting starts a trainer
constexpr auto kSubmitDeadline = 60s;
constexpr std::string_view kFullScale = "full";
constexpr const char* kStandardInput = "/dev/stdin";

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

/// What has no size is read no further than a sweep file may go.
sweeps::Problem too_large_to_end(const std::string& file) {
  sweeps::Problem problem = sweeps::too_large(file, sweeps::kLargestFile);
  problem.message =
      fmt::format("more than {} MiB; a sweep file has at most that", sweeps::kLargestFile >> 20);
  return problem;
}

/// What has no size, such as a pipe: up to what no sweep file may have.
std::string read_stream(const std::filesystem::path& file) {
  std::error_code unknown;
  if (std::filesystem::is_directory(file, unknown)) return read_file(file);  // says so
  std::ifstream opened;  // standard input may be a socket, which cannot be opened by a name
  if (file != kStandardInput) opened.open(file, std::ios::binary);
  if (!opened) throw system_error("cannot read " + file.string(), errno);
  std::istream& in = file == kStandardInput ? std::cin : opened;
  std::string text(sweeps::kLargestFile + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  return text;
}

/// Throws: SweepFileError with the place of the first wrong byte. No message could carry it to the scheduler.
void expect_utf8(const SweepFile& sweep) {
  const std::string& text = sweep.text();
  const std::string valid = valid_utf8(text);
  if (valid == text) return;
  const auto wrong = std::ranges::mismatch(text, valid).in1;
  const std::string before{text.begin(), wrong};
  const std::string line = before.substr(before.rfind('\n') + 1);
  const auto follows = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; };
  sweeps::Problem problem{.file = sweep.path()};
  problem.place.line = static_cast<int>(std::ranges::count(before, '\n')) + 1;
  problem.place.column =
      static_cast<int>(line.size() - static_cast<std::size_t>(std::ranges::count_if(line, follows))) + 1;
  problem.message =
      fmt::format("the file is not UTF-8 text: byte 0x{:02x}", static_cast<unsigned char>(*wrong));
  throw sweeps::SweepFileError{{problem}};
}

SweepFile read_as_written(const std::filesystem::path& written) {
  SweepFile sweep;
  if (written == "-") return read_as_written(kStandardInput);
  const std::filesystem::path file = sweep_file_of(written);
  sweep.set_path(file == kStandardInput ? "standard input" : file.string());
  std::error_code unknown;
  if (const auto size = std::filesystem::file_size(file, unknown); !unknown && size > sweeps::kLargestFile)
    throw sweeps::SweepFileError{{sweeps::too_large(file.string(), size)}};
  sweep.set_text(std::filesystem::is_regular_file(file, unknown) ? read_file(file) : read_stream(file));
  if (sweep.text().size() > sweeps::kLargestFile)  // a pipe has no size
    throw sweeps::SweepFileError{{too_large_to_end(sweep.path())}};
  // without symbolic links: two names of one folder are one
  const auto place = std::filesystem::weakly_canonical(file, unknown);
  const bool is_pipe = unknown || !std::filesystem::is_regular_file(place, unknown);
  const std::string folder = is_pipe ? std::filesystem::current_path() : place.parent_path();
  if (valid_utf8(folder) == folder) sweep.set_folder(folder);  // otherwise no message can carry it
  expect_utf8(sweep);
  return sweep;
}

/// The text of a file at a scale.
std::string at_scale(const SweepFile& sweep, const std::filesystem::path& written, const std::string& scale,
                     int seeds) {
  const std::filesystem::path file = sweep_file_of(written);
  const auto scales = file.parent_path() / "scales.yaml";
  std::error_code unknown;
  if (!std::filesystem::is_regular_file(file, unknown) || !std::filesystem::is_regular_file(scales, unknown))
    throw Error{Code::kNotFound, fmt::format("--scale {}: {} has no scales; expected a file {} of them",
                                             scale, sweep.path(), scales.string())};
  return sweeps::with_scale(sweep.text(), sweep.path(), read_file(scales), scales.string(), scale, seeds > 0);
}

/// The text of a file whose rows another names: a table of a paper, or a path from that one's folder.
std::string read_source(const std::string& key, const std::string& folder, const std::string& scale) {
  std::filesystem::path file = std::filesystem::path{folder} / key;
  if (!key.ends_with(".yaml") && !key.ends_with(".yml"))
    file = paper_sweep(key).file;
  else if (const auto papers = papers_folder(); papers && !std::filesystem::exists(file))
    if (std::filesystem::exists(*papers / key)) file = *papers / key;  // named by a table of a paper
  const SweepFile other = read_as_written(file);
  return scale.empty() ? other.text() : at_scale(other, file, scale, 0);
}

}  // namespace

SweepFile read_sweep_file(const std::filesystem::path& written, const std::string& wanted, int seeds) {
  const std::string scale = wanted == kFullScale ? "" : wanted;
  SweepFile sweep = read_as_written(written);
  if (seeds > 0) sweep.set_text(sweeps::with_seeds(sweep.text(), sweep.path(), seeds));
  if (!scale.empty()) sweep.set_text(at_scale(sweep, written, scale, seeds));
  sweep.set_text(sweeps::with_sources(sweep.text(), sweep.path(), [&](const std::string& key, bool scaled) {
    return read_source(key, sweep.folder(), scaled ? scale : "");
  }));
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
