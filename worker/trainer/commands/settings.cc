// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/commands/settings.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/json_depth.h"
#include "base/utf8.h"

namespace abl::commands {
namespace {

/// Sets "model.depth=6" in a document; a value that is not JSON is taken as text.
void set_key(config::Json& document, const std::string& assignment) {
  const auto equals = assignment.find('=');
  if (equals == std::string::npos || equals == 0)
    throw Error{Code::kInvalidArgument,
                fmt::format("--set {}: expected key=value, such as model.depth=6", assignment)};
  std::string pointer = "/" + assignment.substr(0, equals);
  std::ranges::replace(pointer, '.', '/');
  if (assignment.substr(0, equals) == "model.preset" &&
      document.contains(config::Json::json_pointer{"/model/preset"}))
    throw Error{Code::kInvalidArgument, fmt::format("--set {}: the preset is already given", assignment)};
  const std::string_view given = std::string_view{assignment}.substr(equals + 1);
  if (is_nested_too_deep(given) || std::ranges::count(pointer, '/') > kDeepestJson)
    throw Error{Code::kInvalidArgument, fmt::format("--set {}…: nested more than {} levels deep",
                                                    valid_utf8(assignment.substr(0, 40)), kDeepestJson)};
  auto value = config::Json::parse(given, nullptr, false);
  try {
    document[config::Json::json_pointer{pointer}] = value.is_discarded() ? config::Json(given) : value;
  } catch (const config::Json::exception&) {
    throw Error{Code::kInvalidArgument, fmt::format("--set {}: the parent of '{}' is not a mapping",
                                                    assignment, assignment.substr(0, equals))};
  }
}

}  // namespace

void declare_settings(CLI::App& app, std::vector<std::string>& settings) {
  app.add_option("--set", settings, "Override a key of the preset or document (repeatable)")
      ->type_name("KEY=VALUE");
}

void change_settings(config::Json& document, const std::vector<std::string>& settings) {
  for (const auto& setting : settings) set_key(document, setting);
}

}  // namespace abl::commands
