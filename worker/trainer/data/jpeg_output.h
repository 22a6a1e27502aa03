// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <string>
#include <vector>

#include "worker/trainer/data/jpeg_errors.h"

namespace abl::trainer {

/// Where libjpeg writes a file. It begins in memory of ours: memory of its own it frees when that becomes too
/// small, and tells where the rest went only at the end, which an error does not reach.
class JpegOutput {
 public:
  JpegOutput() : first_(std::size_t{1} << 16), bytes_{first_.data()}, size_{first_.size()} {}
  ~JpegOutput() {
    if (bytes_ != first_.data()) std::free(bytes_);
  }
  JpegOutput(const JpegOutput&) = delete;
  JpegOutput& operator=(const JpegOutput&) = delete;

  /// May jump, as all of libjpeg.
  void take_from(jpeg_compress_struct& jpeg) { jpeg_mem_dest(&jpeg, &bytes_, &size_); }
  /// After jpeg_finish_compress.
  std::string text() const { return {reinterpret_cast<const char*>(bytes_), size_}; }

 private:
  std::vector<unsigned char> first_;
  unsigned char* bytes_;
  unsigned long size_;
};

}  // namespace abl::trainer
