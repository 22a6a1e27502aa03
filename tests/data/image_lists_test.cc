// SPDX-License-Identifier: Apache-2.0
#include "data/formats.h"

#include "tests/data/data_folder.h"

namespace abl::data {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class ImageLists : public DataFolder {
 protected:
  void SetUp() override {
    for (const char* file : {"cars_train/1.jpg", "cars_train/2.jpg", "cars_test/1.jpg", "some/a b.jpg"})
      put_picture(file);
  }
};

TEST_F(ImageLists, StanfordCarsAsTheUsualCsv) {
  put("anno_train.csv", "1.jpg,39,116,569,375,2\r\n2.jpg,1,2,3,4,1\r\n");
  put("anno_test.csv", "1.jpg,39,116,569,375,2\n");
  put("names.csv", "AM General Hummer SUV 2000\n\"Acura RL Sedan 2012\"\n");
  const auto data = open(2);
  EXPECT_EQ(labels(*data.train), (std::vector<int>{1, 0}));
  EXPECT_EQ(labels(*data.val), std::vector<int>{1});
  EXPECT_EQ(data.train->name(0), path("cars_train/1.jpg").string());
  EXPECT_EQ(data.classes[0], "AM General Hummer SUV 2000");
}

TEST_F(ImageLists, AHeaderRowSaysWhichColumnsCount) {
  put("cars_train_annos.csv",
      "bbox_x1,bbox_y1,bbox_x2,bbox_y2,class,fname\n1,2,3,4,2,1.jpg\n1,2,3,4,1,2.jpg\n");
  put("cars_test_annos.csv", "bbox_x1,bbox_y1,bbox_x2,bbox_y2,class,fname\n1,2,3,4,1,1.jpg\n");
  EXPECT_EQ(labels(*open().train), (std::vector<int>{1, 0}));
}

TEST_F(ImageLists, TwoColumnsWithLabelsFromZero) {
  put("train.txt", "cars_train/1.jpg 0\n\nsome/a b.jpg\t1\n");
  put("val.txt", "cars_test/1.jpg 1\n");
  const auto data = open(2);
  EXPECT_EQ(labels(*data.train), (std::vector<int>{0, 1}));
  EXPECT_THAT(data.train->name(1), HasSubstr("a b.jpg"));
  const auto before = data.fingerprint;
  put("val.txt", "cars_test/1.jpg 0\n");
  EXPECT_NE(open(2).fingerprint, before) << "a label is part of what the data are";
}

TEST_F(ImageLists, ALineThatIsWrongIsNamedWithItsNumber) {
  put("val.txt", "cars_test/1.jpg 0\n");
  for (const auto& [line, complaint] : {std::pair{"cars_train/2.jpg", "train.txt:2: 'cars_train/2.jpg'"},
                                        {"cars_train/2.jpg -1", "a file and its label, 0 or more"},
                                        {"cars_train/2.jpg 99999999999", "a file and its label"},
                                        {"cars_train/9.jpg 1", "train.txt:2 names"},
                                        {"/etc/passwd 1", "expected a path below"},
                                        {"../up.jpg 1", "expected a path below"}}) {
    put("train.txt", std::string{"cars_train/1.jpg 0\n"} + line + "\n");
    EXPECT_THAT(refusal(), HasSubstr(complaint)) << line;
  }
}

TEST_F(ImageLists, ClassesAreCounted) {
  put("train.txt", "cars_train/1.jpg 0\ncars_train/2.jpg 2\n"), put("val.txt", "cars_test/1.jpg 0\n");
  EXPECT_THAT(refusal(2), AllOf(HasSubstr("with 3 classes"), HasSubstr("the trial is for 2")));
  EXPECT_THAT(refusal(3), HasSubstr("names no image of label 1; expected one of each from 0 to 2"));
  put("train.txt", "cars_train/1.jpg 0\ncars_train/2.jpg 1\n"), put("val.txt", "cars_test/1.jpg 2\n");
  EXPECT_THAT(refusal(2), HasSubstr("the label 2; expected 0 to 1"));
  put("val.txt", "\n");
  EXPECT_THAT(refusal(2), HasSubstr("val.txt names no file"));
}

}  // namespace
}  // namespace abl::data
