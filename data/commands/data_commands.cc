// SPDX-License-Identifier: Apache-2.0
#include "data/commands/data_commands.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <thread>

#include "base/error.h"
#include "base/nearest_name.h"
#include "base/stop_on_signals.h"
#include "config/data/data_sets.h"
#include "data/annotated/formats.h"
#include "data/check.h"
#include "data/commands/annotated_commands.h"
#include "data/formats.h"
#include "data/pack.h"
#include "data/progress.h"
#include "protocol/command_line.h"

namespace abl::data {

namespace flag = protocol::flag;

namespace {

/// What the commands on data have in common.
struct DataFlags {
  std::string root, name;
  int threads = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u, 64u));
  bool json = false;

  void declare(CLI::App& app) {
    app.add_option(flag::kRoot, root, "Folder of the data set, or a packed file")
        ->type_name("FOLDER")
        ->required();
    app.add_option(flag::kName, name, "Expected data set, such as imagenet-1k: checks the number of classes")
        ->type_name("NAME");
    app.add_option(flag::kThreads, threads, "Decoder threads")
        ->check(whole_number(1, 1024))
        ->type_name("N")
        ->capture_default_str();
    app.add_flag(flag::kJson, json, "One JSON object");
  }

  /// Whether they are pictures with annotations, which have other commands. Throws: Error{kInvalidArgument}
  /// where they are, and a name was expected.
  bool annotated() const {
    const std::string format = annotated_format_in(root);
    if (!format.empty() && !name.empty())
      throw Error{
          Code::kInvalidArgument,
          fmt::format("--name: {} holds {}; --name applies to classification images only", root, format)};
    return !format.empty();
  }

  /// Every image of both splits, at full scale. Throws: what the format throws; Error{kInvalidArgument} for a
  /// name that is not known.
  DataSet open() const {
    config::DataConfig data{.name = name.empty() ? root : name};
    if (!name.empty()) {
      const auto* const known = config::find_data_set(name);
      std::vector<std::string> names;
      for (const auto& set : config::data_sets())
        if (!set.embedded) names.emplace_back(set.name);
      if (!known || known->embedded)
        throw Error{Code::kInvalidArgument, "--name: '" + name + "' is " +
                                                (known ? "drawn by the trainer; expected " : "not ") +
                                                any_of(names) + did_you_mean(name, names)};
      data.classes = known->classes;
    }
    return open_stored(data, root);
  }
};

using OrderedJson = nlohmann::ordered_json;

std::string as_json(const std::string& root, const DataSet& data, const DataCheck& check) {
  OrderedJson splits = OrderedJson::object(), damaged = OrderedJson::array();
  for (const auto& split : check.splits)
    splits[split.split] = {{"images", split.images},
                           {"classes", split.classes},
                           {"images_per_class", {{"min", split.fewest}, {"max", split.most}}},
                           {"mean", split.mean},
                           {"std", split.std}};
  for (const auto& image : check.damaged)
    damaged.push_back({{"split", image.split}, {"name", image.name}, {"reason", image.reason}});
  const OrderedJson report{{"root", root},
                           {"format", data.format},
                           {"fingerprint", data.fingerprint},
                           {"classes", data.classes},
                           {"splits", splits},
                           {"passed_over", data.passed_over},
                           {"damaged", damaged}};
  return report.dump(-1, ' ', false,
                     OrderedJson::error_handler_t::replace);  // names of files may be no UTF-8
}

std::string first_few(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 10;
  const auto shown = std::vector(names.begin(), names.begin() + std::min(kShown, names.size()));
  return fmt::format("{}{}", fmt::join(shown, ", "), names.size() > kShown ? ", …" : "");
}

std::string as_text(const std::string& root, const DataSet& data, const DataCheck& check) {
  std::string text = fmt::format("{}: {}, {}\nclasses  {}: {}\n", root, data.format, data.fingerprint,
                                 data.classes.size(), first_few(data.classes));
  std::uint64_t images = 0;
  for (const auto& split : check.splits) {
    images += split.images;
    const std::string each = split.fewest == split.most ? fmt::format("{}", split.most)
                                                        : fmt::format("{} to {}", split.fewest, split.most);
    text += fmt::format(
        "{:<8} {} images of {} classes, {} per class; mean [{:.3f}], std [{:.3f}] of red, green and blue\n",
        split.split, split.images, split.classes, each, fmt::join(split.mean, ", "),
        fmt::join(split.std, ", "));
  }
  for (const auto& what : data.passed_over) text += fmt::format("note     {}\n", what);
  for (const auto& image : check.damaged)
    text += fmt::format("damaged  {} {}: {}\n", image.split, image.name, image.reason);
  text += check.damaged.empty()
              ? fmt::format("all {} images can be decoded\n", images)
              : fmt::format("{} of {} images cannot be decoded\n", check.damaged.size(), images);
  return text;
}

