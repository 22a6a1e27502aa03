// SPDX-License-Identifier: Apache-2.0
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/util/delimited_message_util.h>

#include <array>
#include <map>

#include "ablate/v1/depot.pb.h"
#include "base/error.h"
#include "base/file.h"
#include "base/sha256.h"
#include "scheduler/depot.h"
#include "tests/fuzz/target.h"
#include "tests/scheduler/fixtures.h"

namespace abl::fuzz {
namespace {

namespace fs = std::filesystem;
using scheduler::Depot;
using scheduler::DepotOwner;

constexpr std::uint64_t kLimit = 2000;

/// Files that senders have, whose digests no guess would find; a longer one than the depot has room for.
const std::map<std::string, std::string>& contents() {
  static const auto all = [] {
    std::map<std::string, std::string> made;
    int letter = 'a';
    for (const std::size_t size : {1, 30, 700, 900, 3000}) {
      std::string text(size, static_cast<char>(letter++));
      made[sha256_hex(text)] = text;
    }
    return made;
  }();
  return all;
}

/// `a` to `e` stand for the digests of those.
std::string digest_of(const std::string& written) {
  if (written.size() != 1) return written;
  const auto chosen = static_cast<unsigned char>(written.front()) % contents().size();
  return std::next(contents().begin(), static_cast<long>(chosen))->first;
}

/// What is on the disk is what the depot counts, and a whole file is what its name says.
void check(const Depot& depot, const fs::path& folder, bool digests) {
  std::uint64_t bytes = 0;
  for (const auto& entry : fs::recursive_directory_iterator{folder}) {
    if (entry.is_directory()) continue;
    bytes += entry.file_size();
    const std::string name = entry.path().filename();
    if (digests && !name.ends_with(".part"))
      require(sha256_file(entry.path()) == name, "a whole file has its digest");
  }
  require(bytes == depot.used(), "what is on the disk is counted");
  require(bytes <= kLimit, "the depot keeps its bounds");
}

}  // namespace

/// Pieces as they come over the wire, of senders that err or lie. The run of each says what is done with it:
/// it is put, by its offset with the bytes that belong there, fetched, looked at, dropped; or time passes, or
/// the scheduler is started anew.
void read_depot_messages(std::string_view bytes) {
  namespace io = google::protobuf::io;
  const TemporaryFolder folder;
  scheduler::FakeClock clock;
  const scheduler::DepotOptions options{
      .folder = folder / "depot", .limit = kLimit, .keep_free = 0, .rate = 0};
  auto depot = std::make_unique<Depot>(options, clock);
  io::ArrayInputStream array{bytes.data(), static_cast<int>(bytes.size())};
  ablate::v1::PutPieceRequest request;
  bool clean_end = false;
  constexpr int kMost = 60;
  for (int i = 0;
       i < kMost && google::protobuf::util::ParseDelimitedFromZeroCopyStream(&request, &array, &clean_end);
       ++i, request.Clear()) {
    const std::string sha256 = digest_of(request.blob().sha256());
    const DepotOwner owner{request.blob().run() / 8 % 3};
    const auto known = contents().find(sha256);
    try {
      switch (request.blob().run() % 8) {
        case 0:
          depot->put(owner, sha256, request.blob().bytes(), request.offset(), request.piece());
          break;
        case 1: {  // as an honest sender does
          if (known == contents().end()) break;
          const auto have = depot->put(owner, sha256, known->second.size(), 0, "");
          if (have.whole || have.bytes > known->second.size()) break;
          const std::string_view rest = std::string_view{known->second}.substr(have.bytes);
          depot->put(owner, sha256, known->second.size(), have.bytes, rest.substr(0, request.offset()));
          break;
        }
        case 2: {
          const Depot::Piece piece =
              depot->get(sha256, request.offset(), request.blob().bytes() % (2 * Depot::kMostPiece));
          require(known != contents().end(), "a file of no known digest cannot be whole");
          require(request.offset() > known->second.size() ||
                      known->second.substr(request.offset(), piece.bytes.size()) == piece.bytes,
                  "what is fetched is what was put");
          break;
        }
        case 3:
          depot->look_at(sha256);
          break;
        case 4:
          depot->keep_only(owner, {sha256});
          break;
        case 5:
          depot->drop(owner, sha256);
          break;
        case 6:
          clock.pass(std::chrono::minutes{request.offset() % 200});
          depot->drop_stale();
          break;
        default:
          depot.reset();
          depot = std::make_unique<Depot>(options, clock);
          break;
      }
    } catch (const Error& error) {
      require_printable(error.what());
      require(error.code() != Code::kInternal && error.code() != Code::kUnknown, "it is the peer's fault");
    }
    check(*depot, options.folder, false);
  }
  check(*depot, options.folder, true);
}

}  // namespace abl::fuzz
