// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "data/image_source.h"

namespace abl::data {

/// What every source does with images that lie on a disk: decode, keep small ones in memory, refuse or skip
/// damaged ones. A source adds where the bytes are: size, label, name and open.
class StoredSource : public ImageSource {
 public:
  std::optional<images::DecodedRegion> decode(std::uint32_t index,
                                              const images::ChooseRegion& choose) const final;

 protected:
  /// `size` images; damaged ones as `data` says.
  StoredSource(const config::DataConfig& data, std::size_t size);

 private:
  /// What `read` gives, or nothing when the image is damaged and may be skipped.
  template <class Read>
  auto or_skip(std::uint32_t index, const Read& read) const -> std::optional<decltype(read())>;

  images::DecodedRegion read(std::uint32_t index, const images::ChooseRegion& choose) const;

  const bool skip_damaged_;
  const std::size_t kept_bytes_;  ///< the largest image that is kept, decoded
  mutable std::vector<std::atomic<std::shared_ptr<const images::Image>>> decoded_;
  mutable std::mutex mutex_;
  mutable std::set<std::uint32_t> named_;
};

/// An image that keeps the bytes of its file. Throws: as images::image_in.
images::EncodedImage owning(std::string bytes);
/// The part of an image that `choose` names. Throws: Error{kDataLoss} without the image's name.
images::DecodedRegion decode_region(const images::EncodedImage& encoded, const images::ChooseRegion& choose);
/// The whole image. Throws: the same.
images::Image decode_image(const images::EncodedImage& encoded);

}  // namespace abl::data
