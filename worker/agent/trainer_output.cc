// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/trainer_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>
#include <variant>

#include "base/error.h"
#include "base/utf8.h"
#include "protocol/events.h"
#include "protocol/metrics.h"
#include "protocol/number.h"
#include "protocol/probe_results.h"
#include "worker/agent/found_probes.h"
#include "worker/metrics/finder.h"

namespace abl::agent {
using ablate::v1::RunBatch;
using ablate::v1::RunEnded;
using nlohmann::json;
namespace {

using namespace std::chrono_literals;

RunEnded::Status status_of(protocol::End::Status status) {
  switch (status) {
    case protocol::End::Status::kCompleted:
      return RunEnded::STATUS_COMPLETED;
    case protocol::End::Status::kStopped:
      return RunEnded::STATUS_STOPPED;
    case protocol::End::Status::kFailed:
      return RunEnded::STATUS_FAILED;
  }
  return RunEnded::STATUS_UNSPECIFIED;
}

constexpr auto kLongestWait = 250ms;
constexpr std::size_t kFullBatch = 64 << 10;
constexpr std::size_t kLongestLine = 256 << 10;  // as metrics at most ten times that: below gRPC's 4 MiB
constexpr std::size_t kLongestPiece = 8 << 10;   // of stderr without a line end, e.g. a progress bar
constexpr int kDeepest = 32;
constexpr std::size_t kLongestPath = 4096;    // that a system call takes
constexpr std::size_t kLongestExample = 200;  // of a refused line
constexpr std::size_t kLongestName = 200;     // of a metric that was found
constexpr const char* kTooLong = "a line has at most 256 KiB";

/// The digests of the weights that the run has: environment.weights, where it is what the trainer says.
void read_weights(const json& environment, ablate::v1::RunStarted& started) {
  const auto weights = environment.find("weights");
  if (weights == environment.end() || !weights->is_object()) return;  // a command may mean something else
  for (const auto& [name, sha256] : weights->items())
    if (sha256.is_string()) (*started.mutable_weights())[name] = sha256.get<std::string>();
}

/// Whether an object is, or was meant as, an event of metrics.
bool means_metric(const json& object) {
  const auto name = object.find("event");
  return (name != object.end() && *name == "metric") ||
         (object.contains("step") && object.contains("values"));
}

/// Whether a line that cannot be read was meant as a metric, also one of a Python dict's `print`.
bool looks_like_metric(std::string_view text) {
  const auto has = [&](const char* word) {
    return text.find(fmt::format("\"{}\"", word)) != std::string_view::npos ||
           text.find(fmt::format("'{}'", word)) != std::string_view::npos;
  };
  return has("event") && has("metric");
}

/// What is wrong with a line that begins as an object does, or empty where nobody can have meant an event.
std::string syntax_problem(std::string_view text) {
  if (text.find("\"event\"") != std::string_view::npos) return "not valid JSON";
  if (text.find("'event'") != std::string_view::npos)
    return "not valid JSON: strings need double quotes, as json.dumps writes them";
  return {};
}

}  // namespace

/// Takes what is found beside the events.
class TrainerOutput::Finds final : public metrics::Found {
 public:
  explicit Finds(TrainerOutput& output) : output_{output} {}
  void seen(std::uint32_t step) override {
    any_ = output_.found_any_ = true;
    output_.highest_step_ = std::max(output_.highest_step_, step);
    output_.begin_found(step);
  }
  void point(const std::string& name, std::uint32_t step, double value) override {
    any_ = true;
    if (name.size() > kLongestName)  // cut, two of them would be one
      return output_.refuse(
          name, fmt::format("a name of {} bytes; a metric's has {} at most", name.size(), kLongestName));
    output_.add_point(valid_utf8(name), step, value);
  }
  void refuse(std::string_view text, const std::string& problem) override {
    any_ = true;
    output_.refuse(text, problem);
  }
  void note(const std::string& text) override { output_.note(text); }
  bool is_full() const override { return output_.bytes_ >= kFullBatch; }
  bool any() const { return any_; }

