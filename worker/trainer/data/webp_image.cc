// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <webp/decode.h>
#include <webp/demux.h>

#include <cerrno>

#include "base/error.h"
#include "worker/trainer/augmentation/crop.h"
#include "worker/trainer/data/picture_reader.h"

namespace abl::trainer {
namespace {

std::string_view reason_of(VP8StatusCode status) {
  switch (status) {
    case VP8_STATUS_NOT_ENOUGH_DATA:
    case VP8_STATUS_SUSPENDED:
      return "its data are truncated";
    case VP8_STATUS_UNSUPPORTED_FEATURE:
      return "it uses a feature that libwebp does not know";
    default:
      return "its data are damaged";
  }
}

const std::uint8_t* bytes_of(std::string_view text) {
  return reinterpret_cast<const std::uint8_t*>(text.data());
}

Error no_memory() { return Error{Code::kResourceExhausted, "not enough memory to decode a WebP file"}; }

class WebpReader final : public PictureReader {
 public:
  explicit WebpReader(std::string_view bytes) {
    const WebPData data{bytes_of(bytes), bytes.size()};
    errno = 0;  // the demuxer tells no reason
    file_ = WebPDemux(&data);
    if (!file_ && errno == ENOMEM) throw no_memory();
    if (!file_) throw Error{Code::kDataLoss, "not a complete WebP file"};
    if (!WebPDemuxGetFrame(file_, 1, &picture_)) {
      WebPDemuxDelete(file_);
      throw Error{Code::kDataLoss, "the WebP file holds no picture"};
    }
  }
  ~WebpReader() override {
    WebPDemuxReleaseIterator(&picture_);
    WebPDemuxDelete(file_);
  }

  int width() const override { return static_cast<int>(WebPDemuxGetI(file_, WEBP_FF_CANVAS_WIDTH)); }
  int height() const override { return static_cast<int>(WebPDemuxGetI(file_, WEBP_FF_CANVAS_HEIGHT)); }
  Image decode(const Rectangle& region) override;

 private:
  WebPDemuxer* file_ = nullptr;
  WebPIterator picture_{};
};

Image WebpReader::decode(const Rectangle& region) {
  Image image{picture_.width, picture_.height,
              std::vector<std::uint8_t>(std::size_t{3} * picture_.width * picture_.height)};
  WebPDecoderConfig config;
  if (!WebPInitDecoderConfig(&config)) throw Error{Code::kInternal, "libwebp is of another version"};
  config.output.colorspace = MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA = {
      .rgba = image.pixels.data(), .stride = 3 * picture_.width, .size = image.pixels.size()};
  errno = 0;  // of a part that had no memory libwebp may say that it is damaged
  const auto status = WebPDecode(picture_.fragment.bytes, picture_.fragment.size, &config);
  if (status == VP8_STATUS_OUT_OF_MEMORY || (status != VP8_STATUS_OK && errno == ENOMEM)) throw no_memory();
  if (status != VP8_STATUS_OK) throw Error{Code::kDataLoss, fmt::format("WebP: {}", reason_of(status))};
  const bool is_whole = region == Rectangle{.width = picture_.width, .height = picture_.height} &&
                        picture_.x_offset == 0 && picture_.y_offset == 0;
  // the first picture of an animation may be smaller than the animation: black around it
  return is_whole ? std::move(image)
                  : crop(image, region.left - picture_.x_offset, region.top - picture_.y_offset, region.width,
                         region.height);
}

}  // namespace

std::unique_ptr<PictureReader> open_webp(std::string_view bytes) {
  return std::make_unique<WebpReader>(bytes);
}

}  // namespace abl::trainer
