// SPDX-License-Identifier: Apache-2.0
// What fuzzing has found once, and what it begins with, as plain tests; each input cut off and with a bit
// turned over too.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "tests/fuzz/target.h"

namespace abl::fuzz {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> inputs_of(const Target& target) {
  std::vector<fs::path> inputs;
  const auto add = [&](const fs::path& path) {
    if (fs::is_directory(path)) {
      for (const auto& entry : fs::recursive_directory_iterator{path})
        if (entry.is_regular_file()) inputs.push_back(entry.path());
    } else {
      inputs.push_back(path);
    }
  };
  const fs::path root{ABLATE_SOURCE_DIR};
  add(root / "tests/fuzz/corpus" / target.name);
  for (const std::string& example : target.examples) add(root / example);
  std::ranges::sort(inputs);
  return inputs;
}

class CorpusTest : public testing::TestWithParam<Target> {};

TEST_P(CorpusTest, EachInputIsReadOrRefused) {
  const auto inputs = inputs_of(GetParam());
  ASSERT_FALSE(inputs.empty());
  for (const fs::path& input : inputs) {
    SCOPED_TRACE(input);
    const std::string bytes = read_file(input);
    GetParam().read(bytes);
  }
}

TEST_P(CorpusTest, AndSoIsOneThatIsDamaged) {
  const auto inputs = inputs_of(GetParam());
  const std::size_t each =
      std::max<std::size_t>(2, GetParam().damages / std::max<std::size_t>(1, inputs.size()));
  for (const fs::path& input : inputs) {
    const std::string whole = read_file(input).substr(0, GetParam().most_bytes);
    for (std::size_t i = 0; i < each && !whole.empty(); ++i) {
      const std::size_t at = whole.size() * i / each;
      if (i % 2 == 0) {
        GetParam().read(std::string_view{whole}.substr(0, at));
      } else {
        std::string turned = whole;
        turned[at] = static_cast<char>(turned[at] ^ (1 << (i / 2 % 8)));
        GetParam().read(turned);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, CorpusTest, testing::ValuesIn(all_targets().begin(), all_targets().end()),
                         [](const auto& target) { return std::string{target.param.name}; });

}  // namespace
}  // namespace abl::fuzz
