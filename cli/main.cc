// SPDX-License-Identifier: Apache-2.0
#include <clocale>

#include "cli/parser.h"

int main(int argc, char** argv) {
  std::setlocale(LC_CTYPE, "C.UTF-8");  // for the widths of characters; numbers keep their point
  return abl::cli::run_ablate(argc, argv);
}
