// SPDX-License-Identifier: Apache-2.0
#include "data/commands/data_commands.h"

#include <nlohmann/json.hpp>

#include "tests/data/coco_folder.h"

namespace abl::data {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class DataCommands : public AnnotatedFolder {
 protected:
  struct Outcome {
    int code = -1;
    std::string out, err;
  };
  /// As `ablate-trainer data …` ends.
  Outcome run(std::vector<std::string> arguments) const {
    CLI::App app{"test", "test"};
    const abl::Run execute = declare_data(app);
    std::ranges::reverse(arguments);  // CLI11 takes them from the back
    Outcome outcome;
    testing::internal::CaptureStdout(), testing::internal::CaptureStderr();
    try {
      app.parse(arguments);
      outcome.code = execute();
    } catch (const CLI::ParseError& error) {
      outcome.code = app.exit(error) == 0 ? kExitOk : kExitUsage;
    } catch (const Error& error) {
      std::cerr << error.what() << '\n';
      outcome.code = exit_code(error.code());
    }
    outcome.out = testing::internal::GetCapturedStdout(),
    outcome.err = testing::internal::GetCapturedStderr();
    return outcome;
  }
  void SetUp() override {
    for (const char* file : {"set/train/a/1.jpg", "set/train/a/2.jpg", "set/train/b/1.jpg", "set/val/a/1.jpg",
                             "set/val/b/1.jpg"})
      put_picture(file);
  }
  std::string root() const { return path("set").string(); }
};

TEST_F(DataCommands, CheckSaysWhatThereIs) {
  const auto outcome = run({"check", "--root", root()});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("folders of images, folder-1:"), HasSubstr("classes  2: a, b"),
                                 HasSubstr("train    3 images of 2 classes, 1 to 2 per class"),
                                 HasSubstr("all 5 images can be decoded")));
}

TEST_F(DataCommands, CheckListsEveryDamagedImageAndEndsWithOne) {
  const auto whole = images::jpeg_of(64, 64, {9, 9, 9});
  put("set/train/a/2.jpg", whole.substr(0, whole.size() / 2)), put("set/val/b/1.jpg", "");
  const auto outcome = run({"check", "--root", root(), "--json", "--threads", "3"});
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  const auto report = Json::parse(outcome.out);
  ASSERT_EQ(report.at("damaged").size(), 2u);
  EXPECT_THAT(report.at("damaged")[0].at("name").get<std::string>(), HasSubstr("train/a/2.jpg"));
  EXPECT_THAT(report.at("damaged")[1].at("reason").get<std::string>(), HasSubstr("empty"));
  EXPECT_EQ(report.at("splits").at("train").at("images_per_class").at("max"), 2);
  EXPECT_THAT(run({"check", "--root", root()}).out, HasSubstr("2 of 5 images cannot be decoded"));
}

TEST_F(DataCommands, AnnotatedPicturesHaveTheSameCommands) {
  put_coco();
  const std::string coco = path("coco").string(), file = path("coco.abldata").string();
  EXPECT_THAT(run({"check", "--root", coco}).out, HasSubstr("all 4 images and their annotations are valid"));
  EXPECT_THAT(run({"format", "--root", coco}).out, HasSubstr("COCO instances"));
  EXPECT_THAT(run({"format", "--root", coco, "--open", "--json"}).out,
              HasSubstr("\"fingerprint\":\"coco-1:"));
  const auto named = run({"check", "--root", coco, "--name", "imagenet-1k"});
  EXPECT_EQ(named.code, 2);
  EXPECT_THAT(named.err, HasSubstr("--name applies to classification images only"));
  EXPECT_THAT(run({"pack", "--root", coco, "--output", file}).out, HasSubstr("2 + 2 annotated images"));
  EXPECT_THAT(run({"check", "--root", file}).out, HasSubstr("packed file of annotated images, coco-1:"));
  EXPECT_EQ(run({"pack", "--root", coco, "--output", file + "2", "--raw"}).code, 2);
  Json train = instances();
  train["annotations"][0]["bbox"] = {20, 3, 8, 5};
  put_coco(train);
  const auto wrong = run({"check", "--root", coco});
  EXPECT_EQ(wrong.code, 1);
  EXPECT_THAT(wrong.out,
              HasSubstr("instances_train2017.json: annotations[0], id 1, image 9: bounding box [20, 3, 8, 5] "
                        "extends beyond the 24×16 image\n1 problem\n"));
  const auto packed = run({"pack", "--root", coco, "--output", file + "3"});
  EXPECT_EQ(packed.code, 0);
  EXPECT_THAT(packed.err, HasSubstr("warning: 1 invalid annotation, the first: "));
}

TEST_F(DataCommands, CheckNamesWhatIsPassedOver) {
  EXPECT_THAT(run({"check", "--root", root()}).out, testing::Not(HasSubstr("note")));
  put_picture("set/val/c/1.jpg"), put_picture("set/val/d/1.jpg");
  put("set/train/b/2.gif", "x"), put("set/train/a/3.gif", "x"), put("set/train/a/.DS_Store", "x");
  const auto outcome = run({"check", "--root", root()});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(
      outcome.out,
      AllOf(HasSubstr("note     2 classes are in " + path("set/val").string() +
                      " alone and not used, with 2 images; the first is c"),
            HasSubstr(
                "note     2 files do not end in .jpg, .jpeg, .png or .webp and are not used, the first is " +
                path("set/train/a/3.gif").string())));
  EXPECT_EQ(Json::parse(run({"check", "--root", root(), "--json"}).out).at("passed_over").size(), 2u);
}

