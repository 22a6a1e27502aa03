// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "ablate/v1/sweeps.pb.h"

namespace abl::cli {

/// What is looked at at most, so that a submission never waits long.
struct ProvenanceLimits {
  std::size_t diff = 1 << 20, packages = 256 << 10;  ///< bytes that are kept
  int untracked = 200;                               ///< files that are named
  std::uint64_t hashed = 256 << 20;            ///< bytes of untracked files that are read, of all together
  std::chrono::milliseconds patience{10'000};  ///< for git, and again for the packages
};

/// Where a sweep file comes from: what git says of its folder (for a command, of those of its program and of
/// where it runs too), and the packages of a command's Python. Nothing that goes wrong is an error: the
/// message says what is missing and why. No shell, nothing from the environment, no content of files that git
/// does not track, no user or password of a URL.
ablate::v1::Provenance provenance_of(const ablate::v1::SweepFile& file, const ProvenanceLimits& limits = {});

/// What git says of folders: of the work tree of the first; changes and files that git does not track of
/// these folders alone, as far as they lie in it, and of what else is changed there only how many files.
void add_git(const std::vector<std::filesystem::path>& folders, const ProvenanceLimits& limits,
             ablate::v1::Provenance& message);

/// "https://user:secret@host/path?token=1" -> "https://host/path", in whatever text it stands.
std::string without_secrets(std::string_view text);

/// For people; on a terminal too, so that no control character is in it.
std::string provenance_text(const ablate::v1::ProvenanceResponse& response, bool whole);

}  // namespace abl::cli
