// SPDX-License-Identifier: Apache-2.0
#include "protocol/checkpoint_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace abl::protocol {
namespace {

using nlohmann::json;

constexpr int kFormat = 1;
constexpr std::int64_t kMostRanks = 1024, kMostThreads = 1 << 20;
constexpr std::int64_t kMostSteps = std::int64_t{1} << 53;

/// What one object of the text says, key by key.
class Facts {
 public:
  Facts(const json& object, const std::filesystem::path& file) : object_{object}, file_{file} {
    if (!object.is_object()) throw wrong("its facts are no object");
  }

  Error wrong(const std::string& why) const {
    return Error{Code::kDataLoss,
                 fmt::format("{} is not a checkpoint of this trainer: {}", file_.string(), why)};
  }
  const json& at(const char* key) const {
    const auto found = object_.find(key);
    if (found == object_.end()) throw wrong(fmt::format("'{}' is missing", key));
    return *found;
  }
  bool has(const char* key) const { return object_.contains(key); }

  std::string text(const char* key) const {
    const json& value = at(key);
    if (!value.is_string()) throw wrong(fmt::format("'{}' is no text", key));
    return value.get<std::string>();
  }
  double number(const char* key) const {
    const json& value = at(key);
    if (!value.is_number()) throw wrong(fmt::format("'{}' is no number", key));
    return value.get<double>();
  }
  std::array<double, 3> three_numbers(const char* key) const {
    const json& value = at(key);
    std::array<double, 3> numbers{};
    const bool fits = value.is_array() && value.size() == numbers.size() &&
                      std::ranges::all_of(value, [](const json& each) { return each.is_number(); });
    if (!fits) throw wrong(fmt::format("'{}' is no list of 3 numbers", key));
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = value[i].get<double>();
    return numbers;
  }
  std::int64_t whole(const char* key, std::int64_t low, std::int64_t high) const {
    const json& value = at(key);
    // a number beyond 63 bits is unsigned: compared as such, for it would come out negative
    const bool fits = value.is_number_unsigned()
                          ? value.get<std::uint64_t>() <= static_cast<std::uint64_t>(high) &&
                                value.get<std::int64_t>() >= low
                          : value.is_number_integer() && value.get<std::int64_t>() >= low &&
                                value.get<std::int64_t>() <= high;
    if (!fits) throw wrong(fmt::format("'{}' is {:.40}; expected {} to {}", key, text_of(value), low, high));
    return value.get<std::int64_t>();
  }
  bool truth(const char* key) const {
    const json& value = at(key);
    if (!value.is_boolean()) throw wrong(fmt::format("'{}' is neither true nor false", key));
    return value.get<bool>();
  }
  std::map<std::string, std::string> texts(const char* key) const {
    const json& value = at(key);
    if (!value.is_object()) throw wrong(fmt::format("'{}' is no object", key));
    std::map<std::string, std::string> all;
    for (const auto& [name, item] : value.items()) {
      if (!item.is_string()) throw wrong(fmt::format("'{}' has a value that is no text", key));
      all.emplace(name, item.get<std::string>());
    }
    return all;
  }
  static std::string text_of(const json& value) {
    return value.dump(-1, ' ', true, json::error_handler_t::replace);
  }

 private:
  const json& object_;
  const std::filesystem::path& file_;
};

TrainingMachine read_machine(const Facts& facts) {
  return {.torch = facts.text("torch"),
          .device = facts.text("device"),
          .instructions = facts.text("instructions"),
          .threads = static_cast<int>(facts.whole("threads", 1, kMostThreads)),
          .ranks = facts.has("ranks") ? static_cast<int>(facts.whole("ranks", 1, kMostRanks)) : 1,
          .deterministic = !facts.has("deterministic") || facts.truth("deterministic")};
}

}  // namespace

std::string facts_text(const CheckpointFacts& facts) {
  const auto& machine = facts.machine;
  json text{{"format", kFormat},
            {"config_hash", facts.config_hash},
            {"step", facts.step},
            {"evaluated", facts.evaluated},
            {"loss_sum", facts.loss_sum},
            {"correct", facts.correct},
            {"seen", facts.seen},
            {"data_fingerprint", facts.data_fingerprint},
            {"weights", facts.weights},
            {"machine",
             {{"torch", machine.torch},
              {"device", machine.device},
              {"instructions", machine.instructions},
              {"threads", machine.threads},
              {"ranks", machine.ranks},
              {"deterministic", machine.deterministic}}}};
  if (facts.gradients != CheckpointFacts{}.gradients) text["gradients"] = facts.gradients;
  if (facts.best) text["best"] = *facts.best;
  if (facts.to_beat) text["to_beat"] = *facts.to_beat, text["waited"] = facts.waited;
  if (!facts.model.empty()) text["model"] = facts.model;
  return text.dump();
}

CheckpointFacts read_checkpoint_facts(const std::string& text, const std::filesystem::path& file) {
  const json object = json::parse(text, nullptr, /*allow_exceptions=*/false);
  const Facts facts{object, file};
  if (const json& format = facts.at("format"); format != kFormat)
    throw Error{Code::kFailedPrecondition,
                fmt::format("checkpoint {} has format {:.40}, this trainer reads {}", file.string(),
                            Facts::text_of(format), kFormat)};
  CheckpointFacts read{.config_hash = facts.text("config_hash"),
                       .step = facts.whole("step", 0, kMostSteps),
                       .evaluated = facts.whole("evaluated", 0, kMostSteps),
                       .loss_sum = facts.number("loss_sum"),
                       .correct = facts.number("correct"),
                       .seen = facts.whole("seen", 0, kMostSteps),
                       .machine = read_machine(Facts{facts.at("machine"), file})};
  if (facts.has("gradients")) read.gradients = facts.three_numbers("gradients");
  if (facts.has("to_beat")) {
    read.to_beat = facts.number("to_beat");
    read.waited = facts.whole("waited", 0, kMostSteps);
  }
  if (facts.has("best")) read.best = facts.number("best");
  if (facts.has("data_fingerprint")) read.data_fingerprint = facts.text("data_fingerprint");
  if (facts.has("weights")) read.weights = facts.texts("weights");
  if (facts.has("model")) read.model = facts.text("model");
  return read;
}

}  // namespace abl::protocol
