// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"
#include "data/annotated/check.h"
#include "data/annotated/pack.h"
#include "data/commands/annotated_commands.h"
#include "tests/data/coco_folder.h"
#include "tests/error_of.h"

namespace abl::data {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class AnnotatedTest : public AnnotatedFolder {
 protected:
  /// What is wrong with a COCO set of which `damage` changed the training annotations.
  template <class Damage>
  std::vector<std::string> problems(const Damage& damage) const {
    Json train = instances();
    damage(train);
    put_coco(train);
    std::vector<std::string> found;
    open_set("coco", [&](const std::string& problem) { found.push_back(problem); });
    const std::string root = path("coco/annotations").string() + "/instances_train2017.json: ";
    for (auto& problem : found) {
      EXPECT_TRUE(problem.starts_with(root)) << problem;
      problem = problem.substr(std::min(problem.size(), root.size()));
    }
    return found;
  }
  /// The same, where one thing is wrong with the first annotation.
  std::string problem_with(const char* key, Json value) const {
    const auto found = problems([&](Json& train) { train["annotations"][0][key] = std::move(value); });
    if (found.size() != 1) return fmt::format("{} problems", found.size());
    const std::string place = "annotations[0], id 1, image 9: ";
    return found[0].starts_with(place) ? found[0].substr(place.size()) : found[0];
  }
  /// Of an ADE20K set.
  std::vector<std::string> damaged() const {
    std::vector<std::string> all;
    const auto set = open_set("ade", [&](const std::string& problem) { all.push_back(problem); });
    for (auto& what : check_annotated(set, 2, stop_, [](auto) {}).damaged) all.push_back(what);
    return all;
  }

