// SPDX-License-Identifier: Apache-2.0
#include "protocol/events.h"

#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <string_view>

#include "base/error.h"

namespace abl::protocol {
namespace {

nlohmann::json number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
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

void JsonLines::say(const nlohmann::json& event) {
  const std::string line = event.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
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

void JsonLines::start(const Start& start) {
  nlohmann::json event{{"v", 1},
                       {"event", "start"},
                       {"total_steps", start.total_steps},
                       {"images_per_step", start.images_per_step},
                       {"bit_exact", start.bit_exact},
                       {"data_fingerprint", start.data_fingerprint},
                       {"environment", start.environment}};
  if (start.resumed_step) event["resumed_step"] = *start.resumed_step;
  say(event);
}

void JsonLines::metric(std::int64_t step, const std::map<std::string, double>& values) {
  nlohmann::json event{{"event", "metric"}, {"step", step}};
  for (const auto& [name, value] : values) event["values"][name] = number(value);
  say(event);
}

void JsonLines::log(const std::string& level, const std::string& text) {
  say({{"event", "log"}, {"level", level}, {"text", text}});
}

void JsonLines::checkpoint(std::int64_t step, const std::filesystem::path& path, const std::string& sha256) {
  say({{"event", "checkpoint"}, {"step", step}, {"path", path.string()}, {"sha256", sha256}});
}

void JsonLines::end(const std::string& status, const std::string& reason, bool retryable) {
  nlohmann::json event{{"event", "end"}, {"status", status}};
  if (!reason.empty()) event["reason"] = reason;
  if (status == "failed") event["retryable"] = retryable;
  say(event);
}

void JsonLines::end_by(const Fault& fault, const std::string& reason) {
  nlohmann::json event{
      {"event", "end"}, {"status", "failed"}, {"reason", reason}, {"retryable", true}, {"fault", fault.part}};
  if (fault.needed_bytes > 0) event["needed_bytes"] = fault.needed_bytes;
  say(event);
}

}  // namespace abl::protocol
