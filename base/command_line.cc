// SPDX-License-Identifier: Apache-2.0
#include "base/command_line.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <vector>

#include "base/enum_names.h"
#include "base/error.h"
#include "base/log.h"
#include "base/nearest_name.h"

namespace abl {
namespace {

/// Groups of flags are commands without a name to CLI11.
bool is_command(const CLI::App* app) { return !app->get_name().empty(); }

std::vector<const CLI::App*> parts_of(const CLI::App& app, bool commands) {
  return app.get_subcommands([commands](const CLI::App* part) { return is_command(part) == commands; });
}

std::vector<std::string> flags_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* option : app.get_options())
    for (const auto& name : option->get_lnames()) names.push_back("--" + name);
  for (const auto* group : parts_of(app, false))
    for (auto& name : flags_of(*group)) names.push_back(std::move(name));
  return names;
}

/// Whether a word is a flag of the program itself, which may stand before its command: `ablate --json ls`.
bool is_flag_of(const CLI::App& app, const std::string& word) {
  const CLI::Option* option = word.starts_with("--") ? app.get_option_no_throw(word) : nullptr;
  return option && option->get_expected_max() == 0;
}

/// The command that the first words name; `at` is left behind them.
const CLI::App& named(const CLI::App& app, int argc, const char* const* argv, int& at) {
  const auto commands = parts_of(app, true);
  if (commands.empty()) return app;
  while (at < argc && is_flag_of(app, argv[at])) ++at;
  if (at >= argc || argv[at][0] == '-') return app;
  const std::string word = argv[at++];
  std::vector<std::string> names;
  for (const auto* command : commands) {
    if (command->get_name() == word) return named(*command, argc, argv, at);
    names.push_back(command->get_name());
  }
  throw Error{Code::kInvalidArgument, fmt::format("unknown command '{}'{}", word, did_you_mean(word, names))};
}

/// What is wrong with the number of a flag's values: CLI11 has one error for all of it.
std::string count_of(const std::string& text) {
  const std::string flag = text.substr(0, text.find_first_of(": "));
  if (text.find("At Most") != text.npos) return flag + ": it is given more than once, expected once";
  if (text.find("flag override") != text.npos) return flag + ": it takes no value";
  return flag + ": a value is missing";
}

/// A complaint names the flag; where the value came from the environment, what to change is the variable.
std::string blaming_the_variable(const CLI::App& app, const std::string& text) {
  for (const auto* option : app.get_options()) {
    const char* value = option->get_envname().empty() ? nullptr : std::getenv(option->get_envname().c_str());
    if (!value) continue;
    const std::string flag = option->get_name() + ": ";
    if (text.starts_with(fmt::format("{}'{}' ", flag, value)))
      return fmt::format("${}: {}", option->get_envname(), text.substr(flag.size()));
  }
  for (const auto* part : app.get_subcommands([](const CLI::App*) { return true; }))
    if (auto found = blaming_the_variable(*part, text); found != text) return found;
  return text;
}

class PlainHelp final : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    if (option->get_type_size() == 0 || option->get_type_name().empty()) return "";
    const bool any_number = option->get_expected_max() == CLI::detail::expected_max_vector_size;
    return " " + option->get_type_name() + (any_number ? " ..." : "");
  }

  std::string make_option_desc(const CLI::Option* option) const override {
    std::vector<std::string> otherwise;
    if (option->get_required()) otherwise.emplace_back("required");
    if (!option->get_envname().empty()) otherwise.push_back("$" + option->get_envname());
    if (!option->get_default_str().empty()) otherwise.push_back(option->get_default_str());
    const auto& text = option->get_description();
    return otherwise.empty() ? text : fmt::format("{} [{}]", text, fmt::join(otherwise, ", "));
  }

  std::string make_expanded(const CLI::App* app) const override {
    return is_command(app) ? Formatter::make_expanded(app) : make_groups(app, CLI::AppFormatMode::Sub);
  }
};

}  // namespace

