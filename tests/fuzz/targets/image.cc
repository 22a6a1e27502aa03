// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "images/image_file.h"
#include "tests/fuzz/target.h"

namespace abl::fuzz {

void read_image(std::string_view bytes) {
  constexpr int kMostPixels = 1 << 18;  // more takes as long as an honest picture of that size
  const std::vector<char> exact{bytes.begin(), bytes.end()};
  const std::string_view file{exact.data(), exact.size()};
  try {
    const images::EncodedImage image = images::image_in(file);
    require(image.width > 0 && image.height > 0, "a picture has pixels");
    if (image.width > kMostPixels / image.height) return;
    for (const int part : {1, 3}) {
      const auto region = images::decode_file(image.coding, file, [part](int width, int height) {
        images::Wanted wanted;
        wanted.region = {width / 4 * (part - 1) / 2, height / 4 * (part - 1) / 2, (width + part - 1) / part,
                         (height + part - 1) / part};
        return wanted;
      });
      require(region.image.pixels.size() ==
                  region.image.row_bytes() * static_cast<std::size_t>(region.image.height),
              "a picture has all its rows");
    }
  } catch (const Error& error) {
    require(error.code() == Code::kDataLoss || error.code() == Code::kResourceExhausted,
            "a picture that is refused is damaged or too large");
    require_printable(error.what());
  }
}

}  // namespace abl::fuzz
