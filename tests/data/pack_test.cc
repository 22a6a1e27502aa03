// SPDX-License-Identifier: Apache-2.0
#include "data/pack.h"

#include <sys/resource.h>

#include <csignal>

#include "base/file.h"
#include "data/formats.h"
#include "data/pack_format.h"
#include "images/jpeg_write.h"
#include "tests/data/data_folder.h"
#include "tests/images/pictures.h"

namespace abl::data {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class Pack : public DataFolder {
 protected:
  void SetUp() override {
    int size = 40;
    for (const char* file : {"set/train/a/1.jpg", "set/train/a/2.jpg", "set/train/b/1.jpg", "set/val/a/1.jpg",
                             "set/val/b/1.jpg"})
      put(file, images::jpeg_of({"420", JCS_YCbCr, 2, 2}, size += 7, 64));
  }
  PackResult make(PackOptions options, const std::string& output = "set.abldata") const {
    options.output = path(output), options.threads = 2;
    return pack(open(0, "set"), options);
  }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator{path()})
      names.push_back(entry.path().filename());
    return names;
  }
  static std::vector<std::vector<std::uint8_t>> pixels(const ImageSource& source) {
    std::vector<std::vector<std::uint8_t>> all;
    for (std::uint32_t i = 0; i < source.size(); ++i) all.push_back(source.load(i)->image.pixels);
    return all;
  }
};

TEST_F(Pack, GivesTheSamePixelsLabelsSubsetsAndFingerprintAsTheFolder) {
  const auto result = make({});
  EXPECT_TRUE(result.made);
  EXPECT_EQ(result.bytes, std::filesystem::file_size(path("set.abldata")));
  auto config = wants(2);
  for (const int images : {0, 2}) {
    config.train_images = images, config.image_size = 8;
    const auto folder = open_data(config, path("set").string()),
               packed = open_data(config, path("set.abldata").string());
    EXPECT_EQ(packed.fingerprint, folder.fingerprint);
    EXPECT_EQ(packed.classes, folder.classes);
    EXPECT_EQ(labels(*packed.train), labels(*folder.train));
    EXPECT_EQ(pixels(*packed.train), pixels(*folder.train));
    EXPECT_EQ(pixels(*packed.val), pixels(*folder.val));
  }
  const auto packed = open(2, "set.abldata"), folder = open(2, "set");
  EXPECT_EQ(packed.train->open(1).width, 54);
  const auto part = [](int, int) {
    return images::Wanted{.region = {.left = 3, .top = 9, .width = 11, .height = 7}};
  };
  EXPECT_EQ(packed.val->decode(1, part)->image.pixels, folder.val->decode(1, part)->image.pixels);
  EXPECT_THAT(files(), testing::UnorderedElementsAre("set", "set.abldata")) << "nothing else is left";
}

TEST_F(Pack, ArrangesAFileSoThatACropIsDecodedAloneUnlessItIsToStayAsItIs) {
  make({});
  const auto file = read_file(path("set/train/a/2.jpg"));
  const auto arranged = open(2, "set.abldata");
  EXPECT_EQ(arranged.train->open(1).bytes, images::with_restarts(file));
  const auto result = make({.verbatim = true}, "verbatim.abldata");
  const auto verbatim = open(2, "verbatim.abldata");
  EXPECT_EQ(verbatim.train->open(1).bytes, file) << "to the byte";
  EXPECT_EQ(result.fingerprint, arranged.fingerprint) << "the pixels are the same";
}

TEST_F(Pack, KeepsADamagedFileAsItIsForTrainingToNameOrSkip) {
  auto broken = read_file(path("set/train/a/2.jpg"));
  broken.resize(broken.size() * 3 / 4);
  put("set/train/a/2.jpg", broken);
  make({});
  EXPECT_EQ(open(2, "set.abldata").train->open(1).bytes, broken);
}

TEST_F(Pack, KeepsADamagedFileThatItWouldHaveToDecodeAndNamesIt) {
  auto broken = read_file(path("set/train/a/2.jpg"));
  broken.resize(broken.size() / 2);
  put("set/train/a/2.jpg", broken);
  for (const auto& options : {PackOptions{.raw = true}, PackOptions{.bound = 16}}) {
    std::filesystem::remove(path("set.abldata"));
    const auto result = make(options);
    EXPECT_EQ(result.damaged, 1u);
    EXPECT_THAT(result.first_damaged, HasSubstr("train/a/2.jpg: "));
    auto config = wants(2);
    EXPECT_EQ(open_stored(config, path("set.abldata")).train->open(1).bytes, broken);
    EXPECT_THROW(open_stored(config, path("set.abldata")).train->load(1), Error);
    config.damaged = config::Damaged::kSkip;
    EXPECT_FALSE(open_stored(config, path("set.abldata")).train->load(1)) << "as of the folder";
    EXPECT_TRUE(open_stored(config, path("set.abldata")).train->load(0));
  }
}

