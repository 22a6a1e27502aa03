// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <atomic>
#include <exception>
#include <functional>
#include <optional>
#include <vector>

#include "config/trial_config.h"
#include "data/transform.h"

namespace abl::tasks {

/// A part of an image that is to be replaced once the image is normalised.
struct Erased {
  std::int64_t image = 0;  ///< its place in the batch
  images::Rectangle rectangle;
  torch::Tensor noise;  ///< [3, height, width], standard normal
};

/// Makes of images that were normalised with one mean and deviation what another model expects of the same
/// pixels. Noise in place of an erased part counts as pixels. What needs no change keeps its bits.
class Renormalisation {
 public:
  Renormalisation() = default;  ///< leaves images as they are
  Renormalisation(const config::DataConfig& given, const config::DataConfig& expected, torch::Device device);

  explicit operator bool() const { return scale_.defined(); }
  /// Shape: [B, 3, S, S] -> [B, 3, S, S].
  torch::Tensor operator()(const torch::Tensor& images) const;

 private:
  torch::Tensor scale_, shift_;  ///< [3, 1, 1]; undefined where nothing is to be done
};

/// What a step or an evaluation gets.
struct Batch {
  torch::Tensor images;  ///< [B, S, S, 3], bytes
  torch::Tensor labels;  ///< [B], int64
  std::vector<Erased> erased;

  /// Some of its images. They share memory.
  Batch narrow(std::int64_t first, std::int64_t count) const;
};

/// `place`: in the batch. Nothing when an image is skipped.
using Prepare = std::function<std::optional<data::Prepared>(std::uint32_t index, std::size_t place)>;

/// Which images a batch is to hold, and how each becomes one of it.
struct BatchPlan {
  std::vector<std::uint32_t> indices;
  Prepare prepare;  ///< from several threads at a time
};

/// How images become a batch.
struct Collation {
  std::uint32_t replace_among = 0;  ///< of so many images a skipped one's place goes to the next readable
                                    ///< one, for training wants full batches; 0: it is left out
  int image_size = 0;
  bool pinned = false;  ///< in memory that a GPU reads while the host goes on
};

/// A batch that is made, by any number of threads: each takes an image at a time. What comes of it depends on
/// the plan alone.
class BatchInMaking {
 public:
  BatchInMaking(BatchPlan plan, const Collation& collation);

  /// Whether there is an image that nobody has taken.
  bool has_work() const { return taken_ < slots_.size(); }
  /// Prepares images until none is left to take, or `stop` is raised. Returns: whether the last one of all is
  /// done by that; true in one thread alone.
  bool work(const std::atomic<bool>& stop);
  /// The batch, once `work` returned true; once. Throws: what preparing the first of the images that failed
  /// threw.
  Batch finish();

 private:
  /// What becomes of one place of the plan.
  struct Slot {
    bool present = false;
    std::int64_t label = 0;
    std::optional<Erased> erased;
    std::exception_ptr error;
  };
  void prepare(std::size_t place);

  const BatchPlan plan_;
  const Collation collation_;
  const std::size_t bytes_;  ///< of an image
  torch::Tensor images_;
  std::vector<Slot> slots_;
  std::atomic<std::size_t> taken_ = 0, done_ = 0;
};

/// A batch of the images that `indices` name, made here.
Batch collate(const std::vector<std::uint32_t>& indices, const Collation& collation, const Prepare& prepare);

/// The pixels of which normalised images were made with the data's mean and deviation, to the nearest byte.
/// Shape: [B, 3, S, S] -> [B, S, S, 3].
torch::Tensor pixels_of(const torch::Tensor& input, const config::DataConfig& data);

/// Brings batches to where the model is. They travel as bytes, without the host waiting for them where the
/// loader pinned their memory, and become numbers there.
class BatchInput {
 public:
  explicit BatchInput(torch::Device device, const config::DataConfig& data = {});

  /// The images, normalised with the data's mean and deviation, and noise where one was erased.
  /// Shape: [B, 3, S, S], float32, contiguous.
  torch::Tensor images(const Batch& batch) const;
  /// Shape: [B], int64.
  torch::Tensor labels(const Batch& batch) const;

 private:
  const torch::Device device_;
  const torch::Tensor mean_, deviation_;  ///< [3]
};

}  // namespace abl::tasks
