// SPDX-License-Identifier: Apache-2.0
#include "web/server/static_files.h"

namespace abl::web {

std::span<const EmbeddedFile> embedded_app() { return {}; }

}  // namespace abl::web
