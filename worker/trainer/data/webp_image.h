// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>

#include "worker/trainer/data/image_source.h"

namespace abl::trainer {

/// One WebP file, lossy or lossless; of an animation its first picture. `bytes` must outlive it. Thread: one;
/// any number of readers side by side.
class WebpReader {
 public:
  /// Throws: Error{kDataLoss} for what is no WebP file, or breaks off.
  explicit WebpReader(std::string_view bytes);
  ~WebpReader();
  WebpReader(const WebpReader&) = delete;
  WebpReader& operator=(const WebpReader&) = delete;

  int width() const;
  int height() const;

  /// A region of it as red, green, blue, as Pillow's convert("RGB"): alpha is dropped. The format has no
  /// rows that could be passed over: the whole picture is decoded. Throws: Error{kDataLoss}.
  /// `region`: lies in the picture.
  Image decode(const Rectangle& region);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace abl::trainer
