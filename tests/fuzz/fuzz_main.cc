// SPDX-License-Identifier: Apache-2.0
// libFuzzer's half of a fuzzing program: fuzz_reader --target=NAME [libFuzzer's flags] [folders of inputs].
// With
// --list, the targets: name, bytes of an input at most, examples.
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/log.h"
#include "tests/fuzz/target.h"

namespace {
const abl::fuzz::Target* chosen = nullptr;
std::FILE* keep = nullptr;
}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  abl::set_log_level(abl::LogLevel::kError);
  std::string name;
  for (int i = 1; i < *argc; ++i) {
    const std::string argument = (*argv)[i];
    if (argument.starts_with("--target=")) name = argument.substr(argument.find('=') + 1);
    if (argument.starts_with("--keep="))
      keep = std::fopen(argument.substr(argument.find('=') + 1).c_str(), "wb");
    if (argument != "--list") continue;
    for (const auto& target : abl::fuzz::all_targets()) {
      std::printf("%s %zu", target.name, target.most_bytes);
      for (const auto& example : target.examples) std::printf(" %s", example.c_str());
      std::printf("\n");
    }
    std::exit(0);
  }
  for (const auto& target : abl::fuzz::all_targets())
    if (name == target.name) chosen = &target;
  if (!chosen) {
    std::fprintf(stderr, "fuzz_reader: --target='%s' is none; --list lists them\n", name.c_str());
    std::exit(2);
  }
  chosen->read({});  // what a target makes ready for its first input, stores and servers, is no input's time
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (keep && ::pwrite(::fileno(keep), bytes, size, 0) == static_cast<ssize_t>(size))
    (void)!::ftruncate(::fileno(keep), static_cast<off_t>(size));
  chosen->read({reinterpret_cast<const char*>(bytes), size});
  return 0;
}
