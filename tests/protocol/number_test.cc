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

}  // namespace
}  // namespace abl::protocol
