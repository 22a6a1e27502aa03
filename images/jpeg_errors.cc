// SPDX-License-Identifier: Apache-2.0
#include "images/jpeg_errors.h"

#include <jerror.h>

// libjpeg's codes; after its main header
namespace abl::images {
namespace {

[[noreturn]] void fail(j_common_ptr jpeg) {
  auto* errors = reinterpret_cast<JpegErrors*>(jpeg->err);
  jpeg->err->format_message(jpeg, errors->reason);
  const int code = jpeg->err->msg_code;
  errors->no_memory = code == JERR_OUT_OF_MEMORY || code == JERR_NO_BACKING_STORE;
  std::longjmp(errors->jump, 1);
}

/// A truncated file is a warning (level -1) to libjpeg, and half a grey picture to us.
void warn(j_common_ptr jpeg, int level) {
  if (level < 0) fail(jpeg);
}

}  // namespace

jpeg_error_mgr* JpegErrors::set_up() {
  reason[0] = '\0', no_memory = false;
  jpeg_std_error(&manager);
  manager.error_exit = fail;
  manager.emit_message = warn;
  return &manager;
}

}  // namespace abl::images
