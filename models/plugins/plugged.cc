// SPDX-License-Identifier: Apache-2.0
#include "models/plugins/plugged.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <new>
#include <string_view>

#include "base/error.h"
#include "base/plugin_library.h"
#include "base/printable.h"

namespace abl::models {

void rethrow_of_plugin(const std::string& what) {
  std::string why;
  try {
    throw;
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const c10::OutOfMemoryError&) {
    throw;
  } catch (const c10::AcceleratorError&) {
    throw;
  } catch (const c10::Error& error) {
    why = error.what_without_backtrace();
    for (const char* of_the_machine : {"can't allocate memory", "CUDA error", "cuDNN error", "NCCL error"})
      if (why.find(of_the_machine) != std::string::npos) throw;  // they have no types of their own
    why.resize(std::min(why.find('\n'), why.size()));
  } catch (const std::exception& error) {
    why = error.what();
    if (const auto refused = refused_by_system(what, error)) throw Error{*refused};
  } catch (...) {
    why = "threw what is no std::exception";
  }
  throw Error{Code::kInvalidArgument, printable_line(fmt::format("{}: {}", what, why))};
}

void expect_like(const std::string& what, const torch::Tensor& given, torch::IntArrayRef shape) {
  if (given.defined() && given.sizes() == shape && given.is_floating_point()) return;
  throw Error{
      Code::kInvalidArgument,
      fmt::format("{} returned {}; expected a floating-point tensor of shape [{}]", what,
                  given.defined() ? fmt::format("one of shape [{}], {}", fmt::join(given.sizes(), ", "),
                                                c10::toString(given.scalar_type()))
                                  : "an undefined tensor",
                  fmt::join(shape, ", "))};
}

void expect_on(const std::string& what, const torch::nn::Module& made, torch::Device device) {
  for (const auto& parameter : made.parameters())
    if (parameter.device().type() != device.type())
      throw Error{
          Code::kInvalidArgument,
          fmt::format(
              "{}: its tensors are made on {}, not on {}: what is counted is made on the meta device, as "
              "abl::models' layers can be, and PyTorch's own modules cannot",
              what, parameter.device().str(), device.str())};
}

PluggedAttention::PluggedAttention(const PluginUse& use, const AttentionSite& site)
    : what_{fmt::format("plugin {}, layer {}", use.file->name, site.layer + 1)} {
  std::shared_ptr<TokenMixer> mixer;
  try {
    mixer = use.file->plugin->attention(site, use.settings);
  } catch (...) {
    rethrow_of_plugin(what_);
  }
  if (!mixer) throw Error{Code::kInvalidArgument, fmt::format("{}: made no attention", what_)};
  expect_on(what_, *mixer, site.device);
  mixer_ = Part<TokenMixer>{std::move(mixer)};
}

torch::Tensor PluggedAttention::operator()(const torch::Tensor& x) const {
  torch::Tensor mixed;
  try {
    mixed = mixer_(x);
  } catch (...) {
    rethrow_of_plugin(what_);
  }
  expect_like(what_, mixed, x.sizes());
  return mixed;
}

}  // namespace abl::models
