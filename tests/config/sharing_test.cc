// SPDX-License-Identifier: Apache-2.0
#include "config/model/sharing.h"

#include <gmock/gmock.h>

namespace abl::config {
namespace {

using testing::HasSubstr;

TEST(SharingTest, LettersAreThoseOfTheFirstRoleThatUsesTheMatrix) {
  EXPECT_EQ(canonical_share("AABBC"), "QQVVW");
  EXPECT_EQ(canonical_share("WVKPQ"), "QKVPW");
  EXPECT_EQ(canonical_share("QKK-Q"), "QKK-Q");
  EXPECT_EQ(canonical_share("QKKPP"), "QKKPP");
}

TEST(SharingTest, WhatIsNoSharingIsRefused) {
  for (const char* text : {"QKV", "qkv-w", "QK-VW", "QKVPWW", ""})
    EXPECT_THAT(share_error(text), HasSubstr("; expected five capital letters")) << text;
  EXPECT_EQ(share_error("QKV-W"), "");
}

}  // namespace
}  // namespace abl::config
