// SPDX-License-Identifier: Apache-2.0
#include "cli/completion.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <ranges>
#include <set>

#include "base/error.h"

namespace abl::cli {
namespace {

enum class Values { kNone, kAny, kFile, kFolder, kSweep, kWords };

/// A flag or positional as a completion sees it.
struct Argument {
  std::string short_name, long_name, description;  // without dashes; both empty: a positional
  Values values = Values::kNone;
  std::vector<std::string> words;
  bool positional() const { return long_name.empty() && short_name.empty(); }
};
struct CommandArguments {
  std::string name, summary;
  std::vector<Argument> arguments;
};

std::vector<std::string> split_words(const std::string& text) {
  std::vector<std::string> words;
  for (const auto word : std::views::split(text, '|')) words.emplace_back(word.begin(), word.end());
  return words;
}

Argument argument_of(const CLI::Option& option) {
  Argument argument{.description = option.get_description()};
  if (!option.get_snames().empty()) argument.short_name = option.get_snames().front();
  if (!option.get_lnames().empty()) argument.long_name = option.get_lnames().front();
  const std::string type = option.get_type_name(), name = option.get_name();
  if (option.get_items_expected_max() == 0) return argument;
  argument.values = Values::kAny;
  if (type == "FILE" || name == "FILE") argument.values = Values::kFile;
  if (type == "FOLDER") argument.values = Values::kFolder;
  if (name == "SWEEP" || name == "A" || name == "B") argument.values = Values::kSweep;  // A, B: of compare
  if (type.find('|') != std::string::npos)
    argument.values = Values::kWords, argument.words = split_words(type);
  return argument;
}

std::vector<CommandArguments> arguments_of(const CLI::App& parser) {
  std::vector<CommandArguments> commands;
  for (const auto* app : parser.get_subcommands([](const CLI::App*) { return true; })) {
    CommandArguments command{.name = app->get_name(), .summary = app->get_description()};
    for (const auto* option : app->get_options()) command.arguments.push_back(argument_of(*option));
    commands.push_back(std::move(command));
  }
  return commands;
}

std::string shell_quoted(std::string_view text) {  // for sh, zsh and fish alike
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string{"'\\''"} : std::string{c};
  return result + "'";
}

std::string command_names(const std::vector<CommandArguments>& commands) {
  std::string names;
  for (const auto& command : commands) names += (names.empty() ? "" : " ") + command.name;
  return names;
}

std::string bash_script(const std::vector<CommandArguments>& commands) {
  std::string flags, positionals, values;
  std::set<std::string> places;  // what takes a file or a folder does so in every command
  for (const auto& command : commands) {
    std::string names;
    for (const auto& argument : command.arguments) {
      if (!argument.long_name.empty()) names += (names.empty() ? "--" : " --") + argument.long_name;
      if (argument.values == Values::kSweep)
        positionals += fmt::format("    {}) words=\"$(ablate ls --names 2>/dev/null)\" ;;\n", command.name);
      if (argument.values == Values::kWords && argument.positional())
        positionals += fmt::format("    {}) words=\"{}\" ;;\n", command.name, fmt::join(argument.words, " "));
      if (argument.values == Values::kWords && !argument.positional())
        values += fmt::format("    {}:--{}) words=\"{}\" ;;\n", command.name, argument.long_name,
                              fmt::join(argument.words, " "));
      if (argument.values == Values::kFolder)
        places.insert(fmt::format("    *:--{}) COMPREPLY=($(compgen -d -- \"$current\")); return ;;\n",
                                  argument.long_name));
      if (argument.values == Values::kFile && !argument.positional())
        places.insert(fmt::format("    *:--{}{}) return ;;\n", argument.long_name,
                                  argument.short_name.empty() ? "" : "|*:-" + argument.short_name));
    }
    flags += fmt::format("      {}) words=\"{}\" ;;\n", command.name, names);
  }
  return fmt::format(R"sh(# bash completion for ablate: source <(ablate completion bash)
_ablate() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}" command="${{COMP_WORDS[1]}}" words=""
  COMPREPLY=()
  if (( COMP_CWORD == 1 )); then
    COMPREPLY=($(compgen -W "{} --help --version" -- "$current"))
    return
  fi
  case "$command:$previous" in
{}    *) if [[ "$current" == -* ]]; then
    case "$command" in
{}    esac
    else
    case "$command" in
{}    esac
    fi ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o bashdefault -o default -F _ablate ablate
)sh",
                     command_names(commands), values + fmt::format("{}", fmt::join(places, "")), flags,
                     positionals);
}

