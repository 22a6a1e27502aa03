// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "base/error.h"
#include "cli/command.h"
#include "protocol/trainer_program.h"

namespace abl::cli {
namespace {

struct DataFlags {
  std::string what, root, name, output, bound, threads;
  bool raw = false, verbatim = false;
};

}  // namespace

Run declare_data(CLI::App& app, Context& context) {
  auto flags = std::make_shared<DataFlags>();
  add_choice(app, "WHAT", flags->what, {"check", "pack"}, "Decode every image; or write them into one file")
      ->required();
  app.add_option("--root", flags->root, "Folder of the data set, or a packed file")
      ->required()
      ->type_name("FOLDER");
  app.add_option("--name", flags->name,
                 "Expected data set, such as imagenet-1k: checks the number of classes")
      ->type_name("NAME");
  app.add_option("--output", flags->output, "pack: the packed file, FILE.abldata")->type_name("FILE");
  auto* bound =
      app.add_option("--bound", flags->bound, "pack: shrink images whose shorter side exceeds N pixels")
          ->type_name("PIXELS")
          ->check(whole_number(1, 32'768));
  auto* raw = app.add_flag("--raw", flags->raw, "pack: store decoded pixels instead of image files");
  app.add_flag("--verbatim", flags->verbatim,
               "pack: keep files byte for byte, without restart markers for decoding crops")
      ->excludes(bound)
      ->excludes(raw);
  app.add_option("--threads", flags->threads, "Decoder threads [one per core]")
      ->type_name("N")
      ->check(whole_number(1, 1024));
  add_json(app, context);
  return [&context, flags]() -> int {
    const bool pack = flags->what == "pack";
    if (pack && flags->output.empty())
      throw Error{Code::kInvalidArgument, "data pack: --output FILE is missing; expected where to write"};
    if (!pack && (!flags->output.empty() || !flags->bound.empty() || flags->raw || flags->verbatim))
      throw Error{Code::kInvalidArgument,
                  "data check takes no --output, --bound, --raw or --verbatim: 'data pack' does"};
    std::vector<std::string> command{"data", flags->what};
    const auto add = [&](const char* flag, const std::string& value) {
      if (!value.empty()) command.insert(command.end(), {flag, value});
    };
    add("--root", flags->root);
    add("--name", flags->name);
    add("--output", flags->output);
    add("--bound", flags->bound);
    add("--threads", flags->threads);
    if (flags->raw) command.emplace_back("--raw");
    if (flags->verbatim) command.emplace_back("--verbatim");
    if (context.json) command.emplace_back("--json");
    protocol::become_trainer(std::move(command));
  };
}

}  // namespace abl::cli
