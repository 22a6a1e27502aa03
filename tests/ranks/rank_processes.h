// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "base/file.h"

namespace abl::ranks {

/// The processes of a trainer's ranks, in their order.
inline std::vector<pid_t> ranks_of(pid_t trainer) {
  std::map<int, pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator{"/proc"}) {
    const std::string name = entry.path().filename();
    if (!std::isdigit(static_cast<unsigned char>(name[0]))) continue;
    try {
      const auto status = read_file(entry.path() / "status"), line = read_file(entry.path() / "cmdline");
      const auto rank = line.find(std::string{"--rank\0", 7});
      if (rank != std::string::npos &&
          status.find("\nPPid:\t" + std::to_string(trainer) + "\n") != std::string::npos)
        found[std::stoi(line.substr(rank + 7))] = std::stoi(name);
    } catch (const std::exception&) {  // it ended meanwhile
    }
  }
  std::vector<pid_t> pids;
  for (const auto& [rank, pid] : found) pids.push_back(pid);
  return pids;
}

inline bool lives(pid_t pid) {
  std::ifstream status{"/proc/" + std::to_string(pid) + "/stat"};
  const std::string text{std::istreambuf_iterator<char>{status}, {}};
  return !text.empty() && text.find(") Z ") == std::string::npos;
}

inline void wait_for_the_end_of(pid_t pid) {
  while (lives(pid)) ::usleep(1000);
}

}  // namespace abl::ranks
