// SPDX-License-Identifier: Apache-2.0
#pragma once

// libjpeg's header needs the two before it
// clang-format off
#include <cstddef>
#include <cstdio>
#include <jpeglib.h>
// clang-format on

#include <csetjmp>

#include "base/error.h"

namespace abl::images {

/// libjpeg reports an error by a function that must not return. It jumps to where the calling function has
/// called setjmp, so such a function holds nothing with a destructor; its caller throws.
struct JpegErrors {
  jpeg_error_mgr manager;  // first: libjpeg hands its address back
  std::jmp_buf jump;
  char reason[JMSG_LENGTH_MAX];
  bool no_memory = false;  ///< it had no memory: nothing is said of the file

  /// Must be called before jpeg_create_…; a warning, such as a file that breaks off, is an error too.
  jpeg_error_mgr* set_up();
  /// After the jump. Returns: Error{kResourceExhausted} where memory was missing, otherwise Error{code}.
  Error error(Code code) const { return Error{no_memory ? Code::kResourceExhausted : code, reason}; }
};

}  // namespace abl::images
