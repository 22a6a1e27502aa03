// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <set>
#include <sstream>

#include "base/child_process.h"
#include "planning/plan.h"
#include "protocol/command_line.h"
#include "protocol/trainer_program.h"
#include "storage/count_store.h"

namespace abl::planning {
namespace fs = std::filesystem;
namespace {

using Counts = std::map<std::string, double>;

constexpr auto kPatience = std::chrono::minutes{5};

/// One answer of `describe`: counts, or why there are none.
std::optional<Counts> read_counts(const std::string& line, std::string& missing) {
  const auto answer = nlohmann::json::parse(line, nullptr, false);
  if (answer.is_object() && answer.contains("counts")) return answer.at("counts").get<Counts>();
  missing = answer.is_object() ? answer.value("error", "ablate-trainer returned no counts")
                               : "invalid output of ablate-trainer: " + line;
  return std::nullopt;
}

}  // namespace

ModelCounter::ModelCounter(const fs::path& trainer, NamedPaths plugins)
    : trainer_{protocol::find_trainer(trainer)}, plugins_{std::move(plugins)} {}

ModelCounter::Result ModelCounter::count(const std::vector<std::string>& models, storage::Database* cache,
                                         std::map<std::string, Counts>* fresh,
                                         const std::stop_token& stop) const {
  Result result;
  std::set<std::string> unknown;
  for (const auto& model : models) {
    if (model.empty()) continue;  // a command's
    const auto known = cache ? storage::CountStore{*cache}.find(model) : std::nullopt;
    if (known)
      result.counts[model] = *known;
    else
      unknown.insert(model);
  }
  if (unknown.empty()) return result;
  if (trainer_.empty()) {
    result.missing = protocol::kNoTrainer;
    return result;
  }
  std::string input;
  for (const auto& model : unknown) input += model + "\n";
  try {
    std::istringstream answers{run_program(
        protocol::with_program(trainer_, protocol::describe_arguments(plugins_)), input, kPatience, stop)};
    std::size_t answers_read = 0;
    for (const auto& model : unknown) {
      std::string line;
      if (!std::getline(answers, line)) {
        result.missing =
            fmt::format("ablate-trainer answered for {} of {} models", answers_read, unknown.size());
        break;
      }
      ++answers_read;
      const auto counts = read_counts(line, result.missing);
      if (!counts) continue;
      result.counts[model] = *counts;
      if (fresh) (*fresh)[model] = *counts;
    }
  } catch (const std::exception& error) {  // a plan without counts is still a plan
    result.missing = error.what();
  }
  return result;
}

}  // namespace abl::planning
