// SPDX-License-Identifier: Apache-2.0
#include "storage/weights_store.h"

#include "tests/storage/fixtures.h"

namespace abl::storage {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

class WeightsStoreTest : public StoreTest {
 protected:
  /// Three trials: two of weights that their names alone stand for, one that says which file it wants.
  WeightsStoreTest() {
    SweepText text = sweep_of("s", 3, 1);
    text.trials[0].weights = text.trials[1].weights = {{"deit", ""}, {"regnet", ""}};
    text.trials[2].weights = {{"regnet", "bb"}};
    submit(text);
  }
  RunRecord start(TrialId trial, const std::map<std::string, std::string>& reported,
                  const std::string& worker = "alice") {
    const RunId id = lease(trial, worker).run;
    trials.start(id, {.total_steps = 100, .data_fingerprint = "f1", .weights = reported}, now);
    return trials.run(id);
  }
  WeightsStore weights{db};
};

TEST_F(WeightsStoreTest, AQueuedTrialsShapeNamesItsWeightsAndTheFilesThatItsRecipeWants) {
  const QueueStore queue{db};
  EXPECT_THAT(queue.demand(queue.open(2)->shape).weights, ElementsAre(Pair("deit", ""), Pair("regnet", "")));
  EXPECT_THAT(queue.demand(queue.open(3)->shape).weights, ElementsAre(Pair("regnet", "bb")));
  start(1, {{"regnet", "aa"}});
  EXPECT_THAT(queue.pins(), ElementsAre(Pair("regnet", "aa")));
}

TEST_F(WeightsStoreTest, TheFirstFileOfANameIsPinnedAndAnotherIsRefused) {
  start(1, {{"deit", "dd"}, {"regnet", "aa"}});
  EXPECT_EQ(weights.pinned("regnet"), "aa");
  const RunRecord other = trials.run(lease(2, "bob").run);
  EXPECT_FALSE(weights.wrong(other, {{"deit", "dd"}, {"regnet", "aa"}}));
  const auto wrong = weights.wrong(other, {{"deit", "dd"}, {"regnet", "bb"}});
  ASSERT_TRUE(wrong);
  EXPECT_EQ(wrong->name, "regnet");
  EXPECT_EQ(wrong->wanted, "aa");
  EXPECT_THAT(wrong->how, testing::AllOf(HasSubstr("bob"), HasSubstr("aa"), HasSubstr("bb")));
  const auto [code, message] = error_of([&] {
    trials.start(other.id, {.data_fingerprint = "f1", .weights = {{"regnet", "bb"}}}, now);
  });
  EXPECT_EQ(code, Code::kFailedPrecondition);
  EXPECT_EQ(message, wrong->how);
  EXPECT_EQ(trials.get(2).state, TrialState::kLeased) << "a refused start leaves nothing behind";
}

TEST_F(WeightsStoreTest, AFileThatTheRecipeSaysIsNeitherPinnedNorComparedWithThePinned) {
  start(3, {{"regnet", "bb"}});
  EXPECT_FALSE(weights.pinned("regnet"));
  start(1, {{"regnet", "aa"}});
  EXPECT_FALSE(weights.wrong(trials.run(1), {{"regnet", "bb"}}));
}

TEST_F(WeightsStoreTest, ARunThatDoesNotSayItsDigestsPinsNothing) {
  start(1, {});
  EXPECT_FALSE(weights.pinned("regnet"));
}

}  // namespace
}  // namespace abl::storage
