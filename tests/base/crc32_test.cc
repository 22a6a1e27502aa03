// SPDX-License-Identifier: Apache-2.0
#include "base/crc32.h"

#include <gtest/gtest.h>

namespace abl {
namespace {

TEST(Crc32Test, AgreesWithTheCheckValueOfTheStandard) {  // of "123456789" in every catalogue of CRCs
  EXPECT_EQ(crc32("123456789"), 0xcbf43926u);
  EXPECT_EQ(crc32(""), 0u);
  EXPECT_EQ(crc32_hex("123456789"), "cbf43926");
  EXPECT_EQ(crc32_hex(""), "00000000");
}

TEST(Crc32Test, PiecesOfAnySizeGiveTheSumOfTheWhole) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += static_cast<char>(i * i);
  for (const std::size_t piece : {1u, 15u, 64u, 333u}) {
    std::uint32_t sum = 0;
    for (std::size_t at = 0; at < text.size(); at += piece)
      sum = crc32(std::string_view{text}.substr(at, piece), sum);
    EXPECT_EQ(sum, crc32(text)) << "pieces of " << piece;
  }
}

TEST(Crc32Test, EveryFlippedBitIsFound) {
  std::string text(300, 'x');
  const auto sum = crc32(text);
  for (auto& byte : text)
    for (int bit = 0; bit < 8; ++bit) {
      byte = static_cast<char>(byte ^ 1 << bit);
      EXPECT_NE(crc32(text), sum);
      byte = static_cast<char>(byte ^ 1 << bit);
    }
}

}  // namespace
}  // namespace abl
