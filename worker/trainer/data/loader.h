// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/torch.h>

#include <condition_variable>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "worker/trainer/data/transform.h"

namespace abl::trainer {

/// A part of an image that is to be replaced once the image is normalised.
struct Patch {
  std::int64_t image = 0;  ///< its place in the batch
  Rectangle rectangle;
  torch::Tensor noise;  ///< [3, height, width], standard normal
};

/// What a step or an evaluation gets.
struct Batch {
  torch::Tensor images;  ///< [B, S, S, 3], bytes
  torch::Tensor labels;  ///< [B], int64
  std::vector<Patch> patches;
};

/// Makes batches 0 … count-1 in the background, at most `ahead` of them before they are asked for, and hands
/// them out in order. What a batch holds depends on its number alone, not on the number of threads. Thread:
/// one consumer.
class Loader {
 public:
  using MakeBatch = std::function<Batch(std::int64_t number)>;
  Loader(std::int64_t first, std::int64_t count, int threads, int ahead, MakeBatch make);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// The next batch; nothing after the last. Throws what making it threw.
  std::optional<Batch> next();

 private:
  struct Outcome {
    Batch batch;
    std::exception_ptr error;
  };
  void work();

  const std::int64_t end_;
  const int ahead_;
  const MakeBatch make_;
  std::mutex mutex_;
  std::condition_variable ready_, room_;
  std::map<std::int64_t, Outcome> done_;
  std::int64_t to_make_, to_give_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

/// `place`: in the batch. Nothing when an image is skipped.
using Prepare = std::function<std::optional<Prepared>(std::uint32_t index, std::size_t place)>;

/// How images become a batch.
struct Collation {
  std::uint32_t replace_among = 0;  ///< of so many images a skipped one's place goes to the next readable
                                    ///< one, for training wants full batches; 0: it is left out
  int image_size = 0;
  bool pinned = false;  ///< in memory that a GPU reads while the host goes on
};

/// A batch of the images that `indices` name.
Batch collate(const std::vector<std::uint32_t>& indices, const Collation& collation, const Prepare& prepare);

}  // namespace abl::trainer
