// SPDX-License-Identifier: Apache-2.0
#include "images/image_file.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <new>
#include <sstream>
#include <vector>

#include "base/crc32.h"
#include "base/file.h"
#include "base/sha256.h"
#include "data/check.h"
#include "data/file_source.h"
#include "data/pack.h"
#include "data/stored_source.h"
#include "images/torchvision.h"
#include "tests/data/data_folder.h"
#include "tests/images/pictures.h"

namespace abl::data {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Coding = images::EncodedImage::Coding;

const std::filesystem::path kFiles = std::string{ABLATE_SOURCE_DIR} + "/tests/data/image_files";

std::string file_named(const std::string& name) { return read_file(kFiles / name); }

/// What Pillow makes of a file: see make_image_files.py.
struct Expected {
  std::string name;
  int width, height;
  std::string sha256;
};

std::vector<Expected> expected() {
  std::vector<Expected> all;
  std::istringstream lines{read_file(kFiles / "expected.txt")};
  for (Expected one; lines >> one.name >> one.width >> one.height >> one.sha256;) all.push_back(one);
  return all;
}

std::string digest_of(const images::Image& image) {
  return sha256_hex({reinterpret_cast<const char*>(image.pixels.data()), image.pixels.size()});
}

/// The one line that refuses a file, wherever it is found out; "" where it is decoded.
std::string refusal(const std::string& file, const images::Rectangle& region) {
  try {
    decode_region(images::image_in(file), [&](int, int) { return images::Wanted{.region = region}; });
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kDataLoss) << error.what();
    EXPECT_EQ(std::string{error.what()}.find('\n'), std::string::npos) << error.what();
    return error.what();
  }
  return "";
}

TEST(ImageFileTest, PngAndWebpAreWhatPillowMakesOfThemToTheByte) {
  ASSERT_GT(expected().size(), 40u);
  for (const auto& [name, width, height, sha256] : expected()) {
    const std::string file = file_named(name);
    const images::EncodedImage image = images::image_in(file);
    EXPECT_EQ(image.coding, name.ends_with(".png") ? Coding::kPng : Coding::kWebp) << name;
    EXPECT_EQ(image.width, width) << name;
    EXPECT_EQ(image.height, height) << name;
    EXPECT_EQ(digest_of(decode_image(image)), sha256) << name;
  }
}

TEST(ImageFileTest, ARegionIsThatOfTheWholePicture) {
  for (const auto& [name, width, height, sha256] : expected()) {
    const std::string file = file_named(name);
    const images::Image whole = decode_image(images::image_in(file));
    images::RandomStream random{1, images::Purpose::kSubset, {static_cast<std::uint64_t>(width)}};
    const auto below = [&](int count) {
      return static_cast<int>(random.below(static_cast<std::uint64_t>(count)));
    };
    for (int i = 0; i < 20; ++i) {
      images::Rectangle region{.left = below(width), .top = below(height)};
      region.width = 1 + below(width - region.left), region.height = 1 + below(height - region.top);
      const auto view =
          decode_region(images::image_in(file), [&](int, int) { return images::Wanted{.region = region}; });
      EXPECT_EQ(view.image.pixels,
                images::crop(whole, region.left, region.top, region.width, region.height).pixels)
          << name;
    }
    for (const images::Rectangle& outside : {images::Rectangle{0, 0, width + 1, height},
                                             images::Rectangle{-1, 0, 1, 1}, images::Rectangle{0, 0, 0, 1}})
      EXPECT_THROW(
          decode_region(images::image_in(file), [&](int, int) { return images::Wanted{.region = outside}; }),
          Error);
  }
}

TEST(ImageFileTest, WhatBreaksOffIsRefusedWhereverItDoes) {
  for (const char* name :
       {"kind2-8.png", "kind3-4-interlaced.png", "lossy.webp", "lossless-alpha.webp", "animation.webp"}) {
    const std::string file = file_named(name);
    for (std::size_t kept = 0; kept + 8 < file.size(); kept += 1 + kept / 100)
      EXPECT_NE(refusal(file.substr(0, kept), {0, 0, 1, 1}), "") << name << " " << kept << " bytes";
  }
}

TEST(ImageFileTest, DamagedBytesAreRefusedInOneLineOrDecoded) {
  for (const char* name : {"kind6-16-interlaced.png", "kind3-8.png", "kind0-1.png", "lossy-alpha.webp",
                           "lossless.webp", "animation.webp"}) {
    const std::string file = file_named(name);
    images::RandomStream random{2, images::Purpose::kSubset};
    for (int i = 0; i < 400; ++i) {
      std::string damaged = file;
      for (int byte = 0; byte < 1 + i % 5; ++byte)
        damaged[random.below(damaged.size())] = static_cast<char>(random.below(256));
      refusal(damaged, {0, 0, 1, 1});
    }
  }
}

