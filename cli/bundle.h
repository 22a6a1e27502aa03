// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace abl::cli {

/// What an ELF file says of what it needs, and where in it that stands (64 bits, little-endian).
struct LinkedFile {
  std::string machine;              ///< "x86_64", "aarch64"
  std::vector<std::string> needed;  ///< names of libraries
  std::string search_path;          ///< of its RPATH or RUNPATH; empty: it has none
  std::string glibc;                ///< the newest version that it asks for: "2.36"; empty: none
  std::uint64_t search_path_at = 0, search_tag_at = 0;  ///< offsets in the file; 0: it has none
};
/// Throws: Error{kInvalidArgument} for what is no such file, or is cut off.
LinkedFile read_linked_file(const std::filesystem::path& file);

/// Bytes that take the place of as many others.
struct Change {
  std::uint64_t offset = 0;
  std::string bytes;
};

struct BundledFile {
  std::string path;              ///< in the bundle, below its folder: "lib/libfmt.so.9"
  std::filesystem::path source;  ///< empty: `text` is its content
  std::string text;
  std::vector<Change> changes;  ///< of what `source` has: where the file looks for its libraries
  bool executable = false;
};

/// What a bundle is for: a machine that runs trials, a laptop, a container image.
enum class BundleOf { kWorker, kCli, kAll };
constexpr std::string_view name_of(BundleOf of) {
  switch (of) {
    case BundleOf::kWorker:
      return "worker";
    case BundleOf::kCli:
      return "cli";
    case BundleOf::kAll:
      return "all";
  }
  return {};
}
/// Its programs but the trainer, by name; that comes with workers.
std::vector<std::string> programs_of(BundleOf of);

/// The files of a bundle, and what a machine needs for it.
struct Bundle {
  std::string name;     ///< of its folder: "ablate-worker-0.1.0-x86_64-cpu", "ablate-cli-0.1.0-x86_64"
  std::string version;  ///< of its programs
  std::string trainer;  ///< what the trainer says of its version; empty: there is none
  std::string
      device;  ///< "cpu", "cuda13", "commands" for a worker without a trainer, "none" without a worker
  std::string machine, glibc;
  std::vector<std::string> unlicensed;  ///< libraries of which no licence was found
  std::vector<BundledFile> files;       ///< by path
};

/// The programs of `folder` and a trainer (none: an empty path) with every library that they load on this
/// machine, but glibc's and the GPU driver's. Programs and libraries are changed only in where they look for
/// libraries: in the bundle's own folders. Throws: Error naming the file.
Bundle plan_bundle(BundleOf of, const std::filesystem::path& folder, const std::filesystem::path& trainer);

struct WrittenBundle {
  std::string build;   ///< 16 hexadecimal digits: the same for the same files
  std::string sha256;  ///< of the archive
  std::uint64_t bytes = 0, unpacked_bytes = 0;
};
/// Writes a tar archive, with gzip unless its name ends in ".tar": the same bytes for the same files.
/// `progress` hears how many of how many bytes have been read.
/// Throws: Error; then there is no file, or the old one.
WrittenBundle write_bundle(const Bundle& bundle, const std::filesystem::path& file,
                           const std::function<void(std::uint64_t done, std::uint64_t all)>& progress);

}  // namespace abl::cli
