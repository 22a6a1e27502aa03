// SPDX-License-Identifier: Apache-2.0
// Files that somebody made to do harm: each is refused with one line that names file and tensor, and nothing
// outside the file is read.
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "tests/safetensors/hostile_reader.h"

namespace abl::models {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

/// One entry of a header, as text.
std::string entry(const std::string& name, const std::string& dtype, const std::string& shape,
                  const std::string& begin, const std::string& end) {
  return fmt::format(R"("{}":{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", name, dtype, shape,
                     begin, end);
}

std::string header_of(const std::vector<std::string>& entries) {
  return fmt::format("{{{}}}", fmt::join(entries, ","));
}

struct Hostile {
  std::string what;    ///< also the test's name
  std::string header;  ///< announced with its true length
  std::string data;
  std::string complaint;
};

std::string zeros(std::size_t size) { return std::string(size, '\0'); }

std::vector<Hostile> corpus() {
  const std::string many(300, 'n'), two60 = "1152921504606846976", two62 = "4611686018427387904",
                                    two63 = "9223372036854775808", two64 = "18446744073709551616";
  const auto a = entry("a", "F32", "2", "0", "8");
  return {
      {"LargerThanTheFile", header_of({entry("a", "F32", two60, "0", "4611686018427387904")}), zeros(8),
       "'a' lies at"},
      {"LargerThanAddresses", header_of({entry("a", "F64", two60 + ",4", "0", "8")}), zeros(8),
       "'a' has a shape too large"},
      {"ProductThatWrapsToTheSize", header_of({entry("a", "U8", two62 + ",4,1", "0", "0")}), "",
       "'a' has a shape too large"},
      {"EmptyButUncountable", header_of({entry("a", "U8", two62 + ",4,0", "0", "0")}), "",
       "'a' has a shape too large"},
      {"SizeBeyondSigned", header_of({entry("a", "U8", two63, "0", "8")}), zeros(8), "'a' is not {dtype"},
      {"SizeBeyondUnsigned", header_of({entry("a", "U8", two64, "0", "8")}), zeros(8), "'a' is not {dtype"},
      {"SizeOfManyDigits", header_of({entry("a", "U8", std::string(5000, '9'), "0", "8")}), zeros(8),
       "number too large"},
      {"NegativeSize", header_of({entry("a", "F32", "-2", "0", "8")}), zeros(8), "'a' is not {dtype"},
      {"TwoNegativeSizes", header_of({entry("a", "F32", "-1,-2", "0", "8")}), zeros(8), "'a' is not {dtype"},
      {"FractionalSize", header_of({entry("a", "F32", "2.0", "0", "8")}), zeros(8), "'a' is not {dtype"},
      {"ManyDimensions",
       header_of({entry("a", "U8", fmt::format("{}", fmt::join(std::vector<int>(65, 1), ",")), "0", "1")}),
       zeros(1), "'a' is not {dtype"},
      {"NegativeBegin", header_of({entry("a", "F32", "2", "-8", "0")}), zeros(8), "'a' is not {dtype"},
      {"NegativeEnd", header_of({entry("a", "F32", "2", "0", "-8")}), zeros(8), "'a' is not {dtype"},
      {"ReversedOffsets", header_of({entry("a", "F32", "2", "8", "0")}), zeros(8), "'a' lies at [8, 0)"},
      {"EndThatWraps", header_of({entry("a", "F32", "2", "18446744073709551608", "0")}), zeros(8),
       "'a' is not {dtype"},
      {"BeginBehindTheFile", header_of({entry("a", "F32", "0", "4096", "4096")}), zeros(8),
       "'a' lies at [4096, 4096)"},
      {"EndOneBehindTheFile", header_of({entry("a", "U8", "9", "0", "9")}), zeros(8),
       "'a' lies at [0, 9) of 8"},
      {"WiderTypeThanTheData", header_of({entry("a", "F64", "2", "0", "8")}), zeros(8),
       "'a' occupies 8 bytes"},
      {"NarrowerTypeThanTheData", header_of({entry("a", "F16", "2", "0", "8")}), zeros(8),
       "'a' occupies 8 bytes"},
      {"UnknownType", header_of({entry("a", "F8_E4M3", "8", "0", "8")}), zeros(8),
       "'a' has the unknown dtype 'F8_E4M3'"},
      {"TypeInLowerCase", header_of({entry("a", "f32", "2", "0", "8")}), zeros(8),
       "'a' has the unknown dtype 'f32'"},
      {"NeitherTrueNorFalse", header_of({entry("a", "BOOL", "2", "0", "2")}), "\x01\x02", "'a' holds bytes"},
      {"Overlap", header_of({a, entry("b", "F32", "2", "4", "12")}), zeros(12), "'b' begins at 4, inside"},
      {"SameBytes", header_of({a, entry("b", "F32", "2", "0", "8")}), zeros(8), "'b' begins at 0, inside"},
      {"EmptyInsideAnother", header_of({a, entry("b", "F32", "0", "4", "4")}), zeros(8),
       "'b' begins at 4, inside"},
      {"Gap", header_of({a, entry("b", "F32", "1", "12", "16")}), zeros(16), "'b' begins at 12, behind"},
      {"RestBehindAllTensors", header_of({a}), zeros(9), "end at 8 of 9"},
      {"NameTwice", header_of({a, entry("a", "F32", "2", "8", "16")}), zeros(16), "names 'a' twice"},
      {"KeyTwice", R"({"a":{"dtype":"U8","shape":[8],"dtype":"F32","data_offsets":[0,8]}})", zeros(8),
       "names 'dtype' twice"},
      {"NameTwiceOnceEscaped", header_of({a, entry("\\u0061", "F32", "2", "8", "16")}), zeros(16),
       "names 'a' twice"},
      {"NameOfTwoLines", header_of({entry("a\\nb", "F32", "2", "0", "8")}), zeros(8),
       "'a\\nb' is an invalid name"},
      {"NameThatMovesTheCursor", header_of({entry("\\u001b[2Ja", "F32", "2", "0", "8")}), zeros(8),
       "[2Ja' is an invalid name"},
      {"NameWithAZeroByte", header_of({entry("a\\u0000b", "F32", "2", "0", "8")}), zeros(8),
       "'a\\u0000b' is an invalid name"},
      {"LongName", header_of({entry(many, "F32", "3", "0", "8")}), zeros(8),
       many.substr(0, 200) + "'… occupies"},
      {"NoUtf8", header_of({entry("a\xff", "F32", "2", "0", "8")}), zeros(8), "not valid JSON at byte"},
      {"DeepLists", header_of({"\"a\":" + std::string(1'000'000, '[')}), "", "nests deeper"},
      {"DeepObjects",
       [] {
         std::string deep;
         for (int level = 0; level < 100'000; ++level) deep += R"({"a":)";
         return deep;
       }(),
       "", "nests deeper"},
      {"NotJson", "PK\x03\x04 an archive", "", "not valid JSON at byte 1"},
      {"Pickle", std::string("\x80\x02}q\x00(X\x01", 8), "", "not valid JSON at byte"},
      {"HalfAHeader", header_of({a}).substr(0, 30), zeros(8), "not valid JSON at byte 31"},
      {"TwoHeaders", header_of({a}) + header_of({a}), zeros(8), "not valid JSON at byte"},
      {"Comment", "/**/" + header_of({a}), zeros(8), "not valid JSON at byte 1"},
      {"List", "[]", "", "not a JSON object"},
      {"Number", "1", "", "not a JSON object"},
      {"NoHeader", "", "", "not valid JSON at byte 1"},
      {"EntryIsNull", R"({"a":null})", "", "'a' is not {dtype"},
      {"EntryIsEmpty", R"({"a":{}})", "", "'a' is not {dtype"},
      {"EntryWithMore", R"({"a":{"dtype":"U8","shape":[],"data_offsets":[0,1],"x":0}})", zeros(1),
       "'a' is not {dtype"},
      {"ShapeIsANumber", R"({"a":{"dtype":"U8","shape":1,"data_offsets":[0,1]}})", zeros(1),
       "'a' is not {dtype"},
      {"OffsetsAreText", R"({"a":{"dtype":"U8","shape":[1],"data_offsets":["0","1"]}})", zeros(1),
       "'a' is not {dtype"},
      {"MetadataIsATensor", header_of({entry("__metadata__", "F32", "2", "0", "8")}), zeros(8),
       "must be string"},
      {"MetadataOfNumbers", R"({"__metadata__":{"a":1}})", "", "must be string"},
  };
}

class HostileFile : public ::testing::TestWithParam<Hostile> {
 protected:
  HostileFile() : file_{fs::path{::testing::TempDir()} / fmt::format("hostile_{}.safetensors", ::getpid())} {}
  ~HostileFile() override { fs::remove(file_); }

  void put(const std::string& header, const std::string& data) const {
    const std::uint64_t length = header.size();
    std::ofstream out{file_, std::ios::binary};
    out.write(reinterpret_cast<const char*>(&length), sizeof length);
    out << header << data;
  }
  const fs::path file_;
};

TEST_P(HostileFile, IsRefusedInOneLineThatNamesFileAndTensor) {
  put(GetParam().header, GetParam().data);
  try {
    read_every_byte(file_);
    FAIL() << "was read";
  } catch (const Error& error) {
    const std::string line = error.what();
    EXPECT_EQ(error.code(), Code::kDataLoss);
    EXPECT_THAT(line, AllOf(HasSubstr(file_.string()), HasSubstr(GetParam().complaint)));
    EXPECT_TRUE(std::none_of(line.begin(), line.end(), [](unsigned char byte) { return byte < 0x20; }))
        << line;
    EXPECT_LT(line.size(), 600U);
  }
}

INSTANTIATE_TEST_SUITE_P(Corpus, HostileFile, ::testing::ValuesIn(corpus()),
                         [](const auto& parameter) { return parameter.param.what; });

class OtherKindOfFile : public HostileFile {
 protected:
  std::string refusal_of(const std::string& bytes) const {
    std::ofstream{file_, std::ios::binary} << bytes;
    try {
      read_every_byte(file_);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
};

TEST_P(OtherKindOfFile, IsNamedWithWhatToDo) {
  const std::string rest(100, 'x');
  EXPECT_THAT(refusal_of("PK\x03\x04" + std::string("\0\0\x08\x08", 4) + rest),
              HasSubstr("torch.load(sys.argv[1]"));
  EXPECT_THAT(refusal_of("\x80\x02\x8a\x0al\xfc\x9c\x46\xf9" + rest), HasSubstr("it is a PyTorch file"));
  EXPECT_THAT(refusal_of("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n"),
              HasSubstr("git lfs pull"));
  EXPECT_THAT(refusal_of("<!DOCTYPE html><html>404</html>"), HasSubstr("HTML"));
  EXPECT_THAT(refusal_of("\x89HDF\r\n\x1a\n" + rest), HasSubstr("HDF5"));
}

TEST_P(OtherKindOfFile, IsNotSaidOfAHeaderThatHasItsBeginningAsLength) {
  for (const std::size_t length : {60U, 640U}) {  // "<" and "\x80\x02"
    std::string header = header_of({entry("a", "F32", "2", "0", "8")});
    header.resize(length, ' ');
    put(header, zeros(8));
    EXPECT_NO_THROW(read_every_byte(file_)) << length;
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, OtherKindOfFile, ::testing::Values(Hostile{}));

class HostilePath : public HostileFile {};

TEST_P(HostilePath, ThatIsNoFileIsRefusedAndNotWaitedFor) {
  ASSERT_EQ(::mkfifo(file_.c_str(), 0600), 0);
  EXPECT_THROW(read_every_byte(file_), Error);
  EXPECT_THROW(read_every_byte("/dev/zero"), Error);
  EXPECT_THROW(read_every_byte("/proc/self/mem"), Error);
}

TEST_P(HostilePath, OfFilesWithAnyByteChangedNothingOutsideIsRead) {
  put(header_of({entry("a", "F32", "2", "0", "8"), entry("b", "U8", "2,3", "8", "14"),
                 entry("c", "BOOL", "", "14", "15"), R"("__metadata__":{"k":"v"})"}),
      zeros(15));
  std::string whole(fs::file_size(file_), '\0');
  std::ifstream{file_, std::ios::binary}.read(whole.data(), static_cast<std::streamsize>(whole.size()));
  std::mt19937 random{1};
  int refused = 0, read = 0;
  for (int trial = 0; trial < 6000; ++trial) {
    auto changed = whole;
    for (std::uint32_t changes = 1 + random() % 3; changes > 0; --changes)
      changed[random() % changed.size()] =
          trial % 2 == 0 ? static_cast<char>(random()) : "0123456789,[]{}\"-e."[random() % 19];
    if (trial % 7 == 0) changed.resize(random() % changed.size());
    std::ofstream{file_, std::ios::binary} << changed;
    try {
      const auto data = read_every_byte(file_);
      std::uint64_t header = 0;
      std::memcpy(&header, changed.data(), sizeof header);
      EXPECT_EQ(sizeof header + header + data, changed.size());
      ++read;
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 3000);
  EXPECT_GT(read, 100) << "changed data is still data";
}

INSTANTIATE_TEST_SUITE_P(Once, HostilePath, ::testing::Values(Hostile{}), [](const auto&) { return "file"; });

}  // namespace
}  // namespace abl::models
