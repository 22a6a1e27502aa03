// SPDX-License-Identifier: Apache-2.0
#include "protocol/number.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace abl::protocol {
namespace {

using nlohmann::json;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(Number, OnesThatAreNotFiniteHaveNamesThatAreReadAgain) {
  EXPECT_EQ(non_finite_name(0.1), std::nullopt);
  EXPECT_EQ(non_finite_name(std::nan("")), "NaN");
  for (const double value : {kInfinity, -kInfinity})
    EXPECT_EQ(non_finite_value(*non_finite_name(value)), value);
  EXPECT_TRUE(std::isnan(non_finite_value("NaN").value()));
  for (const char* other : {"", "nan", "inf", "+Infinity", "1"})
    EXPECT_EQ(non_finite_value(other), std::nullopt) << other;
}

TEST(Number, InADocumentAFiniteOneIsItself) {
  EXPECT_EQ(json_number(2.31).dump(), "2.31");
  EXPECT_EQ(json_number(-kInfinity).dump(), R"("-Infinity")");
}

TEST(Number, IsReadAsProgramsWriteIt) {
  for (const auto& [text, value] : std::initializer_list<std::pair<const char*, double>>{
           {"12", 12}, {"-0.5", -0.5}, {R"("0.5")", 0.5}, {R"(" +1e-3 ")", 1e-3}, {R"("-inf")", -kInfinity}})
    EXPECT_EQ(number_of(json::parse(text)), value) << text;
  EXPECT_TRUE(std::isnan(number_of("nan").value()));
  for (const char* text : {"true", "null", "[1]", R"("")", R"("high")", R"("1 2")"})
    EXPECT_EQ(number_of(json::parse(text)), std::nullopt) << text;
}

TEST(Number, IsReadAsPapersPrintIt) {
  for (const auto& [text, value, digits] :
       std::initializer_list<std::tuple<const char*, double, int>>{{"61.13", 61.13, 2},
                                                                   {"−0.4", -0.4, 1},
                                                                   {"+3", 3, 0},
                                                                   {"1,281,167", 1'281'167, 0},
                                                                   {" 79.8% ", 79.8, 1},
                                                                   {"79.80 ± 0.2", 79.8, 2},
                                                                   {"1,000.5", 1000.5, 1}}) {
    const auto read = printed_number(text);
    ASSERT_TRUE(read) << text;
    EXPECT_DOUBLE_EQ(read->value, value);
    EXPECT_EQ(read->digits, digits) << text;
  }
  for (const char* text :
       {"", "–", "-", ".", "n/a", "61.13*", "1,2", "12,34,567", "1.2.3", "79.8 (ours)", "1e3"})
    EXPECT_FALSE(printed_number(text)) << text;
}

TEST(Number, ALoggedOneIsAsProgramsPrintIt) {
  const std::vector<std::pair<const char*, double>> read{{"0.93", 0.93},
                                                         {" 12 ", 12},
                                                         {"1e-3", 1e-3},
                                                         {"+.5", .5},
                                                         {"-3", -3},
                                                         {"97.3%", 97.3},
                                                         {"97.3 %", 97.3},
                                                         {"1,234", 1234},
                                                         {"\u22120.4", -0.4},
                                                         {"1,234,567.25", 1234567.25},
                                                         {"-1,234", -1234},
                                                         {"inf", INFINITY},
                                                         {"-Infinity", -INFINITY},
                                                         {"1e-400", 0},
                                                         {"5e-324", 5e-324},
                                                         {"0.1", 0.1},
                                                         {"1E5", 1e5}};
  for (const auto& [text, value] : read) {
    ASSERT_TRUE(logged_number(text)) << text;
    EXPECT_EQ(*logged_number(text), value) << text;
  }
  EXPECT_TRUE(std::isnan(logged_number("nan").value()));
  EXPECT_TRUE(std::isnan(logged_number("NaN").value()));
  for (const char* text : {"", " ", "%", "n/a", "0,97", "1,23", "12,34,567", ",123", "1,234,", "1234,567",
                           "1.5.2", "0.9x", "1e400", "0x10", "--1", "1 2"})
    EXPECT_FALSE(logged_number(text)) << text;
}

TEST(Number, ALoggedStepIsWhole) {
  EXPECT_EQ(logged_step("12"), 12U);
  EXPECT_EQ(logged_step("3.0"), 3U);
  EXPECT_EQ(logged_step("1,000"), 1000U);
  EXPECT_EQ(logged_step("4294967295"), 4294967295U);
  for (const char* text : {"", "-1", "0.5", "nan", "inf", "4294967296", "50%", "one"})
    EXPECT_FALSE(logged_step(text)) << text;
}

}  // namespace
}  // namespace abl::protocol