TEST_F(DataCommands, WhatIsUnknownEndsWithTwo) {
  EXPECT_EQ(run({"check"}).code, 2);
  EXPECT_EQ(run({}).code, 2);
  EXPECT_EQ(run({"check", "--root", path("nowhere").string()}).code, 2);
  EXPECT_EQ(run({"check", "--root", path().string()}).code, 2) << "no known format";
  EXPECT_THAT(run({"check", "--root", root(), "--name", "imagenet1k"}).err,
              HasSubstr("did you mean 'imagenet-1k'"));
  const auto counted = run({"check", "--root", root(), "--name", "imagenet-1k"});
  EXPECT_EQ(counted.code, 2);
  EXPECT_THAT(counted.err, HasSubstr("has 2 class folders, the trial is for 1000 classes"));
}

TEST_F(DataCommands, FormatSaysWhatIsRecognisedAndWithOpenWhetherItIsWhole) {
  const auto format = [&](std::vector<std::string> more = {}) {
    std::vector<std::string> words{"format", "--root", root()};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  };
  EXPECT_EQ(format().out, "train/CLASS with val/CLASS\n");
  EXPECT_EQ(Json::parse(format({"--open", "--json"}).out).at("format"), "folders of images");
  std::filesystem::remove_all(path("set/val"));
  EXPECT_EQ(format().code, 0);
  const auto half = format({"--open"});
  EXPECT_EQ(half.code, 2);
  EXPECT_THAT(half.err, HasSubstr("neither val nor test"));
  const auto unknown = run({"format", "--root", path().string()});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err,
              AllOf(HasSubstr(path().string() + " holds no data set of a known format; looked for "),
                    HasSubstr("did you mean " + root() + "?")));
  put("set.abldata", "something else");
  EXPECT_EQ(run({"format", "--root", path("set.abldata").string()}).code, 2);
}

TEST_F(DataCommands, PackKeepsWhatItCannotDecodeAndSaysSo) {
  const auto whole = images::jpeg_of(64, 64, {9, 9, 9});
  put("set/train/a/2.jpg", whole.substr(0, whole.size() - 20));  // behind the header
  const auto packed =
      run({"pack", "--root", root(), "--output", path("set.abldata").string(), "--raw", "--json"});
  EXPECT_EQ(packed.code, 0);
  EXPECT_EQ(Json::parse(packed.out).at("damaged"), 1);
  EXPECT_THAT(packed.err, AllOf(HasSubstr("1 damaged image kept as it is"), HasSubstr("train/a/2.jpg: ")));
  const auto again =
      run({"pack", "--root", root(), "--output", path("set.abldata").string(), "--raw", "--json"});
  EXPECT_FALSE(Json::parse(again.out).contains("damaged")) << "nobody knows it of a file that is there";
}

TEST_F(DataCommands, PackSaysWhatIsPassedOverAndThePackDoesToo) {
  put_picture("set/val/c/1.jpg"), put("set/train/a/notes.txt", "x");
  const std::string file = path("set.abldata").string();
  const std::string classes =
                        "1 class is in " + path("set/val").string() + " alone and not used, with 1 image",
                    files = "1 file does not end in .jpg, .jpeg, .png or .webp and is not used";
  for (const bool made : {true, false}) {
    const auto packed = run({"pack", "--root", root(), "--output", file, "--json"});
    EXPECT_EQ(packed.code, 0);
    EXPECT_EQ(Json::parse(packed.out).at("made"), made);
    EXPECT_EQ(Json::parse(packed.out).at("passed_over").size(), 2u);
    EXPECT_THAT(packed.err, AllOf(HasSubstr("warning: " + classes), HasSubstr("warning: " + files)));
  }
  const auto checked = run({"check", "--root", file});
  EXPECT_EQ(checked.code, 0) << checked.err;
  EXPECT_THAT(checked.out, AllOf(HasSubstr("note     when it was packed, " + classes),
                                 HasSubstr("note     when it was packed, " + files)));
}

TEST_F(DataCommands, PackThenCheckThePack) {
  const std::string file = path("set.abldata").string();
  const auto packed = run({"pack", "--root", root(), "--output", file, "--json"});
  EXPECT_EQ(packed.code, 0) << packed.err;
  EXPECT_EQ(Json::parse(packed.out).at("made"), true);
  EXPECT_THAT(run({"pack", "--root", root(), "--output", file}).out, HasSubstr("there already"));
  const auto checked = run({"check", "--root", file});
  EXPECT_EQ(checked.code, 0) << checked.err;
  EXPECT_THAT(checked.out, AllOf(HasSubstr("packed file, folder-1:"), HasSubstr("all 5 images")));
  EXPECT_EQ(run({"pack", "--root", root(), "--output", file, "--raw"}).code, 2) << "another one is there";
  put("set/train/a/0.jpg", "no picture");
  EXPECT_EQ(run({"pack", "--root", root(), "--output", path("other.abldata").string()}).code, 2) << "damaged";
  EXPECT_EQ(run({"pack", "--root", root()}).code, 2) << "no output is named";
}

}  // namespace
}  // namespace abl::data
