// SPDX-License-Identifier: Apache-2.0
#include "config/json.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "base/error.h"

namespace abl::config {
namespace {

using Json = nlohmann::json;

// The number samples of RFC 8785, appendix B.
TEST(CanonicalNumberTest, NumbersAreWrittenAsTheRfcShows) {
  EXPECT_EQ(canonical_number(0.0), "0");
  EXPECT_EQ(canonical_number(-0.0), "0");
  EXPECT_EQ(canonical_number(std::numeric_limits<double>::denorm_min()), "5e-324");
  EXPECT_EQ(canonical_number(std::numeric_limits<double>::max()), "1.7976931348623157e+308");
  EXPECT_EQ(canonical_number(9007199254740992.0), "9007199254740992");
  EXPECT_EQ(canonical_number(295147905179352830000.0), "295147905179352830000");
  EXPECT_EQ(canonical_number(9.999999999999997e22), "9.999999999999997e+22");
  EXPECT_EQ(canonical_number(1e23), "1e+23");
  EXPECT_EQ(canonical_number(999999999999999700000.0), "999999999999999700000");
  EXPECT_EQ(canonical_number(1e21), "1e+21");
  EXPECT_EQ(canonical_number(9.999999999999997e-7), "9.999999999999997e-7");
  EXPECT_EQ(canonical_number(0.000001), "0.000001");
  EXPECT_EQ(canonical_number(333333333.3333332), "333333333.3333332");
  EXPECT_EQ(canonical_number(-0.0000033333333333333333), "-0.0000033333333333333333");
  EXPECT_EQ(canonical_number(1424953923781206.25), "1424953923781206.2");
}

TEST(CanonicalNumberTest, WholeAndShortNumbersHaveNoNoise) {
  EXPECT_EQ(canonical_number(100.0), "100");
  EXPECT_EQ(canonical_number(-12.5), "-12.5");
  EXPECT_EQ(canonical_number(0.1), "0.1");
  EXPECT_EQ(canonical_number(1e-7), "1e-7");
}

TEST(CanonicalNumberTest, NumbersWithoutAFormInJsonAreRefused) {
  EXPECT_THROW(canonical_number(std::nan("")), Error);
  EXPECT_THROW(canonical_number(std::numeric_limits<double>::infinity()), Error);
}

TEST(CanonicalJsonTest, KeysAreSortedAndNothingIsBlank) {
  EXPECT_EQ(canonical_json(Json::parse(R"({ "b": [1.0, 2.50, true, null], "a": {"z": "ä\n\"", "y": -3} })")),
            "{\"a\":{\"y\":-3,\"z\":\"ä\\n\\\"\"},\"b\":[1,2.5,true,null]}");
}

TEST(CanonicalJsonTest, TextThatIsNotUtf8IsRefused) { EXPECT_THROW(canonical_json(Json("\xff")), Error); }

TEST(PlainTextTest, TextsLoseTheirQuotes) {
  EXPECT_EQ(plain_text("QKV-W"), "QKV-W");
  EXPECT_EQ(plain_text(2), "2");
  EXPECT_EQ(plain_text(100.0), "100");
}

}  // namespace
}  // namespace abl::config