TEST_F(Pack, KeepsPixelsWhereAskedTo) {
  const auto result = make({.raw = true});
  const auto packed = open(2, "set.abldata"), folder = open(2, "set");
  EXPECT_EQ(pixels(*packed.train), pixels(*folder.train));
  EXPECT_EQ(packed.train->open(0).coding, images::EncodedImage::Coding::kPixels);
  EXPECT_EQ(result.fingerprint, folder.fingerprint + "+raw")
      << "a trial would have decoded at a reduced scale";
}

TEST_F(Pack, MakesLargeImagesSmallerAndSaysSoInTheFingerprint) {
  const auto result = make({.bound = 48});
  EXPECT_EQ(result.resized, 4u) << "all but the one whose shorter side is 47";
  const auto packed = open(2, "set.abldata"), folder = open(2, "set");
  EXPECT_EQ(packed.fingerprint, folder.fingerprint + "+bound-48");
  EXPECT_EQ(packed.train->load(0)->image.pixels, folder.train->load(0)->image.pixels)
      << "what is small enough is left alone";
  const auto image = packed.val->load(1)->image;
  EXPECT_EQ(image.height, 48);
  EXPECT_EQ(image.width, 56) << "75 × 48/64";
  EXPECT_EQ(make({.bound = 64}, "same.abldata").fingerprint, folder.fingerprint) << "nothing was larger";
}

TEST_F(Pack, BinaryFilesKeepTheirPixels) {
  std::string records;
  for (int i = 0; i < 3; ++i)
    records += std::string(2, static_cast<char>(i)) + std::string(3072, static_cast<char>(50 * i));
  put("set/train.bin", records), put("set/test.bin", records);
  const auto result = make({});
  EXPECT_EQ(result.fingerprint, open(100, "set").fingerprint);
  EXPECT_EQ(pixels(*open(100, "set.abldata").train), pixels(*open(100, "set").train));
}

TEST_F(Pack, IsMadeOnceAndNeverOverAnother) {
  EXPECT_TRUE(make({}).made);
  const auto again = make({});
  EXPECT_FALSE(again.made);
  EXPECT_EQ(again.train, 3u);
  const auto refusal = [&](const PackOptions& options) {
    try {
      make(options);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::kAlreadyExists);
      return std::string{error.what()};
    }
    return std::string{};
  };
  EXPECT_THAT(refusal({.raw = true}),
              AllOf(HasSubstr("set.abldata exists and was made of folder-1:"), HasSubstr("remove it")));
  put("set/train/a/3.jpg", images::jpeg_of({"444"}, 9, 9));
  EXPECT_THAT(refusal({}), HasSubstr("was made of folder-1:"));
  put("set.abldata", "something else");
  EXPECT_THAT(refusal({}), HasSubstr("an invalid packed file"));
  EXPECT_EQ(read_file(path("set.abldata")), "something else");
}

TEST_F(Pack, ADamagedImageEndsItAndNothingIsLeft) {
  put("set/train/b/0.jpg", "no picture");
  try {
    make({});
    FAIL() << "a damaged picture was packed";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kDataLoss);
    EXPECT_THAT(error.what(), HasSubstr("train/b/0.jpg"));
  }
  EXPECT_EQ(files(), std::vector<std::string>{"set"});
}

TEST_F(Pack, AStopLeavesNothing) {
  const std::atomic<bool> stop = true;
  EXPECT_THROW(make({.stop = &stop}), Error);
  EXPECT_EQ(files(), std::vector<std::string>{"set"});
}

TEST_F(Pack, AFullDiskIsOneLineAndNothingIsLeft) {
  const auto data = open(0, "set");
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  auto* const handler = ::signal(SIGXFSZ, SIG_IGN);  // write fails instead
  const rlimit small{.rlim_cur = 5000, .rlim_max = before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  std::string said;
  try {
    make({.raw = true});
  } catch (const Error& error) {
    said = error.what();
  }
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, handler);
  EXPECT_THAT(
      said, AllOf(HasSubstr("cannot write " + path("set.abldata").string()), testing::Not(HasSubstr("\n"))));
  EXPECT_EQ(files(), std::vector<std::string>{"set"});
}

}  // namespace
}  // namespace abl::data
