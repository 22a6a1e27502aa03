// SPDX-License-Identifier: Apache-2.0
#include "base/stop_on_signals.h"

#include <csignal>

namespace abl {
namespace {

std::atomic<bool> is_asked_to_stop = false;

}  // namespace

const std::atomic<bool>& stop_on_signals() {
  const auto ask = [](int) { is_asked_to_stop = true; };
  for (const int number : {SIGTERM, SIGINT}) std::signal(number, ask);
  // a terminal that is gone; who started the program with nohup wants it to go on
  if (std::signal(SIGHUP, ask) == SIG_IGN) std::signal(SIGHUP, SIG_IGN);
  return is_asked_to_stop;
}

void ask_to_stop() { is_asked_to_stop = true; }

}  // namespace abl
