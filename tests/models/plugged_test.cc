// SPDX-License-Identifier: Apache-2.0
#include "models/plugins/plugged.h"

#include <gmock/gmock.h>

#include <cerrno>
#include <new>
#include <stdexcept>
#include <system_error>

#include "base/error.h"

namespace abl::models {
namespace {

/// What a plugin that throws this is told as; the code that it passes is kept as it is.
template <class Thrown>
Error told(const Thrown& thrown) {
  try {
    try {
      throw thrown;
    } catch (...) {
      rethrow_of_plugin("plugin x, layer 3");
    }
  } catch (const Error& error) {
    return error;
  }
}

TEST(RethrowOfPlugin, TellsAMistakeAsOneThatAnotherTryWouldMeet) {
  const Error error = told(std::runtime_error{"not today\nnor tomorrow"});
  EXPECT_EQ(error.code(), Code::kInvalidArgument);
  EXPECT_STREQ(error.what(), "plugin x, layer 3: not today nor tomorrow");
  EXPECT_STREQ(told(42).what(), "plugin x, layer 3: threw what is no std::exception");
  EXPECT_EQ(told(c10::Error{{"f", "a.cc", 1}, "no such product"}).code(), Code::kInvalidArgument);
}

TEST(RethrowOfPlugin, TellsWhatTheMachineRefusedAsThat) {
  const auto refused = [](int number) {
    return told(std::system_error{number, std::generic_category(), "table.bin"});
  };
  EXPECT_EQ(refused(ESTALE).code(), Code::kUnknown);
  EXPECT_EQ(refused(EMFILE).code(), Code::kResourceExhausted);
  EXPECT_STREQ(refused(ESTALE).what(), "plugin x, layer 3: table.bin: Stale file handle");
  EXPECT_THROW(told(std::bad_alloc{}), std::bad_alloc);
  for (const char* of_a_gpu : {"CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
                               "cuDNN error: CUDNN_STATUS_NOT_INITIALIZED"})
    EXPECT_THROW(told(c10::Error{{"f", "a.cc", 1}, of_a_gpu}), c10::Error) << of_a_gpu;
}

}  // namespace
}  // namespace abl::models
