// SPDX-License-Identifier: Apache-2.0
#include <torch/utils.h>

#include "models/projection/grouped_linear.h"

#include <gtest/gtest.h>

namespace abl::models {
namespace {

/// The dense matrix [out, in] that a grouped projection stands for, entry by entry from its definition.
torch::Tensor dense_of(const torch::Tensor& weight, std::int64_t groups, Layout layout) {
  const auto out = weight.size(0), columns = weight.size(1), rows = out / groups;
  auto dense = torch::zeros({out, columns * groups});
  for (std::int64_t j = 0; j < out; ++j) {
    const auto group = layout == Layout::kInterleaved ? j % groups : j / rows;
    const auto row = layout == Layout::kInterleaved ? j / groups : j % rows;
    dense[j].narrow(0, group * columns, columns).copy_(weight[group * rows + row]);
  }
  return dense;
}

TEST(GroupedLinear, EqualsTheBlockSparseMatrixThatItStandsForWithAnyNumberOfGroups) {
  torch::manual_seed(1);
  for (const auto layout : {Layout::kInterleaved, Layout::kBlock}) {
    for (const std::int64_t groups : {1, 2, 3, 4, 12}) {
      const auto x = torch::randn({2, 5, 24}), weight = torch::randn({36, 24 / groups});
      const auto y = grouped_linear(x, weight, groups, layout);
      const auto expected = x.matmul(dense_of(weight, groups, layout).t());
      EXPECT_EQ(y.sizes(), expected.sizes());
      EXPECT_TRUE(torch::allclose(y, expected, 1e-5, 1e-5)) << groups << " groups";
    }
  }
}

TEST(GroupedLinear, LayoutsDifferWithTwoGroupsAndAgreeWithOne) {
  torch::manual_seed(2);
  const auto x = torch::randn({3, 8});
  const auto full = torch::randn({8, 8}), halves = torch::randn({8, 4});
  EXPECT_TRUE(torch::equal(grouped_linear(x, full, 1, Layout::kInterleaved),
                           grouped_linear(x, full, 1, Layout::kBlock)));
  EXPECT_FALSE(torch::allclose(grouped_linear(x, halves, 2, Layout::kInterleaved),
                               grouped_linear(x, halves, 2, Layout::kBlock), 0.1, 0.1));
}

}  // namespace
}  // namespace abl::models
