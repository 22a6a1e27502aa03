// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/nearest_name.h"

namespace abl::cli {

const std::vector<const Command*>& commands() {
  static const auto kSorted = [] {
    std::vector<const Command*> table{all_commands().begin(), all_commands().end()};
    std::ranges::sort(table, {}, &Command::place);
    return table;
  }();
  return kSorted;
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