/// What zsh's _arguments does for a value.
std::string zsh_action(const Argument& argument) {
  switch (argument.values) {
    case Values::kNone:
      return "";
    case Values::kAny:
      return ":value:";
    case Values::kFile:
      return ":file:_files";
    case Values::kFolder:
      return ":folder:_files -/";
    case Values::kSweep:
      return ":sweep:_ablate_sweeps";
    case Values::kWords:
      return fmt::format(":word:({})", fmt::join(argument.words, " "));
  }
  return "";
}

std::string zsh_script(const std::vector<CommandArguments>& commands) {
  const auto plain = [](std::string text) {  // brackets and colons have a meaning in a specification
    std::erase_if(text, [](char c) { return c == '[' || c == ']'; });
    std::ranges::replace(text, ':', ',');
    return text;
  };
  std::string names, cases;
  for (const auto& command : commands) {
    names += fmt::format("    {}\n", shell_quoted(command.name + ":" + plain(command.summary)));
    cases += fmt::format("    {}) _arguments", command.name);
    for (const auto& argument : command.arguments) {
      const std::string description = "[" + plain(argument.description) + "]";
      if (argument.positional()) cases += " " + shell_quoted("*" + zsh_action(argument));
      if (!argument.short_name.empty())
        cases += " " + shell_quoted("-" + argument.short_name + description + zsh_action(argument));
      if (!argument.long_name.empty())
        cases += " " + shell_quoted("--" + argument.long_name + description + zsh_action(argument));
    }
    cases += " ;;\n";
  }
  return fmt::format(R"sh(#compdef ablate
# zsh completion for ablate: source <(ablate completion zsh), or save it as _ablate in a folder of $fpath
_ablate_sweeps() {{
  local -a sweeps
  sweeps=(${{(f)"$(ablate ls --names 2>/dev/null)"}})
  compadd -a sweeps
}}
_ablate() {{
  local -a commands
  commands=(
{}  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  shift words
  (( CURRENT-- ))
  case "$words[1]" in
{}  esac
}}
if [[ "$funcstack[1]" == _ablate ]]; then _ablate "$@"; else compdef _ablate ablate; fi
)sh",
                     names, cases);
}

std::string fish_script(const std::vector<CommandArguments>& commands) {
  std::string text =
      "# fish completion for ablate: ablate completion fish > "
      "~/.config/fish/completions/ablate.fish\ncomplete -c ablate -f\n";
  for (const auto& command : commands) {
    text += fmt::format("complete -c ablate -n __fish_use_subcommand -a {} -d {}\n", command.name,
                        shell_quoted(command.summary));
    const std::string condition = shell_quoted("__fish_seen_subcommand_from " + command.name);
    for (const auto& argument : command.arguments) {
      std::string line = "complete -c ablate -n " + condition;
      if (!argument.short_name.empty()) line += " -s " + argument.short_name;
      if (!argument.long_name.empty()) line += " -l " + argument.long_name;
      if (!argument.positional() && argument.values != Values::kNone) line += " -r";
      if (argument.values == Values::kFile || argument.values == Values::kFolder) line += " -F";
      if (argument.values == Values::kSweep) line += " -a '(ablate ls --names 2>/dev/null)'";
      if (argument.values == Values::kWords)
        line += " -a " + shell_quoted(fmt::format("{}", fmt::join(argument.words, " ")));
      text += line + " -d " + shell_quoted(argument.description) + "\n";
    }
  }
  return text;
}

}  // namespace

std::string completion_script(const CLI::App& parser, const std::string& shell) {
  const auto commands = arguments_of(parser);
  if (shell == "bash") return bash_script(commands);
  if (shell == "zsh") return zsh_script(commands);
  if (shell == "fish") return fish_script(commands);
  throw Error{Code::kInvalidArgument, fmt::format("no completion for shell '{}'", shell)};
}

}  // namespace abl::cli
