// SPDX-License-Identifier: Apache-2.0
#include "protocol/trainer_program.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/error.h"
#include "base/file.h"

namespace abl::protocol {
namespace fs = std::filesystem;

fs::path find_trainer(const fs::path& flag) {
  if (!flag.empty()) return fs::absolute(flag);
  if (const char* named = std::getenv("ABLATE_TRAINER"); named && *named) return fs::absolute(named);
  const fs::path beside = program_folder() / "ablate-trainer";
  return fs::exists(beside) ? beside : fs::path{};
}

void become_trainer(std::vector<std::string> arguments) {
  auto trainer = find_trainer().string();
  if (trainer.empty()) throw Error{Code::kNotFound, kNoTrainer};
  std::vector<char*> argv{trainer.data()};
  for (auto& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  ::execv(argv[0], argv.data());
  throw system_error("cannot run " + trainer, errno);
}

}  // namespace abl::protocol
