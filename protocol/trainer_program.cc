// SPDX-License-Identifier: Apache-2.0
#include "protocol/trainer_program.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/error.h"
#include "base/file.h"

namespace abl::protocol {

std::filesystem::path find_trainer() {
  if (const std::filesystem::path beside = program_folder() / "ablate-trainer";
      std::filesystem::exists(beside))
    return beside;
  const char* named = std::getenv("ABLATE_TRAINER");
  return named ? named : "";
}

void become_trainer(std::vector<std::string> arguments) {
  auto trainer = find_trainer().string();
  if (trainer.empty())
    throw Error{
        Code::kNotFound,
        "ablate-trainer not found beside this program (built with ABLATE_TORCH=OFF?); set ABLATE_TRAINER"};
  std::vector<char*> argv{trainer.data()};
  for (auto& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  ::execv(argv[0], argv.data());
  throw system_error("cannot run " + trainer, errno);
}

}  // namespace abl::protocol
