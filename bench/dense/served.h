// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/autocast_mode.h>
#include <torch/types.h>

#include <chrono>
#include <cstddef>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <string>

/// What the C++ sides of detection.py and segmentation.py have in common.
namespace abl::bench {

/// A line of /proc/self/status, in bytes.
inline double held(const std::string& which) {
  std::ifstream status{"/proc/self/status"};
  for (std::string name; status >> name; status.ignore(1000, '\n'))
    if (double kilobytes = 0; name == which && status >> kilobytes) return kilobytes * 1024;
  return 0;
}

template <class Run>
auto under_autocast(bool lowered, Run run) {
  at::autocast::set_autocast_dtype(torch::kCPU, torch::kBFloat16);
  at::autocast::set_autocast_enabled(torch::kCPU, lowered);
  auto result = run();
  at::autocast::set_autocast_enabled(torch::kCPU, false);
  at::autocast::clear_cache();
  return result;
}

/// By name; given whether in bfloat16.
using Tasks = std::map<std::string, std::function<void(bool lowered)>>;

/// Reads "TASK TYPE REPEATS" from stdin, does the task so often, and answers with the seconds it took;
/// "memory": with the most bytes that were held since it began, beside what is held now. Returns: the
/// program's exit code.
inline int serve(const char* program, const Tasks& tasks) {
  const double before = held("VmRSS:");
  for (std::string task, type; std::cin >> task;) {
    if (task == "memory") {
      std::cout << std::fixed << held("VmHWM:") - before << std::endl;
      continue;
    }
    int repeats = 0;
    if (!tasks.contains(task) || !(std::cin >> type >> repeats)) {
      std::cerr << program << ": no task '" << task << "'\n";
      return 2;
    }
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < repeats; ++i) tasks.at(task)(type == "bf16");
    std::cout << std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() << std::endl;
  }
  return 0;
}

}  // namespace abl::bench
