// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace abl {

/// Files that travel in pieces, each a call of its own that may fail and be tried again: after a break they
/// go on where they were.
inline constexpr std::size_t kPieceBytes = 512 << 10;

/// Waits between two tries. Returns: whether to go on; false as soon as there is no more use in it.
using GoOn = std::function<bool(std::chrono::milliseconds wait)>;

struct PieceTaken {
  std::uint64_t have = 0;  ///< the other side has so much of the file, from its beginning
  bool whole = false;
};
/// Sends a piece. Throws: Error; what may pass (kUnavailable and its like) is tried again.
using PutPiece = std::function<PieceTaken(std::uint64_t offset, std::string_view piece)>;

/// Sends a file of so many bytes. Returns: whether it arrived; false when it was not to go on.
/// Throws: Error of the other side that would come again, or of the file.
bool send_in_pieces(const std::filesystem::path& file, std::uint64_t bytes, const PutPiece& put,
                    const GoOn& go_on);

struct PieceGot {
  std::string bytes;
  std::uint64_t whole = 0;  ///< bytes of the file
};
/// Fetches a piece. `damaged`: what came before had another digest, so the other side looks at its file.
using GetPiece = std::function<PieceGot(std::uint64_t offset, bool damaged)>;

/// Where what was fetched of a file is kept until it is there.
std::filesystem::path part_of(const std::filesystem::path& file);

/// Fetches a file, which appears when it is there as a whole, with this digest and length. What was fetched
/// before is kept beside it until then, and gone on with.
/// Returns: whether it is there; false when it was not to go on.
/// Throws: Error{kDataLoss} for another content; Error of the other side that would come again, or of the
/// disk.
bool fetch_in_pieces(const std::filesystem::path& file, const std::string& sha256, std::uint64_t bytes,
                     const GetPiece& get, const GoOn& go_on);

}  // namespace abl
