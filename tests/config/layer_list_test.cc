// SPDX-License-Identifier: Apache-2.0
#include "config/model/layer_sections.h"

#include <gmock/gmock.h>

namespace abl::config {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(LayerListTest, RangesAndNumbersChooseLayersFromOne) {
  std::string message;
  EXPECT_THAT(*parse_layers("1-2,4", 5, message), ElementsAre(true, true, false, true, false));
  EXPECT_THAT(*parse_layers("5", 5, message), ElementsAre(false, false, false, false, true));
  EXPECT_THAT(*parse_layers("none", 2, message), ElementsAre(false, false));
}

TEST(LayerListTest, WhatNamesNoLayersIsRefused) {
  for (const char* text : {"", "a", "1-", "-2", "3-1", "1,,2", "1-2-3"}) {
    std::string message;
    EXPECT_FALSE(parse_layers(text, 5, message)) << text;
    EXPECT_THAT(message, HasSubstr("invalid layers")) << text;
  }
}

TEST(LayerListTest, LayersThatDoNotExistAreRefused) {
  std::string message;
  EXPECT_FALSE(parse_layers("3-13", 12, message));
  EXPECT_EQ(message, "layers 3-13 out of range; the model has layers 1 to 12");
  EXPECT_FALSE(parse_layers("3", 2, message, "the embedding"));
  EXPECT_EQ(message, "layers 3 out of range; the embedding has layers 1 to 2");
  EXPECT_FALSE(parse_layers("0", 12, message));
  EXPECT_FALSE(parse_layers("1-99999999999", 12, message));
}

TEST(LayerListTest, TheShortestTextReadsBackAsTheSameLayers) {
  EXPECT_EQ(layers_text({true, true, false, true}), "1-2,4");
  EXPECT_EQ(layers_text({false, true, true, true}), "2-4");
  EXPECT_EQ(layers_text({false, false}), "none");
}

}  // namespace
}  // namespace abl::config