void use_plain_help(CLI::App& app) {
  const auto help = std::make_shared<PlainHelp>();
  help->column_width(34);
  for (const auto& [word, ours] :
       {std::pair{"OPTIONS", "FLAGS"}, {"SUBCOMMAND", "COMMAND"}, {"Positionals", "Arguments"}})
    help->label(word, ours);
  app.formatter(help);
  app.option_defaults()->group("Flags");
  app.set_help_flag("-h,--help", "Print this and exit")->group("Flags");
}

void check_spelling(const CLI::App& app, int argc, const char* const* argv) {
  int at = 1;
  const auto known = flags_of(named(app, argc, argv, at));
  for (; at < argc && std::string_view{argv[at]} != "--"; ++at) {
    const std::string name = std::string{argv[at]}.substr(0, std::string_view{argv[at]}.find('='));
    if (!name.starts_with("--") || std::ranges::find(known, name) != known.end()) continue;
    throw Error{Code::kInvalidArgument, fmt::format("unknown flag '{}'{}", name, did_you_mean(name, known))};
  }
}

std::string complaint(const CLI::App& app, const CLI::ParseError& error) {
  std::string text = error.what();
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error)) text = count_of(text);
  if (dynamic_cast<const CLI::ExtrasError*>(&error))
    text = "unexpected argument" + text.substr(text.rfind(": ") + 1);
  text.erase(text.find_last_not_of("\r\n ") + 1);
  std::ranges::replace(text, '\n', ' ');
  text = blaming_the_variable(app, text);
  std::string command = app.get_name();
  const CLI::App* last = &app;
  for (auto given = app.get_subcommands(); !given.empty(); given = last->get_subcommands()) {
    last = given[0];
    command += " " + last->get_name();
  }
  if (text.starts_with("A subcommand is required")) {
    std::vector<std::string> names;
    for (const auto* part : parts_of(*last, true)) names.push_back(part->get_name());
    text = fmt::format("expected a command: {}", fmt::join(names, ", "));
  }
  return fmt::format("{}; see '{} --help'", text, command);
}

CLI::Option* add_log_format(CLI::App& app) {
  const auto take = [](const std::string& given) { set_log_format(value_named<LogFormat>(given).value()); };
  return app
      .add_option_function<std::string>("--log-format", take,
                                        "Log lines for people, or as an object of JSON each [text]")
      ->envname("ABLATE_LOG_FORMAT")
      ->check(one_of(names_of<LogFormat>()))
      ->type_name(fmt::format("{}", fmt::join(names_of<LogFormat>(), "|")));
}

CLI::Validator one_of(const std::vector<std::string>& words) {
  const auto check = [words](const std::string& given) {
    if (std::ranges::find(words, given) != words.end()) return std::string{};
    return fmt::format("'{}' is not {}{}", given, any_of(words), did_you_mean(given, words));
  };
  return CLI::Validator{check, "", ""};
}

CLI::Validator seconds() {
  const auto check = [](const std::string& given) {
    double value = 0;
    const auto [end, error] = std::from_chars(given.data(), given.data() + given.size(), value);
    const bool right =
        error == std::errc{} && end == given.data() + given.size() && std::isfinite(value) && value >= 0;
    return right ? std::string{} : fmt::format("'{}' is not a number of seconds, 0 or more", given);
  };
  return CLI::Validator{check, "", ""};
}

CLI::Validator whole_number(long long lowest, long long highest) {
  const auto check = [lowest, highest](const std::string& given) {
    long long value = 0;
    const auto [end, error] = std::from_chars(given.data(), given.data() + given.size(), value);
    const bool right =
        error == std::errc{} && end == given.data() + given.size() && value >= lowest && value <= highest;
    return right ? std::string{}
                 : fmt::format("'{}' is not a whole number from {} to {}", given, lowest, highest);
  };
  return CLI::Validator{check, "", ""};
}

}  // namespace abl
