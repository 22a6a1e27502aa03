// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/commands/description.h"

#include <gmock/gmock.h>

#include <fstream>
#include <sstream>

#include "base/error.h"
#include "config/document/trial_document.h"
#include "models/backbones/model_options.h"
#include "models/counting/memory.h"
#include "tests/temporary_folder.h"
#include "worker/trainer/commands/model_source.h"
#include "worker/trainer/tasks/model_factory.h"

namespace abl::trainer {
namespace {

using config::Json;
using testing::HasSubstr;

constexpr const char* kNano =
    R"({"model":{"preset":"xcit_nano_12_p16_224"},"data":{"image_size":224,"classes":1000}})";

std::vector<Json> answers(const std::string& documents, const std::function<void(Json&)>& change = {},
                          decltype(&commands::describe_lines) describe = commands::describe_lines) {
  std::istringstream in{documents};
  std::ostringstream out;
  describe(in, out, change);
  std::vector<Json> all;
  std::istringstream lines{out.str()};
  for (std::string line; std::getline(lines, line);) all.push_back(Json::parse(line));
  return all;
}

TEST(DescribeLines, AnswersEachModelInOrderAndGoesOnAfterABadOne) {
  const auto all = answers(std::string{kNano} + "\n{\"model\":{}}\nno JSON\n" + kNano + "\n");
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(all[0].at("counts").at("params.all"), 3'053'224);
  EXPECT_THAT(all[1].at("error").get<std::string>(), HasSubstr("model.dim: missing"));
  EXPECT_TRUE(all[2].contains("error"));
  EXPECT_EQ(all[3], all[0]);
}

TEST(DescribeLines, ChangesEachDocumentFirst) {
  const auto half = [](Json& document) { document["model"]["depth"] = 6; };
  const auto depth_6 = answers(kNano, half).at(0).at("counts").at("params.all").get<double>();
  EXPECT_LT(depth_6, 0.65 * 3'053'224);
}

TEST(DocumentLines, SayWhatEachDocumentComesToAndWhatOfItIsNotAsByDefault) {
  const std::string trial =
      R"({"model":{"preset":"xcit_nano_12_p16_224","block":{"attention":"tokens","temperature":2}},)"
      R"("data":{"name":"cifar10"},"recipe":{"use":"demo"}})";
  const auto all = answers(
      trial + "\n{\"model\":{}}\n", [](config::Json& document) { commands::complete_model(document, {}); },
      commands::document_lines);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].at("document").at("model").at("block"),
            Json::parse(R"({"attention":"tokens","lpi":true})"));
  EXPECT_EQ(all[0].at("canonical").at("model").at("block"), Json::parse(R"({"attention":"tokens"})"));
  EXPECT_THAT(all[1].at("error").get<std::string>(), HasSubstr("model.dim: missing"));
}

TEST(DescribeLines, HasEveryCountThatASweepMayName) {
  const auto counts = answers(kNano).at(0).at("counts");
  for (const char* mode : {"params.all",
                           "params.weights",
                           "flops.macs",
                           "flops.step",
                           "flops.msf",
                           "flops.cnn",
                           "flops.fvcore(2)",
                           "flops.fvcore(5)",
                           "flops.fvcore(5)@xcit-2021",
                           "flops.fvcore(2)@mk-head-all-tokens",
                           "memory.state",
                           "memory.state.bf16",
                           "memory.base.fp32",
                           "memory.base.bf16",
                           "memory.base.fp16",
                           "memory.image.fp32",
                           "memory.image.bf16",
                           "memory.image.fp16",
                           "memory.weights",
                           "memory.forward.image.fp32",
                           "memory.forward.image.bf16",
                           "memory.forward.image.fp16"})
    EXPECT_GT(counts.value(mode, 0.0), 0.0) << mode;
  EXPECT_GT(counts.at("flops.fvcore(5)@xcit-2021"), counts.at("flops.fvcore(5)"));
  EXPECT_GE(counts.at("memory.state"), 16 * counts.at("params.all").get<double>());  // fp32, AdamW
  EXPECT_LT(counts.at("memory.image.bf16"), counts.at("memory.image.fp32"));
  EXPECT_GE(counts.at("memory.weights"), 4 * counts.at("params.all").get<double>());
  EXPECT_LT(counts.at("memory.forward.image.fp32"), 0.5 * counts.at("memory.image.fp32").get<double>());
}

