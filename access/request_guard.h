// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace abl::access {

/// What a browser says of where a request comes from; empty: it does not say.
struct Origins {
  std::string_view host;  ///< Host
  std::optional<std::string_view> origin;
  std::string_view site;  ///< Sec-Fetch-Site
  std::string_view mode;  ///< Sec-Fetch-Mode
  bool page = false;      ///< a page is asked for with GET, not the API
  bool secure = false;    ///< it came over TLS
};

/// Why a request is refused, or nothing. The Host must be a loopback name or one of `names`, the
/// certificate's ("*.example.org" stands for one label): a page of another site that lets its own name point
/// at this address (DNS rebinding) still sends that name. An Origin, where sent, must be the page's own. A
/// request that a page of another site or port makes is refused, whatever it does with the answer; to follow
/// a link from there to a page of ours is not.
std::optional<std::string> refusal(const Origins& request, std::span<const std::string> names = {});

}  // namespace abl::access
