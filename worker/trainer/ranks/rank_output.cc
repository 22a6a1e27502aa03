// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/ranks/rank_output.h"

#include <fmt/format.h>

#include <iostream>
#include <limits>

namespace abl::trainer {
namespace {

using nlohmann::json;

constexpr std::size_t kLastLines = 3, kLongestWords = 500;

/// Takes the whole lines off a text.
void for_each_line(std::string& text, const std::function<void(const std::string&)>& take) {
  std::size_t begin = 0;
  for (std::size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
    take(text.substr(begin, end - begin));
  text.erase(0, begin);
}

double number(const json& value) {
  if (value.is_number()) return value.get<double>();
  const auto text = value.get<std::string>();
  if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
  return text == "Infinity" ? std::numeric_limits<double>::infinity()
                            : -std::numeric_limits<double>::infinity();
}

void say_start(const json& event, Events& events) {
  Events::Start start{.total_steps = event.at("total_steps"),
                      .images_per_step = event.at("images_per_step"),
                      .resumed_step = {},
                      .bit_exact = event.at("bit_exact"),
                      .data_fingerprint = event.at("data_fingerprint"),
                      .environment = event.at("environment")};
  if (event.contains("resumed_step")) start.resumed_step = event.at("resumed_step").get<std::int64_t>();
  events.start(start);
}

void say_metric(const json& event, Events& events) {
  std::map<std::string, double> values;
  for (const auto& [name, value] : event.at("values").items()) values[name] = number(value);
  events.metric(event.at("step"), values);
}

/// Returns: whether it is an event that is said again.
bool say_again(const json& event, Events& events) {
  const std::string kind = event.at("event");
  if (kind == "start")
    say_start(event, events);
  else if (kind == "metric")
    say_metric(event, events);
  else if (kind == "log")
    events.log(event.at("level"), event.at("text"));
  else if (kind == "checkpoint")
    events.checkpoint(event.at("step"), event.at("path").get<std::string>(), event.at("sha256"));
  else
    return false;
  return true;
}

}  // namespace

void RankOutput::read_stdout(std::string_view piece) {
  out_ += piece;
  for_each_line(out_, [this](const std::string& line) { take_event(line); });
}

void RankOutput::read_stderr(std::string_view piece) {
  err_ += piece;
  for_each_line(err_, [this](const std::string& line) { take_log(line); });
}

void RankOutput::take_event(const std::string& line) {
  const auto event = json::parse(line, nullptr, /*allow_exceptions=*/false);
  try {
    if (event.is_object() && event.at("event") == "end") {
      end_ = RankEnd{.status = event.at("status"),
                     .reason = event.value("reason", ""),
                     .retryable = event.value("retryable", true),
                     .fault = {}};
      if (event.contains("fault"))
        end_->fault = Events::Fault{.part = event.at("fault"),
                                    .needed_bytes = event.value("needed_bytes", std::uint64_t{0})};
      return;
    }
    if (!events_ || (event.is_object() && say_again(event, *events_))) return;
  } catch (const json::exception&) {
  }
  take_log(line);  // of a library: no event
}

void RankOutput::take_log(const std::string& line) {
  std::cerr << fmt::format("rank {}: {}\n", rank_, line);
  last_.push_back(line);
  if (last_.size() > kLastLines) last_.pop_front();
}

std::string RankOutput::last_words() const {
  std::string words;
  for (const auto& line : last_) words += (words.empty() ? "" : " / ") + line;
  if (!err_.empty()) words += (words.empty() ? "" : " / ") + err_;
  if (words.size() > kLongestWords) words = "…" + words.substr(words.size() - kLongestWords);
  return words;
}

}  // namespace abl::trainer
