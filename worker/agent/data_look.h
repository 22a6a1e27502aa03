// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <stop_token>
#include <string>

namespace abl::agent {

/// How closely a trainer looks at a data set.
enum class DataLook {
  kFormat,  ///< whether the first entries are of a known format
  kOpen,    ///< as for a training: every file must be there, which is slow for a folder of many
};

/// Has the trainer look at what lies in a data set's place.
/// Throws: Error{kInvalidArgument} with the trainer's reason where it can make nothing of it; Error of
/// another code where it gave no answer.
void expect_data(const std::filesystem::path& trainer, const std::filesystem::path& place, DataLook look,
                 std::chrono::milliseconds patience, const std::stop_token& stop = {});

/// The fingerprint of a data set, as trainings report it. May read all of it.
/// Throws: as above; Error{kFailedPrecondition} where the trainer is of a release that does not say it.
std::string fingerprint_of(const std::filesystem::path& trainer, const std::filesystem::path& place,
                           std::chrono::milliseconds patience, const std::stop_token& stop = {});

}  // namespace abl::agent
