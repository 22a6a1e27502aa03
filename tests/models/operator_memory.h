// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/record_function.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

namespace abl::models {

/// Sees how much the largest operator that runs on this thread reads and writes while it lives, in bytes of
/// float32 elements.
class LargestOperator {
 public:
  LargestOperator()
      : handle_{at::addThreadLocalCallback(
            at::RecordFunctionCallback(&LargestOperator::begun, &LargestOperator::ended)
                .needsInputs(true)
                .needsOutputs(true))} {
    most() = 0;
  }
  ~LargestOperator() { at::removeCallback(handle_); }
  LargestOperator(const LargestOperator&) = delete;
  LargestOperator& operator=(const LargestOperator&) = delete;

  std::int64_t bytes() const { return most(); }

 private:
  static std::int64_t& most() {
    thread_local std::int64_t bytes = 0;
    return bytes;
  }
  template <class Values>
  static std::int64_t bytes_of(const Values& values) {
    std::int64_t bytes = 0;
    for (const auto& value : values)
      if (value.isTensor() && value.toTensor().defined()) bytes += value.toTensor().numel() * 4;
    return bytes;
  }
  struct Read : at::ObserverContext {  // when an operator ends its inputs may be gone
    explicit Read(std::int64_t all) : bytes{all} {}
    const std::int64_t bytes;
  };
  static std::unique_ptr<at::ObserverContext> begun(const at::RecordFunction& call) {
    return std::make_unique<Read>(bytes_of(call.inputs()));
  }
  static void ended(const at::RecordFunction& call, at::ObserverContext* context) {
    most() = std::max(most(), static_cast<const Read*>(context)->bytes + bytes_of(call.outputs()));
  }

  const at::CallbackHandle handle_;
};

/// Expects a predicted peak to be what a real step held. A prediction is of tensors: they are the same on
/// every processor. A kernel may hold more while it runs: oneDNN copies what it multiplies into the layout
/// that the processor's instructions want (blocks of 8 with AVX2 and 16 with AVX512, pairs with bfloat16,
/// tiles with AMX). None of it outlives the operator, so that no more is missing than one operator's operands
/// and result once more, in 32 bits. `surplus`: the share that may be predicted too much.
inline void expect_tensors_predicted(const std::string& what, std::int64_t predicted, std::int64_t measured,
                                     std::int64_t largest_operator, double surplus = 0.001) {
  EXPECT_GE(static_cast<double>(measured), static_cast<double>(predicted) * (1 - surplus))
      << what << ": more is predicted than was held";
  EXPECT_LE(measured, predicted + largest_operator)
      << what << ": more was held than tensors and one kernel need";
}

}  // namespace abl::models
