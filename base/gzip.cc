// SPDX-License-Identifier: Apache-2.0
#include "base/gzip.h"

#include <libdeflate.h>

#include <memory>

#include "base/error.h"

namespace abl {

std::string gzip(std::string_view bytes, int level) {
  const std::unique_ptr<libdeflate_compressor, decltype(&libdeflate_free_compressor)> compressor{
      libdeflate_alloc_compressor(level), &libdeflate_free_compressor};
  if (!compressor) throw Error{Code::kResourceExhausted, "no memory to compress with"};
  std::string out(libdeflate_gzip_compress_bound(compressor.get(), bytes.size()), '\0');
  out.resize(libdeflate_gzip_compress(compressor.get(), bytes.data(), bytes.size(), out.data(), out.size()));
  return out;
}

std::string gunzip(std::string_view bytes, std::size_t most) {
  const std::unique_ptr<libdeflate_decompressor, decltype(&libdeflate_free_decompressor)> decompressor{
      libdeflate_alloc_decompressor(), &libdeflate_free_decompressor};
  if (!decompressor) throw Error{Code::kResourceExhausted, "no memory to decompress with"};
  std::string out(most, '\0');
  std::size_t size = 0;
  if (libdeflate_gzip_decompress(decompressor.get(), bytes.data(), bytes.size(), out.data(), out.size(),
                                 &size) != LIBDEFLATE_SUCCESS)
    throw Error{Code::kDataLoss, "this is no gzip, it is damaged, or it holds more than it may"};
  out.resize(size);
  return out;
}

}  // namespace abl
