// SPDX-License-Identifier: Apache-2.0
#include "sweeps/command.h"

#include <fmt/format.h>

#include "base/nearest_name.h"
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
      problems.add(entry.place, path, "no name of a param; expected letters, digits, '_' and '-'");
    }
    check_param_names(entry.value, path, problems);
  }
  for (const Node& item : node.items) check_param_names(item, field, problems);
}

std::vector<std::string> read_argv(YamlReader& reader, const Node& section) {
  std::vector<std::string> argv;
  const Node* node = section.find("argv");
  if (!node) {
    reader.problems().add(section.place, "command.argv",
                          "missing; expected a list, the program and its arguments");
  } else if (reader.is_sequence(*node, "command.argv")) {
    if (node->items.empty())
      reader.problems().add(node->place, "command.argv", "empty; expected the program and its arguments");
    for (const Node& item : node->items) {
      if (item.kind == Node::Kind::kScalar) {
        argv.push_back(item.text);  // an argument may be empty
      } else {
        reader.text(item, "command.argv");
      }
    }
  }
  return argv;
}

}  // namespace

CommandSection read_command(YamlReader& reader, const Node& section) {
  CommandSection read;
  if (!reader.is_mapping(section, "command")) return read;
  reader.allow_only(section, "command", {"argv", "params", "version", "reuse", "data"});
  read.command.argv = read_argv(reader, section);
  if (const Node* version = section.find("version")) {
    read.command.version = reader.text(*version, "command.version").value_or("");
  }
  if (const Node* reuse = section.find("reuse")) {
    read.command.reuse = reader.boolean(*reuse, "command.reuse").value_or(false);
    if (read.command.reuse && !section.find("version")) {
      reader.problems().add(
          reuse->place, "command.reuse",
          "needs command.version, without which a changed program could not be told from the one before");
    }
  }
  if (const Node* data = section.find("data")) read.data = reader.name(*data, "command.data").value_or("");
  if (const Node* params = section.find("params"); params && reader.is_mapping(*params, "command.params")) {
    check_param_names(*params, "command.params", reader.problems());
    Node base{.kind = Node::Kind::kMapping, .place = params->place};
    base.entries.push_back({"params", params->place, *params});
    read.base = Settings{base, "command"};
  }
  return read;
}

json command_document(const Command& command, const json& params) {
  return {{"argv", command.argv}, {"params", params}, {"version", command.version}};
}

bool expect_param(const Settings& base, const Assignment& assignment, Problems& problems) {
  if (base.text_at(assignment.key) && assignment.key != "params") return true;
  std::vector<std::string> known;
  const json params = base.document().value("params", json::object());
  for (const auto& [key, value] : params.items()) known.push_back("params." + key);
  const std::string expected = known.empty() ? "command.params is empty" : "expected " + any_of(known);
  problems.add(assignment.place, assignment.field, "command.params has no such key; " + expected,
               nearest_name(assignment.key, known));
  return false;
}

}  // namespace abl::sweeps
