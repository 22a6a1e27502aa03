// SPDX-License-Identifier: Apache-2.0
#include "cli/bundle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <functional>

#include "base/error.h"
#include "base/file.h"
#include "base/sha256.h"
#include "tests/temporary_folder.h"

namespace abl::cli {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

const auto kSilent = [](std::uint64_t, std::uint64_t) {};

std::string message_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was wrong";
}

std::string unpacked(const fs::path& archive, const fs::path& folder, const std::string& file) {
  fs::create_directories(folder);
  const std::string command = "tar -xf '" + archive.string() + "' -C '" + folder.string() + "'";
  EXPECT_EQ(std::system(command.c_str()), 0);
  return read_file(folder / file);
}

TEST(LinkedFile, ThisProgramNeedsGlibcInAVersionThatExists) {
  const LinkedFile linked = read_linked_file("/proc/self/exe");
  EXPECT_THAT(linked.needed, Contains("libc.so.6"));
  EXPECT_THAT(linked.glibc, testing::MatchesRegex("2\\.[0-9.]+"));
}

TEST(LinkedFile, WhatIsNoProgramOrIsCutOffIsNamed) {
  const TemporaryFolder folder;
  write_file(folder / "script",
             "#!/bin/sh\necho no program, and long enough to be one by its size alone, is it?\n");
  EXPECT_THAT(message_of([&] { read_linked_file(folder / "script"); }),
              AllOf(HasSubstr("script"), HasSubstr("expected a program or a library")));
  const std::string whole = read_file("/proc/self/exe");
  for (const std::size_t bytes : {std::size_t{3}, std::size_t{64}, std::size_t{300}, whole.size() / 2}) {
    write_file(folder / "part", whole.substr(0, bytes));
    const std::string said = message_of([&] { read_linked_file(folder / "part"); });
    EXPECT_THAT(said, AnyOf(HasSubstr("cut off"), HasSubstr("nothing was wrong"))) << bytes;
  }
}

TEST(BundleArchive, FilesComeBackWithTheirChangesAndLongNames) {
  const TemporaryFolder folder;
  const std::string content = std::string(5'000'000, 'a') + "OLDPATH" + std::string(777, 'b');
  write_file(folder / "source", content);
  const std::string deep = "licences/" + std::string(60, 'x') + "/" + std::string(70, 'y') + "/LICENSE";
  const Bundle bundle{.name = "b",
                      .files = {{.path = "lib/changed",
                                 .source = folder / "source",
                                 .changes = {{5'000'000, "NEWPATH"}},
                                 .executable = true},
                                {.path = deep, .text = "free\n"}}};
  const WrittenBundle written = write_bundle(bundle, folder / "b.tar.gz", kSilent);
  EXPECT_EQ(written.bytes, fs::file_size(folder / "b.tar.gz"));
  EXPECT_EQ(written.sha256, sha256_file(folder / "b.tar.gz"));
  std::string changed = content;
  changed.replace(5'000'000, 7, "NEWPATH");
  EXPECT_TRUE(unpacked(folder / "b.tar.gz", folder / "out", "b/lib/changed") == changed);
  EXPECT_EQ(read_file(folder / "out" / "b" / deep), "free\n");
  EXPECT_THAT(read_file(folder / "out/b/SHA256SUMS"), HasSubstr(sha256_hex(changed) + "  lib/changed\n"));
  EXPECT_THAT(read_file(folder / "out/b/manifest.json"), HasSubstr(written.build));
}

TEST(BundleArchive, TheSameFilesGiveTheSameBytesAndOthersAnotherBuild) {
  const TemporaryFolder folder;
  Bundle bundle{.name = "b", .files = {{.path = "a", .text = "one"}}};
  const WrittenBundle first = write_bundle(bundle, folder / "first.tar", kSilent);
  EXPECT_EQ(write_bundle(bundle, folder / "second.tar", kSilent).sha256, first.sha256);
  EXPECT_EQ(write_bundle(bundle, folder / "third.tar.gz", kSilent).build, first.build);
  bundle.files[0].text = "two";
  EXPECT_NE(write_bundle(bundle, folder / "fourth.tar", kSilent).build, first.build);
}

TEST(BundleArchive, WhatCannotBeWrittenLeavesTheOldFile) {
  const TemporaryFolder folder;
  write_file(folder / "b.tar", "old");
  const Bundle bundle{.name = "b", .files = {{.path = std::string(300, 'x'), .text = "one"}}};
  EXPECT_THAT(message_of([&] { write_bundle(bundle, folder / "b.tar", kSilent); }),
              HasSubstr("beyond what tar takes"));
  EXPECT_EQ(read_file(folder / "b.tar"), "old");
  const Bundle absent{.name = "b", .files = {{.path = "a", .source = folder / "absent"}}};
  EXPECT_THAT(message_of([&] { write_bundle(absent, folder / "c.tar", kSilent); }), Not(IsEmpty()));
  EXPECT_FALSE(fs::exists(folder / "c.tar"));
}

}  // namespace
}  // namespace abl::cli