 private:
  TrainerOutput& output_;
  bool any_ = false;
};

TrainerOutput::TrainerOutput(RunFacts facts, const Clock& clock)
    : facts_{std::move(facts)}, clock_{clock}, highest_step_{facts_.resume_step}, reported_{clock.steady()} {
  if (!facts_.sources.empty())
    finder_ = std::make_unique<metrics::Finder>(facts_.sources, facts_.directory, facts_.resume_step);
}
TrainerOutput::~TrainerOutput() = default;

bool TrainerOutput::look_at_files() {
  if (!finder_) return false;
  Finds finds{*this};
  return finder_->look(finds) || finds.any();
}

std::string TrainerOutput::lacks_metrics() const { return finder_ ? finder_->lacking() : ""; }

void TrainerOutput::read_stdout(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto end = bytes.find('\n');
    const bool whole = end != std::string_view::npos;
    const std::string_view piece = bytes.substr(0, whole ? end : bytes.size());
    bytes.remove_prefix(whole ? end + 1 : bytes.size());
    stdout_rest_ += piece;
    if (line_too_long_ || stdout_rest_.size() > kLongestLine) {
      if (!line_too_long_ && looks_like_metric(stdout_rest_)) refuse(stdout_rest_, kTooLong);
      log_stdout(std::exchange(stdout_rest_, {}));
      if (whole) log_stdout("\n");
      line_too_long_ = !whole;
    } else if (whole) {
      line(std::exchange(stdout_rest_, {}));
    }
  }
}

void TrainerOutput::read_stderr(std::string_view bytes) {
  stderr_rest_ += bytes;
  auto end = stderr_rest_.rfind('\n');
  if (end == std::string::npos && stderr_rest_.size() > kLongestPiece) end = stderr_rest_.size() - 1;
  if (end == std::string::npos) return;
  const std::string_view written = std::string_view{stderr_rest_}.substr(0, end + 1);
  append_log(written);
  look_for_metrics(protocol::MetricSource::Stream::kStderr, written);
  stderr_rest_.erase(0, end + 1);
}

/// Not among the last lines that give a reason: those are the program's.
void TrainerOutput::note(std::string_view text) {
  const std::string line = fmt::format("[worker] {}\n", text);
  batch_.mutable_log()->append(line);
  grow(line.size());
}

void TrainerOutput::launched(Time when) {
  batch_.set_launched_ms(when.time_since_epoch().count());
  reported_ = clock_.steady();
  grow(1);
}

void TrainerOutput::close() {
  if (!stdout_rest_.empty()) read_stdout("\n");
  if (!stderr_rest_.empty()) read_stderr("\n");
  if (!finder_) return;
  Finds finds{*this};
  finder_->close(finds);
}

/// What was no event.
void TrainerOutput::log_stdout(std::string_view bytes) {
  append_log(bytes);
  look_for_metrics(protocol::MetricSource::Stream::kStdout, bytes);
}

void TrainerOutput::look_for_metrics(protocol::MetricSource::Stream stream, std::string_view bytes) {
  if (!finder_) return;
  Finds finds{*this};
  finder_->read_log(stream, bytes, finds);
}

bool TrainerOutput::due() const {
  return !empty() && (bytes_ >= kFullBatch || clock_.now() - since_ >= kLongestWait);
}

void TrainerOutput::clear() {
  batch_.Clear();
  series_.clear();
  bytes_ = 0;
}

RunBatch TrainerOutput::take_last(RunEnded ended) {
  // given a checkpoint and nothing said since: there was nothing left to do after it
  begin(ended.status() == RunEnded::STATUS_COMPLETED);
  RunBatch last = batch_;
  *last.mutable_ended() = std::move(ended);
  clear();
  return last;
}

