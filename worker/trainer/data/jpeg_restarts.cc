// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/data/jpeg_restarts.h"

#include <cstdlib>

#include "base/error.h"
#include "worker/trainer/data/jpeg_errors.h"

namespace abl::trainer {
namespace {

struct Recoder {
  JpegErrors errors{};
  jpeg_decompress_struct from{};  // zeros: may be destroyed before they were created
  jpeg_compress_struct to{};
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  ~Recoder() {
    jpeg_destroy_compress(&to);  // first: it reads coefficients that lie in `from`
    jpeg_destroy_decompress(&from);
    std::free(bytes);
  }
};

/// libjpeg's side of the border: see JpegErrors.
bool recode(Recoder& recoder, std::string_view jpeg) {
  auto& [errors, from, to, bytes, size] = recoder;
  from.err = to.err = errors.set_up();
  if (setjmp(errors.jump) != 0) return false;
  jpeg_create_decompress(&from);
  jpeg_create_compress(&to);
  jpeg_mem_src(&from, reinterpret_cast<const unsigned char*>(jpeg.data()), jpeg.size());
  jpeg_read_header(&from, TRUE);
  auto* coefficients = jpeg_read_coefficients(&from);
  jpeg_copy_critical_parameters(&from, &to);
  jpeg_mem_dest(&to, &bytes, &size);
  to.restart_interval = 1;
  to.optimize_coding = TRUE;
  jpeg_write_coefficients(&to, coefficients);
  jpeg_finish_compress(&to);
  jpeg_finish_decompress(&from);
  return true;
}

}  // namespace

std::string with_restarts(std::string_view jpeg) {
  Recoder recoder;
  if (!recode(recoder, jpeg)) throw Error{Code::kDataLoss, recoder.errors.reason};
  return {reinterpret_cast<const char*>(recoder.bytes), recoder.size};
}

}  // namespace abl::trainer
