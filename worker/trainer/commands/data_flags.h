// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <thread>

#include "base/command_line.h"
#include "base/error.h"
#include "base/nearest_name.h"
#include "config/data_sets.h"
#include "worker/trainer/commands/commands.h"
#include "worker/trainer/data/formats.h"

namespace abl::trainer {

/// What the commands on data have in common.
struct DataFlags {
  std::string root, name;
  int threads = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u, 64u));
  bool json = false;

  void declare(CLI::App& app) {
    app.add_option("--root", root, "Folder of the data set, or a packed file")
        ->type_name("FOLDER")
        ->required();
    app.add_option("--name", name, "The data set it is to be, such as imagenet-1k: its classes are counted")
        ->type_name("NAME");
    app.add_option("--threads", threads, "Images decoded at the same time")
        ->check(whole_number(1, 1024))
        ->type_name("N")
        ->capture_default_str();
    app.add_flag("--json", json, "One JSON object");
  }

  /// Every image of both splits, at full scale. Throws: what the format throws; Error{kInvalidArgument} for a
  /// name that is not known.
  DataSet open() const {
    config::DataConfig data{.name = name.empty() ? root : name};
    if (!name.empty()) {
      const auto* const known = config::find_data_set(name);
      std::vector<std::string> names;
      for (const auto& set : config::data_sets())
        if (!set.embedded) names.emplace_back(set.name);
      if (!known || known->embedded)
        throw Error{Code::kInvalidArgument, "--name: '" + name + "' is " +
                                                (known ? "drawn by the trainer; expected " : "not ") +
                                                any_of(names) + did_you_mean(name, names)};
      data.classes = known->classes;
    }
    return open_stored(data, root);
  }
};

}  // namespace abl::trainer
