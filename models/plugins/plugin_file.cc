// SPDX-License-Identifier: Apache-2.0
#include "models/plugins/plugin_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/plugin_library.h"
#include "models/plugins/plugged.h"

namespace abl::models {
namespace {

constexpr std::string_view kKeyLetters = "abcdefghijklmnopqrstuvwxyz0123456789_-";  // as config/ takes them
constexpr PluginKind kKind{
    .interface = ABLATE_PLUGIN_INTERFACE, .symbol = "ablate_plugin", .macro = "ABLATE_PLUGIN"};

/// What whoever writes it may get wrong. Throws: std::invalid_argument without the plugin's name.
void check_keys(const Plugin& plugin) {
  std::set<std::string> names;
  for (const PluginKey& key : plugin.keys) {
    const auto refuse = [&](const char* why) {
      throw std::invalid_argument{fmt::format("the key '{}' {}", key.name, why)};
    };
    if (key.name.empty() || key.name.find_first_not_of(kKeyLetters) != std::string::npos)
      refuse("is not of small letters, digits, '_' and '-'");
    if (!names.insert(key.name).second) refuse("is declared twice");
    const auto* text = std::get_if<std::string>(&key.value);
    if (text && !key.choices.empty() && std::ranges::find(key.choices, *text) == key.choices.end())
      refuse("has a default that is none of its choices");
    const auto* whole = std::get_if<std::int64_t>(&key.value);
    const auto* number = std::get_if<double>(&key.value);
    const double value = whole ? static_cast<double>(*whole) : number ? *number : 0;
    if ((whole || number) && !(value >= key.low && value <= key.high))
      refuse("has a default out of its range");
  }
}

PluginFile load(const std::string& name, const std::filesystem::path& file, const std::string& sha256) {
  const std::string what = fmt::format("plugin {}", name);
  const auto library = load_plugin_library(kKind, what, file, sha256);
  const Plugin* plugin = nullptr;
  try {
    plugin = reinterpret_cast<const Plugin* (*)()>(library.function)();
    check_keys(*plugin);
  } catch (...) {
    rethrow_of_plugin(what);
  }
  if (!plugin->attention == !plugin->model)
    throw Error{
        Code::kInvalidArgument,
        fmt::format("{}: {} offers {}; expected one of them", what, file.string(),
                    plugin->model ? "both an attention and a model" : "neither an attention nor a model")};
  return {.name = name, .sha256 = library.sha256, .plugin = plugin};
}

}  // namespace

std::shared_ptr<const PluginFile> load_plugin(const std::string& name, const std::filesystem::path& file,
                                              const std::string& sha256) {
  static std::mutex mutex;
  static std::map<std::pair<std::string, std::string>, std::shared_ptr<const PluginFile>> loaded;
  const std::lock_guard lock{mutex};
  auto& known = loaded[{name, sha256}];
  if (!known) known = std::make_shared<const PluginFile>(load(name, file, sha256));
  return known;
}

}  // namespace abl::models
