// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/infer.h"

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
  app.add_option("--weights", options.weights, "The model's state (safetensors)")->required();
  app.add_option("--input", options.input,
                 "Tensor 'input' [B, 3, H, W] float32; 'target' [B] int64 for gradients (safetensors)")
      ->required();
  app.add_option("--output", options.output, "Where logits and what else was asked for go (safetensors)")
      ->required();
  app.add_flag("--grad", options.gradients,
               "Also the loss against 'target', and the gradient of each parameter");
  app.add_flag("--train", options.train, "Use the batch's statistics; also the buffers after the pass");
  app.add_option("--features", options.features, "Also the output of these parts, by name")->delimiter(',');
  app.footer(
      "Example:\n  ablate-trainer infer --preset vit_tiny_patch16_224 --weights w.safetensors --input "
      "i.safetensors --output o.safetensors --features blocks.0,norm\n");
  return [flags]() -> int {
    infer(flags->source.trial(), flags->options);
    return kExitOk;
  };
}

}  // namespace abl::trainer
