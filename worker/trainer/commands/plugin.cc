// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <memory>

#include "base/error.h"
#include "base/named_path.h"
#include "base/printable.h"
#include "config/json.h"
#include "models/plugins/plugin_file.h"
#include "protocol/command_line.h"
#include "worker/trainer/commands/commands.h"
#include "worker/trainer/commands/plugin_flag.h"

namespace abl::commands {
namespace {

using config::Json;

Json value_of(const models::PluginValue& value) {
  return std::visit([](const auto& held) { return Json(held); }, value);
}

std::string_view type_of(const models::PluginValue& value) {
  constexpr std::string_view kTypes[] = {"true or false", "whole number", "number",
                                         "text"};  // of PluginValue
  return kTypes[value.index()];
}

Json document_of(const models::PluginFile& file) {
  Json keys = Json::array();
  for (const auto& key : file.plugin->keys) {
    Json one{{"name", key.name},
             {"type", type_of(key.value)},
             {"default", value_of(key.value)},
             {"meaning", key.sentence}};
    if (std::isfinite(key.low)) one["low"] = key.low;
    if (std::isfinite(key.high)) one["high"] = key.high;
    if (!key.choices.empty()) one["choices"] = key.choices;
    keys.push_back(std::move(one));
  }
  return {{"name", file.name},
          {"sha256", file.sha256},
          {"kind", file.plugin->model ? "model" : "attention"},
          {"meaning", file.plugin->sentence},
          {"keys", std::move(keys)}};
}

/// A value as YAML reads it back: a text that could be anything else stands in quotes.
std::string yaml_of(const Json& value) {
  constexpr std::string_view kWords[] = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"};
  if (!value.is_string()) return config::plain_text(value);
  const auto& text = value.get_ref<const std::string&>();
  const bool is_word = !text.empty() && std::isalpha(static_cast<unsigned char>(text[0])) != 0 &&
                       std::ranges::all_of(text, [](unsigned char letter) {
                         return std::isalnum(letter) != 0 || letter == '_' || letter == '-';
                       });
  std::string small = text;
  std::ranges::transform(small, small.begin(), [](unsigned char letter) { return std::tolower(letter); });
  if (is_word && std::ranges::find(kWords, small) == std::end(kWords)) return text;
  return value.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

/// What people copy into a sweep file, and what its keys mean. The options are comments: one that is written
/// at its default makes another trial than one that is left out.
std::string text_of(const models::PluginFile& file) {
  const bool is_model = static_cast<bool>(file.plugin->model);
  std::string text = fmt::format(
      "{}: {}\n\nmodel:\n  {}\n  plugin:\n    name: {}\n    sha256: {}\n", file.name,
      printable_line(file.plugin->sentence),
      is_model ? "family: plugin" : "preset: vit_tiny_patch16_224  # or another vit", file.name, file.sha256);
  const auto& keys = file.plugin->keys;
  if (keys.empty()) return text;
  text += "    # options:  # these are the defaults; write those that differ\n";
  for (const auto& key : keys) {
    text += fmt::format("    #   {}: {}  # {}", key.name, yaml_of(value_of(key.value)), type_of(key.value));
    if (std::isfinite(key.low)) text += fmt::format(", at least {}", config::canonical_number(key.low));
    if (std::isfinite(key.high)) text += fmt::format(", at most {}", config::canonical_number(key.high));
    text += "; " + printable_line(key.sentence);
    if (!key.choices.empty()) text += " One of";
    for (const auto& choice : key.choices)
      text += fmt::format("{} {}", &choice == &key.choices.front() ? "" : ",", choice);
    text += '\n';
  }
  return text;
}

}  // namespace

Run declare_plugin(CLI::App& app) {
  struct Flags {
    std::filesystem::path file;
    std::string name;
    bool json = false;
  };
  auto flags = std::make_shared<Flags>();
  app.add_option("file", flags->file, "The plugin: a shared library")->type_name("FILE")->required();
  app.add_option(protocol::flag::kName, flags->name, "Name by which trials will know it [the file's]")
      ->type_name("NAME");
  app.add_flag(protocol::flag::kJson, flags->json, "As JSON");
  app.footer("Example:\n  ablate-trainer plugin build/linear_attention.so\n");
  return [flags]() -> int {
    const std::string name = flags->name.empty() ? flags->file.stem().string() : flags->name;
    const auto file = models::load_plugin(name, flags->file, "");
    if (flags->json)
      std::cout << document_of(*file).dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
    else
      std::cout << text_of(*file);
    return kExitOk;
  };
}

}  // namespace abl::commands
