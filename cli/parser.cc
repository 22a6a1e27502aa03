// SPDX-License-Identifier: Apache-2.0
#include "cli/parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <regex>

#include "base/command_line.h"
#include "base/error.h"
#include "base/manual_page.h"

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
  add_manual_flag(*parser);
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
    print_error(context, argc < 2 ? "a command is needed; see 'ablate --help'" : complaint(*parser, error));
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
