// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/nearest_name.h"

namespace abl::cli {

const std::vector<Command>& commands() {
  constexpr const char* kDone = "done";
  constexpr const char* kInternal = "internal error";
  static const std::vector<Command> table{
      {"up", "Start scheduler, worker and dashboard on this machine",
       "ablate up --slots 2 --data cifar10=/data/cifar10\nablate up --detach",
       "stopped by Ctrl-C or 'ablate down'; with --detach: it is running",
       "scheduler or worker keeps exiting", declare_up},
      {"down", "Stop what 'ablate up' started", "ablate down", "stopped, or was not running",
       "it did not stop in time", declare_down},
      {"validate", "Check sweep files; nothing is stored", "ablate validate sweep.yaml",
       "every file is valid", kInternal, declare_validate},
      {"plan", "Show what a sweep would run: rows, params, FLOPs, what is stored", "ablate plan sweep.yaml",
       kDone, kInternal, declare_plan},
      {"submit", "Submit a sweep; resubmitting the same file changes nothing",
       "ablate submit sweep.yaml --watch", "it is stored; with --watch: it completed",
       "with --watch: it failed or was cancelled", declare_submit},
      {"ls", "List sweeps",
       "ablate ls\nablate ls --store results.db --json\nablate ls msf-sharing --exit-code", kDone,
       "with --exit-code: a listed sweep has not completed, or lacks a value", declare_ls},
      {"show", "Show a sweep and its trials", "ablate show msf-sharing", kDone, kInternal, declare_show},
      {"watch", "Follow a sweep: bars, rates, ETA and the table filling", "ablate watch msf-sharing",
       "the sweep completed", "the sweep failed or was cancelled", declare_watch},
      {"logs", "Print the log of a run", "ablate logs 17 --follow\nablate logs msf-sharing/r/0", kDone,
       kInternal, declare_logs},
      {"verify", "Replay the end of a run and check that it is bit-identical",
       "ablate verify 17\nablate verify msf-sharing/r/0 --from-start", "bit-identical", "not bit-identical",
       declare_verify},
      {"cancel", "Cancel a sweep; stored results stay", "ablate cancel msf-sharing", kDone, kInternal,
       declare_cancel},
      {"pause", "Stop starting trials of a sweep", "ablate pause msf-sharing --stop-running", kDone,
       kInternal, declare_pause},
      {"resume", "Resume a paused sweep", "ablate resume msf-sharing", kDone, kInternal, declare_resume},
      {"retry", "Requeue failed and cancelled trials of a sweep, or completed ones with missing results",
       "ablate retry msf-sharing --row r", kDone, kInternal, declare_retry},
      {"table", "Print a sweep's table", "ablate table msf-sharing --format latex > table.tex", kDone,
       kInternal, declare_table},
      {"export", "Write every metric point of a sweep",
       "ablate export msf-sharing --format csv -o points.csv", kDone, kInternal, declare_export},
      {"workers", "List workers, their slots and what runs there", "ablate workers", kDone, kInternal,
       declare_workers},
      {"dashboard", "Serve a results file's dashboard, read-only",
       "ablate dashboard --store results.db --port 8080", "stopped by Ctrl-C, or it is served already",
       kInternal, declare_dashboard},
      {"data", "Check the images of a data set, or pack them into one file that trainers share",
       "ablate data check --root /data/imagenet --name imagenet-1k\n"
       "ablate data pack --root /data/imagenet --output /data/imagenet.abldata --bound 512",
       "every image can be decoded; the packed file is there", "an image is damaged", declare_data},
      {"completion", "Print a completion script for bash, zsh or fish",
       "source <(ablate completion bash)\nablate completion fish > ~/.config/fish/completions/ablate.fish",
       kDone, kInternal, declare_completion},
  };
  return table;
}

void add_home(CLI::App& app, Context& context) {
  app.add_option("--home", context.home_flag,
                 "Folder of 'ablate up': store, logs, runs [$ABLATE_HOME, ~/.local/state/ablate]")
      ->type_name("FOLDER")
      ->check(CLI::Validator{
          [](const std::string& folder) { return folder.empty() ? "empty; expected a folder" : ""; }, "",
          ""});
}

void add_json(CLI::App& app, Context& context) { app.add_flag("--json", context.json, "Print JSON"); }

void add_scheduler(CLI::App& app, Context& context) {
  add_home(app, context);
  app.add_option("--scheduler", context.scheduler_flag,
                 "Where the scheduler listens: unix:/path or host:port [$ABLATE_SCHEDULER]")
      ->type_name("ADDRESS");
  add_json(app, context);
}

void add_source(CLI::App& app, Context& context) {
  add_scheduler(app, context);
  app.add_option("--store", context.store_flag, "Read this results file instead of asking the scheduler")
      ->type_name("FILE");
}

CLI::Option* add_sweep(CLI::App& app, std::string& sweep) {
  return app.add_option("SWEEP", sweep, "Name of the sweep")->required()->type_name("");
}

CLI::Option* add_choice(CLI::App& app, const std::string& name, std::string& value,
                        const std::vector<std::string>& words, const std::string& description,
                        const std::map<std::string, std::string>& meant) {
  const auto check = [words, meant](const std::string& given) {
    if (std::ranges::find(words, given) != words.end()) return std::string{};
    const auto known = meant.find(given);
    return fmt::format("'{}' is not {}{}", given, any_of(words),
                       known == meant.end() ? did_you_mean(given, words)
                                            : fmt::format("; did you mean '{}'?", known->second));
  };
  return app.add_option(name, value, description)
      ->check(CLI::Validator{check, "", ""})
      ->type_name(fmt::format("{}", fmt::join(words, "|")));
}

}  // namespace abl::cli
