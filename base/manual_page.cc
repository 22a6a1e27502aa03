// SPDX-License-Identifier: Apache-2.0
#include "base/manual_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <string_view>

namespace abl {
namespace {

/// Text as roff prints it: no escape, no hyphen that may break a flag, no line that is taken for a request.
std::string roff(std::string_view text) {
  std::string result;
  bool line_start = true;
  for (const char c : text) {
    if (line_start && (c == '.' || c == '\'')) result += "\\&";
    if (c == '\\')
      result += "\\e";
    else if (c == '-')
      result += "\\-";
    else
      result += c;
    line_start = c == '\n';
  }
  return result;
}

std::string upper(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text;
}

/// Options of a command and of its groups, which are commands without a name to CLI11.
std::vector<const CLI::Option*> options_of(const CLI::App& app) {
  std::vector<const CLI::Option*> options;
  for (const auto* option : app.get_options())
    if (!option->get_group().empty()) options.push_back(option);  // no group: hidden
  for (const auto* group : app.get_subcommands([](const CLI::App* part) { return part->get_name().empty(); }))
    for (const auto* option : options_of(*group)) options.push_back(option);
  return options;
}

std::string described(const CLI::Option& option) {
  std::string names;
  for (const auto& name : option.get_snames()) names += (names.empty() ? "\\-" : ", \\-") + roff(name);
  for (const auto& name : option.get_lnames()) names += (names.empty() ? "\\-\\-" : ", \\-\\-") + roff(name);
  if (names.empty()) names = roff(option.get_name());
  std::string value;
  if (option.get_items_expected_max() > 0 && !option.get_positional())
    value = " \\fI" + roff(option.get_type_name()) + "\\fR";
  std::string text = fmt::format(".TP\n\\fB{}\\fR{}\n{}\n", names, value, roff(option.get_description()));
  if (!option.get_default_str().empty())
    text += fmt::format("(default: {})\n", roff(option.get_default_str()));
  return text;
}

/// "Example:\n  …\n\nExit codes:\n  …", as it is laid out.
std::string footer_of(const CLI::App& app) {
  if (app.get_footer().empty()) return "";
  return ".PP\n.nf\n" + roff(app.get_footer()) + "\n.fi\n";
}

std::string usage_of(const CLI::App& app, const std::string& path) {
  std::string usage = "\\fB" + roff(path) + "\\fR";
  for (const auto* option : options_of(app))
    if (option->get_positional()) usage += " \\fI" + roff(option->get_name()) + "\\fR";
  return usage + " [\\fIFLAGS\\fR]";
}

std::string commands_of(const CLI::App& app, const std::string& path) {
  std::string text;
  for (const auto* command :
       app.get_subcommands([](const CLI::App* part) { return !part->get_name().empty(); })) {
    const std::string name = path + " " + command->get_name();
    text += fmt::format(".SS {}\n{}\n.PP\n{}\n", roff(command->get_name()), usage_of(*command, name),
                        roff(command->get_description()));
    for (const auto* option : options_of(*command)) text += described(*option);
    text += footer_of(*command) + commands_of(*command, name);
  }
  return text;
}

}  // namespace

std::string manual_page(const CLI::App& app) {
  const std::string name = app.get_name();
  std::string text = fmt::format(".TH {} 1 \"\" \"{}\" \"ablate\"\n.SH NAME\n{} \\- {}\n", upper(name),
                                 roff(app.version()), roff(name), roff(app.get_description()));
  const std::string commands = commands_of(app, name);
  text += fmt::format(".SH SYNOPSIS\n\\fB{}\\fR {}\n", roff(name),
                      commands.empty() ? "[\\fIFLAGS\\fR]" : "\\fICOMMAND\\fR [\\fIFLAGS\\fR]");
  text += ".SH FLAGS\n";
  for (const auto* option : options_of(app)) text += described(*option);
  if (!commands.empty()) text += ".SH COMMANDS\n" + commands;
  return text + ".SH EXAMPLE AND EXIT CODES\n" + footer_of(app);
}

void add_manual_flag(CLI::App& app) {
  app.add_flag_callback(
      "--man",
      [&app] {
        std::fputs(manual_page(app).c_str(), stdout);
        throw CLI::Success{};
      },
      "Print the man page and exit: --man | man -l -");
}

}  // namespace abl