Run declare_data_check(CLI::App& app) {
  auto flags = std::make_shared<DataFlags>();
  flags->declare(app);
  app.footer(
      "Example:\n  ablate-trainer data check --root /data/imagenet --name imagenet-1k\n\n"
      "Exit codes: 0 every image can be decoded, every annotation used; 1 some cannot; 2 bad input: no such "
      "folder, "
      "no known format, a damaged file");
  return [flags]() -> int {
    if (flags->annotated()) return check_annotations(flags->root, flags->threads, flags->json);
    const DataSet data = flags->open();
    DataCheck check;
    {
      Progress progress{std::uint64_t{data.train->size()} + data.val->size()};
      check =
          check_data(data, flags->threads, stop_on_signals(), [&](auto images) { progress.advance(images); });
    }
    std::cout << (flags->json ? as_json(flags->root, data, check) + "\n" : as_text(flags->root, data, check));
    return check.damaged.empty() ? kExitOk : kExitFailed;
  };
}

Run declare_data_format(CLI::App& app) {
  struct Flags {
    std::string root;
    bool open = false, json = false;
  };
  auto flags = std::make_shared<Flags>();
  app.add_option(flag::kRoot, flags->root, "Folder of the data set, or a packed file")
      ->type_name("FOLDER")
      ->required();
  app.add_flag(flag::kOpen, flags->open,
               "Open it as a training does: every file must be there; slow for a folder of many");
  app.add_flag(flag::kJson, flags->json, "One JSON object");
  app.footer(
      "Example:\n  ablate-trainer data format --root /data/imagenet\n\n"
      "Exit codes: 0 a known format; 2 none, no such folder, or with --open one that is not whole");
  return [flags]() -> int {
    OrderedJson report{{"root", flags->root}};
    if (flags->open && !annotated_format_in(flags->root).empty()) {
      const AnnotatedSet set = open_annotated(config::DataConfig{.name = flags->root}, flags->root,
                                              [](const std::string&) {});  // `data check` lists them
      report["format"] = set.format;
      report["fingerprint"] = set.fingerprint;
    } else if (flags->open) {
      const DataSet data = open_stored(config::DataConfig{.name = flags->root}, flags->root);
      report["format"] = data.format;
      report["fingerprint"] = data.fingerprint;
    } else {
      report["format"] = recognise(flags->root);
    }
    std::cout << (flags->json ? report.dump(-1, ' ', false, OrderedJson::error_handler_t::replace)
                              : report["format"].get<std::string>())
              << '\n';
    return kExitOk;
  };
}

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

Run declare_data_pack(CLI::App& app) {
  struct Flags {
    DataFlags data;
    PackOptions pack;
  };
  auto flags = std::make_shared<Flags>();
  flags->data.declare(app);
  app.add_option(flag::kOutput, flags->pack.output, "The packed file, FILE.abldata")
      ->type_name("FILE")
      ->required();
  auto* bound = app.add_option(flag::kBound, flags->pack.bound,
                               "Shrink images whose shorter side exceeds N pixels (JPEG, quality 95)")
                    ->check(whole_number(1, 32'768))
                    ->type_name("N");
  auto* raw = app.add_flag(flag::kRaw, flags->pack.raw,
                           "Store decoded pixels instead of image files: larger, no decoding");
  app.add_flag(flag::kVerbatim, flags->pack.verbatim,
               "Keep files byte for byte, without restart markers for decoding crops")
      ->excludes(bound)
      ->excludes(raw);
  app.footer(
      "Example:\n  ablate-trainer data pack --root /data/imagenet --output /data/imagenet.abldata --bound "
      "512\n"
      "\nExit codes: 0 the file is there; 2 bad input, such as a file that is not an image; 3 the disk is "
      "full");
  return [flags]() -> int {
    if (flags->data.annotated()) return pack_annotations(flags->data.root, flags->pack, flags->data.json);
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

}  // namespace

Run declare_data(CLI::App& app) {
  app.require_subcommand(1);
  auto* const check = app.add_subcommand("check", "Decode every image and list the damaged ones");
  auto* const pack = app.add_subcommand("pack", "Write a data set into one file that trainers share");
  auto* const format = app.add_subcommand("format", "Say what format a folder has, and decode nothing");
  return [check, pack, run_check = declare_data_check(*check), run_pack = declare_data_pack(*pack),
          run_format = declare_data_format(*format)]() -> int {
    if (*check) return run_check();
    return *pack ? run_pack() : run_format();
  };
}

}  // namespace abl::data
