// SPDX-License-Identifier: Apache-2.0
#include "base/sha256.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"

namespace abl {
namespace {

TEST(Sha256Test, AgreesWithTheStandardsExamples) {  // FIPS 180-4 examples, NIST
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256_hex(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256Test, PiecesOfAnySizeGiveTheDigestOfTheWhole) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += static_cast<char>(i);
  for (const std::size_t piece : {1u, 7u, 55u, 63u, 64u, 65u, 128u}) {
    Sha256 digest;
    for (std::size_t at = 0; at < text.size(); at += piece)
      digest.update(std::string_view{text}.substr(at, piece));
    EXPECT_EQ(digest.hex(), sha256_hex(text)) << "pieces of " << piece;
  }
}

TEST(Sha256Test, LengthsAroundABlockDiffer) {
  // 55 bytes are the most that fit one block with their padding: an off-by-one there would repeat or run over
  for (std::size_t size = 50; size < 70; ++size)
    EXPECT_NE(sha256_hex(std::string(size, 'x')), sha256_hex(std::string(size + 1, 'x')));
}

TEST(Sha256Test, FileHasTheDigestOfItsBytes) {
  const auto file = std::filesystem::temp_directory_path() / ("ablate-sha-" + std::to_string(::getpid()));
  std::ofstream{file} << std::string(3'000'000, 'a');
  EXPECT_EQ(sha256_file(file), sha256_hex(std::string(3'000'000, 'a')));
  std::filesystem::remove(file);
  EXPECT_THROW(sha256_file(file), Error);
}

}  // namespace
}  // namespace abl
