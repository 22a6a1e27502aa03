// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/events.h"

#include <unistd.h>

#include <cerrno>
#include <cmath>

#include "base/error.h"

namespace abl::trainer {
namespace {

nlohmann::json number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

}  // namespace

void JsonLines::say(const nlohmann::json& event) {
  std::string line = event.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  const std::scoped_lock lock{mutex_};
  for (std::string_view rest = line; !rest.empty();) {
    const ssize_t written = ::write(STDOUT_FILENO, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw system_error("cannot write to stdout", errno);
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
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

}  // namespace abl::trainer
