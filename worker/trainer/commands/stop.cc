// SPDX-License-Identifier: Apache-2.0
#include <csignal>

#include "worker/trainer/commands/commands.h"

namespace abl::trainer {
namespace {

std::atomic<bool> asked = false;

}  // namespace

const std::atomic<bool>& stop_on_signals() {
  const auto ask = [](int) { asked = true; };
  for (const int number : {SIGTERM, SIGINT}) std::signal(number, ask);
  // a terminal that is gone; who started the program with nohup wants it to go on
  if (std::signal(SIGHUP, ask) == SIG_IGN) std::signal(SIGHUP, SIG_IGN);
  return asked;
}

void ask_to_stop() { asked = true; }

}  // namespace abl::trainer
