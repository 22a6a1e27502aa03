// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <mutex>
#include <set>
#include <vector>

#include "worker/trainer/data/image_source.h"

namespace abl::trainer {

/// What every source does with images that lie on a disk: decode, keep small ones in memory, refuse or skip
/// damaged ones. A source adds where the bytes are: size, label, name and open.
class StoredSource : public ImageSource {
 public:
  std::optional<Sample> load(std::uint32_t index) const final;
  std::optional<RegionView> view(std::uint32_t index, const ChooseRegion& choose) const final;

 protected:
  /// `size` images; damaged ones and how small they may be decoded as `data` says.
  StoredSource(const config::DataConfig& data, std::size_t size);

 private:
  /// What `read` gives, or nothing when the image is damaged and may be skipped.
  template <class Read>
  auto or_skip(std::uint32_t index, const Read& read) const -> std::optional<decltype(read())>;

  const bool skip_damaged_;
  const int shorter_side_;  ///< room for random crops; larger photographs are decoded at a reduced scale
  mutable std::vector<std::atomic<std::shared_ptr<const Image>>> decoded_;
  mutable std::atomic<std::size_t> cached_ = 0;
  mutable std::mutex mutex_;
  mutable std::set<std::uint32_t> named_;
};

/// The part of an image that `choose` names. Throws: Error{kDataLoss} without the image's name.
RegionView decode_region(const EncodedImage& encoded, const ChooseRegion& choose);
/// The whole image; a JPEG at a reduced scale as `decode_jpeg` says. Throws: the same.
Image decode_image(const EncodedImage& encoded, int shorter_side = 0);

}  // namespace abl::trainer
