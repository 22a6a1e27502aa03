// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "cli/command.h"
#include "protocol/command_line.h"
#include "protocol/trainer_program.h"

namespace abl::cli {
namespace {

Run declare_plugin(CLI::App& app, Context& context) {
  struct Flags {
    std::string file, name;
  };
  auto flags = std::make_shared<Flags>();
  app.add_option("file", flags->file, "The plugin: a shared library that ablate_add_plugin built")
      ->type_name("FILE")
      ->required();
  app.add_option("--name", flags->name, "Name by which sweep files know it [the file's, without .so]")
      ->type_name("NAME");
  add_json(app, context);
  return [flags, &context]() -> int {
    protocol::become_trainer(
        protocol::PluginCommand{.file = flags->file, .name = flags->name, .json = context.json}.arguments());
  };
}

}  // namespace

extern const Command kPluginCommand{
    .place = 192,
    .name = "plugin",
    .summary = "Load a plugin and print what a sweep file says of it: its kind, keys and SHA-256",
    .example = "ablate plugin build/linear_attention.so",
    .success = "it is a plugin for this trainer",
    .failure = "internal error",
    .declare = &declare_plugin,
};

}  // namespace abl::cli
