// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/trainer_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/utf8.h"

namespace abl::agent {
using ablate::v1::RunBatch;
using ablate::v1::RunEnded;
using nlohmann::json;
namespace {

using namespace std::chrono_literals;

constexpr auto kLongestWait = 250ms;
constexpr std::size_t kFullBatch = 64 << 10;
constexpr std::size_t kLongestLine = 256 << 10;  // as metrics at most ten times that: below gRPC's 4 MiB
constexpr std::size_t kLongestPiece = 8 << 10;   // of stderr without a line end, e.g. a progress bar
constexpr int kDeepest = 32;
constexpr std::size_t kLongestPath = 4096;    // that a system call takes
constexpr std::size_t kLongestExample = 200;  // of a refused line
constexpr const char* kTooLong = "a line has at most 256 KiB";

Error wrong(const std::string& key, const char* expected) {
  return Error{Code::kInvalidArgument, fmt::format("\"{}\" must be {}", key, expected)};
}

/// A number, or a text that is one: "0.5", "NaN", "-Infinity", "inf".
std::optional<double> number_of(const json& value) {
  if (value.is_number()) return value.get<double>();
  if (!value.is_string()) return {};
  std::string_view text = value.get_ref<const std::string&>();
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  text = text.substr(0, text.find_last_not_of(" \t") + 1);
  if (text.starts_with('+')) text.remove_prefix(1);
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  return whole ? std::optional{number} : std::nullopt;
}

/// 3, and what programs make of it: 3.0, "3".
std::uint32_t step_of(const json& event, const std::string& key) {
  constexpr double kHighest = std::numeric_limits<std::uint32_t>::max();
  const auto found = event.find(key);
  const auto step = found == event.end() ? std::nullopt : number_of(*found);
  if (!step || !(*step >= 0 && *step <= kHighest) || *step != std::floor(*step))
    throw wrong(key, "a whole number from 0");
  return static_cast<std::uint32_t>(*step);
}

std::uint64_t bytes_of(const json& event, const std::string& key) {
  constexpr double kMost = 1e18;
  const auto bytes = number_of(event.at(key));
  if (!bytes || !(*bytes >= 0 && *bytes <= kMost)) throw wrong(key, "a number of bytes");
  return static_cast<std::uint64_t>(*bytes);
}

std::string text_of(const json& event, const std::string& key,
                    const std::optional<std::string>& fallback = {}) {
  const auto found = event.find(key);
  if (found == event.end() && fallback) return *fallback;
  if (found == event.end() || !found->is_string()) throw wrong(key, "a text");
  return found->get<std::string>();
}

bool flag_of(const json& event, const std::string& key, bool fallback) {
  const auto found = event.find(key);
  if (found == event.end()) return fallback;
  if (!found->is_boolean()) throw wrong(key, "true or false");
  return found->get<bool>();
}

/// The digests of the weights that the run has: environment.weights, where it is what the trainer says.
void read_weights(const json& environment, ablate::v1::RunStarted& started) {
  const auto weights = environment.find("weights");
  if (weights == environment.end() || !weights->is_object()) return;  // a command may mean something else
  for (const auto& [name, sha256] : weights->items())
    if (sha256.is_string()) (*started.mutable_weights())[name] = sha256.get<std::string>();
}

double value_of(const std::string& name, const json& value) {
  if (const auto number = number_of(value)) return *number;
  throw wrong("values." + name, "a number, NaN, Infinity or -Infinity");
}

/// JSON has no word for numbers that are not finite; Python's json.dumps writes them bare all the same. They
/// become texts here: `{"a": NaN}` is read as `{"a": "NaN"}`.
std::string with_quoted_non_finite(std::string_view text) {
  constexpr std::string_view kWords[] = {"-Infinity", "Infinity", "NaN"};
  if (text.find("NaN") == std::string_view::npos && text.find("Infinity") == std::string_view::npos)
    return std::string{text};
  std::string quoted;
  bool in_text = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (in_text && text[at] == '\\') {
      quoted += text.substr(at++, 2);
      continue;
    }
    if (text[at] == '"') in_text = !in_text;
    const auto* word = in_text ? std::end(kWords) : std::ranges::find_if(kWords, [&](std::string_view each) {
      return text.substr(at).starts_with(each);
    });
    if (word == std::end(kWords)) {
      quoted += text[at];
    } else {
      quoted += fmt::format("\"{}\"", *word);
      at += word->size() - 1;
    }
  }
  return quoted;
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

TrainerOutput::TrainerOutput(RunFacts facts, const Clock& clock) : facts_{std::move(facts)}, clock_{clock} {}

void TrainerOutput::read_stdout(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto end = bytes.find('\n');
    const bool whole = end != std::string_view::npos;
    const std::string_view piece = bytes.substr(0, whole ? end : bytes.size());
    bytes.remove_prefix(whole ? end + 1 : bytes.size());
    stdout_rest_ += piece;
    if (line_too_long_ || stdout_rest_.size() > kLongestLine) {
      if (!line_too_long_ && looks_like_metric(stdout_rest_)) refuse(stdout_rest_, kTooLong);
      append_log(std::exchange(stdout_rest_, {}));
      if (whole) append_log("\n");
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
  append_log(std::string_view{stderr_rest_}.substr(0, end + 1));
  stderr_rest_.erase(0, end + 1);
}

/// Not among the last lines that give a reason: those are the program's.
void TrainerOutput::note(std::string_view text) {
  const std::string line = fmt::format("[worker] {}\n", text);
  batch_.mutable_log()->append(line);
  grow(line.size());
}

void TrainerOutput::close() {
  if (!stdout_rest_.empty()) read_stdout("\n");
  if (!stderr_rest_.empty()) read_stderr("\n");
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
  begin();
  RunBatch last = batch_;
  *last.mutable_ended() = std::move(ended);
  clear();
  return last;
}

bool TrainerOutput::speaks_of_full_disk() const {
  return last_.bytes().find("No space left on device") != std::string::npos;
}

void TrainerOutput::line(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos || text[first] == '{') return line(text, text);
  const std::size_t object = text.find('{');
  if (object == std::string_view::npos || !looks_like_metric(text.substr(object))) return line(text, {});
  // a progress bar before it ended in no line of its own
  const bool after_bar = text.substr(0, object).find('\r') != std::string_view::npos;
  if (after_bar) return line(text, text.substr(object));
  append_log(text);
  append_log("\n");
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
      const json parsed = json::parse(with_quoted_non_finite(text), shallow);
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
  append_log(whole);
  append_log("\n");
  if (problem.empty()) return;
  note("the line above was not understood: " + problem);
  if (is_metric) refuse(text, problem);
}

/// Counts a line of metrics that is not taken.
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
  const auto found = json.find("event");
  if (found == json.end() || !found->is_string()) return false;
  heard_ = true;
  const auto& name = found->get_ref<const std::string&>();
  if (name == "start") return start(json), true;
  if (name == "metric") return metric(json), true;
  if (name == "checkpoint") return checkpoint(json), true;
  if (name == "log") return log(json), true;
  if (name == "end") return end(json), true;
  return false;
}

void TrainerOutput::start(const json& json) {
  if (has_started_)
    throw Error{Code::kFailedPrecondition, "duplicate start event: expected once, before the first metric"};
  ablate::v1::RunStarted started;
  if (json.contains("total_steps")) started.set_total_steps(step_of(json, "total_steps"));
  started.set_data_fingerprint(text_of(json, "data_fingerprint", ""));
  if (json.contains("resumed_step")) {
    started.set_resumed_from_step(step_of(json, "resumed_step"));
    started.set_resumed_from_run(facts_.resume_run);
  }
  started.set_bit_exact(flag_of(json, "bit_exact", !started.has_resumed_from_step()));
  if (const auto environment = json.find("environment"); environment != json.end()) {
    if (!environment->is_object()) throw wrong("environment", "an object");
    started.set_environment_json(environment->dump());
    read_weights(*environment, started);
  }
  started.set_directory(facts_.directory);
  begin();
  *batch_.mutable_started() = std::move(started);
}

void TrainerOutput::metric(const json& json) {
  const std::uint32_t step = step_of(json, "step");
  const auto values = json.find("values");
  if (values == json.end() || !values->is_object()) throw wrong("values", "an object of numbers");
  std::vector<std::pair<std::string, double>> points;
  for (const auto& [name, value] : values->items()) {
    if (name.empty()) throw wrong("values", "an object of numbers with names");
    points.emplace_back(name, value_of(name, value));
  }
  begin();
  for (const auto& [name, value] : points) add_point(name, step, value);
}

void TrainerOutput::checkpoint(const json& json) {
  ablate::v1::Checkpoint checkpoint;
  checkpoint.set_step(step_of(json, "step"));
  checkpoint.set_host(facts_.host);
  checkpoint.set_path((facts_.directory / text_of(json, "path")).lexically_normal());
  if (checkpoint.path().size() > kLongestPath) throw wrong("path", "a path of at most 4096 bytes");
  checkpoint.set_sha256(text_of(json, "sha256", ""));
  if (checkpoint.sha256().size() > 64) throw wrong("sha256", "64 hexadecimal digits");
  begin();
  grow(checkpoint.ByteSizeLong());
  *batch_.add_checkpoints() = std::move(checkpoint);
}

void TrainerOutput::log(const json& json) {
  const std::string level = text_of(json, "level", "info"), text = text_of(json, "text");
  append_log(level == "info" ? text + "\n" : fmt::format("{}: {}\n", level, text));
}

void TrainerOutput::end(const json& json) {
  TrainerEnd said;
  const std::string status = text_of(json, "status");
  if (status == "completed") said.status = RunEnded::STATUS_COMPLETED;
  if (status == "stopped") said.status = RunEnded::STATUS_STOPPED;
  if (status == "failed") said.status = RunEnded::STATUS_FAILED;
  if (said.status == RunEnded::STATUS_UNSPECIFIED) throw wrong("status", "completed, stopped or failed");
  said.reason = text_of(json, "reason", "");
  said.retryable = flag_of(json, "retryable", true);
  const std::string fault = text_of(json, "fault", "");
  if (fault == "disk") said.fault = TrainerEnd::Fault::kDisk;
  if (fault == "device") said.fault = TrainerEnd::Fault::kDevice;
  if (fault == "data") said.fault = TrainerEnd::Fault::kData;
  if (!fault.empty() && !said.fault) throw wrong("fault", "disk, device or data");
  if (json.contains("needed_bytes")) said.needed_bytes = bytes_of(json, "needed_bytes");
  end_ = std::move(said);
}

/// A run without `start` begins with the first that it says otherwise.
void TrainerOutput::begin() {
  if (has_started_) return;
  has_started_ = true;
  batch_.mutable_started()->set_directory(facts_.directory);
  batch_.mutable_started()->set_bit_exact(facts_.resume_run == 0);
  grow(1);
}

void TrainerOutput::append_log(std::string_view bytes) {
  batch_.mutable_log()->append(bytes);
  last_.add(bytes);
  grow(bytes.size());
}

void TrainerOutput::add_point(const std::string& name, std::uint32_t step, double value) {
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
