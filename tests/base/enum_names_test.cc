// SPDX-License-Identifier: Apache-2.0
#include "base/enum_names.h"

#include <gmock/gmock.h>

namespace abl {
namespace {

enum class Season { kDry, kWet };

constexpr std::string_view name_of(Season season) {
  switch (season) {
    case Season::kDry:
      return "dry";
    case Season::kWet:
      return "wet";
  }
  return {};
}

TEST(EnumNamesTest, ValuesAndNamesKeepTheirOrder) {
  EXPECT_THAT(values_of<Season>(), testing::ElementsAre(Season::kDry, Season::kWet));
  EXPECT_THAT(names_of<Season>(), testing::ElementsAre("dry", "wet"));
}

TEST(EnumNamesTest, ANameGivesItsValueAndNoOtherTextDoes) {
  EXPECT_EQ(value_named<Season>("wet"), Season::kWet);
  EXPECT_EQ(value_named<Season>("we"), std::nullopt);
  EXPECT_EQ(value_named<Season>(""), std::nullopt);
}

}  // namespace
}  // namespace abl
