// SPDX-License-Identifier: Apache-2.0
#include "protocol/meeting_place.h"

#include <gtest/gtest.h>

#include <string>

namespace abl::protocol {
namespace {

TEST(MeetingPlace, IsAHostAndAPort) {
  for (const char* place :
       {"10.0.0.1:29500", "gpu-head:1", "node_1.cluster.example:65535", "[fe80::1%eth0]:80", "::1:80"})
    EXPECT_TRUE(is_meeting_place(place)) << place;
  for (const char* place : {"", ":", "h:", ":80", "h", "h:0", "h:65536", "h:-1", "h:80 ", "h h:80",
                            "--join:80", "h\n:80", "h;:80"})
    EXPECT_FALSE(is_meeting_place(place)) << place;
  EXPECT_FALSE(is_meeting_place(std::string(300, 'h') + ":80"));
}

}  // namespace
}  // namespace abl::protocol
