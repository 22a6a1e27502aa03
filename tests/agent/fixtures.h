// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ablate/v1/workers.pb.h"
#include "base/clock.h"
#include "tests/temporary_folder.h"

namespace abl::agent {

/// How long a test waits for what must come: it fails then, and never depends on how soon it came.
constexpr std::chrono::seconds kPatience{60};

/// Waits until `condition` holds. Returns: whether it did.
template <class Condition>
bool eventually(Condition condition) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds{5});
  }
  return true;
}

/// A zombie that nobody has reaped yet has no program any more.
inline bool alive(pid_t process) {
  return std::filesystem::exists("/proc/" + std::to_string(process) + "/exe");
}

class FakeClock final : public Clock {
 public:
  Time now() const override { return now_; }
  void advance(Milliseconds by) { now_ += by; }

 private:
  Time now_{Milliseconds{1'700'000'000'000}};
};

inline void write_text(const std::filesystem::path& file, const std::string& text) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream{file} << text;
}

/// A shell program as a trainer's file.
inline std::filesystem::path write_script(const std::filesystem::path& file, const std::string& body) {
  write_text(file, "#!/bin/sh\n" + body);
  ::chmod(file.c_str(), 0755);
  return file;
}

/// An assignment of a command trial that is a shell program.
inline ablate::v1::Assign shell_assignment(std::uint32_t run, const std::string& script) {
  ablate::v1::Assign assign;
  assign.set_run(run);
  assign.set_trial(run + 100);
  assign.set_attempt(1);
  assign.add_slots(0);
  assign.set_config_json(R"({"params":{},"seed":0})");
  for (const std::string& argument : {std::string{"sh"}, std::string{"-c"}, script})
    assign.add_argv(argument);
  return assign;
}

/// The points of one metric over all batches: (step, value).
inline std::vector<std::pair<std::uint32_t, double>> points(const std::vector<ablate::v1::RunBatch>& batches,
                                                            const std::string& name) {
  std::vector<std::pair<std::uint32_t, double>> result;
  for (const auto& batch : batches)
    for (const auto& series : batch.series())
      for (int i = 0; series.name() == name && i < series.steps_size(); ++i)
        result.emplace_back(series.steps(i), series.values(i));
  return result;
}

inline std::string log_of(const std::vector<ablate::v1::RunBatch>& batches) {
  std::string log;
  for (const auto& batch : batches) log += batch.log();
  return log;
}

}  // namespace abl::agent
