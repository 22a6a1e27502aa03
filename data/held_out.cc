// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "base/error.h"
#include "config/data/data_sets.h"
#include "data/formats.h"
#include "images/random.h"

namespace abl::data {
namespace {

using Indices = std::vector<std::uint32_t>;

/// Some images of a source, in its order.
class PartSource final : public ImageSource {
 public:
  PartSource(std::shared_ptr<const ImageSource> whole, Indices indices)
      : whole_{std::move(whole)}, indices_{std::move(indices)} {}

  std::uint32_t size() const override { return static_cast<std::uint32_t>(indices_.size()); }
  int label(std::uint32_t index) const override { return whole_->label(indices_.at(index)); }
  std::string name(std::uint32_t index) const override { return whole_->name(indices_.at(index)); }
  images::EncodedImage open(std::uint32_t index) const override { return whole_->open(indices_.at(index)); }
  std::optional<images::DecodedRegion> decode(std::uint32_t index,
                                              const images::ChooseRegion& choose) const override {
    return whole_->decode(indices_.at(index), choose);
  }

 private:
  const std::shared_ptr<const ImageSource> whole_;
  const Indices indices_;
};

/// How many of each class: its share of `held`, the largest remainders rounded up, the first class first of
/// equal ones; but one image of each is left.
std::vector<std::uint64_t> shares_of(const std::vector<Indices>& classes, std::uint64_t images,
                                     std::uint64_t held) {
  std::vector<std::uint64_t> shares(classes.size()), by_remainder(classes.size());
  const auto most = [&](std::size_t c) { return classes[c].empty() ? 0 : classes[c].size() - 1; };
  for (std::size_t c = 0; c < classes.size(); ++c)
    shares[c] = std::min<std::uint64_t>(most(c), classes[c].size() * held / images);
  std::iota(by_remainder.begin(), by_remainder.end(), 0);
  std::ranges::stable_sort(by_remainder, std::ranges::greater{},
                           [&](std::size_t c) { return classes[c].size() * held % images; });
  auto rest = held - std::accumulate(shares.begin(), shares.end(), std::uint64_t{0});
  while (rest > 0)  // ends: there are as many images as that beside the one of each class
    for (const std::size_t c : by_remainder)
      if (rest > 0 && shares[c] < most(c)) ++shares[c], --rest;
  return shares;
}

}  // namespace

DataSet hold_out(DataSet set, const config::DataConfig& config) {
  if (config.held_out <= 0) return set;
  const std::uint32_t images = set.train->size();
  std::vector<Indices> classes;
  for (std::uint32_t i = 0; i < images; ++i) {
    const auto label = static_cast<std::size_t>(set.train->label(i));
    if (classes.size() <= label) classes.resize(label + 1);
    classes[label].push_back(i);
  }
  const auto with_images = std::ranges::count_if(classes, [](const Indices& c) { return !c.empty(); });
  if (const auto wrong = config::wrong_held_out(config, images, with_images); !wrong.empty())
    throw Error{Code::kInvalidArgument, "data.held_out: " + wrong};
  const auto held = static_cast<std::uint64_t>(config::held_out_of(config, images));
  const auto shares = shares_of(classes, images, held);
  std::vector<bool> is_held(images);
  for (std::size_t c = 0; c < classes.size(); ++c) {
    const auto order = images::permutation(static_cast<std::uint32_t>(classes[c].size()),
                                           images::RandomStream{0, images::Purpose::kHeldOut, {c}});
    for (std::uint64_t i = 0; i < shares[c]; ++i) is_held[classes[c][order[i]]] = true;
  }
  Indices kept, evaluated;
  for (std::uint32_t i = 0; i < images; ++i) (is_held[i] ? evaluated : kept).push_back(i);
  set.val = std::make_shared<PartSource>(set.train, std::move(evaluated));
  set.train = std::make_shared<PartSource>(std::move(set.train), std::move(kept));
  return set;
}

}  // namespace abl::data
