// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/data/webp_image.h"

#include <fmt/format.h>
#include <webp/decode.h>
#include <webp/demux.h>

#include "base/error.h"
#include "worker/trainer/augmentation/crop.h"

namespace abl::trainer {
namespace {

std::string_view reason_of(VP8StatusCode status) {
  switch (status) {
    case VP8_STATUS_OUT_OF_MEMORY:
      return "there is no memory for it";
    case VP8_STATUS_NOT_ENOUGH_DATA:
    case VP8_STATUS_SUSPENDED:
      return "its data break off";
    case VP8_STATUS_UNSUPPORTED_FEATURE:
      return "it uses a feature that libwebp does not know";
    default:
      return "its data are damaged";
  }
}

const std::uint8_t* bytes_of(std::string_view text) {
  return reinterpret_cast<const std::uint8_t*>(text.data());
}

}  // namespace

struct WebpReader::State {
  WebPDemuxer* file = nullptr;
  WebPIterator picture{};
  ~State() {
    WebPDemuxReleaseIterator(&picture);
    WebPDemuxDelete(file);
  }
};

WebpReader::WebpReader(std::string_view bytes) : state_{std::make_unique<State>()} {
  const WebPData data{bytes_of(bytes), bytes.size()};
  state_->file = WebPDemux(&data);
  if (!state_->file) throw Error{Code::kDataLoss, "it is no complete WebP file"};
  if (!WebPDemuxGetFrame(state_->file, 1, &state_->picture))
    throw Error{Code::kDataLoss, "the WebP file holds no picture"};
}

WebpReader::~WebpReader() = default;

int WebpReader::width() const { return static_cast<int>(WebPDemuxGetI(state_->file, WEBP_FF_CANVAS_WIDTH)); }
int WebpReader::height() const {
  return static_cast<int>(WebPDemuxGetI(state_->file, WEBP_FF_CANVAS_HEIGHT));
}

Image WebpReader::decode(const Rectangle& region) {
  const auto& picture = state_->picture;
  Image image{picture.width, picture.height,
              std::vector<std::uint8_t>(std::size_t{3} * picture.width * picture.height)};
  WebPDecoderConfig config;
  if (!WebPInitDecoderConfig(&config)) throw Error{Code::kInternal, "libwebp is of another version"};
  config.output.colorspace = MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA = {
      .rgba = image.pixels.data(), .stride = 3 * picture.width, .size = image.pixels.size()};
  const auto status = WebPDecode(picture.fragment.bytes, picture.fragment.size, &config);
  if (status != VP8_STATUS_OK) throw Error{Code::kDataLoss, fmt::format("WebP: {}", reason_of(status))};
  const bool is_whole = region == Rectangle{.width = picture.width, .height = picture.height} &&
                        picture.x_offset == 0 && picture.y_offset == 0;
  // the first picture of an animation may be smaller than the animation: black around it
  return is_whole ? std::move(image)
                  : crop(image, region.left - picture.x_offset, region.top - picture.y_offset, region.width,
                         region.height);
}

}  // namespace abl::trainer
