// SPDX-License-Identifier: Apache-2.0
#include "images/picture_reader.h"

#include <fmt/format.h>
#include <png.h>
#include <webp/decode.h>
#include <webp/demux.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "images/torchvision.h"

namespace abl::images {
namespace {

/// libpng reports an error by a function that must not return: see JpegErrors.
struct PngErrors {
  std::jmp_buf jump;
  char reason[256] = "it cannot be read";
  bool no_memory = false;  ///< it was refused some: nothing is said of the file

  Error error() const {
    return no_memory ? Error{Code::kResourceExhausted, "not enough memory to decode a PNG file"}
                     : Error{Code::kDataLoss, reason};
  }
};

/// libpng's and zlib's memory. They call a file damaged that they had none for.
png_voidp allocate(png_structp png, png_alloc_size_t size) {
  void* memory = std::malloc(size);
  if (!memory) static_cast<PngErrors*>(png_get_mem_ptr(png))->no_memory = true;
  return memory;
}

void release(png_structp, png_voidp memory) { std::free(memory); }

[[noreturn]] void fail(png_structp png, png_const_charp reason) {
  auto* errors = static_cast<PngErrors*>(png_get_error_ptr(png));
  std::snprintf(errors->reason, sizeof errors->reason, "%s", reason);
  std::longjmp(errors->jump, 1);
}

/// Of what has no influence on the pixels, such as a colour profile that libpng dislikes.
void pass_over(png_structp, png_const_charp) {}

void take(png_structp png, png_bytep out, std::size_t size) {
  auto* rest = static_cast<std::string_view*>(png_get_io_ptr(png));
  if (size > rest->size()) png_error(png, "the file is truncated");
  std::memcpy(out, rest->data(), size);
  rest->remove_prefix(size);
}

/// How a pixel of a row becomes red, green and blue.
struct Pixels {
  enum class Kind { kTable, kGrey16, kGreyAlpha, kColour };
  Kind kind = Kind::kTable;
  std::size_t bytes = 1;              ///< of a pixel
  std::array<Colour, 256> colours{};  ///< of the values of a row, where there is a table; others are black

  void put(const std::uint8_t* pixel, std::uint8_t* out) const {
    switch (kind) {
      case Kind::kTable:
        copy_pixel(colours[*pixel].data(), out);
        return;
      case Kind::kGrey16:
        std::fill_n(out, 3, pixel[0] > 0 ? std::uint8_t{255} : pixel[1]);
        return;
      case Kind::kGreyAlpha:
        std::fill_n(out, 3, *pixel);
        return;
      case Kind::kColour:
        copy_pixel(pixel, out);
    }
  }
};

/// One pass over an interlaced picture, or the only one over another.
struct Pass {
  int first_column, first_row, column_step, row_step;
};
// Source: PNG specification, section 8.2 (Adam7)
constexpr std::array kInterlaced{Pass{0, 0, 8, 8}, Pass{4, 0, 8, 8}, Pass{0, 4, 4, 8}, Pass{2, 0, 4, 4},
                                 Pass{0, 2, 2, 4}, Pass{1, 0, 2, 2}, Pass{0, 1, 1, 2}};

class PngReader final : public PictureReader {
 public:
  PngReader(std::string_view bytes, PngValues values);
  ~PngReader() override { png_destroy_read_struct(&png_, &info_, nullptr); }

  int width() const override { return width_; }
  int height() const override { return height_; }
  Image decode(const Rectangle& region) override;

 private:
  // The three functions below are libpng's side of the border: nothing in them has a destructor.
  bool read_header();
  bool read_rows(const Rectangle& region, std::uint8_t* row, std::uint8_t* out);
  void set_pixels();
  void set_indices();

