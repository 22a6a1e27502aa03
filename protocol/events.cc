// SPDX-License-Identifier: Apache-2.0
#include "protocol/events.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <limits>
#include <string_view>

#include "base/error.h"
#include "base/fail_point.h"
#include "base/nearest_name.h"
#include "protocol/meeting_place.h"
#include "protocol/number.h"

namespace abl::protocol {
namespace {

using nlohmann::json;

Error wrong(const std::string& key, std::string_view expected) {
  return Error{Code::kInvalidArgument, fmt::format("\"{}\" must be {}", key, expected)};
}

/// 3, and what programs make of it: 3.0, "3".
std::int64_t step_of(const json& event, const std::string& key) {
  constexpr double kHighest = std::numeric_limits<std::uint32_t>::max();
  const auto found = event.find(key);
  const auto step = found == event.end() ? std::nullopt : number_of(*found);
  if (!step || !(*step >= 0 && *step <= kHighest) || *step != std::floor(*step))
    throw wrong(key, "a whole number from 0");
  return static_cast<std::int64_t>(*step);
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

Start read_start(const json& event) {
  Start start;
  if (event.contains("total_steps")) start.total_steps = step_of(event, "total_steps");
  // of a command it may be anything: nobody asks
  if (const auto images = event.find("images_per_step"); images != event.end() && images->is_number_integer())
    start.images_per_step = images->get<std::int64_t>();
  start.data_fingerprint = text_of(event, "data_fingerprint", "");
  if (event.contains("resumed_step")) start.resumed_step = step_of(event, "resumed_step");
  start.bit_exact = flag_of(event, "bit_exact", !start.resumed_step);
  if (const auto environment = event.find("environment"); environment != event.end()) {
    if (!environment->is_object()) throw wrong("environment", "an object");
    start.environment = *environment;
  }
  return start;
}

Metric read_metric(const json& event) {
  Metric metric{.step = step_of(event, "step"), .values = {}};
  const auto values = event.find("values");
  if (values == event.end() || !values->is_object()) throw wrong("values", "an object of numbers");
  for (const auto& [name, value] : values->items()) {
    if (name.empty()) throw wrong("values", "an object of numbers with names");
    const auto number = number_of(value);
    if (!number) throw wrong("values." + name, "a number, NaN, Infinity or -Infinity");
    metric.values.emplace(name, *number);
  }
  return metric;
}

Checkpoint read_checkpoint(const json& event) {
  Checkpoint checkpoint{.step = step_of(event, "step"),
                        .path = text_of(event, "path"),
                        .sha256 = text_of(event, "sha256", ""),
                        .best = text_of(event, "best", "")};
  if (checkpoint.sha256.size() > 64) throw wrong("sha256", "64 hexadecimal digits");
  return checkpoint;
}

Probe read_probe_event(const json& event) {
  Probe probe{.step = step_of(event, "step"), .path = text_of(event, "path", ""), .found = {}};
  if (!probe.path.empty()) return probe;
  if (!event.contains("probe")) throw wrong("path", "the path of a file, where there is no \"probe\"");
  probe.found = event;
  for (const char* key : {"event", "step"}) probe.found.erase(key);
  return probe;
}

Rendezvous read_rendezvous(const json& event) {
  Rendezvous rendezvous{.address = text_of(event, "address")};
  if (!is_meeting_place(rendezvous.address)) throw wrong("address", "HOST:PORT");
  return rendezvous;
}

/// What a program calls otherwise stays in the text, which is all that becomes of a level.
Log read_log(const json& event) {
  const std::string level = text_of(event, "level", std::string{name_of(LogLevel::kInfo)});
  const std::string text = text_of(event, "text");
  if (const auto known = value_named<LogLevel>(level)) return {.level = *known, .text = text};
  return {.level = LogLevel::kInfo, .text = fmt::format("{}: {}", level, text)};
}

template <Named E>
E value_of(const json& event, const std::string& key) {
  const auto value = value_named<E>(text_of(event, key));
  if (!value) throw wrong(key, any_of(names_of<E>()));
  return *value;
}

End read_end(const json& event) {
  End end{.status = value_of<End::Status>(event, "status"),
          .reason = text_of(event, "reason", ""),
          .retryable = flag_of(event, "retryable", true),
          .fault = {}};
  const bool has_fault = !text_of(event, "fault", "").empty();
  if (has_fault) end.fault = Fault{.part = value_of<Fault::Part>(event, "fault")};
  const auto needed = event.contains("needed_bytes") ? bytes_of(event, "needed_bytes") : 0;
  if (end.fault) end.fault->needed_bytes = needed;
  if (const bool names_class = !text_of(event, "failure", "").empty(); names_class)
    end.failure = value_of<FailureClass>(event, "failure");
  return end;
}

json document_of(const Start& start) {
  json event{{"v", 1},
             {"event", "start"},
             {"total_steps", start.total_steps},
             {"images_per_step", start.images_per_step},
             {"bit_exact", start.bit_exact},
             {"data_fingerprint", start.data_fingerprint},
             {"environment", start.environment}};
  if (start.resumed_step) event["resumed_step"] = *start.resumed_step;
  return event;
}

json document_of(const Metric& metric) {
  json event{{"event", "metric"}, {"step", metric.step}, {"values", json::object()}};
  for (const auto& [name, value] : metric.values) event["values"][name] = json_number(value);
  return event;
}

json document_of(const Log& log) {
  return {{"event", "log"}, {"level", name_of(log.level)}, {"text", log.text}};
}

json document_of(const Checkpoint& checkpoint) {
  json document{{"event", "checkpoint"},
                {"step", checkpoint.step},
                {"path", checkpoint.path.string()},
                {"sha256", checkpoint.sha256}};
  if (!checkpoint.best.empty()) document["best"] = checkpoint.best.string();
  return document;
}

json document_of(const Probe& probe) {
  json document = probe.path.empty() ? probe.found : json{{"path", probe.path.string()}};
  document.update({{"event", "probe"}, {"step", probe.step}});
  return document;
}

json document_of(const Trained&) { return {{"event", "trained"}}; }

json document_of(const Rendezvous& rendezvous) {
  return {{"event", "rendezvous"}, {"address", rendezvous.address}};
}

json document_of(const End& end) {
  json event{{"event", "end"}, {"status", name_of(end.status)}};
  if (!end.reason.empty()) event["reason"] = end.reason;
  if (end.status == End::Status::kFailed) event["retryable"] = end.retryable;
  if (end.failure) event["failure"] = name_of(*end.failure);
  if (!end.fault) return event;
  event["fault"] = name_of(end.fault->part);
  if (end.fault->needed_bytes > 0) event["needed_bytes"] = end.fault->needed_bytes;
  return event;
}

/// Returns: whether all of it was taken; otherwise errno says why not.
bool write_whole(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace

std::optional<Event> parse_event(const nlohmann::json& object) {
  const auto found = object.find("event");
  if (found == object.end() || !found->is_string()) return std::nullopt;
  const auto& name = found->get_ref<const std::string&>();
  if (name == "start") return read_start(object);
  if (name == "metric") return read_metric(object);
  if (name == "log") return read_log(object);
  if (name == "checkpoint") return read_checkpoint(object);
  if (name == "probe") return read_probe_event(object);
  if (name == "trained") return Trained{};
  if (name == "rendezvous") return read_rendezvous(object);
  if (name == "end") return read_end(object);
  return std::nullopt;
}

std::string to_line(const Event& event) {
  const json document = std::visit([](const auto& each) { return document_of(each); }, event);
  return document.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

void JsonLines::say(const Event& event) {
  const std::string line = to_line(event);
  const std::scoped_lock lock{mutex_};
  if (heard_) {
    if (write_whole(STDOUT_FILENO, line)) return;
    const Error why = system_error("cannot write standard output", errno);
    heard_ = false;
    on_loss_();
    write_whole(STDERR_FILENO, std::string{"ablate-trainer: "} + why.what() + "\n");
  }
  write_whole(STDERR_FILENO, line);  // nobody need read it
}

void JsonLines::start(const Start& start) { say(start); }

void JsonLines::metric(std::int64_t step, const std::map<std::string, double>& values) {
  say(Metric{.step = step, .values = values});
}

void JsonLines::log(LogLevel level, const std::string& text) { say(Log{.level = level, .text = text}); }

void JsonLines::checkpoint(std::int64_t step, const std::filesystem::path& path, const std::string& sha256) {
  say(Checkpoint{.step = step, .path = path, .sha256 = sha256, .best = {}});
}

void JsonLines::best_checkpoint(std::int64_t step, const std::filesystem::path& path,
                                const std::string& sha256, const std::filesystem::path& best) {
  say(Checkpoint{.step = step, .path = path, .sha256 = sha256, .best = best});
}

void JsonLines::trained() { say(Trained{}); }

void JsonLines::probe(std::int64_t step, const std::filesystem::path& file) {
  say(Probe{.step = step, .path = file, .found = {}});
}

void JsonLines::rendezvous(const std::string& address) { say(Rendezvous{.address = address}); }

void JsonLines::end(Status status, const std::string& reason, bool retryable) {
  fail_point(FailPoint::kBeforeTrainerEnd);
  say(End{.status = status, .reason = reason, .retryable = retryable, .fault = {}});
}

void JsonLines::end_as(FailureClass failure, const std::string& reason, bool retryable) {
  say(End{
      .status = Status::kFailed, .reason = reason, .retryable = retryable, .fault = {}, .failure = failure});
}

void JsonLines::end_by(const Fault& fault, const std::string& reason) {
  say(End{.status = Status::kFailed, .reason = reason, .retryable = true, .fault = fault});
}

}  // namespace abl::protocol
