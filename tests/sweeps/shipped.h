// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "base/file.h"
#include "sweeps/other_sweeps.h"
#include "sweeps/scale.h"

namespace abl::sweeps {

/// A text with those of the files beside `file`, and of the papers' tables, that its rows name, at a scale.
inline std::string with_shipped(const std::string& text, const std::filesystem::path& file,
                                const std::string& scale = {}) {
  const std::filesystem::path papers = std::filesystem::path{ABLATE_SOURCE_DIR} / "sweeps/papers";
  return with_sources(text, file.string(), [&](const std::string& key, bool scaled) {
    const std::filesystem::path other =
        key.ends_with(".yaml") ? file.parent_path() / key : papers / (key + ".yaml");
    const auto scales = other.parent_path() / "scales.yaml";
    return scale.empty() || !scaled
               ? read_file(other)
               : with_scale(read_file(other), other.string(), read_file(scales), scales.string(), scale);
  });
}

/// Whether a file of a paper's folder is one of its tables: others have rows whose weights tables take.
inline bool is_paper_table(const std::filesystem::path& file) {
  const std::string stem = file.stem();
  return stem.find("table-") != std::string::npos || stem.starts_with("figure-");
}

}  // namespace abl::sweeps