  PngErrors errors_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  const std::string_view file_;
  const PngValues values_;
  std::string_view rest_;
  int width_ = 0, height_ = 0;
  bool interlaced_ = false;
  Pixels pixels_;
};

bool PngReader::read_header() {
  if (setjmp(errors_.jump) != 0) return false;
  png_set_read_fn(png_, &rest_, take);
  png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);  // texts and profiles may be bombs
  png_set_user_limits(png_, PNG_UINT_31_MAX, PNG_UINT_31_MAX);             // image_file.h has ours
  png_read_info(png_, info_);
  width_ = static_cast<int>(png_get_image_width(png_, info_));
  height_ = static_cast<int>(png_get_image_height(png_, info_));
  interlaced_ = png_get_interlace_type(png_, info_) != PNG_INTERLACE_NONE;
  if (values_ == PngValues::kIndices)
    set_indices();
  else
    set_pixels();
  return true;
}

void PngReader::set_pixels() {
  const int type = png_get_color_type(png_, info_), depth = png_get_bit_depth(png_, info_);
  const bool grey16 = type == PNG_COLOR_TYPE_GRAY && depth == 16;
  if (depth < 8) png_set_packing(png_);                // a byte for each value
  if (depth == 16 && !grey16) png_set_strip_16(png_);  // the upper byte
  if (type == PNG_COLOR_TYPE_PALETTE) {
    png_colorp palette = nullptr;
    int count = 0;
    png_get_PLTE(png_, info_, &palette, &count);
    for (int i = 0; i < count; ++i) pixels_.colours[i] = {palette[i].red, palette[i].green, palette[i].blue};
  } else if (type == PNG_COLOR_TYPE_GRAY && !grey16) {
    const int most = (1 << depth) - 1;
    for (int i = 0; i <= most; ++i) pixels_.colours[i].fill(static_cast<std::uint8_t>(i * 255 / most));
  } else if (grey16) {
    pixels_.kind = Pixels::Kind::kGrey16, pixels_.bytes = 2;
  } else if (type == PNG_COLOR_TYPE_GRAY_ALPHA) {
    pixels_.kind = Pixels::Kind::kGreyAlpha, pixels_.bytes = 2;
  } else {
    pixels_.kind = Pixels::Kind::kColour, pixels_.bytes = type == PNG_COLOR_TYPE_RGB_ALPHA ? 4 : 3;
  }
}

void PngReader::set_indices() {
  const int type = png_get_color_type(png_, info_), depth = png_get_bit_depth(png_, info_);
  if ((type != PNG_COLOR_TYPE_PALETTE && type != PNG_COLOR_TYPE_GRAY) || depth > 8)
    png_error(png_, "colour image; expected labels: a palette or grey image of at most 8 bits");
  if (depth < 8) png_set_packing(png_);
  for (int i = 0; i < 256; ++i) pixels_.colours[i].fill(static_cast<std::uint8_t>(i));
}

/// `row` has room for a whole row; `out` [region.height, region.width, 3].
bool PngReader::read_rows(const Rectangle& region, std::uint8_t* row, std::uint8_t* out) {
  if (setjmp(errors_.jump) != 0) return false;
  png_start_read_image(png_);
  const int right = region.left + region.width, bottom = region.top + region.height;
  const Pass whole{0, 0, 1, 1};
  const Pass* const first = interlaced_ ? kInterlaced.data() : &whole;
  for (const Pass* pass = first; pass != first + (interlaced_ ? kInterlaced.size() : 1); ++pass) {
    if (pass->first_column >= width_) continue;  // it has no row either
    for (int y = pass->first_row; y < height_ && (interlaced_ || y < bottom); y += pass->row_step) {
      png_read_row(png_, row, nullptr);
      if (y < region.top || y >= bottom) continue;
      const std::uint8_t* pixel = row;
      for (int x = pass->first_column; x < right; x += pass->column_step, pixel += pixels_.bytes)
        if (x >= region.left)
          pixels_.put(pixel,
                      out + 3 * (std::size_t{1} * (y - region.top) * region.width + (x - region.left)));
    }
  }
  return true;
}

PngReader::PngReader(std::string_view bytes, PngValues values) : file_{bytes}, values_{values}, rest_{bytes} {
  png_ =
      png_create_read_struct_2(PNG_LIBPNG_VER_STRING, &errors_, fail, pass_over, &errors_, allocate, release);
  if (png_) info_ = png_create_info_struct(png_);
  if (info_ && read_header()) return;
  png_destroy_read_struct(&png_, &info_, nullptr);
  throw errors_.error();
}

Image PngReader::decode(const Rectangle& region) {
  if (file_.rfind("IEND") == std::string_view::npos)
    throw Error{Code::kDataLoss, "the file is truncated: it has no end chunk"};
  Image image{region.width, region.height,
              std::vector<std::uint8_t>(std::size_t{3} * region.width * region.height)};
  std::vector<std::uint8_t> row(pixels_.bytes * static_cast<std::size_t>(width_));
  if (!read_rows(region, row.data(), image.pixels.data())) throw errors_.error();
  return image;
}

}  // namespace

std::unique_ptr<PictureReader> open_png(std::string_view bytes, PngValues values) {
  return std::make_unique<PngReader>(bytes, values);
}

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

}  // namespace abl::images