  const std::atomic<bool> stop_ = false;
};

TEST_F(AnnotatedTest, CocoIsReadById) {
  put_coco();
  const AnnotatedSet set = open_set("coco");
  EXPECT_EQ(set.format, "COCO instances 2017");
  EXPECT_THAT(set.categories, ElementsAre("car", "dog"));
  ASSERT_EQ(set.train->size(), 2u);
  EXPECT_THAT(set.train->name(0), HasSubstr("train2017/a.jpg")) << "the lower id first";
  EXPECT_EQ(set.train->instances(0), 0u);
  EXPECT_EQ(set.train->instances(1), 2u);
  const auto picture = set.train->load(1);
  EXPECT_EQ(picture->image.width, 24);
  EXPECT_TRUE(picture->labels.empty());
  ASSERT_EQ(picture->instances.size(), 2u);
  const auto& dog = picture->instances[0];
  EXPECT_EQ(dog.category, 1);
  EXPECT_EQ(dog.box, (images::Box{2, 3, 8, 5}));
  EXPECT_EQ(dog.mask, images::filled_mask(24, 16, 2, 3, 10, 8));
  EXPECT_EQ(dog.area, 40);
  EXPECT_FALSE(dog.crowd);
  EXPECT_TRUE(picture->instances[1].crowd);
  EXPECT_EQ(picture->instances[1].mask, images::filled_mask(24, 16, 0, 0, 1, 4));
}

TEST_F(AnnotatedTest, EveryBadAnnotationIsOneLine) {
  EXPECT_EQ(problem_with("bbox", {20, 3, 8, 5}), "bounding box [20, 3, 8, 5] extends beyond the 24×16 image");
  EXPECT_EQ(problem_with("bbox", {2, 3, 0, 5}), "empty bounding box [2, 3, 0, 5]");
  EXPECT_EQ(problem_with("bbox", {2, 3, 5}), "'bbox' has 3 numbers; expected left, top, width and height");
  EXPECT_EQ(problem_with("bbox", {2, 3, 5, "x"}), "'bbox' has a value that is not a number");
  EXPECT_EQ(problem_with("segmentation", Json::array()), "empty 'segmentation': no polygon");
  EXPECT_EQ(problem_with("segmentation", {{1, 2, 3, 4, 5}}),
            "odd number of polygon coordinates (5); expected x and y for each corner");
  EXPECT_EQ(problem_with("segmentation", {Json::array()}), "polygon with 0 corners; expected at least 3");
  EXPECT_EQ(problem_with("segmentation", {{"size", {16, 23}}, {"counts", {368}}}),
            "mask size 23×16 does not match image size 24×16");
  EXPECT_EQ(problem_with("segmentation", {{"size", {16, 24}}, {"counts", {3}}}),
            "run lengths cover 3 pixels; the image has 384");
  EXPECT_EQ(problem_with("segmentation", {{"size", {16, 24}}, {"counts", "2!"}}),
            "invalid byte 33 in run lengths at character 2; expected '0' to 'o'");
  EXPECT_EQ(problem_with("category_id", 91), "unknown category 91; 'categories' lists 2, 3 to 18");
  EXPECT_EQ(problem_with("image_id", 7),
            "annotations[0], id 1, image 7: unknown image 7: 'images' does not list it");
  EXPECT_EQ(problem_with("id", 2), "annotations[1], id 2, image 9: duplicate annotation id");
  EXPECT_EQ(problem_with("area", -1), "'area' is -1; expected 0 or more");
  EXPECT_EQ(problem_with("iscrowd", 7), "'iscrowd' is 7; expected 0 or 1");
  EXPECT_THAT(problems([](Json& train) { train["annotations"][1].erase("bbox"); }),
              ElementsAre("annotations[1], id 2, image 9: missing 'bbox'"));
  EXPECT_THAT(problems([](Json& train) { train["images"][1]["id"] = 9; }),
              ElementsAre("images[1], id 9: duplicate image id 9: a.jpg and b.jpg"));
  EXPECT_THAT(problems([](Json& train) { train["images"][1]["file_name"] = "c.jpg"; }),
              ElementsAre("image 4: missing file c.jpg"));
  EXPECT_THAT(problems([](Json& train) { train["images"][1]["file_name"] = "../val2017/a.jpg"; }),
              ElementsAre("image 4: missing file ../val2017/a.jpg"));
  EXPECT_THAT(problems([](Json& train) { train["images"][1]["width"] = 0; }),
              ElementsAre("images[1], id 4: 'width' is 0; expected 1 to 32768"));
}

TEST_F(AnnotatedTest, ABoxThatReachesOutByARoundingIsCut) {
  EXPECT_EQ(problem_with("bbox", {-0.4, 3, 24.9, 5}), "0 problems");
  EXPECT_EQ(open_set("coco").train->read(1).instances[0].box, (images::Box{0, 3, 24, 5}));
}

TEST_F(AnnotatedTest, ABadAnnotationEndsATrainingOrIsLeftOut) {
  Json train = instances();
  train["annotations"][0]["category_id"] = 91;
  put_coco(train);
  EXPECT_THAT(error_of([&] { open_set("coco"); }),
              AllOf(HasSubstr("annotations[0], id 1, image 9: unknown category 91"),
                    HasSubstr("data.damaged: skip would leave it out")));
  testing::internal::CaptureStderr();
  const auto set = open_annotated({.name = "test", .damaged = config::Damaged::kSkip}, path("coco"));
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("unknown category 91"));
  EXPECT_EQ(set.train->instances(1), 1u);
}

TEST_F(AnnotatedTest, APictureOfAnotherSizeIsDamaged) {
  put_coco();
  put("coco/train2017/a.jpg", images::jpeg_of(20, 16, {9, 9, 9}));
  const auto set = open_set("coco");
  EXPECT_THAT(check_annotated(set, 1, stop_, [](auto) {}).damaged,
              ElementsAre(AllOf(HasSubstr("train2017/a.jpg"),
                                HasSubstr("image size 20×16 does not match its annotation's 24×16"))));
  EXPECT_THAT(error_of([&] { set.train->load(0); }), HasSubstr("data.damaged: skip would leave it out"));
  EXPECT_THAT(error_of([&] { pack_annotated(set, {.output = path("coco.abldata")}); }),
              HasSubstr("does not match its annotation's 24×16 ('data check' lists every one)"))
      << "in a packed file its boxes would be of another picture";
}

