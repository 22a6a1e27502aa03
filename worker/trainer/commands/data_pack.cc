// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/command_line.h"
#include "worker/trainer/commands/commands.h"
#include "worker/trainer/commands/data_flags.h"
#include "worker/trainer/data/pack.h"
#include "worker/trainer/data/progress.h"

namespace abl::trainer {
namespace {

std::string as_json(const std::string& file, const PackResult& result,
                    const std::vector<std::string>& passed_over) {
  nlohmann::ordered_json report{{"file", file},
                                {"made", result.made},
                                {"bytes", result.bytes},
                                {"train", result.train},
                                {"val", result.val},
                                {"resized", result.resized},
                                {"fingerprint", result.fingerprint},
                                {"passed_over", passed_over}};
  if (result.made) report["damaged"] = result.damaged;  // of a file that is there already nobody knows it
  return report.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string as_text(const std::string& file, const PackResult& result) {
  return fmt::format("{}: {}, {} + {} images, {:.1f} MiB{}, {}", file,
                     result.made ? "written" : "there already, made of the same images", result.train,
                     result.val, static_cast<double>(result.bytes) / (1 << 20),
                     result.resized > 0 ? fmt::format(", {} made smaller", result.resized) : "",
                     result.fingerprint);
}

}  // namespace

Run declare_data_pack(CLI::App& app) {
  struct Flags {
    DataFlags data;
    PackOptions pack;
  };
  auto flags = std::make_shared<Flags>();
  flags->data.declare(app);
  app.add_option("--output", flags->pack.output, "The packed file, FILE.abldata")
      ->type_name("FILE")
      ->required();
  auto* bound =
      app.add_option(
             "--bound", flags->pack.bound,
             "Make images whose shorter side is longer than these pixels that small (JPEG, quality 95)")
          ->check(whole_number(1, 32'768))
          ->type_name("N");
  auto* raw =
      app.add_flag("--raw", flags->pack.raw, "Pixels instead of image files: larger, and nothing to decode");
  app.add_flag("--verbatim", flags->pack.verbatim,
               "Files to the byte: JPEG not arranged so that a crop can be decoded alone")
      ->excludes(bound)
      ->excludes(raw);
  app.footer(
      "Example:\n  ablate-trainer data pack --root /data/imagenet --output /data/imagenet.abldata --bound "
      "512\n"
      "\nExit codes: 0 the file is there; 2 bad input, such as a file that is no image; 3 the disk is full");
  return [flags]() -> int {
    const DataSet data = flags->data.open();
    for (const auto& what : data.passed_over) std::cerr << fmt::format("warning: {}\n", what);
    flags->pack.threads = flags->data.threads, flags->pack.stop = &stop_on_signals();
    PackResult result;
    {
      Progress progress{std::uint64_t{data.train->size()} + data.val->size()};
      flags->pack.progress = [&](auto images) { progress.advance(images); };
      result = pack(data, flags->pack);
    }
    if (result.damaged > 0)
      std::cerr << fmt::format(
          "{} damaged image{} kept as {}, for data.damaged to end a training or to skip; "
          "the first is {} ('data check' lists every one)\n",
          result.damaged, result.damaged == 1 ? "" : "s", result.damaged == 1 ? "it is" : "they are",
          result.first_damaged);
    const std::string file = flags->pack.output.string();
    std::cout << (flags->data.json ? as_json(file, result, data.passed_over) : as_text(file, result)) + "\n";
    return kExitOk;
  };
}

}  // namespace abl::trainer