std::string_view TrainerOutput::log_end() const {
  const std::string_view kept = log_end_;
  return kept.size() > facts_.log_end ? kept.substr(kept.size() - facts_.log_end) : kept;
}

bool TrainerOutput::speaks_of_exhaustion() const {
  constexpr std::string_view kWords[] = {"out of memory",      "Out of memory",      "OutOfMemory",
                                         "MemoryError",        "bad_alloc",          "Cannot allocate memory",
                                         "RESOURCE_EXHAUSTED", "Disk quota exceeded"};
  return speaks_of_full_disk() || std::ranges::any_of(kWords, [&](std::string_view word) {
           return last_.bytes().find(word) != std::string::npos;
         });
}

bool TrainerOutput::speaks_of_full_disk() const { return speaks_of("No space left on device"); }

void TrainerOutput::line(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos || text[first] == '{') return line(text, text);
  const std::size_t object = text.find('{');
  if (object == std::string_view::npos || !looks_like_metric(text.substr(object))) return line(text, {});
  // a progress bar before it ended in no line of its own
  const bool after_bar = text.substr(0, object).find('\r') != std::string_view::npos;
  if (after_bar) return line(text, text.substr(object));
  log_stdout(text);
  log_stdout("\n");
  const std::string problem = "a metric must be on its own line";
  note("the line above was not understood: " + problem);
  refuse(text, problem);
}

/// A line, and what of it may be an event.
void TrainerOutput::line(std::string_view whole, std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r");
  std::string problem;
  bool is_metric = false;
  if (first != std::string_view::npos && text[first] == '{') {
    // what is nested deeper is left out: writing JSON again recurses
    const auto shallow = [](int depth, json::parse_event_t, json&) { return depth < kDeepest; };
    try {
      const json parsed = json::parse(protocol::with_quoted_non_finite(text), shallow);
      is_metric = means_metric(parsed);  // begins with a brace: an object
      if (event(parsed)) return;
      if (is_metric) problem = R"(expected "event": "metric" beside "step" and "values")";
    } catch (const json::parse_error&) {
      is_metric = looks_like_metric(text);
      problem = syntax_problem(text);
    } catch (const json::out_of_range&) {
      is_metric = looks_like_metric(text);
      problem = "a number is beyond what 64 bits hold";
    } catch (const Error& error) {
      problem = error.what();
    }
  }
  log_stdout(whole);
  log_stdout("\n");
  if (problem.empty()) return;
  note("the line above was not understood: " + problem);
  if (is_metric) refuse(text, problem);
}

void TrainerOutput::refuse(std::string_view text, const std::string& problem) {
  batch_.set_refused_lines(batch_.refused_lines() + 1);
  if (!batch_.refused_example().empty()) return;
  const std::string_view cut = text.substr(0, kLongestExample);
  const std::string example =
      fmt::format("{}{} ({})", valid_utf8(cut), cut.size() < text.size() ? "…" : "", problem);
  grow(example.size());
  batch_.set_refused_example(example);
}

/// Returns: false for an event that is kept as log. Throws: Error when a key has the wrong type; nothing is
/// then taken.
bool TrainerOutput::event(const json& json) {
  const auto name = json.find("event");
  if (name == json.end() || !name->is_string()) return false;
  heard_ = true;
  const auto event = protocol::parse_event(json);
  if (event) std::visit([this](const auto& each) { take(each); }, *event);
  return event.has_value();
}

void TrainerOutput::take(const protocol::Start& start) {
  if (has_started_)
    throw Error{Code::kFailedPrecondition, "duplicate start event: expected once, before the first metric"};
  ablate::v1::RunStarted started;
  started.set_total_steps(static_cast<std::uint32_t>(start.total_steps));
  started.set_data_fingerprint(start.data_fingerprint);
  if (start.resumed_step) {
    started.set_resumed_from_step(static_cast<std::uint32_t>(*start.resumed_step));
    started.set_resumed_from_run(facts_.resume_run);
    went_on_ = true;
  }
  started.set_bit_exact(start.bit_exact);
  if (!start.environment.is_null()) {
    started.set_environment_json(start.environment.dump());
    read_weights(start.environment, started);
  }
  started.set_directory(facts_.directory);
  begin(false);
  *batch_.mutable_started() = std::move(started);
  reported_ = clock_.steady();
}

