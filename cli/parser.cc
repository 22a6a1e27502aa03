// SPDX-License-Identifier: Apache-2.0
#include "cli/parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iostream>

#include "base/command_line.h"
#include "base/error.h"
#include "base/manual_page.h"
#include "cli/report_error.h"

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

/// Also of a command line that cannot be parsed.
bool asks_for_json(int argc, const char* const* argv) {
  return std::any_of(argv, argv + argc, [](std::string_view word) { return word == "--json"; });
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
  parser->add_flag("--json", context.json, "Print JSON; accepted before or after the command");
  parser->footer("Example:\n  ablate up --detach && ablate submit sweep.yaml --watch\n\n" +
                 exit_codes("done", "a trial or sweep failed") + "\n\n'ablate COMMAND --help' says more.");
  for (const Command* command : commands()) {
    CLI::App* app = parser->add_subcommand(command->name, command->summary)->group("Commands");
    if (app->get_help_ptr()) app->get_help_ptr()->group("Flags");
    app->footer("Example:\n" + indented(command->example) + "\n" +
                exit_codes(command->success, command->failure));
    const Run run = command->declare(*app, context);
    app->callback([&chosen, run] { chosen = run; });
  }
  return parser;
}

int run_ablate(int argc, const char* const* argv) {
  Context context;
  Run chosen;
  std::vector<const char*> words{argv, argv + argc};
  if (argc >= 2 && std::string_view{argv[1]} == "help") {  // "help table" is "table --help"
    words.erase(words.begin() + 1);
    words.push_back("--help");
    argc = static_cast<int>(words.size());
    argv = words.data();
  }
  const auto parser = make_parser(context, chosen);
  context.json = asks_for_json(argc, argv);  // before anything can be wrong
  try {
    check_spelling(*parser, argc, argv);
    parser->parse(argc, argv);
    const int code = chosen();
    if (std::fflush(stdout) != 0 || std::ferror(stdout))
      throw system_error("cannot write standard output", output_failure());
    return code;
  } catch (const CLI::Success& help) {  // --help, --version
    const int code = parser->exit(help);
    if (std::cout.flush()) return code;
    const Error error = system_error("cannot write standard output", output_failure());
    report_error(context, error.code(), error.what());
    return exit_code(error.code());
  } catch (const CLI::ParseError& error) {
    report_error(context, Code::kInvalidArgument,
                 argc < 2 ? "a command is needed; see 'ablate --help'" : complaint(*parser, error));
    return kExitUsage;
  } catch (const sweeps::SweepFileError& error) {
    report_error(context, error.code(), error.what(), error.problems());
    return exit_code(error.code());
  } catch (const Error& error) {
    report_error(context, error.code(), error.what());
    return exit_code(error.code());
  } catch (const std::filesystem::filesystem_error& error) {  // a place that somebody named, most often
    const Error told = system_error("cannot use " + error.path1().string(), error.code().value());
    report_error(context, told.code(), told.what());
    return exit_code(told.code());
  } catch (const std::exception& error) {
    report_error(context, Code::kInternal, fmt::format("internal error: {}", error.what()));
    return kExitFailed;
  }
}

}  // namespace abl::cli
