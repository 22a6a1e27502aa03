// SPDX-License-Identifier: Apache-2.0
#include "cli/trainer_program.h"

#include <unistd.h>

#include <cerrno>

#include "base/error.h"
#include "views/plan.h"

namespace abl::cli {

void become_trainer(std::vector<std::string> arguments) {
  auto trainer = views::find_trainer().string();
  if (trainer.empty())
    throw Error{Code::kNotFound,
                "no ablate-trainer beside this program (built with ABLATE_TORCH=OFF?): set ABLATE_TRAINER"};
  std::vector<char*> argv{trainer.data()};
  for (auto& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  ::execv(argv[0], argv.data());
  throw system_error("cannot run " + trainer, errno);
}

}  // namespace abl::cli
