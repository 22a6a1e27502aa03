// SPDX-License-Identifier: Apache-2.0
// What a run's folder has of what probes found, and what of it is taken.
#include "worker/agent/found_probes.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "protocol/probe_results.h"
#include "tests/agent/fixtures.h"
#include "tests/temporary_folder.h"
#include "worker/agent/trainer_output.h"

namespace abl::agent {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

/// As much of a PNG as is looked at.
std::string png_of(char side) {
  using namespace std::string_literals;
  return "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0"s + side + "\0\0\0"s + side + "\x8\x2\0\0\0"s;
}

class FoundProbes : public testing::Test {
 protected:
  fs::path write(const std::string& name, const std::string& text) {
    fs::create_directories((folder / name).parent_path());
    write_file(folder / name, text);
    return folder / name;
  }
  protocol::ProbeResult read(const ablate::v1::ProbeFound& found) {
    return protocol::read_probe_result(json::parse(found.found_json()));
  }
  std::string refusal(const std::string& path) {
    try {
      found_probe({.step = 1, .path = path, .found = {}}, folder.path());
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::kInvalidArgument);
      return error.what();
    }
    return "none";
  }
  TemporaryFolder folder;
};

TEST_F(FoundProbes, AreTheFileAndItsPictures) {
  const auto picture = write("probes/a-map.png", png_of(5));
  write("probes/a.json", json{{"probe", "a"},
                              {"values", {{"x", 2}}},
                              {"pictures", {{{"name", "map"}, {"file", picture.string()}}}}}
                             .dump());
  const auto found = found_probe({.step = 40, .path = "probes/a.json", .found = {}}, folder.path());
  EXPECT_EQ(found.name(), "a");
  EXPECT_EQ(found.step(), 40u);
  ASSERT_THAT(found.pictures(), SizeIs(1));
  EXPECT_EQ(found.pictures(0).png(), png_of(5));
  EXPECT_EQ(found.pictures(0).width(), 5u);
  EXPECT_EQ(read(found).pictures[0].file, "") << "a path of this machine is for nobody else";
  EXPECT_EQ(read(found).values.at("x"), 2);
}

TEST_F(FoundProbes, NothingOutsideOfTheRunsFolderIsRead) {
  TemporaryFolder other;
  write_file(other / "secret.json", R"({"probe": "a"})");
  fs::create_symlink(other / "secret.json", folder / "link.json");
  EXPECT_THAT(refusal(other / "secret.json"), HasSubstr("lies outside of the run's folder"));
  EXPECT_THAT(refusal("link.json"), HasSubstr("lies outside of the run's folder"));
  EXPECT_THAT(refusal("../" + other.path().filename().string() + "/secret.json"), HasSubstr("lies outside"));
  EXPECT_THAT(refusal("absent.json"), HasSubstr("absent.json is not a file"));
  EXPECT_THAT(refusal("."), HasSubstr("is not a file"));
  write("text.json", "hello");
  EXPECT_THAT(refusal("text.json"), HasSubstr("text.json: the probe result is not a JSON object"));
  write_file(other / "x.png", png_of(3));
  write("a.json",
        json{{"probe", "a"}, {"pictures", {{{"name", "x"}, {"file", (other / "x.png").string()}}}}}.dump());
  const auto found = found_probe({.step = 1, .path = "a.json", .found = {}}, folder.path());
  EXPECT_THAT(found.pictures(), IsEmpty());
  EXPECT_THAT(read(found).notes, ElementsAre(HasSubstr("picture x left out: ")));
}

TEST_F(FoundProbes, APictureThatIsNoneOrTooLargeIsLeftOut) {
  write("x.png", "GIF89a");
  write("y.png", png_of(2) + std::string(protocol::kMostPictureBytes, 'x'));
  write("z.png", png_of(2));
  const auto found = found_probe({.step = 1,
                                  .path = {},
                                  .found = {{"probe", "a"},
                                            {"pictures",
                                             {{{"name", "x"}, {"file", "x.png"}},
                                              {{"name", "y"}, {"file", "y.png"}},
                                              {{"name", "z"}, {"file", "z.png"}}}}}},
                                 folder.path());
  ASSERT_THAT(found.pictures(), SizeIs(1));
  EXPECT_EQ(found.pictures(0).name(), "z");
  EXPECT_THAT(read(found).notes, ElementsAre(HasSubstr("x.png is not a PNG"), HasSubstr("the limit is")));
}

TEST_F(FoundProbes, ABatchHasThatOfOne) {
  FakeClock clock;
  TrainerOutput output{{.directory = folder.path(), .host = "here"}, clock};
  output.read_stdout(R"({"event":"probe","step":7,"probe":"a","values":{"x":1}})"
                     "\n"
                     R"({"event":"probe","step":7,"path":"absent.json"})"
                     "\n"
                     R"({"event":"probe","step":7,"probe":"b"})"
                     "\n");
  ASSERT_THAT(output.batch().probes(), SizeIs(1));
  EXPECT_EQ(output.batch().probes(0).name(), "a");
  EXPECT_TRUE(output.batch().has_started());
  EXPECT_TRUE(output.has_more());
  output.clear();
  EXPECT_TRUE(output.empty()) << "until the batch before is taken care of";
  output.read_more();
  ASSERT_THAT(output.batch().probes(), SizeIs(1));
  EXPECT_EQ(output.batch().probes(0).name(), "b");
  EXPECT_THAT(output.batch().log(), HasSubstr("[worker] probe result not kept: absent.json is not a file"));
  EXPECT_FALSE(output.has_more());
}

TEST_F(FoundProbes, WhatIsSaidAgainAndAgainIsBounded) {
  FakeClock clock;
  TrainerOutput output{{.directory = folder.path(), .host = "here"}, clock};
  for (int i = 0; i < 1000; ++i)
    output.read_stdout(R"({"event":"probe","step":7,"probe":"a","values":{"x":1}})"
                       "\n");
  int batches = 0;
  std::string log;
  do {
    ++batches;
    log += output.batch().log();
    output.clear();
    output.read_more();
  } while (!output.empty());
  EXPECT_LE(batches, static_cast<int>(protocol::kMostProbes) + 2);
  EXPECT_EQ(log, "[worker] too many probe events: this one is not kept, and perhaps others\n");
}

TEST_F(FoundProbes, AFileThatCannotBeReadIsSaidAndEndsNothing) {
  fs::create_directory(folder / "sub");
  write("deep.json", R"({"probe": "a", "settings": )" + std::string(100'000, '[') + "}");
  FakeClock clock;
  TrainerOutput output{{.directory = folder.path(), .host = "here"}, clock};
  for (const char* name : {"sub", "deep.json"})
    output.read_stdout(fmt::format(R"({{"event":"probe","step":7,"path":"{}"}})"
                                   "\n",
                                   name));
  EXPECT_THAT(output.batch().log(), HasSubstr("probe result not kept: sub is not a file"));
  EXPECT_THAT(output.batch().log(), HasSubstr("deep.json: the probe result is nested too deeply"));
}

}  // namespace
}  // namespace abl::agent
