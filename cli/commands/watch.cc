// SPDX-License-Identifier: Apache-2.0
#include "cli/watch.h"

#include <memory>

#include "cli/command.h"

namespace abl::cli {

Run declare_watch(CLI::App& app, Context& context) {
  auto sweep = std::make_shared<std::string>();
  add_sweep(app, *sweep);
  add_scheduler(app, context);
  return [&context, sweep] { return watch(context, *sweep); };
}

}  // namespace abl::cli
