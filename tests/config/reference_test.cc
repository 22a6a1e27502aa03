// SPDX-License-Identifier: Apache-2.0
#include "config/document/reference.h"

#include <gmock/gmock.h>

#include <cstdlib>

#include "base/file.h"

namespace abl::config {
namespace {

TEST(ReferenceTest, ThePageInTheDocsIsTheOneTheFieldTablesWrite) {
  const std::string page = std::string{ABLATE_SOURCE_DIR} + "/docs/config-reference.md";
  if (std::getenv("ABLATE_UPDATE_FIXTURES")) write_file_atomically(page, reference_markdown());
  EXPECT_EQ(read_file(page), reference_markdown())
      << "write it anew: ABLATE_UPDATE_FIXTURES=1 config_reference_test";
}

}  // namespace
}  // namespace abl::config
