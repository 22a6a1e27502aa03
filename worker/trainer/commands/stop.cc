// SPDX-License-Identifier: Apache-2.0
#include <csignal>

#include "worker/trainer/commands/commands.h"

namespace abl::trainer {
namespace {

std::atomic<bool> asked = false;

}  // namespace

const std::atomic<bool>& stop_on_signals() {
  for (const int number : {SIGTERM, SIGINT}) std::signal(number, [](int) { asked = true; });
  return asked;
}

}  // namespace abl::trainer
