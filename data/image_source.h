// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/enum_names.h"
#include "config/trial_config.h"
#include "images/image.h"

namespace abl::data {

enum class Split { kTrain, kVal };

constexpr std::string_view name_of(Split split) {
  switch (split) {
    case Split::kTrain:
      return "train";
    case Split::kVal:
      return "val";
  }
  return {};
}

struct Sample {
  images::Image image;
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
  virtual images::EncodedImage open(std::uint32_t index) const = 0;
  /// The part that `choose` names, and no more of the image decoded than that needs: what lies beyond the
  /// part may be damaged unnoticed. Nothing for an unreadable image that is to be skipped. Throws:
  /// Error{kDataLoss} naming it, where an unreadable image is fatal.
  virtual std::optional<images::DecodedRegion> decode(std::uint32_t index,
                                                      const images::ChooseRegion& choose) const = 0;
  /// The whole image at full scale; otherwise as `decode`.
  std::optional<Sample> load(std::uint32_t index) const;
};

/// Both splits, and what they are: two workers with the same fingerprint have the same images.
struct DataSet {
  std::shared_ptr<const ImageSource> train, val;
  std::string fingerprint;
  std::vector<std::string> classes;
  std::string format;                    ///< what it is stored as, in words
  std::vector<std::string> passed_over;  ///< what was found there and is not used, a sentence each

  /// Of a split that there is.
  const ImageSource& of(Split split) const {
    switch (split) {
      case Split::kTrain:
        return *train;
      case Split::kVal:
        break;
    }
    return *val;
  }
};

/// Which splits there must be.
enum class Needs { kTrainAndVal, kVal };

/// The data of a trial: "shapes" is drawn, anything else is read from `root`, a folder or a packed file, in
/// whatever format it is found there. Where data.held_out holds images out of training, `val` is those. With
/// `data.classes` 0 any number of classes is right. Throws: Error{kNotFound, kInvalidArgument,
/// kFailedPrecondition, kDataLoss} saying what was expected where.
DataSet open_data(const config::DataConfig& data, const std::string& root, Needs needs = Needs::kTrainAndVal);

/// Images without meaning, of the size and number of classes of `data` and at least `images` of them, as they
/// are when nothing has to be decoded: for what is only timed where the data are not.
DataSet stand_in(const config::DataConfig& data, int images);

}  // namespace abl::data
