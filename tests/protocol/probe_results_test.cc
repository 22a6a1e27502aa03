// SPDX-License-Identifier: Apache-2.0
#include "protocol/probe_results.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <variant>

#include "base/error.h"
#include "protocol/events.h"

namespace abl::protocol {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

std::string refusal_of_result(const json& written) {
  try {
    read_probe_result(written);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kInvalidArgument);
    return error.what();
  }
  return "none";
}

ProbeResult full() {
  return {.request = {.name = "norms", .settings = {{"images", 8}}},
          .values = {{"last", 1.5}, {"odd", NAN}},
          .arrays = {{"norm", {.axes = {{"layer", {"1", "2"}}, {"head", {"a"}}}, .values = {0.1, INFINITY}}}},
          .notes = {"one was left out"}};
}

TEST(ProbeResults, WhatIsWrittenIsReadAgain) {
  const auto written = to_json(full());
  const auto read = read_probe_result(json::parse(written.dump()));
  EXPECT_EQ(to_json(read), written);
  EXPECT_TRUE(std::isnan(read.values.at("odd")));
  EXPECT_THAT(read.arrays.at("norm").axes[0].places, ElementsAre("1", "2"));
  ProbeResult missing{.request = {.name = "attention"}, .missing = "the model has no attention"};
  EXPECT_EQ(read_probe_result(json::parse(to_json(missing).dump())).missing, missing.missing);
}

TEST(ProbeResults, AProgramMaySayLittle) {
  const auto read = read_probe_result({{"probe", "mine"}, {"values", {{"x", 1}, {"y", "-Infinity"}}}});
  EXPECT_EQ(read.request.name, "mine");
  EXPECT_EQ(read.values.at("x"), 1);
  EXPECT_EQ(read.values.at("y"), -INFINITY);
  EXPECT_THAT(read.arrays, IsEmpty());
}

TEST(ProbeResults, SayWhichKeyIsWrong) {
  EXPECT_THAT(refusal_of_result(json::object()), HasSubstr("\"probe\" must be the probe's name"));
  EXPECT_THAT(refusal_of_result({{"probe", "a/b"}}), HasSubstr("\"probe\" must be a name"));
  EXPECT_THAT(refusal_of_result({{"probe", ""}}), HasSubstr("\"probe\" must be a name"));
  EXPECT_THAT(refusal_of_result({{"probe", "a"}, {"values", {{"x", "many"}}}}),
              HasSubstr("\"values.x\" must be a number"));
  EXPECT_THAT(refusal_of_result({{"probe", "a"}, {"values", {{"x/y", 1}}}}), HasSubstr("without a slash"));
  EXPECT_THAT(refusal_of_result({{"probe", "a"}, {"values", {1, 2}}}),
              HasSubstr("\"values\" must be an object"));
  EXPECT_THAT(refusal_of_result({{"probe", "a"}, {"pictures", {{{"file", "x.png"}}}}}),
              HasSubstr("\"pictures\" must be"));
  const json axes{{{"name", "layer"}, {"places", {1, 2}}}};
  EXPECT_THAT(
      refusal_of_result({{"probe", "a"}, {"arrays", {{"n", {{"axes", axes}, {"values", {1, 2, 3}}}}}}}),
      HasSubstr("\"arrays.n.values\" must be as many numbers as"));
  EXPECT_THAT(refusal_of_result({{"probe", "a"}, {"arrays", {{"n", {{"values", {1}}}}}}}),
              HasSubstr("\"arrays.n\" must be"));
  EXPECT_EQ(refusal_of_result({{"probe", "a"}, {"arrays", {{"n", {{"axes", axes}, {"values", {1, 2}}}}}}}),
            "none");
}

