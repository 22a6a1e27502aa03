// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/image_source.h"
#include "images/annotated.h"

namespace abl::data {

/// One split of pictures with what is to be found in them. Thread: every function from any number of threads.
class AnnotatedSource {
 public:
  struct Extent {
    int width = 0, height = 0;
  };

  virtual ~AnnotatedSource() = default;
  virtual std::uint32_t size() const = 0;
  /// For messages: the file, or the place in it.
  virtual std::string name(std::uint32_t index) const = 0;
  /// Of the picture, without decoding it: for batches of like shapes.
  virtual Extent extent(std::uint32_t index) const = 0;
  /// How many things of a picture are annotated, crowds among them; 0 where only pixels have labels.
  virtual std::size_t instances(std::uint32_t index) const = 0;
  /// The picture as it is stored, with all that is known of it; whether there are instances, labels or both
  /// is the same for every picture of a set. Throws: Error{kDataLoss} with what is wrong with it.
  virtual images::Annotated read(std::uint32_t index) const = 0;
  /// As training has it: nothing for a damaged one that is to be skipped. Throws: Error{kDataLoss} naming it,
  /// where a damaged one is fatal.
  virtual std::optional<images::Annotated> load(std::uint32_t index) const { return read(index); }
};

/// Both splits, and what they are: two workers with the same fingerprint have the same pictures.
struct AnnotatedSet {
  std::shared_ptr<const AnnotatedSource> train, val;
  std::string fingerprint;
  std::vector<std::string> categories;   ///< of instances; empty where there are none
  std::vector<std::string> labels;       ///< of pixels; empty where they have none
  std::string format;                    ///< what it is stored as, in words
  std::vector<std::string> passed_over;  ///< what was found there and is not used, a sentence each

  /// Of a split that there is.
  const AnnotatedSource& of(Split split) const {
    switch (split) {
      case Split::kTrain:
        return *train;
      case Split::kVal:
        break;
    }
    return *val;
  }
};

}  // namespace abl::data
