// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>

#include "base/file.h"
#include "sweeps/sweep_spec.h"

namespace abl::sweeps {
namespace {

namespace fs = std::filesystem;

fs::path folder() { return fs::path{ABLATE_SOURCE_DIR} / "tests/sweeps/fixtures/bad"; }

/// All that is said of a wrong file, a line each, as users see it.
std::string problems_of(const fs::path& file) {
  try {
    parse_sweep(read_file(file), file.filename().string());
  } catch (const SweepFileError& error) {
    return std::string{error.what()} + "\n";
  }
  return "nothing is wrong with it\n";
}

class BadFileTest : public testing::TestWithParam<std::string> {};

TEST_P(BadFileTest, SaysExactlyWhatItsFixtureExpects) {
  const fs::path file = folder() / (GetParam() + ".yaml"), expected = folder() / (GetParam() + ".expected");
  if (std::getenv("ABLATE_UPDATE_FIXTURES")) write_file_atomically(expected, problems_of(file));
  EXPECT_EQ(problems_of(file), read_file(expected));
}

std::vector<std::string> fixtures() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator{folder()}) {
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
  }
  std::ranges::sort(names);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Fixtures, BadFileTest, testing::ValuesIn(fixtures()), [](const auto& fixture) {
  std::string name = fixture.param;
  std::ranges::replace(name, '-', '_');
  return name;
});

}  // namespace
}  // namespace abl::sweeps
