// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <set>

#include "data/annotated/annotated_source.h"
#include "data/annotated/truths.h"

namespace abl::data {

/// What every source does with pictures that lie on a disk: decode, draw masks, refuse or skip damaged ones.
/// A source adds where the bytes are: size, name, extent, instances, open and truths.
class StoredAnnotations : public AnnotatedSource {
 public:
  /// The picture's bytes, with the dimensions that their header tells; they live as long as the source and
  /// the result. Throws: Error{kDataLoss} with the reason.
  virtual images::EncodedImage open(std::uint32_t index) const = 0;
  /// Throws: Error{kDataLoss} with the reason.
  virtual Truths truths(std::uint32_t index) const = 0;

  /// The picture's bytes, of the dimensions that `extent` tells. Throws: Error{kDataLoss} where it has
  /// others.
  images::EncodedImage open_as_told(std::uint32_t index) const;
  images::Annotated read(std::uint32_t index) const final;
  std::optional<images::Annotated> load(std::uint32_t index) const final;

 protected:
  /// `classes`: of pixels.
  StoredAnnotations(config::Damaged damaged, int classes) : damaged_{damaged}, classes_{classes} {}

 private:
  const config::Damaged damaged_;
  const int classes_;
  mutable std::mutex mutex_;
  mutable std::set<std::uint32_t> named_;
};

}  // namespace abl::data
