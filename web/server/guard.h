// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace abl::web {

/// Why a request is refused, or nothing. The Host must be a loopback name: a page of another site that lets
/// its own name point at 127.0.0.1 (DNS rebinding) still sends that name. An Origin, where sent, must be the
/// page's own.
std::optional<std::string> refusal(std::string_view host, std::optional<std::string_view> origin);

}  // namespace abl::web
