// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <torch/types.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>

#include "base/command_line.h"
#include "base/error.h"
#include "base/file.h"
#include "base/named_path.h"
#include "config/data/data_sets.h"
#include "config/document/trial_document.h"
#include "protocol/command_line.h"
#include "worker/trainer/commands/commands.h"
#include "worker/trainer/commands/description.h"
#include "worker/trainer/commands/plugin_flag.h"
#include "worker/trainer/device/gpu.h"
#include "worker/trainer/training/training.h"

namespace abl::commands {

namespace flag = protocol::flag;

namespace {

using config::Json;
using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

/// "AMD EPYC 7B13", or "cpu" where nobody says.
std::string cpu_name() {
  std::ifstream in{"/proc/cpuinfo"};
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("model name"))
      if (const auto colon = line.find(": "); colon != std::string::npos) return line.substr(colon + 2);
  return "cpu";
}

/// Since the program was started: before `main` its libraries are loaded, which takes most of its start.
double seconds_of_process() {
  std::ifstream stat{"/proc/self/stat"};
  std::string text{std::istreambuf_iterator<char>{stat}, {}};
  std::istringstream fields{text.substr(text.rfind(')') + 2)};
  std::string field;
  for (int i = 3; i <= 22; ++i) fields >> field;  // the 22nd: ticks since the machine's start
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec) -
         std::stod(field) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

/// A step is to take no more of the time than this share, on a CPU thread that makes so many multiply-adds a
/// second.
constexpr double kOfTime = 0.3, kMacsPerSecond = 20e9;

/// Takes fewer images at a time where a whole batch would take longer than there is time for. Returns: how
/// many.
int shorten(config::TrialConfig& trial, Seconds budget, int threads) {
  auto& recipe = trial.recipe;
  const double image =
      3 * static_cast<double>(parts_of(trial).front().work.macs) / (kMacsPerSecond * threads);
  const double fits = std::max(4.0, kOfTime * budget.count() / std::max(1e-9, image));
  if (fits >= recipe.batch) return recipe.batch;
  const int whole = recipe.batch;
  recipe.batch = static_cast<int>(fits);
  recipe.accumulate =
      std::clamp(static_cast<int>(std::lround(static_cast<double>(recipe.accumulate) * recipe.batch / whole)),
                 1, recipe.batch);
  return recipe.batch;
}

/// Of the steps the middle one: what else the machine does for a moment is not theirs.
double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return values.size() % 2 == 1 ? *middle : (*middle + *std::max_element(values.begin(), middle)) / 2;
}

struct CalibrateFlags {
  std::string device = "cpu";
  int threads = 1;
  double seconds = 20;
  std::vector<std::string> data;
  PluginFlag plugins;
};

/// Folder that is gone with it.
struct Scratch {
  std::filesystem::path path;
  Scratch() {
    std::string name = (std::filesystem::temp_directory_path() / "ablate-calibrate-XXXXXX").string();
    if (!mkdtemp(name.data())) throw system_error("cannot create a folder below " + name, errno);
    path = name;
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
};

Json measure(const Json& document, const CalibrateFlags& flags, const NamedPaths& data, Seconds budget,
             double before) {
  const auto begun = Clock::now();
  const torch::Device device{flags.device};
  training::TrainingOptions options{.trial = config::read_trial_or_throw(document),
                                    .device = flags.device,
                                    .threads = flags.threads,
                                    .only_timed = true};
  const bool on_cpu = device.is_cpu();
  const int whole = options.trial.recipe.batch;
  const int batch = on_cpu ? shorten(options.trial, budget, flags.threads) : whole;
  if (const auto folder = data.find(options.trial.data.name); folder != data.end())
    options.data_root = folder->second;
  const Scratch folder;
  options.run_dir = folder.path;
  const auto* known = config::find_data_set(options.trial.data.name);
  const bool has_data = !options.data_root.empty() || (known && known->embedded);
  protocol::QuietEvents events;
  training::Training training{std::move(options), events};
  const double built = Seconds{Clock::now() - begun}.count();
  const bool is_part = batch < whole;
  const auto pace = training.measure(std::max(Seconds{0.2}, budget - Seconds{built}), is_part);
  const auto count = static_cast<double>(pace.steps.size());
  const double middle = median_of(pace.steps);
  double step = middle;
  if (is_part) {  // a line through both: what images do not take, the optimiser's, is taken once
    const double image = std::clamp((middle - median_of(pace.halves)) / (batch - std::max(1, batch / 2)),
                                    0.2 * middle / batch, middle / batch);
    step = middle + (whole - batch) * image;
  }
  double squares = 0;
  for (const double one : pace.steps) squares += (one - middle) * (one - middle);
  const double spread = count > 1 ? std::sqrt(squares / (count - 1)) / middle : 0;
  return {{"device", on_cpu ? cpu_name() : device::name_of(device)},
          {"threads", on_cpu ? flags.threads : 0},
          {"step_seconds", step},
          {"step_spread", spread},
          {"steps", pace.steps.size()},
          {"image_seconds", pace.image},
          {"start_seconds", before + built},
          {"checkpoint_seconds", pace.checkpoint},
          {"train_images", has_data ? pace.train_images : 0},
          {"val_images", has_data ? pace.val_images : 0},
          {"batch", is_part ? batch : 0}};
}

int calibrate(const CalibrateFlags& flags) {
  const NamedPaths data = parse_named_paths(kDataFlag, flags.data);
  expect_there(kDataFlag, data);
  flags.plugins.know();
  std::vector<Json> documents;
  for (std::string line; std::getline(std::cin, line);)
    if (!line.empty()) documents.push_back(Json::parse(line));
  const double before = seconds_of_process();
  const double base = device::peak_memory_bytes(torch::kCPU);
  const auto begun = Clock::now();
  for (std::size_t i = 0; i < documents.size(); ++i) {
    const Seconds left = Seconds{flags.seconds} - (Clock::now() - begun);
    const double share = 1.0 / static_cast<double>(documents.size());  // the last ones get most of theirs
    const Seconds budget =
        std::max(left / static_cast<double>(documents.size() - i), 0.7 * share * Seconds{flags.seconds});
    Json answer;
    try {
      answer = measure(documents[i], flags, data, budget, before);
      answer["base_bytes"] = base;
    } catch (const c10::Error& error) {
      answer = {{"error", error.what_without_backtrace()}};
    } catch (const std::exception& error) {
      answer = {{"error", error.what()}};
    }
    std::cout << answer.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n' << std::flush;
  }
  return kExitOk;
}

}  // namespace

Run declare_calibrate(CLI::App& app) {
  auto flags = std::make_shared<CalibrateFlags>();
  app.add_option("--seconds", flags->seconds, "Time for all trials together, without the program's start")
      ->check(seconds())
      ->type_name("SECONDS")
      ->capture_default_str();
  app.add_option(flag::kThreads, flags->threads, "Compute threads")
      ->check(whole_number(1, 1024))
      ->type_name("N")
      ->capture_default_str();
  app.add_option(flag::kDevice, flags->device, "cpu, cuda or cuda:N")
      ->type_name("DEVICE")
      ->capture_default_str();
  flags->plugins.declare(app);
  app.add_option(kDataFlag.flag, flags->data,
                 "Folder of a data set that trials name (repeatable); without it images are drawn")
      ->type_name("NAME=FOLDER");
  app.footer(
      "Example:\n  ablate-trainer calibrate --threads 2 --data cifar10=/data/cifar10 < trials.jsonl\n");
  return [flags]() -> int { return calibrate(*flags); };
}

}  // namespace abl::commands
