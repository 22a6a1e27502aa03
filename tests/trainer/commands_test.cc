// SPDX-License-Identifier: Apache-2.0
// ablate-trainer as a person uses it: what its commands take, print and refuse.
#include <gmock/gmock.h>

#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "data/commands/data_commands.h"
#include "models/weights/safetensors.h"
#include "tests/images/picture_files.h"
#include "worker/trainer/commands/commands.h"

namespace abl::trainer {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

class CommandsTest : public testing::Test {
 protected:
  CommandsTest() {
    images::write(config_, R"({
      "model": {"family": "simple-vit", "dim": 16, "depth": 1, "heads": 2, "dim_head": 8, "patch": 8},
      "data": {"name": "shapes", "train_images": 60, "val_images": 20},
      "recipe": {"use": "demo", "epochs": 1, "batch": 20}, "seed": 0})");
  }
  std::string run_folder() { return folder_.path() / std::to_string(runs_++); }

  /// What a command printed; its refusal instead, where it threw one.
  std::string said(abl::Run (*declare)(CLI::App&), std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"--config", config_});
    CLI::App app{"test", "test"};
    const abl::Run execute = declare(app);
    app.parse(std::vector<std::string>{arguments.rbegin(), arguments.rend()});
    testing::internal::CaptureStdout();
    try {
      execute();
    } catch (const Error& error) {
      testing::internal::GetCapturedStdout();
      return error.what();
    }
    return testing::internal::GetCapturedStdout();
  }
  /// The last event of a training.
  Json end(const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"--run-dir", run_folder(), "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    auto text = said(&commands::declare_train, arguments);
    text.pop_back();
    return Json::parse(text.substr(text.rfind('\n') + 1));
  }
  /// Weights of that trial, trained here.
  std::string trained() {
    const auto folder = run_folder();
    said(&commands::declare_train, {"--run-dir", folder, "--json"});
    return folder + "/best.safetensors";
  }

  TemporaryFolder folder_;
  const std::string config_ = folder_.path() / "trial.json";
  int runs_ = 0;
};

TEST(CalibrateTest, EachTrialIsTimedInALineAndOneThatCannotBeSaysWhy) {
  const std::string
      trial = R"({"model": {"family": "simple-vit", "dim": 16, "depth": 1, "heads": 2, "dim_head": 8,
    "patch": 8}, "data": {"name": ")",
      rest = R"("image_size": 32, "classes": 10, "train_images": 60, "val_images": 20},
    "recipe": {"use": "demo", "epochs": 1, "batch": 20, "ema": 0.9}, "seed": 0})";
  std::string input =
      trial + R"(shapes", )" + rest + "\n" + trial + R"(elsewhere", )" + rest + "\n{\"model\": {}}\n";
  for (std::size_t i = 0; i + 1 < input.size(); ++i)
    if (input[i] == '\n' && input[i + 1] == ' ') input[i] = ' ';
  std::istringstream in{input};
  auto* const before = std::cin.rdbuf(in.rdbuf());
  CLI::App app{"test", "test"};
  const abl::Run execute = commands::declare_calibrate(app);
  app.parse(std::vector<std::string>{"0.6", "--seconds"});
  testing::internal::CaptureStdout();
  execute();
  std::cin.rdbuf(before);
  std::istringstream answers{testing::internal::GetCapturedStdout()};
  std::string line;
  for (const bool is_here : {true, false}) {
    ASSERT_TRUE(std::getline(answers, line));
    const auto answer = Json::parse(line);
    ASSERT_FALSE(answer.contains("error")) << line;
    for (const char* key :
         {"step_seconds", "image_seconds", "start_seconds", "checkpoint_seconds", "base_bytes"})
      EXPECT_GT(answer.at(key).get<double>(), 0) << key;
    EXPECT_GE(answer.at("steps").get<int>(), 1);
    EXPECT_EQ(answer.at("batch"), 0) << "all of the batch was measured";
    EXPECT_EQ(answer.at("threads"), 1);
    EXPECT_EQ(answer.at("train_images"), is_here ? 60 : 0) << "of data that are not here images were drawn";
  }
  ASSERT_TRUE(std::getline(answers, line));
  EXPECT_THAT(Json::parse(line).at("error").get<std::string>(), HasSubstr("model"));
}

