// SPDX-License-Identifier: Apache-2.0
// The one file that sees Gloo's headers: Debian's are older than the Gloo in PyTorch's wheel, and serve as
// long as no more than these calls is made of them.
#define USE_C10D_GLOO
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "worker/trainer/ranks/backends.h"

namespace abl::ranks {

c10::intrusive_ptr<c10d::Backend> gloo_backend(const BackendOptions& options, const std::string& host,
                                               bool own) {
  using Gloo = c10d::ProcessGroupGloo;
  const bool is_loopback = host == "localhost" || host == "::1" || host.starts_with("127.");
  auto settings = Gloo::Options::create(options.timeout);
  settings->devices.push_back(own || is_loopback ? Gloo::createDeviceForHostname(host)
                                                 : Gloo::createDefaultDevice());
  return c10::make_intrusive<Gloo>(options.store, options.rank, options.ranks, std::move(settings));
}

}  // namespace abl::ranks
