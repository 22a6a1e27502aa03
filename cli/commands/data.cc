// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "base/error.h"
#include "cli/command.h"
#include "protocol/command_line.h"
#include "protocol/trainer_program.h"

namespace abl::cli {

namespace flag = protocol::flag;

namespace {

Run declare_data(CLI::App& app, Context& context) {
  auto flags = std::make_shared<protocol::DataCommand>();
  add_choice(app, "WHAT", flags->what, {"check", "pack"}, "Decode every image; or write them into one file")
      ->required();
  app.add_option(flag::kRoot, flags->root, "Folder of the data set, or a packed file")
      ->required()
      ->type_name("FOLDER");
  app.add_option(flag::kName, flags->name,
                 "Expected data set, such as imagenet-1k: checks the number of classes")
      ->type_name("NAME");
  app.add_option(flag::kOutput, flags->output, "pack: the packed file, FILE.abldata")->type_name("FILE");
  auto* bound =
      app.add_option(flag::kBound, flags->bound, "pack: shrink images whose shorter side exceeds PIXELS")
          ->type_name("PIXELS")
          ->check(whole_number(1, 32'768));
  auto* raw = app.add_flag(flag::kRaw, flags->raw, "pack: store decoded pixels instead of image files");
  app.add_flag(flag::kVerbatim, flags->verbatim,
               "pack: keep files byte for byte, without restart markers for decoding crops")
      ->excludes(bound)
      ->excludes(raw);
  app.add_option(flag::kThreads, flags->threads, "Decoder threads [one per core]")
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
    flags->json = context.json;
    protocol::become_trainer(flags->arguments());
  };
}

}  // namespace

extern const Command kDataCommand{
    .place = 190,
    .name = "data",
    .summary = "Check the images of a data set, or pack them into one file that trainers share",
    .example =
        "ablate data check --root /data/imagenet --name imagenet-1k\n"
        "ablate data pack --root /data/imagenet --output /data/imagenet.abldata --bound 512",
    .success = "every image can be decoded; the packed file is there",
    .failure = "an image is damaged",
    .declare = declare_data,
};

}  // namespace abl::cli
