// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/commands/commands.h"

namespace abl::trainer {
namespace {

std::atomic<bool> asked = false;

}  // namespace

void ask_to_stop() { asked = true; }

const std::atomic<bool>& stop_asked() { return asked; }

}  // namespace abl::trainer
