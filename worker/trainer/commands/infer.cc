// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/infer.h"

#include <fmt/ranges.h>

#include <iostream>
#include <memory>

#include "base/error.h"
#include "worker/trainer/commands/commands.h"
#include "worker/trainer/commands/model_source.h"

namespace abl::trainer {

Run declare_infer(CLI::App& app) {
  struct Flags {
    ModelSource source;
    InferOptions options;
  };
  auto flags = std::make_shared<Flags>();
  auto& options = flags->options;
  flags->source.declare(app);
  app.add_option("--weights", options.weights,
                 "The model's state (safetensors), under our names or those of a release")
      ->required();
  app.add_option("--input", options.input,
                 "A JPEG, resized and cut as an evaluation does; or tensors (safetensors): 'input' [B, 3, H, "
                 "W] float32, normalised, of the model's size; 'target' [B] int64 for gradients")
      ->required();
  app.add_option("--output", options.output, "Where logits and what else was asked for go (safetensors)")
      ->required();
  app.add_flag("--fresh-head", options.differ.fresh_head,
               "The weights may have no head, or one of other classes: the model's stays as it starts");
  app.add_flag("--resize-positions", options.differ.resize_positions,
               "Their positions may be of another image size: they are interpolated");
  app.add_flag("--other-patch", options.differ.other_patch, "They may be of another patch size");
  app.add_flag("--grad", options.gradients,
               "Also the loss against 'target', and the gradient of each parameter");
  app.add_flag("--train", options.train, "Use the batch's statistics; also the buffers after the pass");
  app.add_option("--features", options.features, "Also the output of these parts, by name")->delimiter(',');
  app.footer(
      "Example:\n  ablate-trainer infer --preset vit_tiny_patch16_224 --weights w.safetensors --input "
      "i.safetensors --output o.safetensors --features blocks.0,norm\n  ablate-trainer infer --config "
      "trial.json "
      "--weights run/best.safetensors --input photo.jpg --output o.safetensors\n");
  return [flags]() -> int {
    const auto loaded = infer(flags->source.trial(), flags->options);
    if (!loaded.fresh.empty())
      std::cerr << fmt::format("as in a new model: {}\n", fmt::join(loaded.fresh, ", "));
    if (!loaded.resized.empty()) std::cerr << fmt::format("resized: {}\n", fmt::join(loaded.resized, ", "));
    return kExitOk;
  };
}

}  // namespace abl::trainer
