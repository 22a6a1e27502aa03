// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/trainer_output.h"

#include <fmt/format.h>

#include <algorithm>
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
constexpr std::size_t kTail = 1000;              // of the log, for a reason
constexpr int kLastLines = 3;
constexpr int kDeepest = 32;

Error wrong(const std::string& key, const char* expected) {
  return Error{Code::kInvalidArgument, fmt::format("\"{}\" must be {}", key, expected)};
}

std::uint32_t step_of(const json& event, const std::string& key) {
  const auto found = event.find(key);
  const auto* step = found == event.end() ? nullptr : found->get_ptr<const json::number_unsigned_t*>();
  if (!step || *step > std::numeric_limits<std::uint32_t>::max()) throw wrong(key, "a whole number from 0");
  return static_cast<std::uint32_t>(*step);
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
  if (value.is_number()) return value.get<double>();
  if (value == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (value == "Infinity") return std::numeric_limits<double>::infinity();
  if (value == "-Infinity") return -std::numeric_limits<double>::infinity();
  throw wrong("values." + name, R"(a number, "NaN", "Infinity" or "-Infinity")");
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

void TrainerOutput::note(std::string_view text) { append_log(fmt::format("[worker] {}\n", text)); }

void TrainerOutput::close() {
  if (!stdout_rest_.empty()) read_stdout("\n");
  if (!stderr_rest_.empty()) read_stderr("\n");
}

bool TrainerOutput::due() const {
  return !empty() && (bytes_ >= kFullBatch || clock_.now() - since_ >= kLongestWait);
}

void TrainerOutput::clear() {
  batch_.Clear();
  bytes_ = 0;
}

RunBatch TrainerOutput::take_last(RunEnded ended) {
  begin();
  RunBatch last = batch_;
  *last.mutable_ended() = std::move(ended);
  clear();
  return last;
}

std::string TrainerOutput::last_lines() const {
  std::string text = valid_utf8(tail_), joined;
  for (int lines = 0; lines < kLastLines && !text.empty();) {
    const auto before = text.find_last_of("\n\r");
    const std::string last = before == std::string::npos ? text : text.substr(before + 1);
    text.resize(before == std::string::npos ? 0 : before);
    if (last.find_first_not_of(" \t") == std::string::npos) continue;
    joined = joined.empty() ? last : last + " | " + joined;
    ++lines;
  }
  return joined;
}

void TrainerOutput::line(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r");
  std::string problem;
  if (first != std::string_view::npos && text[first] == '{') {
    // what is nested deeper is left out: writing JSON again recurses
    const auto shallow = [](int depth, json::parse_event_t, json&) { return depth < kDeepest; };
    const json parsed = json::parse(text, shallow, /*allow_exceptions=*/false);
    try {
      if (parsed.is_object() && event(parsed)) return;
      if (parsed.is_discarded() && text.find("\"event\"") != std::string_view::npos)
        problem =
            "not valid JSON; NaN and infinities are written as texts: \"NaN\", \"Infinity\", \"-Infinity\"";
    } catch (const Error& error) {
      problem = error.what();
    }
  }
  append_log(text);
  append_log("\n");
  if (!problem.empty()) note("the line above was not understood: " + problem);
}

/// Returns: false for an event that is kept as log. Throws: Error when a key has the wrong type; nothing is
/// then taken.
bool TrainerOutput::event(const json& json) {
  const auto found = json.find("event");
  if (found == json.end() || !found->is_string()) return false;
  const auto& name = found->get_ref<const std::string&>();
  if (name == "start") return start(json), true;
  if (name == "metric") return metric(json), true;
  if (name == "checkpoint") return checkpoint(json), true;
  if (name == "log") return log(json), true;
  if (name == "end") return end(json), true;
  return false;
}

void TrainerOutput::start(const json& json) {
  if (has_started_) throw Error{Code::kFailedPrecondition, "a run starts once, before its first metric"};
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
  checkpoint.set_sha256(text_of(json, "sha256", ""));
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
  tail_.append(bytes.substr(bytes.size() - std::min(bytes.size(), kTail)));
  if (tail_.size() > kTail) tail_.erase(0, tail_.size() - kTail);
  grow(bytes.size());
}

void TrainerOutput::add_point(const std::string& name, std::uint32_t step, double value) {
  auto& all = *batch_.mutable_series();
  auto series = std::find_if(all.begin(), all.end(), [&](const auto& it) { return it.name() == name; });
  if (series == all.end()) {
    all.Add()->set_name(name);
    series = all.end() - 1;
    grow(name.size());
  }
  auto& steps = *series->mutable_steps();
  auto& values = *series->mutable_values();
  auto& times = *series->mutable_times_ms();
  const std::int64_t now = clock_.now().time_since_epoch().count();
  const auto place = std::lower_bound(steps.begin(), steps.end(), step);
  const int index = static_cast<int>(place - steps.begin());
  if (place != steps.end() && *place == step) return;  // said again: the first counts, as in the store
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
