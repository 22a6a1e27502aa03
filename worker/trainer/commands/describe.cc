// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>
#include <ext/stdio_filebuf.h>

#include <iostream>
#include <memory>

#include "base/command_line.h"
#include "base/error.h"
#include "protocol/command_line.h"
#include "worker/trainer/commands/commands.h"
#include "worker/trainer/commands/description.h"
#include "worker/trainer/commands/model_source.h"
#include "worker/trainer/commands/settings.h"

namespace abl::commands {

namespace flag = protocol::flag;

namespace {

/// The standard output, for answers alone: what a plugin prints meanwhile goes to the standard error.
class Answers {
 public:
  Answers() : buffer_{::dup(STDOUT_FILENO), std::ios::out}, stream_{&buffer_} {
    ::dup2(STDERR_FILENO, STDOUT_FILENO);
  }
  std::ostream& stream() { return stream_; }

 private:
  __gnu_cxx::stdio_filebuf<char> buffer_;
  std::ostream stream_;
};

}  // namespace

Run declare_describe(CLI::App& app) {
  struct Flags {
    ModelSource source;
    DescribeOptions options;
    bool lines = false, document = false;
  };
  auto flags = std::make_shared<Flags>();
  auto* group = flags->source.declare(app);
  app.add_option("--depth", flags->options.depth, "Depth of the printed tree")
      ->check(whole_number(0, 100))
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--batch", flags->options.batch, "Batch size for the memory prediction")
      ->check(whole_number(1, 1 << 20))
      ->type_name("N");
  app.add_flag(flag::kJson, flags->options.json, "One JSON object, with every part and parameter");
  auto* const whole_document =
      app.add_flag("--document", flags->document,
                   "Print instead, as JSON, the trial's document with every key that has "
                   "an effect, and its canonical form");
  auto* const lines = group->add_flag(flag::kStdin, flags->lines,
                                      "Read documents from stdin, one per line; print counts (or what "
                                      "--document does) as JSON, one line each");
  for (const auto* other : {"--depth", "--batch"}) {
    lines->excludes(app.get_option(other));
    whole_document->excludes(app.get_option(other));
  }
  app.footer(
      "Example:\n  ablate-trainer describe --preset simple-vit-s --set model.attention.kernel=gaussian --set "
      "model.attention.probe=inside\n");
  return [flags]() -> int {
    flags->source.plugins.know();
    if (flags->lines) {
      Answers answers;
      const auto change = [&](config::Json& document) {
        complete_model(document, flags->source.settings);
        change_settings(document, flags->source.settings);
      };
      (flags->document ? document_lines : describe_lines)(std::cin, answers.stream(), change);
    } else if (flags->document)
      std::cout << documents_of(flags->source.trial()).dump(2) << '\n';
    else
      describe_model(flags->source.trial(), flags->options, std::cout);
    return kExitOk;
  };
}

}  // namespace abl::commands