TEST_F(AnnotatedTest, AFileThatIsNoAnnotationFileIsRefused) {
  put_coco();
  const std::string file = path("coco/annotations/instances_val2017.json");
  put("coco/annotations/instances_val2017.json", instances().dump().substr(0, 300));
  EXPECT_THAT(error_of([&] { open_set("coco"); }),
              AllOf(HasSubstr(file), HasSubstr("the file is truncated")));
  put("coco/annotations/instances_val2017.json", "[]");
  EXPECT_THAT(error_of([&] { open_set("coco"); }), HasSubstr("expected images, annotations and categories"));
  Json other = instances();
  other["categories"][0]["name"] = "cat";
  put_coco(instances(), other);
  EXPECT_THAT(error_of([&] { open_set("coco"); }), HasSubstr("expected the same categories"));
  std::filesystem::remove_all(path("coco/val2017"));
  EXPECT_THAT(error_of([&] { open_set("coco"); }), HasSubstr("coco/val2017; expected it or "));
}

TEST_F(AnnotatedTest, Ade20kLosesItsZero) {
  put_ade20k();
  const AnnotatedSet set = open_set("ade");
  EXPECT_EQ(set.labels.size(), 150u);
  const auto picture = set.of(Split::kVal).load(1);
  EXPECT_THAT(std::vector(picture->labels.labels.begin(), picture->labels.labels.begin() + 5),
              ElementsAre(0, 1, 149, 255, 255));
  EXPECT_TRUE(picture->instances.empty());
  put("ade/objectInfo150.txt",
      "Idx\tRatio\tTrain\tVal\tStuff\tName\n1\t0.15\t11664\t1172\t1\twall\n2\t.1\t1\t1\t1\tbuilding, "
      "edifice\n");
  EXPECT_THAT(open_set("ade").labels, ElementsAre("wall", "building"));
}

TEST_F(AnnotatedTest, EveryBadLabelFileIsOneLine) {
  put_ade20k();
  put("ade/annotations/training/a.png", label_file({1, 151}));
  put("ade/annotations/training/b.png", label_file({1}, 20, 16));
  put_picture("ade/images/training/c.jpg");
  put("ade/annotations/validation/d.png", label_file({1}));
  put("ade/annotations/validation/a.png", images::encode_png(images::black(24, 16)));
  EXPECT_THAT(
      damaged(),
      ElementsAre(
          AllOf(HasSubstr("images/training/c.jpg: missing label file"),
                HasSubstr("annotations/training/c.png")),
          HasSubstr("annotations/validation/d.png: missing image file "),
          HasSubstr("training/a.jpg: label 151 at (1, 0) is out of range; expected 0 to 150, or 255"),
          HasSubstr("training/b.jpg: label image size 20×16 does not match image size 24×16"),
          HasSubstr(
              "validation/a.jpg: colour image; expected labels: a palette or grey image of at most 8 bits")));
}

TEST_F(AnnotatedTest, APackedFileHoldsTheSame) {
  put_coco(), put_ade20k();
  for (const std::string below : {"coco", "ade"}) {
    const AnnotatedSet set = open_set(below);
    const auto file = path(below + ".abldata");
    const PackResult made = pack_annotated(set, {.output = file});
    EXPECT_TRUE(made.made);
    EXPECT_FALSE(pack_annotated(set, {.output = file}).made) << "it is there already";
    EXPECT_EQ(annotated_format_in(file), "packed file of annotated images");
    const AnnotatedSet packed = open_set(below + ".abldata");
    EXPECT_EQ(packed.fingerprint, set.fingerprint);
    EXPECT_EQ(packed.categories, set.categories);
    EXPECT_EQ(packed.labels, set.labels);
    for (const Split split : {Split::kTrain, Split::kVal}) {
      ASSERT_EQ(packed.of(split).size(), set.of(split).size());
      for (std::uint32_t i = 0; i < set.of(split).size(); ++i) {
        const auto ours = packed.of(split).read(i), theirs = set.of(split).read(i);
        EXPECT_EQ(packed.of(split).instances(i), theirs.instances.size());
        EXPECT_EQ(ours.image.pixels, theirs.image.pixels);
        EXPECT_EQ(ours.labels, theirs.labels);
        ASSERT_EQ(ours.instances.size(), theirs.instances.size());
        for (std::size_t k = 0; k < ours.instances.size(); ++k) {
          EXPECT_EQ(ours.instances[k].mask, theirs.instances[k].mask);
          EXPECT_EQ(ours.instances[k].box, theirs.instances[k].box);
          EXPECT_EQ(ours.instances[k].category, theirs.instances[k].category);
          EXPECT_EQ(ours.instances[k].crowd, theirs.instances[k].crowd);
        }
      }
    }
  }
}

