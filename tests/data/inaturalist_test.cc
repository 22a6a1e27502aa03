// SPDX-License-Identifier: Apache-2.0
#include "data/formats.h"

#include "tests/data/data_folder.h"

namespace abl::data {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kCategories =
    R"("categories":[{"id":5,"name":"owl"},{"id":2,"name":"elm","supercategory":"x"}])";

class INaturalist : public DataFolder {
 protected:
  void SetUp() override {
    put_picture("train_val2018/elm/a.jpg"), put_picture("train_val2018/owl/b.jpg");
    put("train2018.json",
        fmt::format(
            R"({{"info":{{"year":2018}},"images":[{{"id":9,"file_name":"train_val2018/owl/b.jpg","width":24}},
            {{"id":1,"file_name":"train_val2018/elm/a.jpg"}}],"licenses":[{{"id":1}}],
            "annotations":[{{"id":1,"image_id":1,"category_id":2}},{{"id":2,"image_id":9,"category_id":5}}],{}}})",
            kCategories));
    put_val(kCategories);
  }
  void put_val(const std::string& categories) const {
    put("val2018.json", fmt::format(R"({{"images":[{{"id":7,"file_name":"train_val2018/elm/a.jpg"}}],
        "annotations":[{{"image_id":7,"category_id":2}}],{}}})",
                                    categories));
  }
};

TEST_F(INaturalist, LabelsFollowTheSortedIdsOfTheCategories) {
  const auto data = open(2);
  EXPECT_EQ(data.format, "iNaturalist 2018");
  EXPECT_EQ(labels(*data.train), (std::vector<int>{1, 0})) << "images in the order of the file";
  EXPECT_EQ(labels(*data.val), std::vector<int>{0});
  EXPECT_EQ(data.classes, (std::vector<std::string>{"elm", "owl"}));
}

TEST_F(INaturalist, CategoriesAreCountedAndCompared) {
  EXPECT_THAT(refusal(8142),
              AllOf(HasSubstr("iNaturalist 2018 with 2 classes"), HasSubstr("the trial is for 8142")));
  put_val(R"("categories":[{"id":2,"name":"elm"}])");
  EXPECT_THAT(refusal(), AllOf(HasSubstr("has 2 categories"), HasSubstr("val2018.json has 1")));
  std::filesystem::remove(path("val2018.json"));
  EXPECT_THAT(refusal(), HasSubstr("val2018.json is missing"));
}

TEST_F(INaturalist, AFileThatIsDamagedIsNamed) {
  const std::string whole = R"({"images":[{"id":7,"file_name":"train_val2018/elm/a.jpg"}]})";
  for (const auto& [text, complaint] :
       {std::pair{whole.substr(0, 30), "truncated"},
        {whole, "has 1 images and 0 categories"},
        {std::string{"[1, 2]"}, "is not a JSON object"},
        {std::string{R"({"images":[{"id":"x"}]})"}, "val2018.json"},
        {std::string(100'000, '['), "val2018.json"},
        {fmt::format(R"({{"images":[{{"id":7,"file_name":"x.jpg"}}],{}}})", kCategories),
         "no category that it lists"}}) {
    put("val2018.json", text);
    EXPECT_THAT(refusal(), HasSubstr(complaint)) << text.substr(0, 60);
  }
}

TEST_F(INaturalist, APathCannotLeadOutOfTheFolder) {
  put("val2018.json", fmt::format(R"({{"images":[{{"id":7,"file_name":"../../x.jpg"}}],
      "annotations":[{{"image_id":7,"category_id":2}}],{}}})",
                                  kCategories));
  EXPECT_THAT(refusal(), HasSubstr("expected a path below"));
}

}  // namespace
}  // namespace abl::data
