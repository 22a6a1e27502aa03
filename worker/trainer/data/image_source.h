// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/trial_config.h"
#include "worker/trainer/data/region.h"

namespace abl::trainer {

enum class Split { kTrain, kVal };

struct Sample {
  Image image;
  int label = 0;
};

/// An image as it is stored.
struct EncodedImage {
  enum class Coding : std::uint32_t { kJpeg = 0, kPixels = 1, kPng = 2, kWebp = 3 };
  Coding coding = Coding::kJpeg;
  std::string_view bytes;             ///< a file of that format, or pixels [height, width, 3]
  std::shared_ptr<const void> owner;  ///< what `bytes` lies in, unless that is the source itself
  int width = 0, height = 0;
  int label = 0;
};

/// A decoded part of an image: `image` holds it, with up to a pixel more at each side where a reduced scale
/// cuts through pixels.
struct RegionView {
  Image image;
  Rectangle region;                                 ///< the part, in the pixels of the whole at full scale
  double left = 0, top = 0, width = 0, height = 0;  ///< the part, in `image`'s pixels; whole at full scale
  int label = 0;
};

/// One split of a data set. Thread: every function from any number of threads.
class ImageSource {
 public:
  virtual ~ImageSource() = default;
  virtual std::uint32_t size() const = 0;
  virtual int label(std::uint32_t index) const = 0;
  /// For messages: the file, or the place in it.
  virtual std::string name(std::uint32_t index) const = 0;
  /// The bytes, with the dimensions that their header tells; they live as long as the source and the result.
  /// Throws: Error{kDataLoss} with the reason where that header is damaged, whatever data.damaged says.
  virtual EncodedImage open(std::uint32_t index) const = 0;
  /// The part that `choose` names, and no more of the image decoded than that needs: what lies beyond the
  /// part may be damaged unnoticed. Nothing for an unreadable image that is to be skipped. Throws:
  /// Error{kDataLoss} naming it, where an unreadable image is fatal.
  virtual std::optional<RegionView> view(std::uint32_t index, const ChooseRegion& choose) const = 0;
  /// The whole image at full scale; otherwise as `view`.
  std::optional<Sample> load(std::uint32_t index) const;
};

/// Both splits, and what they are: two workers with the same fingerprint have the same images.
struct DataSet {
  std::shared_ptr<const ImageSource> train, val;
  std::string fingerprint;
  std::vector<std::string> classes;
  std::string format;                    ///< what it is stored as, in words
  std::vector<std::string> passed_over;  ///< what was found there and is not used, a sentence each
};

/// Which splits there must be.
enum class Needs { kTrainAndVal, kVal };

/// The data of a trial: "shapes" is drawn, anything else is read from `root`, a folder or a packed file, in
/// whatever format it is found there. With `data.classes` 0 any number of classes is right.
/// Throws: Error{kNotFound, kInvalidArgument, kFailedPrecondition, kDataLoss} saying what was expected where.
DataSet open_data(const config::DataConfig& data, const std::string& root, Needs needs = Needs::kTrainAndVal);

}  // namespace abl::trainer
