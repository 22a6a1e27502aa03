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

}  // namespace
}  // namespace abl::protocol
