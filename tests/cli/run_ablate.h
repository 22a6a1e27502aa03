// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/child_process.h"
#include "base/file.h"

namespace abl::cli {

/// What a run of the real program left behind.
struct Outcome {
  int code = -1;
  std::string out, err;
};

/// A home folder of its own for the real `ablate`, removed at the end.
class Home {
 public:
  Home() {
    std::string pattern = (std::filesystem::temp_directory_path() / "ablate-home-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~Home() { std::filesystem::remove_all(folder_); }
  Home(const Home&) = delete;
  Home& operator=(const Home&) = delete;

  const std::filesystem::path& folder() const { return folder_; }
  std::filesystem::path file(const std::string& name, const std::string& text) const {
    write_file_atomically(folder_ / name, text);
    return folder_ / name;
  }

  /// `program`: the built one, unless it is given.
  Outcome run(std::vector<std::string> arguments, std::map<std::string, std::string> environment = {},
              const std::filesystem::path& program = ABLATE_BIN_DIR "/ablate") const {
    arguments.insert(arguments.begin(), program.string());
    environment.insert({{"ABLATE_HOME", folder_.string()}, {"ABLATE_SCHEDULER", ""}});
    const auto out = folder_ / "stdout", err = folder_ / "stderr";
    ChildOptions options{.argv = arguments, .environment = environment};
    options.stdout_fd = open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    options.stderr_fd = open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ChildProcess child{options};
    close(options.stdout_fd);
    close(options.stderr_fd);
    const ChildExit exit = child.wait();
    return {
        .code = exit.signal ? 128 + exit.signal : exit.code, .out = read_file(out), .err = read_file(err)};
  }
  /// Runs a copy of `ablate` that has this shell script as its trainer, or none.
  Outcome run_with_trainer(const std::vector<std::string>& arguments, const std::string& trainer) const {
    const auto copy = folder_ / "ablate";
    if (!std::filesystem::exists(copy))
      std::filesystem::copy_file(std::string{ABLATE_BIN_DIR} + "/ablate", copy);
    if (!trainer.empty())
      std::filesystem::permissions(file("ablate-trainer", "#!/bin/sh\n" + trainer + "\n"),
                                   std::filesystem::perms::owner_all);
    return run(arguments, {{"ABLATE_TRAINER", ""}}, copy);
  }

 private:
  std::filesystem::path folder_;
};

/// A sweep of two rows and two seeds on the embedded images.
inline const char* const kSweep = R"(ablate: 1
name: two-rows
base:
  model:  {family: simple-vit, dim: 32, depth: 2, heads: 2, dim_head: 16, patch: 4}
  data:   {name: shapes, train_images: 200, val_images: 50}
  recipe: {use: demo, epochs: 1}
rows:
  - {id: orig, label: "Orig.", set: {}}
  - {id: msf, label: "MSF, full", set: {model.attention.kernel: gaussian, model.attention.probe: inside}, paper: {acc: "79.79"}}
seeds: [0, 1]
table: {baseline: orig, columns: [{name: acc, metric: val/top1, take: last}]}
)";

}  // namespace abl::cli
