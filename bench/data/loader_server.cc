// SPDX-License-Identifier: Apache-2.0
// The C++ side of bench/data/bench.py: loader_server ROOT SIZE WORKERS BATCH INTERPOLATION DECODE.
// Reads a number of batches from stdin, a line each, makes so many as training does (decode, random resized
// crop, flip, collate) and answers with the seconds it took.
#include <chrono>
#include <iostream>
#include <string>

#include "base/error.h"
#include "data/order.h"
#include "data/transform.h"
#include "worker/trainer/tasks/loader.h"

namespace abl::trainer {
namespace {

int serve(char** arguments) {
  config::DataConfig data;
  data.name = "bench", data.image_size = std::stoi(arguments[2]),
  data.decode = *value_named<config::Decode>(arguments[6]);
  config::RecipeConfig recipe;
  recipe.crop = config::Crop::kResized, recipe.flip = 0.5,
  recipe.interpolation = *value_named<config::Resampling>(arguments[5]);
  const int workers = std::stoi(arguments[3]), batch = std::stoi(arguments[4]);
  const auto images = data::open_data(data, arguments[1]).train;
  const data::Augmentation augmentation{recipe, data};
  data::EpochOrder order{0, images->size()};
  std::uint64_t epoch = 0;
  for (std::int64_t batches = 0; std::cin >> batches; ++epoch) {
    const auto start = std::chrono::steady_clock::now();
    tasks::Loader loader{
        0,
        batches,
        {.threads = workers,
         .ahead = tasks::batches_ahead(batch, data.image_size, workers),
         .collation = {.replace_among = images->size(), .image_size = data.image_size}},
        [&](std::int64_t number) {
          const auto epoch_order = order.of(epoch);
          tasks::BatchPlan plan;
          for (auto i = number * batch; i < (number + 1) * batch; ++i)
            plan.indices.push_back(epoch_order->at(static_cast<std::size_t>(i) % images->size()));
          plan.prepare = [&, number](std::uint32_t index, std::size_t place) {
            images::RandomStream random{
                0, images::Purpose::kAugmentation, {epoch, static_cast<std::uint64_t>(number), place}};
            return augmentation(*images, index, random);
          };
          return plan;
        }};
    while (loader.next()) {
    }
    std::cout << std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace abl::trainer

int main(int argc, char** argv) {
  if (argc != 7) return 2;
  at::set_num_threads(1);
  try {
    return abl::trainer::serve(argv);
  } catch (const abl::Error& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
