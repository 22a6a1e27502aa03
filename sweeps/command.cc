// SPDX-License-Identifier: Apache-2.0
#include "sweeps/command.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/nearest_name.h"
#include "base/placeholders.h"
#include "config/field_table.h"

namespace abl::sweeps {
namespace {

using nlohmann::json;

/// Params are part of a canonical document, whose keys are ASCII, and of dotted keys, which cannot hold a
/// dot.
void check_param_names(const Node& node, const std::string& field, Problems& problems) {
  for (const Node::Entry& entry : node.entries) {
    const std::string path = dotted(field, entry.key);
    if (entry.key.empty() || entry.key.find('.') != std::string::npos ||
        entry.key.find_first_not_of(config::kNameLetters) != std::string::npos) {
      problems.add(entry.place, path, "invalid name of a param; expected letters, digits, '_' and '-'");
    }
    check_param_names(entry.value, path, problems);
  }
  for (const Node& item : node.items) check_param_names(item, field, problems);
}

/// "{params.lr}" where it was written without quotes: to YAML that is a mapping with a key and no value.
std::string unquoted_place(const Node& item) {
  if (item.entries.size() != 1 || item.entries[0].value.kind != Node::Kind::kNull) return {};
  const std::string written = fmt::format("{{{}}}", item.entries[0].key);
  return placeholders(written).empty() ? "" : written;
}

/// A program's argument ends at its first NUL.
bool holds_nul(const std::string& text) { return text.find('\0') != std::string::npos; }

/// `key`: argv or resume_argv. `expected`: what its items are.
std::vector<std::string> read_argv(YamlReader& reader, const Node& section, const std::string& key,
                                   const std::string& expected) {
  std::vector<std::string> argv;
  const Node* node = section.find(key);
  if (!node) {
    if (key == "argv")
      reader.problems().add(section.place, "command.argv", "missing; expected a list, " + expected);
  } else if (reader.is_sequence(*node, "command." + key)) {
    if (node->items.empty())
      reader.problems().add(node->place, "command." + key, "empty; expected " + expected);
    for (std::size_t i = 0; i < node->items.size(); ++i) {
      const Node& item = node->items[i];
      const std::string field = fmt::format("command.{}.{}", key, i + 1);
      if (item.kind == Node::Kind::kScalar) {
        argv.push_back(item.text);  // an argument may be empty
        if (holds_nul(item.text))
          reader.problems().add(item.place, field, "holds a NUL character, which no argument can");
      } else if (const std::string meant = unquoted_place(item); !meant.empty()) {
        reader.problems().add(item.place, field,
                              fmt::format("a mapping to YAML; put it between quotes: \"{}\"", meant));
      } else {
        reader.text(item, field);
      }
    }
  }
  return argv;
}

void add_names(const json& params, const std::string& path, std::vector<std::string>& names) {
  for (const auto& [key, value] : params.items()) {
    names.push_back(dotted(path, key));
    if (value.is_object()) add_names(value, names.back(), names);
  }
}

/// "params.lr", "params.optimiser", "params.optimiser.name".
std::vector<std::string> param_names(const Settings& base) {
  std::vector<std::string> names;
  add_names(base.document().value("params", json::object()), "params", names);
  return names;
}

/// The place that braces were meant as, which are none: "{ seed }", "{lr}", "{params['lr']}", "{sed}"; or
/// nothing.
std::string meant_place(const std::string& written, const std::vector<std::string>& params, bool data) {
  std::string name;
  for (const char c : written)
    if (c == '[')
      name += '.';
    else if (std::string_view{" ]'\""}.find(c) == std::string_view::npos)
      name += c;
  const std::string param = dotted("params", name);
  if (std::ranges::find(params, param) != params.end()) return param;
  std::vector<std::string> known{"seed", "run_dir", "checkpoint"};
  if (data) known.emplace_back("data");
  known.insert(known.end(), params.begin(), params.end());
  constexpr double kPart = 1.0 / 3;  // what is farther off is another program's
  return nearest_name(name, known, kPart);
}

/// What is filled into an argument must be there, and what looks as if a shell filled it in must not.
void check_argument(const Node& argument, const std::string& field, const CommandSection& command,
                    Problems& problems) {
  const std::vector<std::string> params = param_names(command.base);
  const std::string expected = params.empty() ? "command.params is empty" : "expected " + any_of(params);
  for (const std::string& name : placeholders(argument.text)) {
    if (name.starts_with("params.") && std::ranges::find(params, name) == params.end())
      problems.add(argument.place, field, fmt::format("{{{}}}: unknown param; {}", name, expected),
                   nearest_name(name, params));
    if (name == "checkpoint" && !field.starts_with("command.resume_argv"))
      problems.add(argument.place, field,
                   "{checkpoint}: is filled into command.resume_argv alone; {{ is a brace of the program's");
    if (name == "data" && command.data.empty())
      problems.add(argument.place, field, "{data}: needs command.data, the name of a data set");
  }
  for (const std::string& written : other_braces(argument.text))
    if (const std::string meant = meant_place(written, params, !command.data.empty()); !meant.empty())
      problems.add(
          argument.place, field,
          fmt::format("{{{}}} is filled with nothing; write {{{}}}, or {{{{ for a brace of the program's",
                      written, meant));
  for (const std::string& name : shell_variables(argument.text)) {
    const bool is_place = !placeholders(fmt::format("{{{}}}", name)).empty();
    const std::string meant = is_place ? name : dotted("params", name);
    if (is_place || std::ranges::find(params, meant) != params.end())
      problems.add(argument.place, field,
                   fmt::format("${{{}}}: no shell reads the arguments; write {{{}}}", name, meant));
  }
}

/// Where the program runs: an absolute path, or empty for the run's own folder.
std::string read_folder(YamlReader& reader, const Node& section, const std::string& file_folder) {
  const Node* node = section.find("folder");
  if (!node) return file_folder;
  const auto text = reader.text(*node, "command.folder");
  if (!text || *text == "{run_dir}") return {};
  if (holds_nul(*text)) reader.problems().add(node->place, "command.folder", "holds a NUL character");
  const std::filesystem::path folder = std::filesystem::path{file_folder} / *text;
  if (text->starts_with("~/") || *text == "~") {
    reader.problems().add(
        node->place, "command.folder",
        "'~' is not expanded; expected an absolute path, or one from the sweep file's folder");
  } else if (!folder.is_absolute()) {
    reader.problems().add(
        node->place, "command.folder",
        fmt::format("'{}' is relative, and the sweep came without its file's folder; expected an "
                    "absolute path",
                    *text));
  }
  return (folder / "").lexically_normal().parent_path();
}

}  // namespace

CommandSection read_command(YamlReader& reader, const Node& section, const std::string& file_folder) {
  CommandSection read;
  if (!reader.is_mapping(section, "command")) return read;
  reader.allow_only(section, "command", Part::kCommand);
  read.command.argv = read_argv(reader, section, "argv", "the program and its arguments");
  read.command.resume_argv = read_argv(reader, section, "resume_argv", "arguments that come behind argv");
  if (const Node* checkpoint = section.find("checkpoint")) {
    read.command.checkpoint =
        read_run_path(reader, *checkpoint, "command.checkpoint", "output/*/last.pth.tar");
    if (!section.find("resume_argv"))
      reader.problems().add(checkpoint->place, "command.checkpoint",
                            "needs command.resume_argv, which tells the program to go on from it, such as "
                            "[--resume, \"{checkpoint}\"]");
  }
  read.command.folder = read_folder(reader, section, file_folder);
  if (const Node* version = section.find("version")) {
    read.command.version = reader.text(*version, "command.version").value_or("");
  }
  if (const Node* reuse = section.find("reuse")) {
    read.command.reuse = reader.boolean(*reuse, "command.reuse").value_or(false);
    if (read.command.reuse && !section.find("version")) {
      reader.problems().add(reuse->place, "command.reuse",
                            "needs command.version, which tells a changed program from the one before");
    }
  }
  if (const Node* metrics = section.find("metrics"))
    read.command.metrics = read_metric_sources(reader, *metrics);
  if (const Node* data = section.find("data")) read.data = reader.name(*data, "command.data").value_or("");
  if (const Node* params = section.find("params"); params && reader.is_mapping(*params, "command.params")) {
    check_param_names(*params, "command.params", reader.problems());
    Node base{.kind = Node::Kind::kMapping, .place = params->place};
    base.entries.push_back({"params", params->place, *params});
    read.base = Settings{base, "command"};
  }
  for (const std::string key : {"argv", "resume_argv"})
    if (const Node* argv = section.find(key))
      for (std::size_t i = 0; i < argv->items.size(); ++i)
        check_argument(argv->items[i], fmt::format("command.{}.{}", key, i + 1), read, reader.problems());
  return read;
}

json command_document(const Command& command, const json& params) {
  json document{{"argv", command.argv}, {"params", params}, {"version", command.version}};
  if (!command.folder.empty()) document["folder"] = command.folder;
  if (!command.resume_argv.empty()) document["resume_argv"] = command.resume_argv;
  if (!command.checkpoint.empty()) document["checkpoint"] = command.checkpoint;
  if (!command.metrics.empty()) document["metrics"] = protocol::to_json(command.metrics);
  return document;
}

std::vector<config::Problem> unfillable(const Command& command, const Settings& base, const Settings& row) {
  std::vector<config::Problem> problems;
  std::vector<std::string> arguments = command.argv;
  arguments.insert(arguments.end(), command.resume_argv.begin(), command.resume_argv.end());
  const auto field = [&](std::size_t i) {
    return i < command.argv.size() ? fmt::format("command.argv.{}", i + 1)
                                   : fmt::format("command.resume_argv.{}", i - command.argv.size() + 1);
  };
  for (std::size_t i = 0; i < arguments.size(); ++i)
    for (const std::string& name : placeholders(arguments[i])) {
      if (!name.starts_with("params.") || !base.text_at(name)) continue;  // that is told of the argument
      const auto value = row.text_at(name);
      std::string cause = name;  // what the row has in the place of the param, or of a key around it
      while (!row.text_at(cause) && cause.find('.') != std::string::npos) cause.resize(cause.rfind('.'));
      if (!value)
        problems.push_back(
            {cause, fmt::format("leaves no {{{}}}, with which {} is filled", name, field(i)), {}});
      else if (holds_nul(*value))
        problems.push_back(
            {cause, fmt::format("holds a NUL character, and {} is filled with it", field(i)), {}});
    }
  return problems;
}

bool expect_param(const Settings& base, const Assignment& assignment, Problems& problems) {
  if (base.text_at(assignment.key) && assignment.key != "params") return true;
  if (problems.has(assignment.field)) return false;  // of its first level it was said
  const std::vector<std::string> known = param_names(base);
  const std::string expected = known.empty() ? "command.params is empty" : "expected " + any_of(known);
  problems.add(assignment.place, assignment.field, "command.params has no such key; " + expected,
               nearest_name(assignment.key, known));
  return false;
}

}  // namespace abl::sweeps
