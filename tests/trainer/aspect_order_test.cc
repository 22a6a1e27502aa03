// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/tasks/detect/detection_batch.h"

#include <gmock/gmock.h>

namespace abl::tasks {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAreArray;

TEST(AspectOrder, PicturesOfAKindFillBatchesAndWhatIsLeftComesLast) {
  const std::vector<bool> lies{true, false, true, true, false, true, false};
  EXPECT_THAT(by_aspect({0, 1, 2, 3, 4, 5, 6}, lies, 2), ElementsAre(0, 2, 1, 4, 3, 5, 6));
  EXPECT_THAT(by_aspect({6, 0}, lies, 4), UnorderedElementsAreArray({0, 6})) << "fewer than a batch";
  EXPECT_THAT(by_aspect({}, lies, 4), ElementsAre());
}

TEST(AspectOrder, EveryEpochHasEachPictureOnceInAnOrderOfItsOwn) {
  const std::vector<bool> lies{true, false, true, true, false, true, false, true, true, false};
  AspectOrder order{3, lies, 4};
  const auto first = order.of(0), second = order.of(1);
  EXPECT_NE(first, second);
  for (const auto& epoch : {first, second})
    EXPECT_THAT(epoch, UnorderedElementsAreArray({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(AspectOrder(3, lies, 4).of(1), second) << "whichever was asked for before";
  for (std::size_t i = 1; i < 4; ++i)
    EXPECT_EQ(lies[first[i]], lies[first[0]]) << "a whole batch of one kind";
}

}  // namespace
}  // namespace abl::tasks
