// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <torch/types.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/child_process.h"
#include "base/error.h"
#include "models/weights/safetensors.h"

namespace abl::ranks {

using nlohmann::json;

/// ablate-trainer, started as a worker starts it; its events are read one by one. stderr is this test's.
class TrainerProgram {
 public:
  explicit TrainerProgram(const std::vector<std::string>& arguments) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw system_error("cannot make a pipe", errno);
    ChildOptions options;
    options.argv = {ABLATE_BIN_DIR "/ablate-trainer", "train"};
    options.argv.insert(options.argv.end(), arguments.begin(), arguments.end());
    options.stdout_fd = ends[1];
    options.grace = std::chrono::milliseconds{0};
    child_ = std::make_unique<ChildProcess>(options);
    ::close(ends[1]);
    out_ = ::fdopen(ends[0], "r");
  }
  ~TrainerProgram() {
    child_.reset();
    ::fclose(out_);
  }
  TrainerProgram(const TrainerProgram&) = delete;
  TrainerProgram& operator=(const TrainerProgram&) = delete;

  ChildProcess& child() { return *child_; }

  /// Waits for the next event; nothing after the last.
  std::optional<json> next() {
    char* line = nullptr;
    std::size_t room = 0;
    const ssize_t got = ::getline(&line, &room, out_);
    const std::unique_ptr<char, void (*)(void*)> owner{line, ::free};
    if (got < 0) return std::nullopt;
    return json::parse(line, line + got);
  }
  /// Waits until a step is reported.
  void reach(std::int64_t step) {
    while (const auto event = next())
      if (event->at("event") == "metric" && event->at("step") >= step) return;
  }

 private:
  std::unique_ptr<ChildProcess> child_;
  FILE* out_ = nullptr;
};

/// What a run said from its beginning to its end.
struct Said {
  json start, end;
  std::map<std::string, std::map<std::int64_t, double>> points;  ///< of losses and accuracies
  std::filesystem::path checkpoint;
  std::string sha256;
  int exit_code = 0;

  std::map<std::string, torch::Tensor> state() const { return models::read_safetensors(checkpoint).tensors; }
};

/// Reads the rest of what a program says.
inline Said read_all(TrainerProgram& program) {
  Said said;
  while (const auto event = program.next()) {
    const std::string kind = event->at("event");
    if (kind == "start") said.start = *event;
    if (kind == "end") said.end = *event;
    if (kind == "checkpoint")
      said.checkpoint = event->at("path").get<std::string>(), said.sha256 = event->at("sha256");
    if (kind != "metric") continue;
    for (const auto& [name, value] : event->at("values").items())
      if (value.is_number() && (name.starts_with("train/") || name.starts_with("val")))
        said.points[name][event->at("step")] = value.get<double>();
  }
  said.exit_code = program.child().wait().code;
  return said;
}

}  // namespace abl::ranks
