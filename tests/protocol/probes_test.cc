// SPDX-License-Identifier: Apache-2.0
#include "protocol/probes.h"

#include <gmock/gmock.h>

#include <cmath>

#include "base/error.h"

namespace abl::protocol {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string refusal_of_probe(const nlohmann::json& written) {
  try {
    read_probe(written);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kInvalidArgument);
    return error.what();
  }
  return "none";
}

TEST(Probes, ANameAloneHasTheUsualSettings) {
  const auto probe = read_probe("attention");
  EXPECT_EQ(probe.name, "attention");
  EXPECT_EQ(probe.number("images"), 4);
  EXPECT_EQ(probe.number("layer"), 0);
  EXPECT_FALSE(probe.flag("joint"));
  EXPECT_THAT(read_probe({{"name", "accuracy-by-resolution"}, {"sizes", {32, 48}}}).numbers("sizes"),
              ElementsAre(32, 48));
}

TEST(Probes, SayWhatIsWrongAndWhatWasMeant) {
  EXPECT_THAT(refusal_of_probe("feature-norm"), HasSubstr("did you mean 'feature-norms'?"));
  EXPECT_THAT(refusal_of_probe(3), HasSubstr("invalid probe 3; expected a name"));
  EXPECT_THAT(refusal_of_probe({{"images", 3}}), HasSubstr("a probe lacks its name"));
  EXPECT_THAT(
      refusal_of_probe({{"name", "attention"}, {"image", 3}}),
      HasSubstr(
          "attention: unknown setting 'image'; expected images, layer or joint; did you mean 'images'?"));
  EXPECT_THAT(refusal_of_probe({{"name", "code-norms"}, {"images", 3}}),
              HasSubstr("unknown setting 'images'; it has none"));
  for (const auto& wrong :
       {nlohmann::json(0), nlohmann::json(1.5), nlohmann::json("4"), nlohmann::json(nullptr),
        nlohmann::json(18446744073709551615ULL), nlohmann::json(-1), nlohmann::json(NAN)})
    EXPECT_THAT(refusal_of_probe({{"name", "attention"}, {"images", wrong}}),
                HasSubstr("attention.images: invalid value " + wrong.dump() +
                          "; expected a whole number from 1 to 16"));
  for (const auto& wrong : {nlohmann::json(32), nlohmann::json{32, 32}, nlohmann::json{0},
                            nlohmann::json(std::vector<int>(65, 1))})
    EXPECT_THAT(refusal_of_probe({{"name", "inference-cost"}, {"sizes", wrong}}),
                HasSubstr("inference-cost.sizes: invalid value"));
  EXPECT_THAT(refusal_of_probe({{"name", "attention"}, {"joint", 1}}), HasSubstr("expected true or false"));
}

TEST(Probes, SettingsOfACommandLineAreThoseOfAFile) {
  auto probe = read_probe("inference-cost");
  change_probe(probe, "sizes=32,64");
  change_probe(probe, "batch=8");
  EXPECT_EQ(probe.settings,
            read_probe({{"name", "inference-cost"}, {"sizes", {32, 64}}, {"batch", 8}}).settings);
  auto maps = read_probe("attention");
  change_probe(maps, "joint=true");
  EXPECT_TRUE(maps.flag("joint"));
  for (const char* wrong : {"batch", "batch=", "batch=1e2", "batch=99999999999999999999",
                            "sizes=", "sizes=32,", "sizes=32;64", "batches=8"})
    EXPECT_THROW(change_probe(probe, wrong), Error) << wrong;
  EXPECT_EQ(probe.number("batch"), 8) << "what was refused has changed nothing";
}

TEST(Probes, ACommandLineNamesEachOnceWithItsSettings) {
  const auto probes = read_probes({"attention", "code-norms"}, {"attention.images=2", "attention.layer=1"});
  ASSERT_EQ(probes.size(), 2);
  EXPECT_EQ(probes[0].number("images"), 2);
  EXPECT_EQ(probes[0].number("layer"), 1);
  EXPECT_EQ(probes[1].name, "code-norms");
  EXPECT_TRUE(read_probes({}, {}).empty());
  EXPECT_EQ(read_probes({R"({"name": "attention", "images": 3})"}, {"attention.layer=2"})[0].number("images"),
            3);
  EXPECT_EQ(read_probes({"attention", R"({"name": "attention", "images": 3})"}, {}).size(), 2)
      << "two sweeps may ask so for one trial";
  EXPECT_THROW(read_probes({"{attention"}, {}), Error);
  EXPECT_THROW(read_probes({}, {"attention.images=2"}), Error);
  EXPECT_THROW(read_probes({"attention", "attention"}, {}), Error);
  for (const char* wrong :
       {"images=2", "code-norms.images=2", "feature-norms.images=2", ".images=2", "attention"})
    EXPECT_THROW(read_probes({"attention", "code-norms"}, {wrong}), Error) << wrong;
}

TEST(Probes, AResultIsJsonWhateverItsNumbers) {
  const ProbeResult result{
      .request = read_probe("code-norms"),
      .values = {{"query", 8.5}},
      .arrays = {{"norm", {.axes = {{.name = "role", .places = {"query", "key"}}}, .values = {8.5, NAN}}}},
      .pictures = {{.name = "maps", .file = "a.png", .sha256 = "00", .bytes = 3, .width = 2, .height = 1}},
      .notes = {"layer 2"}};
  EXPECT_EQ(to_json(result).dump(),
            R"({"probe":"code-norms","settings":{},"values":{"query":8.5},)"
            R"("arrays":{"norm":{"axes":[{"name":"role","places":["query","key"]}],"values":[8.5,"NaN"]}},)"
            R"("pictures":[{"name":"maps","width":2,"height":1,"file":"a.png","bytes":3,"sha256":"00"}],)"
            R"("notes":["layer 2"]})");
}

}  // namespace
}  // namespace abl::protocol