TEST(ProbeResults, LargeArraysAreLeftOutWithAWord) {
  auto result = full();
  std::vector<std::string> places(200'000, "x");
  for (const char* name : {"maps", "more"})
    result.arrays[name] = {.axes = {{"place", places}}, .values = std::vector<double>(places.size(), 0.123)};
  bound(result);
  EXPECT_THAT(result.arrays, SizeIs(1)) << "the smallest";
  EXPECT_EQ(
      result.notes.back(),
      "kept in the run's folder only, because a probe result is limited to 1024 KiB: arrays more, maps");
  const auto before = to_json(result);
  bound(result);
  EXPECT_EQ(to_json(result), before);
  result.missing = std::string(2 << 20, 'x');
  EXPECT_THROW(bound(result), Error);
  json many{{"probe", "a"}, {"arrays", json::object()}};
  for (int i = 0; i < 65; ++i)
    many["arrays"]["a" + std::to_string(i)] = {{"axes", {{{"name", "x"}, {"places", {1}}}}}, {"values", {1}}};
  EXPECT_THAT(refusal_of_result(many), HasSubstr("at most 64 arrays"));
}

TEST(ProbeResults, TextsOfOthersAreReadWithCare) {
  EXPECT_EQ(read_probe_result_text(R"({"probe": "a", "values": {"x": NaN}})").values.size(), 1u);
  const std::string deep(1'000'000, '[');
  for (const std::string& wrong : {std::string{"hello"}, std::string{"[1]"}, std::string{"{\"probe\":"},
                                   R"({"probe": "a", "settings": {"a": )" + deep + "}}"})
    EXPECT_THROW(read_probe_result_text(wrong), Error) << wrong.substr(0, 40);
  for (const char* name : {"", "a/b", "../x", ".hidden", "a\nb"})
    EXPECT_THROW(expect_probe_name(name, "name"), Error);
}

TEST(ProbeResults, AKeyHasTheSettingsThatAreNotTheUsualOnes) {
  EXPECT_EQ(probe_key(read_probe("attention")), "attention");
  EXPECT_EQ(probe_key(read_probe({{"name", "attention"}, {"images", 8}, {"joint", true}})),
            "attention(images=8,joint=true)");
  EXPECT_EQ(probe_key(read_probe({{"name", "inference-cost"}, {"sizes", {16, 32}}})),
            "inference-cost(sizes=16+32)");
  EXPECT_EQ(probe_key({.name = "attention"}), "attention") << "of an older release, which had fewer settings";
  EXPECT_EQ(probe_key({.name = "mine", .settings = {{"a", 1}}}), "mine");
  nlohmann::json sizes = nlohmann::json::array();
  for (int i = 0; i < 60; ++i) sizes.push_back(1000 + i);
  EXPECT_LT(probe_key(read_probe({{"name", "inference-cost"}, {"sizes", sizes}})).size(), 40u);
}

TEST(ProbeResults, NamesOfMetrics) {
  EXPECT_EQ(probe_metric("feature-norms", "last"), "probe:feature-norms/last");
  EXPECT_EQ(probe_of_metric("probe:attention(images=8)/entropy"), "attention(images=8)");
  EXPECT_EQ(value_of_metric("probe:attention(images=8)/entropy"), "entropy");
  EXPECT_EQ(probe_of_metric("val/top1"), "");
  EXPECT_FALSE(is_probe_metric("probe/acc")) << "linear probing is measured so";
}

TEST(ProbeResults, WhatAValueIsFollowsFromItsName) {
  EXPECT_EQ(better_by_name("probe:feature-norms(images=8)/last"), Better::kNone) << "no norm is the best one";
  EXPECT_EQ(better_by_name("probe:accuracy-by-resolution/top1-96"), Better::kHigher);
  EXPECT_EQ(better_by_name("probe:inference-cost(sizes=32+64)/memory_bytes-64"), Better::kLower);
  EXPECT_EQ(better_by_name("probe:of-a-script/accuracy"), Better::kNone) << "its author has said nothing";
  EXPECT_EQ(unit_by_name("probe:accuracy-by-resolution/top5-96"), Unit::kPercent);
  EXPECT_EQ(unit_by_name("probe:accuracy-by-resolution/top5"), std::nullopt);
  EXPECT_EQ(unit_by_name("val/top1"), Unit::kPercent);
  EXPECT_EQ(value_declared("probe:accuracy-by-resolution/top1-"), nullptr);
  EXPECT_EQ(value_declared("probe:accuracy-by-resolution/top1-9x"), nullptr);
  for (const char* none : {"top1--96", "top1-096", "top1-0", "top1-99999"})
    EXPECT_EQ(value_declared(fmt::format("probe:accuracy-by-resolution/{}", none)), nullptr) << none;
}

TEST(ProbeResults, ThePngOfAHeaderHasItsSize) {
  using namespace std::string_literals;
  const auto png = "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\1\0\0\0\0\2\x08\2\0\0\0"s;
  ASSERT_TRUE(png_size(png));
  EXPECT_EQ(png_size(png)->width, 256);
  EXPECT_EQ(png_size(png)->height, 2);
  EXPECT_FALSE(png_size(png.substr(0, 20)));
  EXPECT_FALSE(png_size("GIF89a"));
  EXPECT_FALSE(png_size("\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\0\0\0\0\2"s)) << "no columns";
}

TEST(ProbeResults, TheEventNamesAFileOrSaysItAll) {
  const auto of_file = parse_event({{"event", "probe"}, {"step", 40}, {"path", "probes/a.json"}});
  EXPECT_EQ(std::get<Probe>(*of_file).path, "probes/a.json");
  EXPECT_EQ(std::get<Probe>(*parse_event(json::parse(to_line(*of_file)))).step, 40);
  const auto inline_one =
      parse_event({{"event", "probe"}, {"step", "3"}, {"probe", "mine"}, {"values", {{"x", 1}}}});
  EXPECT_EQ(std::get<Probe>(*inline_one).found, (json{{"probe", "mine"}, {"values", {{"x", 1}}}}));
  EXPECT_EQ(to_line(*parse_event(json::parse(to_line(*inline_one)))), to_line(*inline_one));
  EXPECT_TRUE(std::holds_alternative<Trained>(*parse_event(json::parse(to_line(Trained{})))));
  EXPECT_THROW(parse_event({{"event", "probe"}, {"step", 3}}), Error);
  EXPECT_THROW(parse_event({{"event", "probe"}, {"path", "x"}}), Error);
}

TEST(ProbeResults, AreShownToPeople) {
  const std::string text = to_text(full());
  EXPECT_THAT(text, HasSubstr("norms\n  last 1.5\n"));
  EXPECT_THAT(text, HasSubstr("  note: one was left out\n"));
  EXPECT_THAT(to_text({.request = {.name = "x"}, .missing = "no heads"}),
              HasSubstr("nothing to probe: no heads"));
  EXPECT_THAT(
      to_text({.request = {.name = "x"}, .arrays = {{"none", {.axes = {{"layer", {}}}, .values = {}}}}}),
      HasSubstr("none by layer"));
}

}  // namespace
}  // namespace abl::protocol
