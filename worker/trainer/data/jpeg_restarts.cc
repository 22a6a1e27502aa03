// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/data/jpeg_restarts.h"

#include <cstdio>

#include "base/error.h"
#include "worker/trainer/data/jpeg_errors.h"
#include "worker/trainer/data/jpeg_output.h"

namespace abl::trainer {
namespace {

struct Recoder {
  JpegErrors errors{};
  jpeg_decompress_struct from{};  // zeros: may be destroyed before they were created
  jpeg_compress_struct to{};
  JpegOutput output;
  ~Recoder() {
    jpeg_destroy_compress(&to);  // first: it reads coefficients that lie in `from`
    jpeg_destroy_decompress(&from);
  }
};

/// A progressive file may end before it has sent every bit. Its blocks are smoothed into each other when it
/// is decoded, those of a sequential one never.
bool is_smoothed(const jpeg_decompress_struct& jpeg) {
  constexpr int kSmoothed = 10;  // coefficients that libjpeg-turbo looks at
  if (!jpeg.progressive_mode || !jpeg.coef_bits) return false;
  for (int component = 0; component < jpeg.num_components; ++component)
    for (int i = 0; i < kSmoothed; ++i)
      if (jpeg.coef_bits[component][i] != 0) return true;
  return false;
}

/// libjpeg's side of the border: see JpegErrors.
bool recode(Recoder& recoder, std::string_view jpeg) {
  auto& [errors, from, to, output] = recoder;
  from.err = to.err = errors.set_up();
  if (setjmp(errors.jump) != 0) return false;
  jpeg_create_decompress(&from);
  jpeg_create_compress(&to);
  jpeg_mem_src(&from, reinterpret_cast<const unsigned char*>(jpeg.data()), jpeg.size());
  jpeg_read_header(&from, TRUE);
  auto* coefficients = jpeg_read_coefficients(&from);
  if (is_smoothed(from)) {
    std::snprintf(errors.reason, sizeof errors.reason, "a progressive file that is not complete");
    return false;
  }
  jpeg_copy_critical_parameters(&from, &to);
  output.take_from(to);
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
  if (!recode(recoder, jpeg)) throw recoder.errors.error(Code::kDataLoss);
  return recoder.output.text();
}

}  // namespace abl::trainer
