// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "worker/trainer/data/image_source.h"

namespace abl::trainer {

/// CIFAR's binary files; records of labels, then 3 planes of 32×32 bytes, row after row:
///   CIFAR-10:  data_batch_1.bin … data_batch_5.bin and test_batch.bin; one label, 0 to 9
///   CIFAR-100: train.bin and test.bin; a coarse label, 0 to 19, and the fine one that is used, 0 to 99
/// Throws: Error{kNotFound, kInvalidArgument, kDataLoss} naming the file and what was expected.
DataSet open_cifar10(const config::DataConfig& config, const std::filesystem::path& root);
DataSet open_cifar100(const config::DataConfig& config, const std::filesystem::path& root);

}  // namespace abl::trainer