TEST(DescribeLines, CountTheMemoryOfBlocksThatAreComputedTwice) {
  auto document = Json::parse(kNano);
  const auto plain = answers(document.dump()).at(0).at("counts");
  document["recipe"] = {{"checkpoint_blocks", 12}};
  const auto twice = answers(document.dump()).at(0).at("counts");
  EXPECT_LT(twice.at("memory.image.bf16").get<double>(), 0.5 * plain.at("memory.image.bf16").get<double>());
  EXPECT_EQ(twice.at("flops.macs"), plain.at("flops.macs"));
}

// As a plan adds it up, of small images too, where the optimiser has the peak of small batches.
TEST(DescribeLines, TellTheMemoryOfAnyBatch) {
  for (const auto* preset :
       {"resnet50", "vit_small_patch16_224", "swin_tiny_patch4_window7_224", "xcit_nano_12_p16_224"})
    for (const int side : {64, 224}) {
      const Json document{{"model", {{"preset", preset}}}, {"data", {{"image_size", side}, {"classes", 10}}}};
      const auto trial = config::read_model_or_throw(document);
      const auto options = tasks::model_options(trial.model, trial.data);
      const auto counts = answers(document.dump()).at(0).at("counts");
      for (const auto* precision : {"fp32", "bf16"})
        for (const std::int64_t batch : {16, 128, 1024}) {
          const auto state =
              counts.at(precision == std::string{"bf16"} ? "memory.state.bf16" : "memory.state");
          const double many =
              counts.at(std::string{"memory.base."} + precision).get<double>() +
              static_cast<double>(batch) * counts.at(std::string{"memory.image."} + precision).get<double>();
          const auto step = models::predict_step_memory(
              [&](torch::Device device) { return models::build(options, device); },
              {.batch = batch,
               .image_size = side,
               .precision = commands::counted_as(*value_named<config::Precision>(precision))});
          const auto peak = static_cast<double>(step.peak);
          EXPECT_NEAR(std::max(state.get<double>(), many) / peak, 1, 0.15)
              << preset << ", " << side << " pixels, " << precision << ", batch " << batch;
        }
    }
}

TEST(ModelSource, TakesADocumentThatSaysNoMoreThanItsModel) {
  const TemporaryFolder folder;
  const auto file = folder / "model.json";
  std::ofstream{file} << R"({"model": {"preset": "swinv2_tiny_window8_256", "window": 16}})";
  const commands::ModelSource source{
      .preset = {}, .config_file = file.string(), .settings = {"model.mlp_ratio=2"}};
  const auto trial = source.trial();
  EXPECT_EQ(trial.model.window, 16);
  EXPECT_EQ(trial.model.mlp_ratio, 2);
  EXPECT_EQ(trial.data.image_size, 256) << "the preset's";
  std::ofstream{file} << R"({"model": {"preset": 3}})";
  EXPECT_THROW(source.trial(), Error);
}

TEST(DescribeModel, ShowsPartsCountsConventionAndMemory) {
  auto document = Json::parse(kNano);
  document["data"]["name"] = "imagenet-1k";
  document["recipe"] = {{"use", "msf-imagenet"}};
  const auto trial = config::read_trial_or_throw(document);
  std::ostringstream out;
  commands::describe_model(trial, {.depth = 2, .batch = 8}, out);
  EXPECT_THAT(out.str(), HasSubstr("blocks"));
  EXPECT_THAT(out.str(), HasSubstr("  0-11                       XcitBlock"));
  EXPECT_THAT(out.str(), HasSubstr("flops.fvcore(5)@xcit-2021"));
  EXPECT_THAT(out.str(), HasSubstr("training step of 8 images in bf16: "));

  std::ostringstream json;
  commands::describe_model(trial, {.batch = 8, .json = true}, json);
  const auto all = Json::parse(json.str());
  EXPECT_EQ(all.at("parts").at(0).at("params.all"), 3'053'224);
  EXPECT_EQ(all.at("memory").at("batch"), 8);
  std::int64_t elements = 0;
  for (const auto& parameter : all.at("parameters")) elements += parameter.at("elements").get<std::int64_t>();
  EXPECT_EQ(elements, 3'053'224);
}

