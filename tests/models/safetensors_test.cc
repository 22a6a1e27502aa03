// SPDX-License-Identifier: Apache-2.0
#include <torch/utils.h>

#include "models/weights/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"
#include "base/file.h"

namespace abl::models {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

class SafetensorsTest : public ::testing::Test {
 protected:
  SafetensorsTest()
      : folder_{fs::path{::testing::TempDir()} / ("safetensors_" + std::to_string(::getpid()))} {
    fs::create_directories(folder_);
  }
  ~SafetensorsTest() override { fs::remove_all(folder_); }

  fs::path file() const { return folder_ / "a.safetensors"; }

  /// A file with this header, announced with its true length unless said otherwise, and `data` zero bytes.
  void put(const std::string& header, std::size_t data, std::optional<std::uint64_t> announced = {}) const {
    const std::uint64_t length = announced.value_or(header.size());
    std::string bytes{reinterpret_cast<const char*>(&length), sizeof length};
    bytes += header;
    bytes.append(data, '\0');
    std::ofstream{file(), std::ios::binary} << bytes;
  }

  void expect_refused(const std::string& why) const {
    try {
      read_safetensors(file());
      ADD_FAILURE() << "read a bad file; expected: " << why;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::kDataLoss);
      EXPECT_THAT(error.what(), HasSubstr(why));
      EXPECT_THAT(error.what(), HasSubstr(file().string()));
    }
  }

  const fs::path folder_;
};

constexpr auto kTwoFloats = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";

TEST_F(SafetensorsTest, KeepsEveryTypeShapeAndValue) {
  torch::manual_seed(1);
  TensorFile content;
  for (const auto type : {torch::kDouble, torch::kFloat, torch::kHalf, torch::kBFloat16, torch::kLong,
                          torch::kInt, torch::kByte, torch::kBool}) {
    const std::string name = torch::toString(type);
    content.tensors[name] = (torch::rand({3, 5}) * 100).to(type);
    content.tensors[name + " transposed"] = (torch::rand({3, 5}) * 100).to(type).t();
    content.tensors[name + " scalar"] = torch::ones({}, type);
    content.tensors[name + " empty"] = torch::empty({0, 4}, type);
  }
  content.metadata = {{"step", "120"}, {"text", "a \"quoted\"\nline, ½‖k‖²"}};
  write_safetensors(file(), content);
  const auto back = read_safetensors(file());
  EXPECT_EQ(back.metadata, content.metadata);
  ASSERT_EQ(back.tensors.size(), content.tensors.size());
  for (const auto& [name, tensor] : content.tensors) {
    EXPECT_EQ(back.tensors.at(name).scalar_type(), tensor.scalar_type()) << name;
    EXPECT_TRUE(torch::equal(back.tensors.at(name), tensor)) << name;
  }
}

TEST_F(SafetensorsTest, AFileWithoutTensorsIsAFile) {
  write_safetensors(file(), {});
  EXPECT_TRUE(read_safetensors(file()).tensors.empty());
}

TEST_F(SafetensorsTest, TensorsOutliveTheFileAndWritingToThemDoesNotChangeIt) {
  write_safetensors(file(), {.tensors = {{"a", torch::ones({1000})}}});
  auto first = read_safetensors(file()).tensors.at("a");
  first.zero_();
  const auto second = read_safetensors(file()).tensors.at("a");
  fs::remove(file());
  EXPECT_TRUE(torch::equal(second, torch::ones({1000})));
}

TEST_F(SafetensorsTest, ReadsDataAtAnOddAddress) {
  put(std::string{kTwoFloats} + " ", 8);  // other writers need not fill the header up
  EXPECT_TRUE(torch::equal(read_safetensors(file()).tensors.at("a"), torch::zeros({2})));
}

TEST_F(SafetensorsTest, LaysWideTypesFirstSoThatAllLieAligned) {
  write_safetensors(
      file(), {.tensors = {{"a", torch::ones({3}, torch::kByte)}, {"b", torch::ones({2}, torch::kDouble)}}});
  const auto bytes = read_file(file());
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  const auto header = nlohmann::json::parse(bytes.substr(8, length));
  EXPECT_EQ(length % 8, 0U);
  EXPECT_EQ(header["b"]["data_offsets"], (std::vector<int>{0, 16}));
  EXPECT_EQ(header["a"]["data_offsets"], (std::vector<int>{16, 19}));
}

TEST_F(SafetensorsTest, ReplacesAFileAsAWholeAndLeavesNothingBeside) {
  write_safetensors(file(), {.tensors = {{"old", torch::ones({100})}}});
  const auto old = read_safetensors(file());
  write_safetensors(file(), {.tensors = {{"new", torch::zeros({1})}}});
  EXPECT_TRUE(read_safetensors(file()).tensors.contains("new"));
  EXPECT_TRUE(torch::equal(old.tensors.at("old"), torch::ones({100})))
      << "a reader lost the file that it had open";
  EXPECT_EQ(std::distance(fs::directory_iterator{folder_}, fs::directory_iterator{}), 1);
}

TEST_F(SafetensorsTest, AFailedWriteLeavesTheOldFileAndNothingBeside) {
  write_safetensors(file(), {.tensors = {{"old", torch::ones({2})}}});
  EXPECT_THROW(write_safetensors(file(), {.tensors = {{"c", torch::zeros({1}, torch::kComplexFloat)}}}),
               Error);
  EXPECT_THROW(write_safetensors(file(), {.tensors = {{"__metadata__", torch::zeros({1})}}}), Error);
  EXPECT_TRUE(read_safetensors(file()).tensors.contains("old"));
  EXPECT_EQ(std::distance(fs::directory_iterator{folder_}, fs::directory_iterator{}), 1);
}

