// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/commands/class_names.h"

#include <gmock/gmock.h>

#include <functional>

#include "base/error.h"
#include "base/file.h"
#include "tests/images/picture_files.h"

namespace abl::trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ClassNamesTest : public testing::Test {
 protected:
  std::vector<std::string> names_in(std::string_view text) const {
    const auto file = folder_.path() / "names";
    write_file(file, text);
    return commands::ClassNames{.file = file, .data_root = {}}.of({.classes = 3});
  }
  std::string refusal_of(std::string_view text) const {
    try {
      names_in(text);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
  TemporaryFolder folder_;
};

TEST_F(ClassNamesTest, StandALineEachOrInJson) {
  EXPECT_THAT(names_in("tench\ngreat white shark\nhen"), ElementsAre("tench", "great white shark", "hen"));
  EXPECT_THAT(names_in("tench\r\nshark\r\nhen\r\n\r\n"), ElementsAre("tench", "shark", "hen"));
  EXPECT_THAT(names_in(R"(["tench", "shark", "hen"])"), ElementsAre("tench", "shark", "hen"));
  EXPECT_THAT(names_in(R"({"0": ["n01440764", "tench"], "2": ["n01514668", "hen"], "1": "shark"})"),
              ElementsAre("tench", "shark", "hen"));
}

TEST_F(ClassNamesTest, OfAnotherNumberOrAnotherKindAreRefused) {
  EXPECT_THAT(refusal_of("tench\nshark\n"), HasSubstr("names: 2 names of classes; the model has 3 classes"));
  EXPECT_THAT(refusal_of(R"(["tench", 7, "hen"])"), HasSubstr("entry 1 is 7; expected a name"));
  EXPECT_THAT(refusal_of(R"({"0": "a", "1": "b", "3": "c"})"),
              HasSubstr("invalid class number '3'; expected 0 to 2"));
  EXPECT_THAT(refusal_of(R"({"0": "a", "x": "b", "2": "c"})"), HasSubstr("invalid class number 'x'"));
  EXPECT_THAT(refusal_of(R"({"0": "a", "00": "b", "2": "c"})"),
              HasSubstr("'0' and '00' are one class; expected a name for each"));
  EXPECT_THAT(names_in(R"({"00": "a", "01": "b", "02": "c"})"), ElementsAre("a", "b", "c"));
  EXPECT_THAT(refusal_of("[\"a\", "), HasSubstr("names:1:"));
  EXPECT_THAT(names_in("a\xff\n\x1b[31mred\nb"), ElementsAre("a\xef\xbf\xbd", "red", "b"))
      << "as a terminal may show them";
}

TEST_F(ClassNamesTest, ComeFromTheTrialsData) {
  EXPECT_THAT(commands::ClassNames{}.of({.classes = 3}), IsEmpty()) << "where none are asked for";
  EXPECT_THROW((commands::ClassNames{.file = {}, .data_root = folder_.path() / "none"}.of(
                   {.name = "imagenet-1k", .image_size = 32, .classes = 3})),
               Error);
}

}  // namespace
}  // namespace abl::trainer
