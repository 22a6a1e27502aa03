// SPDX-License-Identifier: Apache-2.0
#include "cli/parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <regex>

#include "base/error.h"
#include "base/nearest_name.h"

namespace abl::cli {
namespace {

std::string indented(std::string_view text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    result += "  " + std::string{text.substr(at, end - at)} + "\n";
    at = end + 1;
  }
  return result;
}

std::string exit_codes(const char* success, const char* failure) {
  return fmt::format(
      "Exit codes:\n  0    {}\n  1    {}\n  2    bad input: a flag, a sweep file, a name that does not "
      "exist\n"
      "  3    a scheduler does not answer; a port or file is in use; a disk is full\n  130  interrupted",
      success, failure);
}

std::vector<std::string> command_names() {
  std::vector<std::string> names;
  for (const auto& command : commands()) names.emplace_back(command.name);
  return names;
}

std::vector<std::string> flag_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* option : app.get_options())
    for (const auto& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

/// What CLI11 would report only after other complaints, or without the nearest name.
void check_spelling(const CLI::App& parser, int argc, const char* const* argv) {
  if (argc < 2) return;
  const std::string first = argv[1];
  const CLI::App* app = &parser;
  if (!first.starts_with('-')) {
    const auto names = command_names();
    if (std::ranges::find(names, first) == names.end())
      throw Error{Code::kInvalidArgument,
                  fmt::format("unknown command '{}'{}", first, did_you_mean(first, names))};
    app = parser.get_subcommand(first);
  }
  for (int at = 1; at < argc && std::string_view{argv[at]} != "--"; ++at) {
    const std::string name = std::string{argv[at]}.substr(0, std::string_view{argv[at]}.find('='));
    if (!name.starts_with("--") || app->get_option_no_throw(name)) continue;
    throw Error{Code::kInvalidArgument,
                fmt::format("unknown flag '{}'{}", name, did_you_mean(name, flag_names(*app)))};
  }
}

std::string help_hint(const CLI::App& parser) {
  const auto given = parser.get_subcommands();
  return fmt::format("see 'ablate {}--help'", given.empty() ? "" : given[0]->get_name() + " ");
}

/// CLI11's complaint as one line.
std::string message_of(const CLI::App& parser, const CLI::ParseError& error) {
  std::string text = error.what();
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error))
    text = text.substr(0, text.find(':')) + ": a value is missing";
  if (dynamic_cast<const CLI::ExtrasError*>(&error))
    text = "unexpected argument" + text.substr(text.rfind(": ") + 1);
  text.erase(text.find_last_not_of("\r\n ") + 1);
  std::ranges::replace(text, '\n', ' ');
  return fmt::format("{}; {}", text, help_hint(parser));
}

/// A message about a place in a file stands alone, so that editors find the place.
void print_error(const Context& context, const std::string& text) {
  static const std::regex place{"^[^\n]+:[0-9]+:[0-9]+: "};
  if (std::regex_search(text, place)) return context.err.line(text);
  context.err.line(context.err.paint(Style::kRed, "error: ") + text);
}

}  // namespace

std::unique_ptr<CLI::App> make_parser(Context& context, Run& chosen) {
  auto parser =
      std::make_unique<CLI::App>("Ablation studies of vision transformers, table by table.", "ablate");
  parser->require_subcommand(1);
  parser->get_formatter()->column_width(34);
  for (const auto& [word, ours] : {std::pair{"OPTIONS", "FLAGS"},
                                   {"SUBCOMMAND", "COMMAND"},
                                   {"Positionals", "Arguments"},
                                   {"REQUIRED", ""}})
    parser->get_formatter()->label(word, ours);
  parser->option_defaults()->group("Flags");  // commands inherit it
  parser->set_help_flag("-h,--help", "Print this and exit");
  parser->set_version_flag("--version", std::string{"ablate "} + ABLATE_VERSION,
                           "Print the version and exit");
  parser->footer("Example:\n  ablate up --detach && ablate submit sweep.yaml --watch\n\n" +
                 exit_codes("done", "the work itself failed: a trial, a sweep") +
                 "\n\n'ablate COMMAND --help' says more.");
  for (const auto& command : commands()) {
    CLI::App* app = parser->add_subcommand(command.name, command.summary)->group("Commands");
    if (app->get_help_ptr()) app->get_help_ptr()->group("Flags");
    app->footer("Example:\n" + indented(command.example) + "\n" +
                exit_codes(command.success, command.failure));
    const Run run = command.declare(*app, context);
    app->callback([&chosen, run] { chosen = run; });
  }
  return parser;
}

int run_ablate(int argc, const char* const* argv) {
  Context context;
  Run chosen;
  const auto parser = make_parser(context, chosen);
  try {
    check_spelling(*parser, argc, argv);
    parser->parse(argc, argv);
    const int code = chosen();
    if (std::fflush(stdout) != 0 || std::ferror(stdout))
      throw system_error("cannot write standard output", errno != 0 ? errno : EIO);
    return code;
  } catch (const CLI::Success& help) {  // --help, --version
    return parser->exit(help);
  } catch (const CLI::ParseError& error) {
    print_error(context, argc < 2 ? "a command is needed; see 'ablate --help'" : message_of(*parser, error));
    return kExitUsage;
  } catch (const Error& error) {
    print_error(context, error.what());
    return exit_code(error.code());
  } catch (const std::exception& error) {
    print_error(context, fmt::format("{} (this is a fault of the program)", error.what()));
    return kExitFailed;
  }
}

}  // namespace abl::cli