TEST_F(SafetensorsTest, SaysWhyAFileCannotBeOpenedOrWritten) {
  try {
    read_safetensors(folder_ / "none");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kNotFound);
    EXPECT_THAT(error.what(), HasSubstr("none"));
  }
  EXPECT_THROW(read_safetensors(folder_), Error);
  try {
    write_safetensors(folder_ / "no" / "folder", {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kNotFound);
  }
}

TEST_F(SafetensorsTest, TakesThePlaceOfNothingButAFile) {
  const auto pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  try {
    write_safetensors(pipe, {.tensors = {{"a", torch::zeros({2})}}, .metadata = {}});
    ADD_FAILURE() << "a pipe was replaced";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("it exists and is not a regular file"));
  }
  EXPECT_TRUE(fs::is_fifo(pipe));
  EXPECT_EQ(std::distance(fs::directory_iterator{folder_}, {}), 1) << "nothing is left beside it";
}

TEST_F(SafetensorsTest, RefusesATruncatedFileAtEveryLength) {
  write_safetensors(file(), {.tensors = {{"a", torch::ones({3})}, {"b", torch::ones({2}, torch::kByte)}}});
  const auto whole = read_file(file());
  for (std::size_t length = 0; length < whole.size(); ++length) {
    std::ofstream{file(), std::ios::binary} << whole.substr(0, length);
    EXPECT_THROW(read_safetensors(file()), Error) << length << " of " << whole.size() << " bytes";
  }
}

TEST_F(SafetensorsTest, RefusesHeadersOfImpossibleLength) {
  put(kTwoFloats, 8, 1'000);
  expect_refused("announces a header of 1000 bytes");
  put(kTwoFloats, 8, std::numeric_limits<std::uint64_t>::max());
  expect_refused("announces a header of 18446744073709551615 bytes");
  put(kTwoFloats, 8, std::numeric_limits<std::uint64_t>::max() - 4);  // + 8 would wrap around
  expect_refused("announces a header");
  put("", 0, 200'000'000);
  fs::resize_file(file(), 300'000'000);  // a hole: the length fits, and it is too much
  expect_refused("at most 100000000 are read");
}

TEST_F(SafetensorsTest, RefusesHeadersThatAreNotTheFormat) {
  put("{\"a\":", 0);
  expect_refused("not valid JSON at byte");
  put("[1,2]", 0);
  expect_refused("not a JSON object");
  put("", 0);
  expect_refused("not valid JSON at byte");
  put(std::string(100'000, '['), 0);
  expect_refused("nests deeper");
  put(R"({"a":{"dtype":[["F32"]],"shape":[2],"data_offsets":[0,8]}})", 8);
  expect_refused("nests deeper");
  put(R"({"a":{"dtype":"F32","shape":[2]}})", 8);
  expect_refused("'a' is not {dtype, shape");
  put(R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", 8);
  expect_refused("'a' is not {dtype, shape");
  put(R"({"a":{"dtype":"F32","shape":[2.0],"data_offsets":[0,8]}})", 8);
  expect_refused("'a' is not {dtype, shape");
  put(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4,8]}})", 8);
  expect_refused("'a' is not {dtype, shape");
  put(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"more":1}})", 8);
  expect_refused("'a' is not {dtype, shape");
  put(R"({"a":{"dtype":"F8","shape":[8],"data_offsets":[0,8]}})", 8);
  expect_refused("unknown dtype 'F8'");
  put(R"({"__metadata__":{"a":1}})", 0);
  expect_refused("must be string");
  put(R"({"__metadata__":"text"})", 0);
  expect_refused("must be object");
}

TEST_F(SafetensorsTest, RefusesNamesThatAppearTwice) {
  put(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
      8);
  expect_refused("names 'a' twice");
  put(R"({"a":{"dtype":"U8","dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8);
  expect_refused("names 'dtype' twice");
}

TEST_F(SafetensorsTest, RefusesTensorsThatLieOutsideOverlapOrLeaveGaps) {
  put(kTwoFloats, 7);
  expect_refused("'a' lies at [0, 8) of 7 bytes");
  put(kTwoFloats, 9);
  expect_refused("end at 8 of 9 bytes");
  put(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", 8);
  expect_refused("'a' lies at [8, 0)");
  put(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[18446744073709551615,3]}})", 8);
  expect_refused("'a' is not {dtype, shape");
  put(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 8);
  expect_refused("occupies 8 bytes where its shape and dtype need 12");
  put(R"({"a":{"dtype":"F32","shape":[4611686018427387904,4,2],"data_offsets":[0,8]}})", 8);
  expect_refused("too large to count");
  put(R"({"a":{"dtype":"F32","shape":[0,4611686018427387904,4],"data_offsets":[0,0]}})", 0);
  expect_refused("too large to count");
  put(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
      12);
  expect_refused("'b' begins at 4, inside");
  put(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
      8);
  expect_refused("'b' begins at 0, inside");
  put(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})",
      12);
  expect_refused("'b' begins at 8, behind");
}

}  // namespace
}  // namespace abl::models