TEST_F(CommandsTest, ASettingChangesTheTrial) {
  const auto folder = run_folder();
  const auto text = said(&commands::declare_train, {"--run-dir", folder, "--json", "--set", "recipe.epochs=2",
                                                    "--set", "model.dim=24"});
  EXPECT_THAT(text, HasSubstr(R"("total_steps":6)"));
  const auto weights = folder + "/best.safetensors";
  EXPECT_THAT(said(&commands::declare_eval, {"--weights", weights, "--set", "model.dim=24"}),
              HasSubstr("20 images"));
  EXPECT_THAT(said(&commands::declare_eval, {"--weights", weights, "--set", "model.dmi=24"}),
              HasSubstr("did you mean 'dim'?"));
  EXPECT_THAT(end({"--set", "recipe=5"}).at("reason"), HasSubstr("recipe"));
  std::string deep = "model.a";
  for (int i = 0; i < 60'000; ++i) deep += ".a";
  for (const auto& setting :
       {deep + "=1", "model.a=" + std::string(100'000, '[') + std::string(100'000, ']')})
    EXPECT_THAT(end({"--set", setting}).at("reason"), HasSubstr("nested more than 100 levels deep"));
}

TEST_F(CommandsTest, WeightsThatDoNotFitAreOneLine) {
  const auto refusal = said(&commands::declare_eval, {"--weights", trained(), "--set", "model.dim=24"});
  EXPECT_THAT(refusal, testing::AllOf(HasSubstr("best.safetensors does not fit the model in "),
                                      HasSubstr("… and "), testing::Not(HasSubstr("\n"))));
}

TEST_F(CommandsTest, WeightsOrResultsThatAreNotFiniteHaveNoAccuracy) {
  const auto file = trained();
  const auto said_of = [&](double bias, bool json) {
    auto content = models::read_safetensors(file);
    content.tensors.at("model.head.bias")[0] = bias;
    content.metadata.erase("crc32");
    models::write_safetensors(file, content);
    std::vector<std::string> arguments{"--weights", file};
    if (json) arguments.emplace_back("--json");
    return said(&commands::declare_eval, arguments);
  };
  for (const bool json : {false, true}) {
    EXPECT_THAT(said_of(NAN, json), HasSubstr("head.bias has values that are not finite"));
    EXPECT_EQ(said_of(3e38, json), "val/loss is not finite with the weights " + file + ": it is inf")
        << "each image's loss is finite, their sum is not";
  }
}

TEST_F(CommandsTest, ARefusedTrainingLeavesNoFolderBehind) {
  const std::vector<std::vector<std::string>> refused{{"--set", "recipe.start_weights=w"},
                                                      {"--device", "gpu"},
                                                      {"--set", "recipe.batch=0"},
                                                      {"--resume", "none.safetensors"}};
  for (const auto& wrong : refused) {
    const auto folder = run_folder();
    auto arguments = wrong;
    arguments.insert(arguments.end(), {"--run-dir", folder, "--json"});
    EXPECT_THAT(said(&commands::declare_train, arguments), HasSubstr(R"("status":"failed")"));
    EXPECT_FALSE(std::filesystem::exists(folder)) << wrong.back();
  }
}

TEST_F(CommandsTest, WeightsThatTheRecipeDoesNotNameAreRefused) {
  EXPECT_EQ(end({"--weights", "deit=w"}).at("reason"),
            "--weights deit=…: the recipe names no weights (recipe.start_weights, recipe.teacher_weights)");
  EXPECT_EQ(end({"--weights", "deit=w", "--set", "recipe.start_weights=pretrained"}).at("reason"),
            "--weights deit=…: the recipe names pretrained alone");
  EXPECT_EQ(end({"--weights", "pretraned=w", "--set", "recipe.start_weights=pretrained"}).at("reason"),
            "--weights pretraned=…: the recipe names pretrained alone; did you mean 'pretrained'?");
  EXPECT_THAT(end({"--set", "recipe.start_weights=pretrained"}).at("reason"),
              HasSubstr("no file for the weights pretrained"));
  EXPECT_EQ(
      end({"--set", "recipe.start_weights=pretrained", "--weights", "pretrained=" + trained()}).at("status"),
      "completed");
}

TEST_F(CommandsTest, ATrainingWarnsOfWhatIsPassedOverAlsoInAPackedFile) {
  const auto root = folder_.path() / "set", packed = folder_.path() / "set.abldata";
  for (const char* file : {"train/a/1.jpg", "train/b/1.jpg", "val/a/1.jpg", "val/b/1.jpg", "val/c/1.jpg"})
    images::write(root / file, images::jpeg_of(40, 40, {200, 30, 90}));
  images::write(root / "train/a/notes.txt", "x");
  {
    CLI::App app{"test", "test"};
    const abl::Run execute = data::declare_data(app);
    app.parse(std::vector<std::string>{packed.string(), "--output", root.string(), "--root", "pack"});
    testing::internal::CaptureStdout();
    EXPECT_EQ(execute(), kExitOk);
    testing::internal::GetCapturedStdout();
  }
  for (const auto& data : {root, packed}) {
    std::vector<std::string> arguments{"--run-dir", run_folder(), "--json", "--data-root", data.string()};
    for (const char* setting : {"data.name=own", "data.classes=2", "data.image_size=32",
                                "data.train_images=0", "data.val_images=0", "recipe.batch=2"})
      arguments.insert(arguments.end(), {"--set", setting});
    std::istringstream events{said(&commands::declare_train, arguments)};
    std::vector<std::string> warnings;
    Json event;
    for (std::string line; std::getline(events, line);)
      if (event = Json::parse(line); event.at("event") == "log" && event.at("level") == "warning")
        warnings.push_back(event.at("text"));
    EXPECT_EQ(event.value("status", ""), "completed") << event;
    EXPECT_THAT(warnings, testing::ElementsAre(
                              testing::AllOf(testing::StartsWith("data: "), HasSubstr("1 class is in "),
                                             HasSubstr(" alone and not used, with 1 image; the first is c")),
                              testing::AllOf(testing::StartsWith("data: "),
                                             HasSubstr("1 file does not end in "), HasSubstr("notes.txt"))))
        << data;
  }
}

TEST_F(CommandsTest, VerifyReadsAndSaysNumbersThatAreNotFiniteByTheirNames) {
  const auto folder = run_folder();
  said(&commands::declare_train, {"--run-dir", folder, "--json"});
  const auto points = (folder_.path() / "points.json").string();
  images::write(points, R"({"3": {"train/loss": "NaN", "val/loss": "-Infinity", "val/top1": "2e3"}})");
  const auto result =
      Json::parse(said(&commands::declare_verify,
                       {"--to", folder + "/checkpoint-3.safetensors", "--points", points, "--json"}));
  std::map<std::string, Json> largest;
  for (const auto& each : result.at("different")) largest[each.at("name")] = each.at("largest");
  EXPECT_EQ(largest.at("train/loss at step 3"), "NaN");
  EXPECT_EQ(largest.at("val/loss at step 3"), "Infinity");
  EXPECT_GE(largest.at("val/top1 at step 3"), 1900);
}

TEST_F(CommandsTest, ADeviceIsCpuOrANumberedGpu) {
  for (const char* device : {"gpu", "cuda:", "cuda:01", "cuda:200", "cuda:-1"})
    EXPECT_EQ(end({"--device", device}).at("reason"),
              std::string{"--device "} + device + ": expected cpu, cuda or cuda:N");
}

TEST_F(CommandsTest, InferNamesTheLikelyClassesOfAPhotograph) {
  const auto weights = trained();
  const auto photograph = (folder_.path() / "photo.jpg").string();
  images::write(photograph, images::jpeg_of(48, 40, {200, 30, 90}));
  const std::vector<std::string> arguments{"--weights", weights, "--input", photograph};
  EXPECT_THAT(said(&commands::declare_infer, arguments),
              testing::MatchesRegex("image 0: class [0-9] .* %, class [0-9] .* %\n"));
  auto as_json = arguments;
  as_json.emplace_back("--json");
  const auto classes = Json::parse(said(&commands::declare_infer, as_json)).at("images").at(0);
  ASSERT_EQ(classes.size(), 5u);
  EXPECT_GE(classes[0].at("probability"), classes[1].at("probability"));
  auto overflowing = models::read_safetensors(weights);
  for (const char* name : {"model.head.weight", "model.head.bias"}) overflowing.tensors.at(name).fill_(3e38);
  overflowing.metadata.erase("crc32");
  const auto huge = (folder_.path() / "huge.safetensors").string();
  models::write_safetensors(huge, overflowing);
  as_json[1] = huge;
  EXPECT_EQ(Json::parse(said(&commands::declare_infer, as_json)).at("images").at(0).at(0).at("probability"),
            "NaN")
      << "as everywhere in JSON here";
  auto with_features = arguments;
  with_features.insert(with_features.end(), {"--features", "norm"});
  EXPECT_THAT(said(&commands::declare_infer, with_features), HasSubstr("--features needs --output"));
}

}  // namespace
}  // namespace abl::trainer