void TrainerOutput::take(const protocol::Metric& metric) {
  begin(metric.step > facts_.resume_step);
  for (const auto& [name, value] : metric.values) {
    add_point(name, static_cast<std::uint32_t>(metric.step), value);
    if (name == protocol::metric::kTimeData) note_data_wait(value);
  }
}

/// Several points that are said at once share the time since those before them, and so their share of it.
void TrainerOutput::note_data_wait(double share) {
  if (!(share >= 0 && share <= 1)) return;
  const Time now = clock_.steady();
  const Seconds of = std::max(Milliseconds{0}, now - std::exchange(reported_, now));
  data_wait_.waited += share * of;
  data_wait_.of += of;
}

void TrainerOutput::take(const protocol::Checkpoint& said) {
  ablate::v1::Checkpoint checkpoint;
  checkpoint.set_step(static_cast<std::uint32_t>(said.step));
  checkpoint.set_host(facts_.host);
  checkpoint.set_path((facts_.directory / said.path).lexically_normal());
  if (checkpoint.path().size() > kLongestPath)
    throw Error{Code::kInvalidArgument,
                fmt::format("\"path\" must be a path of at most {} bytes", kLongestPath)};
  checkpoint.set_sha256(said.sha256);
  if (!said.best.empty()) {
    checkpoint.set_best((facts_.directory / said.best).lexically_normal());
    if (checkpoint.best().size() > kLongestPath)
      throw Error{Code::kInvalidArgument,
                  fmt::format("\"best\" must be a path of at most {} bytes", kLongestPath)};
  }
  // one of the very step is what it was given, written again because it is to stop
  begin(checkpoint.step() >= facts_.resume_step);
  grow(checkpoint.ByteSizeLong());
  *batch_.add_checkpoints() = std::move(checkpoint);
}

void TrainerOutput::wrote_checkpoint(const std::filesystem::path& file, std::uint32_t step,
                                     const std::string& sha256) {
  ablate::v1::Checkpoint checkpoint;
  checkpoint.set_step(step);
  checkpoint.set_host(facts_.host);
  checkpoint.set_path(valid_utf8(file.string()));
  checkpoint.set_sha256(sha256);
  if (checkpoint.path() != file.string() || checkpoint.path().size() > kLongestPath) return;
  grow(checkpoint.ByteSizeLong());
  *batch_.add_checkpoints() = std::move(checkpoint);
}

/// Those that wait are few, for they may be long, and a program may say them again and again.
void TrainerOutput::take(const protocol::Probe& said) {
  constexpr std::uint32_t kMostSaid = 10'000;
  begin(said.step >= facts_.resume_step);
  if (probes_.size() >= protocol::kMostProbes || probes_said_ >= kMostSaid) {
    if (!std::exchange(probes_refused_, true))
      note("too many probe events: this one is not kept, and perhaps others");
    return;
  }
  ++probes_said_;
  probes_.push_back(said);
  read_more();
}

void TrainerOutput::read_more() {
  while (!probes_.empty() && batch_.probes().empty()) {
    const protocol::Probe said = std::move(probes_.front());
    probes_.pop_front();
    try {
      *batch_.add_probes() = found_probe(said, facts_.directory);
      grow(batch_.probes(0).ByteSizeLong());
    } catch (const Error& error) {
      batch_.clear_probes();
      note(fmt::format("probe result not kept: {}", error.what()));
    }
  }
}

void TrainerOutput::take(const protocol::Log& log) {
  append_log(log.level == LogLevel::kInfo ? log.text + "\n"
                                          : fmt::format("{}: {}\n", name_of(log.level), log.text));
}

