// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/trial_config.h"
#include "worker/trainer/augmentation/image.h"

namespace abl::trainer {

enum class Split { kTrain, kVal };

struct Sample {
  Image image;
  int label = 0;
};

/// One split of a data set. Thread: `load` from any number of threads.
class ImageSource {
 public:
  virtual ~ImageSource() = default;
  virtual std::uint32_t size() const = 0;
  /// Nothing for an unreadable image that is to be skipped.
  /// Throws: Error{kDataLoss} naming the file, where an unreadable image is fatal.
  virtual std::optional<Sample> load(std::uint32_t index) const = 0;
};

/// Both splits, and what they are: two workers with the same fingerprint have the same images.
struct DataSet {
  std::shared_ptr<const ImageSource> train, val;
  std::string fingerprint;
  std::vector<std::string> classes;
};

/// The data of a trial: "shapes" is drawn, anything else is read from the folder `root`.
/// Throws: Error{kNotFound, kInvalidArgument} saying what was expected where.
DataSet open_data(const config::DataConfig& config, const std::string& root);

}  // namespace abl::trainer
