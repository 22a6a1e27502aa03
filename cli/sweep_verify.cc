// SPDX-License-Identifier: Apache-2.0
#include "cli/sweep_verify.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>

#include "base/child_process.h"
#include "base/error.h"
#include "base/file.h"
#include "base/named_path.h"
#include "cli/format.h"
#include "cli/scratch.h"
#include "config/data/data_sets.h"
#include "printing/grid.h"
#include "protocol/events.h"
#include "protocol/metrics.h"
#include "protocol/probe_results.h"
#include "protocol/trainer_program.h"

namespace abl::cli {
namespace {

namespace fs = std::filesystem;
using namespace ablate::v1;
using nlohmann::json;

/// What the worker kept of how it started the run, where that is on this machine.
json launch_record(const RunDetail& run) {
  const auto file = fs::path{run.directory()} / "launch.json";
  std::error_code ignored;
  if (run.directory().empty() || !fs::is_regular_file(file, ignored)) return json::object();
  auto record = json::parse(read_file(file), nullptr, false);
  return record.is_object() ? record : json::object();
}

/// Where the worker had it. Throws: Error with the flag that names another place, where it is gone.
std::string still_there(const std::string& path, const std::string& what, const char* flag) {
  std::error_code ignored;
  if (!fs::exists(path, ignored))
    throw Error{
        Code::kNotFound,
        fmt::format("{} was at {} during the run and no longer exists: name it with {}", what, path, flag)};
  return path;
}

json environment_of(const RunDetail& run) {
  auto environment = json::parse(run.environment_json(), nullptr, false);
  return environment.is_object() ? environment : json::object();
}

}  // namespace

std::string file_in_memory(const char* name, const std::string& text) {
  const int descriptor = ::memfd_create(name, 0);
  if (descriptor < 0) throw system_error("cannot create a file in memory", errno);
  for (std::size_t at = 0; at < text.size();) {
    const auto written = ::write(descriptor, text.data() + at, text.size() - at);
    if (written < 0 && errno != EINTR) throw system_error("cannot write a file in memory", errno);
    if (written > 0) at += static_cast<std::size_t>(written);
  }
  return fmt::format("/proc/self/fd/{}", descriptor);
}

void compute_on_data_as(const RunDetail& run, const std::string& data_root,
                        protocol::VerifyCommand& command) {
  const json environment = environment_of(run);
  try {
    // what a run of several ranks says is its first rank's: the share of the threads, and its own GPU
    const int ranks = environment.value("ranks", 1);
    command.threads = environment.value("threads", 0) * ranks;
    command.device = environment.value("device", "");
    if (ranks > 1) command.device = command.device.substr(0, command.device.find(':'));
    command.deterministic = command.device != "cpu" && environment.value("deterministic", false);
  } catch (const json::exception& error) {
    throw Error{Code::kDataLoss,
                fmt::format("run {}: invalid stored environment: {}", run.summary().id(), error.what())};
  }
  const json config = json::parse(run.config_json(), nullptr, false);
  const auto set = config.is_object() ? config.value(json::json_pointer{"/data/name"}, "") : "";
  if (const auto* known = config::find_data_set(set); known && known->embedded && !data_root.empty())
    throw Error{
        Code::kInvalidArgument,
        fmt::format("--data-root: run {} trained on {}, which the trainer draws itself: no folder is read",
                    run.summary().id(), set)};
  const json record = launch_record(run);
  const std::string data = record.value("data", "");
  if (!data_root.empty())
    command.data_root = data_root;
  else if (!data.empty())
    command.data_root = still_there(data, "the data", "--data-root FOLDER");
}

void compute_as(const RunDetail& run, const RunFiles& files, protocol::VerifyCommand& command) {
  compute_on_data_as(run, files.data_root, command);
  const json record = launch_record(run);
  command.weights = parse_named_paths(kWeightsFlag, files.weights);
  const json recorded = record.value("weights", json::object());
  for (const auto& [name, file] : recorded.items())
    if (!command.weights.contains(name))
      command.weights[name] = still_there(
          file.get<std::string>(), fmt::format("the file of the weights {}", name), "--weights NAME=FILE");
}

NamedPaths plugins_of(const RunDetail& run) {
  NamedPaths plugins;
  const json recorded = launch_record(run).value("weights", json::object());
  for (const auto& [name, file] : recorded.items())
    if (is_plugin(name))
      plugins[name] = still_there(file.get<std::string>(), fmt::format("the plugin {}", name_of_file(name)),
                                  "--plugin NAME=FILE");
  return plugins;
}

namespace {

using Points = std::map<std::string, std::map<std::uint32_t, double>>;  // metric -> step -> value

/// What a training said.
struct Heard {
  json environment = json::object();
  std::string data_fingerprint;
  Points points;
  std::map<std::uint32_t, std::string> checkpoints;  // step -> SHA-256
  bool completed = false;
  std::string reason;  // why not
};

void hear(const std::string& line, Heard& heard) {
  const json object = json::parse(line, nullptr, false);
  std::optional<protocol::Event> event;
  try {
    if (object.is_object()) event = protocol::parse_event(object);
  } catch (const Error&) {  // a line of the log
  }
  if (!event) return;
  if (const auto* start = std::get_if<protocol::Start>(&*event)) {
    if (start->environment.is_object()) heard.environment = start->environment;
    heard.data_fingerprint = start->data_fingerprint;
  } else if (const auto* metric = std::get_if<protocol::Metric>(&*event)) {
    for (const auto& [name, value] : metric->values)
      heard.points[name].try_emplace(static_cast<std::uint32_t>(metric->step), value);  // the first stays
  } else if (const auto* checkpoint = std::get_if<protocol::Checkpoint>(&*event)) {
    heard.checkpoints[static_cast<std::uint32_t>(checkpoint->step)] = checkpoint->sha256;
  } else if (const auto* end = std::get_if<protocol::End>(&*event)) {
    heard.completed = end->status == protocol::End::Status::kCompleted;
    heard.reason = end->reason;
  }
}

/// Trains a trial from its start to its end.
Heard train_again(const RunDetail& run, const RunFiles& files) {
  const auto trainer = protocol::find_trainer();
  if (trainer.empty()) throw Error{Code::kNotFound, protocol::kNoTrainer};
  protocol::VerifyCommand as_it_did;
  compute_as(run, files, as_it_did);
  const Scratch scratch;
  const fs::path config = scratch.path() / "config.json", errors = scratch.path() / "errors";
  write_file(config, run.config_json());
  write_file(errors, "");
  fs::create_directory(scratch.path() / "run");
  const protocol::TrainCommand command{.config = config,
                                       .run_dir = scratch.path() / "run",
                                       .data_root = as_it_did.data_root,
                                       .weights = as_it_did.weights,
                                       .threads = as_it_did.threads,
                                       .device = as_it_did.device,
                                       .ranks = environment_of(run).value("ranks", 1)};
  int out[2];
  if (::pipe2(out, O_CLOEXEC) != 0) throw system_error("cannot start " + trainer.string(), errno);
  const int log = ::open(errors.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  Heard heard;
  ChildExit exit;
  {
    std::optional<ChildProcess> child;
    try {
      child.emplace(ChildOptions{.argv = protocol::with_program(trainer, command.arguments()),
                                 .working_directory = scratch.path(),
                                 .stdout_fd = out[1],
                                 .stderr_fd = log});
    } catch (...) {
      for (const int fd : {out[0], out[1], log}) ::close(fd);
      throw;
    }
    ::close(out[1]);
    ::close(log);
    std::string line;
    std::vector<char> buffer(64 << 10);
    for (ssize_t got = 0; (got = ::read(out[0], buffer.data(), buffer.size())) != 0;) {
      if (got < 0 && errno != EINTR) break;
      for (ssize_t i = 0; i < got; ++i) {
        if (buffer[static_cast<std::size_t>(i)] != '\n') {
          line += buffer[static_cast<std::size_t>(i)];
          continue;
        }
        hear(line, heard);
        line.clear();
      }
    }
    ::close(out[0]);
    exit = child->wait();
  }
  if (heard.completed && exit.ok()) return heard;
  std::string said = read_file(errors);
  while (!said.empty() && said.back() == '\n') said.pop_back();
  heard.completed = false;
  if (heard.reason.empty()) heard.reason = said.empty() ? exit.describe() : said.substr(said.rfind('\n') + 1);
  return heard;
}

bool same_bits(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}

/// What a column takes of a curve.
std::optional<double> taken_by(const std::map<std::uint32_t, double>& curve, const Column& column) {
  if (curve.empty()) return std::nullopt;
  if (column.take() == "last") return curve.rbegin()->second;
  std::vector<double> finite;
  for (const auto& [step, value] : curve)
    if (std::isfinite(value)) finite.push_back(value);
  if (finite.empty()) return std::nullopt;
  const auto [least, most] = std::ranges::minmax(finite);
  if (column.take() == "min" || (column.take() == "best" && column.better() == "lower")) return least;
  if (column.take() == "max" || column.take() == "best") return most;
  double sum = 0;
  for (const double value : finite) sum += value;
  return sum / static_cast<double>(finite.size());
}

/// A value in the digits that its cell is printed with.
std::string printed_as(double value, const Cell& cell, const Column& column) {
  const std::string mean = cell.text().substr(0, cell.text().find(' '));
  const auto point = mean.find('.');
  const auto digits = point == std::string::npos ? 0 : mean.find_first_not_of("0123456789", point + 1);
  const int places = point == std::string::npos
                         ? 0
                         : static_cast<int>((digits == std::string::npos ? mean.size() : digits) - point - 1);
  const double unit = column.unit() == "M" ? 1e6 : column.unit() == "G" ? 1e9 : 1;
  return fmt::format("{:.{}f}", value / unit, places);
}

enum class Sameness { kSame, kSameDigits, kDifferent, kNotRun };

const char* sameness_text(Sameness verdict) {
  switch (verdict) {
    case Sameness::kSame:
      return "the same to the bit";
    case Sameness::kSameDigits:
      return "the same in the table's digits";
    case Sameness::kDifferent:
      return "different";
    case Sameness::kNotRun:
      return "not run";
  }
  return "";
}

struct Verified {
  std::string row;
  std::int64_t seed = 0;
  std::uint32_t run = 0;
  Sameness verdict = Sameness::kNotRun;
  bool promised = true;              ///< that it is the same to the bit
  std::vector<std::string> excuses;  ///< why it need not be
  std::vector<std::string> found;    ///< what differs, or why it was not run
  std::size_t compared = 0;          ///< points
  bool weights_compared = false;
};

/// Why a run need not be the same to the bit as this one.
std::vector<std::string> excuses_of(const RunDetail& run, const Heard& heard) {
  std::vector<std::string> excuses;
  const json before = environment_of(run);
  const auto text = [](const json& value) {
    return value.is_null() ? "not known" : value.dump(-1, ' ', false, json::error_handler_t::replace);
  };
  std::map<std::string, std::pair<json, json>> facts;
  for (const auto& [key, value] : before.items()) facts[key].first = value;
  for (const auto& [key, value] : heard.environment.items()) facts[key].second = value;
  for (const auto& [key, values] : facts) {
    if (key == "result_version") continue;  // `before_mend` says whether it matters
    if (values.first != values.second)
      excuses.push_back(fmt::format("{}: {} then, {} now", key, text(values.first), text(values.second)));
  }
  if (run.data_fingerprint() != heard.data_fingerprint)
    excuses.push_back(fmt::format("data: {} then, {} now", run.data_fingerprint(), heard.data_fingerprint));
  for (const auto& sentence : run.before_mend()) excuses.push_back("corrected since: " + sentence);
  if (!run.summary().bit_exact()) excuses.emplace_back("the run was resumed where that is not bit-exact");
  if (before.contains("deterministic") && before["deterministic"] == false)
    excuses.emplace_back("the run was not deterministic");
  return excuses;
}

/// Whether an equal training has the same: neither of the machine, nor found by a probe, which is not run
/// again.
bool is_of_training(const std::string& metric) {
  return !protocol::tells_of_the_machine(metric) && !protocol::is_probe_metric(metric);
}

void compare(const RunDetail& run, const GetMetricsResponse& stored, const Table& table, const Heard& heard,
             Verified& verified) {
  verified.excuses = excuses_of(run, heard);
  verified.promised = verified.excuses.empty();
  bool same = true, same_digits = true;
  for (const auto& entry : stored.series()) {
    const Series& series = entry.series();
    if (!is_of_training(series.name())) continue;
    const auto again = heard.points.find(series.name());
    std::string first;  // of a curve
    double most = 0;
    for (int i = 0; i < series.steps_size(); ++i) {
      ++verified.compared;
      const double* value = nullptr;
      if (again != heard.points.end())
        if (const auto found = again->second.find(series.steps(i)); found != again->second.end())
          value = &found->second;
      if (value && same_bits(*value, series.values(i))) continue;
      same = false;
      if (value) most = std::max(most, std::abs(*value - series.values(i)));
      if (!first.empty()) continue;
      first = fmt::format("{} at step {}: {} then, {} now", series.name(), series.steps(i), series.values(i),
                          value ? fmt::format("{}", *value) : "not reported");
    }
    if (!first.empty())
      verified.found.push_back(most > 0 ? fmt::format("{}; differs by {:.2g} at most", first, most) : first);
  }
  for (const TableRow& row : table.rows()) {
    if (row.id() != verified.row) continue;
    for (int i = 0; i < std::min(row.cells_size(), table.columns_size()); ++i) {
      const Column& column = table.columns(i);
      if (column.kind() != Column::KIND_METRIC || !is_of_training(column.source())) continue;
      for (const CellRun& value : row.cells(i).runs()) {
        if (value.run() != run.summary().id()) continue;
        const auto curve = heard.points.find(column.source());
        static const std::map<std::uint32_t, double> kNothing;
        const auto now = taken_by(curve == heard.points.end() ? kNothing : curve->second, column);
        const std::string then = printed_as(value.value(), row.cells(i), column);
        const std::string again = now ? printed_as(*now, row.cells(i), column) : "nothing";
        if (again == then) {
          if (stored.series().empty() && !same_bits(now.value_or(0), value.value())) same = false;
          continue;
        }
        same = same_digits = false;
        verified.found.push_back(fmt::format("{} in the table: {} then, {} now", column.name(), then, again));
      }
    }
  }
  std::uint32_t newest = 0;
  for (const auto& checkpoint : run.checkpoints())
    if (const auto again = heard.checkpoints.find(checkpoint.step());
        again != heard.checkpoints.end() && checkpoint.step() >= newest && !checkpoint.sha256().empty()) {
      newest = checkpoint.step();
      verified.weights_compared = true;
      // the file says on which machine it was made: where that is another, it is not the same
      if (again->second != checkpoint.sha256() && verified.promised) {
        same = false;
        verified.found.push_back(fmt::format("the checkpoint of step {}", checkpoint.step()));
      }
    }
  verified.verdict = same ? Sameness::kSame : same_digits ? Sameness::kSameDigits : Sameness::kDifferent;
}

/// The completed trials of a sweep, each once, in the order of the seed.
std::vector<TrialSummary> chosen(Source& source, const Sample& sample) {
  std::vector<TrialSummary> trials;
  std::vector<std::uint32_t> known;
  const SweepDetail sweep = source.sweep(sample.sweep);
  for (const auto& trial : sweep.trials()) {
    if (trial.state() != TRIAL_STATE_COMPLETED || trial.run() == 0) continue;
    if (std::ranges::find(known, trial.id()) != known.end()) continue;
    known.push_back(trial.id());
    trials.push_back(trial);
  }
  std::mt19937_64 random{sample.seed};
  for (std::size_t i = trials.size(); i > 1; --i) std::swap(trials[i - 1], trials[random() % i]);
  if (trials.size() > sample.trials) trials.resize(sample.trials);
  if (trials.empty())
    throw Error{Code::kNotFound, fmt::format("sweep {} has no completed trial to run again", sample.sweep)};
  return trials;
}

nlohmann::ordered_json json_of(const Verified& each) {
  return {{"row", each.row},
          {"seed", each.seed},
          {"run", each.run},
          {"verdict", each.verdict == Sameness::kSame         ? "same"
                      : each.verdict == Sameness::kSameDigits ? "same_digits"
                      : each.verdict == Sameness::kDifferent  ? "different"
                                                              : "not_run"},
          {"promised", each.promised},
          {"points", each.compared},
          {"weights", each.weights_compared},
          {"differences", each.found},
          {"need_not_be_same", each.excuses}};
}

std::string text_of(const Verified& each) {
  std::string text = fmt::format("{}/{}: {}", each.row, each.seed, sameness_text(each.verdict));
  if (each.verdict == Sameness::kNotRun) return fmt::format("{}: {}\n", text, fmt::join(each.found, "; "));
  text += fmt::format(" ({}{})\n", plural(each.compared, "point"),
                      each.weights_compared && each.promised ? " and the newest checkpoint" : "");
  for (const auto& found : each.found) text += fmt::format("  {}\n", found);
  if (each.verdict != Sameness::kSame)
    for (const auto& excuse : each.excuses) text += fmt::format("  need not be the same: {}\n", excuse);
  return text;
}

}  // namespace

int verify_sample(const Context& context, Source& source, const Sample& sample) {
  const auto trials = chosen(source, sample);
  const Table table = source.table(sample.sweep, {.long_form = true});
  std::vector<Verified> all;
  for (const TrialSummary& trial : trials) {
    Verified verified{.row = trial.row(), .seed = trial.seed(), .run = trial.run()};
    context.err.line(fmt::format("running {}/{}/{} again ({} of {})", sample.sweep, trial.row(), trial.seed(),
                                 all.size() + 1, trials.size()));
    try {
      const RunDetail run = source.run(trial.run());
      const json config = json::parse(run.config_json(), nullptr, false);
      if (config.is_object() && config.contains("argv"))
        throw Error{Code::kFailedPrecondition,
                    "a command of its own: only runs of ablate-trainer are run again"};
      const Heard heard = train_again(run, sample.files);
      if (!heard.completed) throw Error{Code::kInternal, "it did not complete: " + heard.reason};
      compare(run, source.metrics(trial.run()), table, heard, verified);
    } catch (const Error& error) {
      verified.found = {error.what()};
    }
    if (!context.json) context.out.write(text_of(verified));
    all.push_back(std::move(verified));
  }
  const auto count = [&](Sameness verdict) { return std::ranges::count(all, verdict, &Verified::verdict); };
  const bool broken = std::ranges::any_of(all, [](const Verified& each) {
    return each.promised && (each.verdict == Sameness::kSameDigits || each.verdict == Sameness::kDifferent);
  });
  if (context.json) {
    nlohmann::ordered_json list = json::array();
    for (const Verified& each : all) list.push_back(json_of(each));
    context.out.line(nlohmann::ordered_json{
        {"sweep", sample.sweep},
        {"seed", sample.seed},
        {"as_promised", !broken},
        {"trials", list}}.dump(-1, ' ', false, json::error_handler_t::replace));
  } else {
    context.out.line(fmt::format(
        "{} of {} the same to the bit, {} in the table's digits, {} different, {} not run{}",
        count(Sameness::kSame), all.size(), count(Sameness::kSameDigits), count(Sameness::kDifferent),
        count(Sameness::kNotRun), broken ? ": that was to be the same to the bit" : ""));
  }
  if (static_cast<std::size_t>(count(Sameness::kNotRun)) == all.size())
    throw Error{Code::kFailedPrecondition,
                fmt::format("nothing could be run again: {}", all.front().found.front())};
  return broken ? kExitFailed : kExitOk;
}

}  // namespace abl::cli
