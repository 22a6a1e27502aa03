// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cerrno>
#include <memory>

#include "base/error.h"
#include "cli/command.h"
#include "views/plan.h"

namespace abl::cli {
namespace {

struct Flags {
  std::string what, root, name, output, bound, threads;
  bool raw = false;
};

/// Takes this program's place: its output, its progress bar and its exit code are the command's. Returns only
/// by throwing.
[[noreturn]] void become(const std::vector<std::string>& command) {
  std::vector<char*> argv;
  for (const auto& argument : command) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  ::execv(argv[0], argv.data());
  throw system_error("cannot run " + command[0], errno);
}

}  // namespace

Run declare_data(CLI::App& app, Context& context) {
  auto flags = std::make_shared<Flags>();
  add_choice(app, "WHAT", flags->what, {"check", "pack"}, "Decode every image; or write them into one file")
      ->required();
  app.add_option("--root", flags->root, "Folder of the data set, or a packed file")
      ->required()
      ->type_name("FOLDER");
  app.add_option("--name", flags->name,
                 "The data set it is to be, such as imagenet-1k: its classes are counted")
      ->type_name("NAME");
  app.add_option("--output", flags->output, "pack: the packed file, FILE.abldata")->type_name("FILE");
  app.add_option("--bound", flags->bound,
                 "pack: make images whose shorter side is longer than these pixels that small")
      ->type_name("PIXELS")
      ->check(whole_number(1, 32'768));
  app.add_flag("--raw", flags->raw, "pack: pixels instead of JPEG files");
  app.add_option("--threads", flags->threads, "Images decoded at the same time [one a core]")
      ->type_name("N")
      ->check(whole_number(1, 1024));
  add_json(app, context);
  return [&context, flags]() -> int {
    const bool pack = flags->what == "pack";
    if (pack && flags->output.empty())
      throw Error{Code::kInvalidArgument, "data pack: --output FILE is missing; expected where to write"};
    if (!pack && (!flags->output.empty() || !flags->bound.empty() || flags->raw))
      throw Error{Code::kInvalidArgument, "data check takes no --output, --bound or --raw: 'data pack' does"};
    const auto trainer = views::find_trainer();
    if (trainer.empty())
      throw Error{Code::kNotFound,
                  "no ablate-trainer beside this program (built with ABLATE_TORCH=OFF?): set ABLATE_TRAINER"};
    std::vector<std::string> command{trainer.string(), "data", flags->what};
    const auto add = [&](const char* flag, const std::string& value) {
      if (!value.empty()) command.insert(command.end(), {flag, value});
    };
    add("--root", flags->root);
    add("--name", flags->name);
    add("--output", flags->output);
    add("--bound", flags->bound);
    add("--threads", flags->threads);
    if (flags->raw) command.emplace_back("--raw");
    if (context.json) command.emplace_back("--json");
    become(command);
  };
}

}  // namespace abl::cli
