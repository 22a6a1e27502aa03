// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/commands/inference.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "protocol/command_line.h"
#include "protocol/number.h"
#include "worker/trainer/commands/class_names.h"
#include "worker/trainer/commands/commands.h"
#include "worker/trainer/commands/model_source.h"

namespace abl::commands {
namespace {

constexpr std::int64_t kShown = 5;  // most likely classes of an image

/// Shape: both [B, K], the most likely class first.
std::string as_json(const models::LoadedWeights& loaded, const torch::Tensor& probability,
                    const torch::Tensor& label, const std::vector<std::string>& names) {
  auto images = nlohmann::ordered_json::array();
  for (std::int64_t image = 0; image < label.size(0); ++image) {
    auto likely = nlohmann::ordered_json::array();
    for (std::int64_t place = 0; place < label.size(1); ++place) {
      const auto number = label[image][place].item<std::int64_t>();
      auto& entry = likely.emplace_back(nlohmann::ordered_json{{"class", number}});
      if (!names.empty()) entry["name"] = names.at(static_cast<std::size_t>(number));
      entry["probability"] = protocol::json_number(probability[image][place].item<double>());
    }
    images.push_back(likely);
  }
  return nlohmann::ordered_json{{"images", images}, {"fresh", loaded.fresh}, {"resized", loaded.resized}}
      .dump();
}

std::string as_text(const torch::Tensor& probability, const torch::Tensor& label,
                    const std::vector<std::string>& names) {
  const auto called = [&](std::int64_t number) {
    return names.empty() ? fmt::format("class {}", number) : names.at(static_cast<std::size_t>(number));
  };
  std::string text;
  for (std::int64_t image = 0; image < label.size(0); ++image) {
    text += fmt::format("image {}:", image);
    for (std::int64_t place = 0; place < label.size(1); ++place)
      text += fmt::format("{} {} {:.1f} %", place == 0 ? "" : ",",
                          called(label[image][place].item<std::int64_t>()),
                          100 * probability[image][place].item<double>());
    text += "\n";
  }
  return text;
}

}  // namespace

Run declare_infer(CLI::App& app) {
  struct Flags {
    ModelSource source;
    InferOptions options;
    ClassNames names;
    bool json = false;
  };
  auto flags = std::make_shared<Flags>();
  auto& options = flags->options;
  flags->source.declare(app);
  app.add_option("--weights", options.weights,
                 "The model's state (safetensors), under our names or those of a release")
      ->type_name("FILE")
      ->required();
  app.add_option(
         "--input", options.input,
         "Image file (JPEG, PNG, WebP), resized and cropped as for evaluation; or tensors (safetensors): "
         "'input' [B, 3, H, W] float32, normalised; 'target' [B] int64 for gradients")
      ->type_name("FILE")
      ->required();
  app.add_option("--output", options.output, "Output file (safetensors): logits and other requested tensors")
      ->type_name("FILE");
  app.add_flag("--fresh-head", options.differ.fresh_head,
               "Allow weights without a matching head; the model's head keeps its initial values");
  app.add_flag("--resize-positions", options.differ.resize_positions,
               "Allow positions of another image size; they are interpolated");
  app.add_flag("--other-patch", options.differ.other_patch, "Allow another patch size");
  app.add_flag("--grad", options.gradients, "Also output the loss against 'target' and all gradients");
  app.add_flag("--train", options.train, "Use the batch's statistics; also the buffers after the pass");
  app.add_option("--features", options.features, "Also output these parts, by name")
      ->type_name("NAME")
      ->delimiter(',');
  app.add_option("--class-names", flags->names.file,
                 "Names of the classes: one a line, or JSON (a list, or ImageNet's class index)")
      ->type_name("FILE");
  app.add_option(protocol::flag::kDataRoot, flags->names.data_root,
                 "Folder of the trial's data set, which names the classes")
      ->type_name("FOLDER")
      ->excludes("--class-names");
  app.add_flag("--json", flags->json, "As JSON");
  app.footer(
      "Example:\n  ablate-trainer infer --config trial.json --weights run/best.safetensors --input "
      "photo.jpg --class-names imagenet_classes.txt\n"
      "  ablate-trainer infer --preset vit_tiny_patch16_224 --weights w.safetensors --input i.safetensors "
      "--output o.safetensors --features blocks.0,norm\n");
  return [flags]() -> int {
    const bool has_output = !flags->options.output.empty();
    for (const auto& [given, flag] : {std::pair{flags->options.gradients, "--grad"},
                                      {flags->options.train, "--train"},
                                      {!flags->options.features.empty(), "--features"}})
      if (given && !has_output)
        throw Error{Code::kInvalidArgument, fmt::format("{} needs --output: where the tensors go", flag)};
    const auto trial = flags->source.trial();
    const auto names = flags->names.of(trial.data);
    const auto [loaded, logits] = infer(trial, flags->options);
    const auto [probability, label] =
        logits.softmax(1).topk(std::min<std::int64_t>(kShown, logits.size(1)), 1);
    std::cout << (flags->json ? as_json(loaded, probability, label, names) + "\n"
                              : as_text(probability, label, names));
    if (flags->json) return kExitOk;
    if (!loaded.prefix.empty()) std::cerr << fmt::format("names without their prefix: {}\n", loaded.prefix);
    if (!loaded.fresh.empty())
      std::cerr << fmt::format("as in a new model: {}\n", fmt::join(loaded.fresh, ", "));
    if (!loaded.resized.empty()) std::cerr << fmt::format("resized: {}\n", fmt::join(loaded.resized, ", "));
    return kExitOk;
  };
}

}  // namespace abl::commands
