// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "protocol/checkpoint_files.h"
#include "tests/fuzz/target.h"

namespace abl::fuzz {

/// What a checkpoint says beside its tensors; how these lie in the file is the target safetensors.
void read_checkpoint(std::string_view bytes) {
  try {
    const auto facts = protocol::read_checkpoint_facts(std::string{bytes}, "c.safetensors");
    require(facts.step >= 0 && facts.seen >= 0 && facts.machine.ranks >= 1, "counts are counts");
    const std::string text = protocol::facts_text(facts);
    require(protocol::facts_text(protocol::read_checkpoint_facts(text, "c.safetensors")) == text,
            "what is written again reads the same");
  } catch (const Error& error) {
    require(error.code() == Code::kDataLoss || error.code() == Code::kFailedPrecondition,
            "it is damaged, or of another format");
    require_printable(error.what());
  }
}

}  // namespace abl::fuzz
