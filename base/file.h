// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace abl {

/// The whole file.
/// Throws: Error naming the file and the reason.
std::string read_file(const std::filesystem::path& file);

/// Writes a new file, or over the old text. Nothing is synced: it is for what need not outlive the machine's
/// power.
/// Throws: Error (kResourceExhausted when the disk is full).
void write_file(const std::filesystem::path& file, std::string_view text);

/// Replaces `file` as a whole: written beside it, synced, renamed. After a crash there is the old text or the
/// new one.
/// Throws: Error (kResourceExhausted when the disk is full); the old file is then untouched.
void write_file_atomically(const std::filesystem::path& file, std::string_view text);

/// Makes the folder and those above it, where they are not there, each for its owner alone. Returns: those
/// that it made, outermost first.
/// Throws: Error naming the folder and the reason.
std::vector<std::filesystem::path> make_folder(const std::filesystem::path& folder);

/// Writes so many bytes in the folder and has them on the disk. The file has no name, so that it goes also
/// with a program that is killed meanwhile.
/// Throws: Error naming the folder and the reason, such as a full disk.
void try_to_write(const std::filesystem::path& folder, std::size_t bytes);

/// The folder in which the running program lies; sibling programs are found there.
std::filesystem::path program_folder();

/// `$ABLATE_HOME`, otherwise `${XDG_STATE_HOME:-~/.local/state}/ablate`. Not created.
std::filesystem::path home_folder();

}  // namespace abl
