// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/data/image_source.h"

#include <fmt/format.h>

#include "base/error.h"
#include "worker/trainer/data/drawn_source.h"
#include "worker/trainer/data/image_folder.h"

namespace abl::trainer {

DataSet open_data(const config::DataConfig& config, const std::string& root) {
  if (config.name == "shapes") return open_drawn(config);
  if (root.empty())
    throw Error{
        Code::kNotFound,
        fmt::format("no folder is given for the data set {0}: start the worker with --data {0}=FOLDER, "
                    "or the trainer with --data-root FOLDER",
                    config.name)};
  return open_image_folder(config, root);
}

}  // namespace abl::trainer
