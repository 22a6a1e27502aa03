// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

namespace abl::cli {

/// Whether a program takes connections there: the file of one that was killed is left behind.
bool takes_connections(const std::filesystem::path& socket);

}  // namespace abl::cli