TEST_F(AnnotatedTest, ADamagedPackedFileIsFound) {
  put_coco();
  const auto file = path("coco.abldata");
  pack_annotated(open_set("coco"), {.output = file});
  std::string bytes = read_file(file);
  bytes[bytes.size() - 3] = static_cast<char>(bytes[bytes.size() - 3] ^ 1);  // in the last annotation
  put("coco.abldata", bytes);
  const auto found = check_annotated(open_set("coco.abldata"), 1, stop_, [](auto) {}).damaged;
  EXPECT_THAT(found, ElementsAre(AllOf(HasSubstr("val image 1"), HasSubstr("its CRC-32 differs"))));
}

TEST_F(AnnotatedTest, NeitherFolderNorPackedFileIsTakenForClasses) {
  put_coco(), put_ade20k();
  pack_annotated(open_set("coco"), {.output = path("coco.abldata")});
  EXPECT_THAT(refusal(0, "coco"), HasSubstr("expected classification images"));
  EXPECT_THAT(refusal(0, "ade"), HasSubstr("expected classification images"));
  EXPECT_THAT(refusal(0, "coco.abldata"), HasSubstr("expected classification images"));
  EXPECT_EQ(recognise(path("coco")), "annotations/instances_train*.json (COCO instances)");
  EXPECT_EQ(recognise(path("coco.abldata")), "packed file of annotated images");
  put_picture("set/train/a/1.jpg"), put_picture("set/val/a/1.jpg");
  EXPECT_THAT(error_of([&] { open_set("set"); }), HasSubstr("holds no annotated images"));
  EXPECT_THAT(error_of([&] { pack_annotated(open_set("coco"), {.output = path("x"), .bound = 8}); }),
              HasSubstr("--bound and --raw do not apply to annotated images"));
}

TEST_F(AnnotatedTest, CheckSaysWhatThereIsAndWhatIsWrong) {
  put_coco();
  testing::internal::CaptureStdout();
  EXPECT_EQ(check_annotations(path("coco"), 2, false), 0);
  EXPECT_THAT(testing::internal::GetCapturedStdout(),
              AllOf(HasSubstr("COCO instances 2017, coco-1:"), HasSubstr("things   classes (2): car, dog"),
                    HasSubstr("train    2 images; 2 instances, 1 to 1 per category, 1 of them crowds; images "
                              "without instances: 1"),
                    HasSubstr("all 4 images and their annotations are valid")));
  Json train = instances();
  train["annotations"][0]["category_id"] = 91;
  put_coco(train);
  put("coco/val2017/a.jpg", "");
  testing::internal::CaptureStdout();
  EXPECT_EQ(check_annotations(path("coco"), 2, true), 1);
  const auto report = Json::parse(testing::internal::GetCapturedStdout());
  EXPECT_EQ(report.at("problems").size(), 1u);
  EXPECT_THAT(report.at("damaged").at(0).get<std::string>(), HasSubstr("val2017/a.jpg: the file is empty"));
  EXPECT_EQ(report.at("splits").at("train").at("instances").at("dog"), 0);
}

}  // namespace
}  // namespace abl::data