TEST(DescribeLines, AnswersWhatItCannotReadAndGoesOn) {
  const std::string deep = R"({"model":)" + std::string(100'000, '[') + std::string(100'000, ']') + "}";
  std::istringstream in{deep + "\n{\"a\": \"\xff\"}\n\xff\xfe\n{\"model\": 1}\n" + kNano + "\n"};
  std::ostringstream out;
  commands::describe_lines(in, out);
  std::istringstream answers{out.str()};
  std::vector<Json> all;
  for (std::string line; std::getline(answers, line);) all.push_back(Json::parse(line));
  ASSERT_EQ(all.size(), 5u);
  EXPECT_EQ(all[0].at("error"), "nested more than 100 levels deep");
  EXPECT_EQ(all[1].at("error"), "the line is not UTF-8");
  EXPECT_EQ(all[2].at("error"), "the line is not UTF-8");
  EXPECT_TRUE(all[3].contains("error"));
  EXPECT_TRUE(all[4].contains("counts"));
}

TEST(DescribeModel, HoldsTheTeacherAndItsAnswerInTheMemory) {
  const auto memory = [](const Json& recipe) {
    const auto trial = config::read_trial_or_throw(
        {{"model", {{"preset", "simple-vit-nano"}}}, {"data", {{"name", "cifar10"}}}, {"recipe", recipe}});
    std::ostringstream out;
    commands::describe_model(trial, {.batch = 256, .json = true}, out);
    return Json::parse(out.str()).at("memory");
  };
  Json recipe{{"use", "demo"}, {"ema", 0}};
  const auto alone = memory(recipe);
  recipe.update({{"distillation", "hard"}, {"teacher", "simple-vit-nano"}, {"teacher_weights", "w"}});
  const auto taught = memory(recipe);
  EXPECT_EQ(alone.at("beside"), 0);
  const auto weights = taught.at("beside").get<std::int64_t>();
  EXPECT_GT(weights, 4 * 100'000);
  EXPECT_EQ(taught.at("peak"), alone.at("peak").get<std::int64_t>() + weights) << "it answers in less";
  recipe["batch"] = 256, recipe["accumulate"] = 256;
  const auto cut = memory(recipe).at("peak").get<std::int64_t>();
  recipe["distillation"] = "none";
  EXPECT_EQ(cut, memory(recipe).at("peak").get<std::int64_t>() + weights)
      << "the teacher is shown a part of the batch at a time too";
}

TEST(DescribeModel, SaysWhatACheckpointsCopyTakes) {
  const auto checkpoint = [](const Json& recipe) {
    const auto trial = config::read_trial_or_throw(
        {{"model", {{"preset", "simple-vit-nano"}}}, {"data", {{"name", "cifar10"}}}, {"recipe", recipe}});
    std::ostringstream out;
    commands::describe_model(trial, {.batch = 4, .json = true}, out);
    return Json::parse(out.str()).at("memory").at("checkpoint").get<std::int64_t>();
  };
  Json recipe{{"use", "demo"}, {"ema", 0}};
  const auto alone = checkpoint(recipe);
  EXPECT_GT(alone, 3 * 4 * 100'000) << "weights and AdamW's two";
  recipe["ema"] = 0.9;
  EXPECT_NEAR(static_cast<double>(checkpoint(recipe)) / static_cast<double>(alone), 4.0 / 3, 0.01);
}

TEST(PartTree, GivesSiblingsThatAreAlikeOneLine) {
  const auto part = [](const char* name, std::int64_t params) {
    return models::PartCount{.name = name, .type = "T", .params_all = params};
  };
  const auto text = commands::part_tree({part("", 9), part("a", 6), part("a.0", 2), part("a.0.x", 1),
                                         part("a.1", 2), part("a.1.x", 1), part("a.2", 3), part("b", 3)},
                                        /*depth=*/3);
  std::istringstream lines{text};
  std::vector<std::string> names;
  for (std::string line; std::getline(lines, line);) names.push_back(line.substr(0, line.find("  T")));
  for (auto& name : names) name.erase(name.find_last_not_of(' ') + 1);
  ASSERT_EQ(names.size(), 7U);
  EXPECT_EQ(names[1], "(model)");
  EXPECT_EQ(names[2], "a");
  EXPECT_EQ(names[3], "  0-1");
  EXPECT_EQ(names[4], "    x");
  EXPECT_EQ(names[5], "  2");
  EXPECT_EQ(names[6], "b");
}

}  // namespace
}  // namespace abl::trainer
