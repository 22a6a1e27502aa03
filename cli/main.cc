// SPDX-License-Identifier: Apache-2.0
#include <clocale>
#include <cstdlib>

#include "cli/parser.h"

int main(int argc, char** argv) {
  std::setlocale(LC_CTYPE, "C.UTF-8");    // for the widths of characters; numbers keep their point
  ::setenv("GRPC_VERBOSITY", "NONE", 0);  // what goes wrong is said in our words, once
  return abl::cli::run_ablate(argc, argv);
}