void TrainerOutput::take(const protocol::Rendezvous& rendezvous) {
  grow(rendezvous.address.size());
  batch_.set_rendezvous(rendezvous.address);
}

void TrainerOutput::take(const protocol::End& end) {
  TrainerEnd said{
      .status = status_of(end.status), .reason = end.reason, .retryable = end.retryable, .fault = {}};
  if (end.fault) {
    said.fault = end.fault->part;
    said.needed_bytes = end.fault->needed_bytes;
  }
  said.failure = end.failure;
  end_ = std::move(said);
}

/// A run without `start` begins with the first that it says otherwise, or with its end.
/// `resumed`: that means that it went on from its checkpoint, where it was given one.
void TrainerOutput::begin(bool resumed) {
  if (has_started_) return;
  has_started_ = true;
  if (resumed && facts_.resume_run != 0) {
    went_on_ = true;
    batch_.mutable_started()->set_resumed_from_step(facts_.resume_step);
    batch_.mutable_started()->set_resumed_from_run(facts_.resume_run);
  }
  batch_.mutable_started()->set_directory(facts_.directory);
  batch_.mutable_started()->set_bit_exact(facts_.resume_run == 0);
  grow(1);
}

/// The same of a number that was found. It was given a checkpoint, and what it speaks of first tells where it
/// went on: all that was said before that is of the attempt before. One that begins again at its beginning
/// has said nothing before that, and one that says its whole history has it all.
void TrainerOutput::begin_found(std::uint32_t step) {
  if (has_started_) return;
  if (facts_.resume_run == 0 || step == 0 || (step == 1 && facts_.resume_step > 1)) return begin(false);
  facts_.resume_step = step - 1;
  begin(true);
}

void TrainerOutput::append_log(std::string_view bytes) {
  batch_.mutable_log()->append(bytes);
  last_.add(bytes);
  if (facts_.log_end > 0) log_end_ += bytes;
  if (log_end_.size() > 2 * facts_.log_end)  // not for every byte anew
    log_end_.erase(0, log_end_.size() - facts_.log_end);
  grow(bytes.size());
}

void TrainerOutput::add_point(const std::string& name, std::uint32_t step, double value) {
  if (!std::isfinite(value) && not_finite_.empty())
    not_finite_ = fmt::format("{} is {} at step {}", valid_utf8(name.substr(0, kLongestExample)),
                              std::isnan(value) ? "NaN"
                              : value > 0       ? "Infinity"
                                                : "-Infinity",
                              step);
  highest_step_ = std::max(highest_step_, step);
  const auto [known, is_new] = series_.try_emplace(name, batch_.series_size());
  if (is_new) {
    batch_.add_series()->set_name(name);
    grow(name.size());
  }
  auto& series = *batch_.mutable_series(known->second);
  auto& steps = *series.mutable_steps();
  auto& values = *series.mutable_values();
  auto& times = *series.mutable_times_ms();
  const std::int64_t now = clock_.now().time_since_epoch().count();
  const auto place = std::lower_bound(steps.begin(), steps.end(), step);
  const int index = static_cast<int>(place - steps.begin());
  if (place != steps.end() && *place == step) {  // said again: the first counts, as in the store
    const double first = values.Get(index);
    if (first == value || (std::isnan(first) && std::isnan(value))) return;
    batch_.set_repeated_points(batch_.repeated_points() + 1);
    return grow(1);
  }
  steps.Add(step), values.Add(value), times.Add(now);
  std::rotate(steps.begin() + index, steps.end() - 1, steps.end());
  std::rotate(values.begin() + index, values.end() - 1, values.end());
  std::rotate(times.begin() + index, times.end() - 1, times.end());
  grow(20);
}

void TrainerOutput::grow(std::size_t bytes) {
  if (bytes_ == 0) since_ = clock_.now();
  bytes_ += bytes;
}

}  // namespace abl::agent
