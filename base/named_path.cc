// SPDX-License-Identifier: Apache-2.0
#include "base/named_path.h"

#include <fmt/format.h>

#include "base/error.h"

namespace abl {

NamedPaths parse_named_paths(const NamedPathFlag& flag, const std::vector<std::string>& given) {
  NamedPaths paths;
  for (const auto& text : given) {
    const auto equals = text.find('=');
    if (equals == 0 || equals == std::string::npos || equals + 1 == text.size())
      throw Error{Code::kInvalidArgument, fmt::format("{} {}: expected {}", flag.flag, text, flag.expected)};
    if (!paths.emplace(text.substr(0, equals), text.substr(equals + 1)).second)
      throw Error{Code::kInvalidArgument, fmt::format("{} {}: duplicate name", flag.flag, text)};
  }
  return paths;
}

std::string plugin_key(std::string_view name) { return fmt::format("{}{}", kPluginPrefix, name); }

bool is_plugin(std::string_view key) { return key.starts_with(kPluginPrefix); }

std::string_view kind_of_file(std::string_view key) { return is_plugin(key) ? "plugin" : "weights"; }

std::string_view name_of_file(std::string_view key) {
  return is_plugin(key) ? key.substr(kPluginPrefix.size()) : key;
}

std::string flag_of_file(std::string_view key) {
  return fmt::format("{} {}=FILE", is_plugin(key) ? kPluginFlag.flag : kWeightsFlag.flag, name_of_file(key));
}

void expect_there(const NamedPathFlag& flag, const NamedPaths& paths) {
  std::error_code unreadable;
  for (const auto& [name, path] : paths)
    if (!std::filesystem::exists(path, unreadable))
      throw Error{Code::kNotFound,
                  fmt::format("{}: no {} {} for {}", flag.flag, flag.kind, path.string(), name)};
}

}  // namespace abl