std::string big_endian(std::uint32_t number) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(number >> shift & 0xff));
  return bytes;
}

/// The same file with a header that claims another size.
std::string claiming(std::string png, std::uint32_t width, std::uint32_t height) {
  constexpr std::size_t kKind = 12, kWidth = 16, kChunk = 17, kCrc = 29;
  png.replace(kWidth, 8, big_endian(width) + big_endian(height));
  return png.replace(kCrc, 4, big_endian(crc32(std::string_view{png}.substr(kKind, kChunk))));
}

TEST(ImageFileTest, AHeaderThatClaimsGigabytesTakesNone) {
  for (const char* name : {"kind2-8.png", "kind2-8-interlaced.png"}) {
    const std::string file = file_named(name);
    for (const auto& [width, height] :
         {std::pair{40'000u, 1u}, {32'768u, 32'768u}, {2'000'000'000u, 2'000'000'000u}})
      EXPECT_THAT(refusal(claiming(file, width, height), {0, 0, 8, 8}), HasSubstr("claims to be")) << name;
    rusage before{}, after{};
    ::getrusage(RUSAGE_SELF, &before);
    EXPECT_NE(refusal(claiming(file, 32'768, 5000), {100, 100, 8, 8}), "") << "there are no such rows";
    ::getrusage(RUSAGE_SELF, &after);
    EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 8 << 10) << "KiB: no more than rows and the region";
  }
}

/// Whether an image is decoded; false where it could not be for want of memory. Ends the process with 1 where
/// something else is said of it.
bool is_decoded(const std::string& file) {
  try {
    decode_image(images::image_in(file));
    return true;
  } catch (const Error& error) {
    if (error.code() != Code::kResourceExhausted) ::_exit(1);
  } catch (const std::bad_alloc&) {
  }
  return false;
}

constexpr std::size_t kPiece = 4096;

/// Has the system give the stack of what is called later: it gives no more of it then.
[[gnu::noinline]] void take_stack() {
  volatile char stack[std::size_t{1} << 18];
  for (std::size_t i = 0; i < sizeof stack; i += kPiece) stack[i] = 0;
}

/// Leaves this process no memory but a little, and a little more of it until a file is decoded: 0. 2: it was
/// not even with all of it; 3: it was with nothing.
int decode_with_ever_more_memory(const std::string& file) {
  take_stack();
  try {
    throw Error{Code::kInternal, "the first exception takes memory"};
  } catch (const Error&) {
  }
  std::vector<void*> spare(4096);
  for (auto& piece : spare) piece = std::malloc(kPiece - 2 * sizeof(void*));
  const rlimit none{.rlim_cur = 1, .rlim_max = 1};
  ::setrlimit(RLIMIT_AS, &none);
  for (std::size_t size = std::size_t{1} << 26; size >= 16; size /= 2)
    while (void* taken = std::malloc(size)) *static_cast<volatile char*>(taken) = 0;
  for (std::size_t freed = 0; freed < spare.size(); ++freed) {
    if (is_decoded(file)) return freed == 0 ? 3 : 0;
    std::free(spare[freed]);
  }
  return 2;
}

TEST(ImageFileTest, MissingMemoryIsNoDamage) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's memory cannot be limited";
#endif
  std::vector<std::pair<std::string, std::string>> files{
      {"a JPEG", images::jpeg_of({"420", JCS_YCbCr, 2, 2}, 90, 70)},
      {"a progressive JPEG", images::jpeg_of({"420", JCS_YCbCr, 2, 2, true}, 90, 70)}};
  for (const char* name :
       {"kind6-16-interlaced.png", "kind3-8.png", "lossy-alpha.webp", "lossless.webp", "animation.webp"})
    files.emplace_back(name, file_named(name));
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a process with little memory of its own
  for (const auto& [name, file] : files)
    EXPECT_EXIT(::_exit(decode_with_ever_more_memory(file)), testing::ExitedWithCode(0), "")
        << name << ": 1 means that it was called damaged";
}

TEST(ImageFileTest, AFileOfAnotherFormatSaysHowItStarts) {
  EXPECT_THAT(refusal("GIF89a and more", {}),
              "not a JPEG, PNG or WebP file: it starts with 0x47 0x49 0x46 0x38");
  EXPECT_THAT(refusal("", {}), "the file is empty");
  EXPECT_THAT(refusal("RIFF", {}), HasSubstr("0x52 0x49"));
}

TEST(ImageFileTest, ImagesAreNamedAsSuchInAnyCase) {
  for (const char* name : {"a.jpg", "b.JPEG", "c.Png", "d.webp"})
    EXPECT_TRUE(images::has_image_name(name)) << name;
  for (const char* name : {"jpg", ".png", "a.gif", "a.jpg.part", ""})
    EXPECT_FALSE(images::has_image_name(name)) << name;
}

/// ImageNet holds one PNG that is named .JPEG; here are others.
class MixedFolder : public DataFolder {
 protected:
  void SetUp() override {
    put("set/train/a/1.JPEG", file_named("kind2-8.png"));
    put("set/train/a/2.png", file_named("lossy.webp"));
    put("set/train/b/1.webp", images::jpeg_of({"420", JCS_YCbCr, 2, 2}, 50, 40));
    put("set/train/b/2.jpg", file_named("kind3-4.png"));
    put("set/val/a/1.png", file_named("kind0-16.png"));
    put("set/val/b/1.jpg", file_named("lossless.webp"));
  }
  PackResult pack_as(PackOptions options, const std::string& name) const {
    options.output = path(name);
    return pack(open(0, "set"), options);
  }
  static std::vector<std::string> digests(const DataSet& data) {
    std::vector<std::string> all;
    for (const auto& source : {data.train, data.val})
      for (std::uint32_t i = 0; i < source->size(); ++i) all.push_back(digest_of(source->load(i)->image));
    return all;
  }
};

TEST_F(MixedFolder, IsReadByContentWhateverTheNamesSay) {
  const auto data = open(2, "set");
  EXPECT_EQ(data.train->open(0).coding, Coding::kPng);
  EXPECT_EQ(data.train->open(1).coding, Coding::kWebp);
  EXPECT_EQ(data.train->open(2).coding, Coding::kJpeg);
  EXPECT_EQ(labels(*data.train), (std::vector<int>{0, 0, 1, 1}));
  EXPECT_THAT(data.passed_over, testing::IsEmpty());
  EXPECT_THAT(check_data(data, 2, false, [](std::uint64_t) {}).damaged, testing::IsEmpty());
}

TEST_F(MixedFolder, IsPackedWithTheSamePixels) {
  const auto folder = open(2, "set");
  const auto result = pack_as({}, "set.abldata");
  const auto packed = open(2, "set.abldata");
  EXPECT_EQ(digests(packed), digests(folder));
  EXPECT_EQ(result.fingerprint, folder.fingerprint);
  EXPECT_EQ(packed.train->open(0).bytes, file_named("kind2-8.png")) << "as it is";
  EXPECT_EQ(packed.train->open(1).bytes, file_named("lossy.webp"));
  pack_as({.verbatim = true}, "verbatim.abldata");
  EXPECT_EQ(digests(open(2, "verbatim.abldata")), digests(folder));
  pack_as({.raw = true}, "raw.abldata");
  EXPECT_EQ(digests(open(2, "raw.abldata")), digests(folder));
  pack_as({.bound = 16}, "bound.abldata");
  EXPECT_EQ(open(2, "bound.abldata").train->open(0).height, 16);
}

TEST_F(MixedFolder, PixelsOfPngFilesAreWhatTrainingSeesAnyhow) {
  for (const char* jpeg : {"set/train/b/1.webp"}) put(jpeg, file_named("kind2-8.png"));
  EXPECT_EQ(pack_as({.raw = true}, "raw.abldata").fingerprint, open(2, "set").fingerprint)
      << "there is no reduced scale of them";
}

TEST_F(MixedFolder, WhatIsPassedOverIsCounted) {
  put("set/train/a/notes.txt", "x");
  put("set/val/c/1.png", file_named("kind2-8.png")), put("set/val/c/2.jpg", "x"), put("set/val/c/3.txt", "x");
  const auto data = open(2, "set");
  EXPECT_THAT(
      data.passed_over,
      testing::UnorderedElementsAre(
          "1 class is in " + path("set/val").string() + " alone and not used, with 2 images; the first is c",
          "1 file does not end in .jpg, .jpeg, .png or .webp and is not used, the first is " +
              path("set/train/a/notes.txt").string()));
}

TEST_F(MixedFolder, AnyOfThemIsAPhotograph) {
  for (const char* file : {"set/train/a/1.JPEG", "set/train/a/2.png", "set/train/b/1.webp"}) {
    EXPECT_TRUE(is_photograph(path(file))) << file;
    EXPECT_GT(open_photograph(path(file))->load(0)->image.width, 0);
  }
  put("tensors", "{}");
  EXPECT_FALSE(is_photograph(path("tensors")));
}

}  // namespace
}  // namespace abl::data
