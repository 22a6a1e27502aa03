// SPDX-License-Identifier: Apache-2.0
#include "cli/completion.h"

#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/command.h"

namespace abl::cli {
namespace {

Run declare_completion(CLI::App& app, Context& context) {
  auto shell = std::make_shared<std::string>();
  add_choice(app, "SHELL", *shell, kShells, "The shell that is to complete")->required();
  add_json(app, context);
  return [&app, &context, shell]() -> int {
    const std::string script = completion_script(*app.get_parent(), *shell);
    if (context.json)
      context.out.line(nlohmann::ordered_json{{"shell", *shell}, {"script", script}}.dump());
    else
      context.out.write(script);
    return kExitOk;
  };
}

}  // namespace

extern const Command kCompletionCommand{
    .place = 200,
    .name = "completion",
    .summary = "Print a completion script for bash, zsh or fish",
    .example =
        "source <(ablate completion bash)\nablate completion fish > ~/.config/fish/completions/ablate.fish",
    .declare = declare_completion,
};

}  // namespace abl::cli
