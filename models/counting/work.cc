// SPDX-License-Identifier: Apache-2.0
#include "models/counting/work.h"

namespace abl::models {

Work& Work::operator+=(const Work& other) {
  macs += other.macs;
  layer_norm += other.layer_norm;
  batch_norm += other.batch_norm;
  relu += other.relu;
  residual += other.residual;
  scaled += other.scaled;
  return *this;
}

double flops_fvcore(const Work& work, int batch_norm) {
  return static_cast<double>(work.macs + 5 * work.layer_norm + batch_norm * work.batch_norm);
}

double flops_msf(const Work& work) {
  return static_cast<double>(2 * work.macs + work.residual + 2 * work.scaled);
}

double flops_cnn(const Work& work) {
  return static_cast<double>(2 * (work.macs + 2 * work.batch_norm + work.relu));
}

}  // namespace abl::models
