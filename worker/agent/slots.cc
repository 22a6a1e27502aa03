// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/slots.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <thread>

#include "base/child_process.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"

namespace abl::agent {
namespace fs = std::filesystem;
namespace {

using namespace std::chrono_literals;

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

std::vector<std::string> parts(const std::string& text, char separator) {
  std::vector<std::string> result;
  std::istringstream in{text};
  for (std::string part; std::getline(in, part, separator);) result.push_back(trimmed(part));
  return result;
}

/// The driver's own list, for machines without nvidia-smi.
std::vector<Gpu> driver_gpus() {
  const fs::path folder = "/proc/driver/nvidia/gpus";
  std::vector<Gpu> gpus;
  std::error_code absent;
  for (const auto& entry : fs::directory_iterator{folder, absent}) {
    Gpu gpu;
    for (const auto& line : parts(read_file(entry.path() / "information"), '\n')) {
      if (line.starts_with("Model:")) gpu.name = trimmed(line.substr(6));
      if (line.starts_with("Device Minor:")) gpu.index = trimmed(line.substr(13));
    }
    if (!gpu.index.empty()) gpus.push_back(gpu);
  }
  std::sort(gpus.begin(), gpus.end(),
            [](const Gpu& a, const Gpu& b) { return std::stoi(a.index) < std::stoi(b.index); });
  return gpus;
}

std::vector<Gpu> find_gpus() {
  try {
    return parse_gpus(run_program(
        {"nvidia-smi", "--query-gpu=index,name,memory.total", "--format=csv,noheader,nounits"}, "", 20s));
  } catch (const Error& error) {
    if (error.code() != Code::kNotFound)
      log_warning("{}; asking the driver for its GPUs instead", error.what());
    return driver_gpus();
  }
}

/// The GPUs that CUDA_VISIBLE_DEVICES leaves, in its order. As in CUDA, the list ends at the first entry that
/// is no device.
std::vector<Slot> gpu_slots(const Machine& machine) {
  std::vector<Slot> slots;
  const auto add = [&](const std::string& visible, const std::string& name, std::uint64_t memory) {
    slots.push_back({.device = fmt::format("cuda:{}", slots.size()),
                     .name = name,
                     .threads = 1,
                     .visible = visible,
                     .memory = memory});
  };
  if (!machine.visible) {
    for (const Gpu& gpu : machine.gpus) add(gpu.index, gpu.name, gpu.memory);
    return slots;
  }
  if (machine.gpus.empty()) return slots;
  for (const auto& entry : parts(*machine.visible, ',')) {
    const auto gpu = std::find_if(machine.gpus.begin(), machine.gpus.end(),
                                  [&](const Gpu& it) { return it.index == entry; });
    if (gpu != machine.gpus.end()) {
      add(entry, gpu->name, gpu->memory);
    } else if (entry.starts_with("GPU-") || entry.starts_with("MIG-")) {
      // a part of a GPU has less than the GPU; of a whole one it is known where all are alike
      const bool alike = std::ranges::all_of(
          machine.gpus, [&](const Gpu& it) { return it.memory == machine.gpus.front().memory; });
      add(entry, machine.gpus.front().name,
          entry.starts_with("GPU-") && alike ? machine.gpus.front().memory : 0);
    } else {
      break;
    }
  }
  return slots;
}

}  // namespace

Machine look_at_machine() {
  Machine machine{.cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency())),
                  .gpus = find_gpus(),
                  .visible = {}};
  if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES")) machine.visible = visible;
  return machine;
}

std::vector<Gpu> parse_gpus(const std::string& csv) {
  std::vector<Gpu> gpus;
  for (const auto& line : parts(csv, '\n')) {
    const auto fields = parts(line, ',');
    if (fields.size() < 2) continue;
    Gpu gpu{.index = fields[0], .name = fields[1]};
    if (std::uint64_t mib = 0; fields.size() > 2)  // "[N/A]" where the memory is the machine's
      if (const auto [end, error] =
              std::from_chars(fields[2].data(), fields[2].data() + fields[2].size(), mib);
          error == std::errc{})
        gpu.memory = mib << 20;
    gpus.push_back(std::move(gpu));
  }
  return gpus;
}

std::vector<Slot> plan_slots(const Machine& machine, int count, int threads) {
  if (count < 0)
    throw Error{Code::kInvalidArgument, fmt::format("--slots is {}, a positive number was expected", count)};
  if (threads < 0)
    throw Error{Code::kInvalidArgument,
                fmt::format("--threads is {}, a positive number was expected", threads)};
  std::vector<Slot> slots = gpu_slots(machine);
  if (!slots.empty()) {
    if (count > 0 && slots.size() > static_cast<std::size_t>(count))
      slots.resize(static_cast<std::size_t>(count));
    for (Slot& slot : slots)
      slot.threads = threads > 0 ? threads : std::max(1, machine.cores / static_cast<int>(slots.size()));
    return slots;
  }
  if (count == 0) count = std::max(1, machine.cores / 2);
  if (threads == 0) threads = std::max(1, machine.cores / count);
  const Slot share{.device = "cpu",
                   .name = threads == 1 ? "1 thread" : fmt::format("{} threads", threads),
                   .threads = threads,
                   .visible = {}};
  return std::vector<Slot>(static_cast<std::size_t>(count), share);
}

}  // namespace abl::agent
