// SPDX-License-Identifier: Apache-2.0
#include "base/pieces.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/sha256.h"

namespace abl {
namespace fs = std::filesystem;
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kFirstWait = 100ms, kLongestWait = 5s;

/// What may pass: nobody answers, or has no room just now.
bool passes(Code code) {
  return code == Code::kUnavailable || code == Code::kDeadlineExceeded || code == Code::kCancelled ||
         code == Code::kAborted || code == Code::kUnknown;
}

class Waits {
 public:
  explicit Waits(const GoOn& go_on) : go_on_{go_on} {}
  bool again() {
    const auto wait = std::exchange(next_, std::min(next_ * 2, kLongestWait));
    return go_on_(wait);
  }
  bool go_on() const { return go_on_(0ms); }
  void over() { next_ = kFirstWait; }

 private:
  const GoOn& go_on_;
  std::chrono::milliseconds next_ = kFirstWait;
};

/// The answer of the other side; nothing where it was not to go on.
template <class Call>
auto insist(Waits& waits, const Call& call) -> std::optional<decltype(call())> {
  for (;;) {
    try {
      auto answer = call();
      waits.over();
      return answer;
    } catch (const Error& error) {
      if (!passes(error.code())) throw;
      if (!waits.again()) return std::nullopt;
    }
  }
}

class File {
 public:
  File(const fs::path& file, int flags)
      : file_{file}, descriptor_{::open(file.c_str(), flags | O_CLOEXEC, 0600)} {
    if (descriptor_ < 0) throw system_error("cannot open " + file.string(), errno);
  }
  ~File() { ::close(descriptor_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  std::uint64_t size() const {
    struct stat now {};
    if (::fstat(descriptor_, &now) != 0) throw system_error("cannot look at " + file_.string(), errno);
    return static_cast<std::uint64_t>(now.st_size);
  }
  std::string read(std::uint64_t offset, std::size_t most) const {
    std::string bytes(most, '\0');
    const auto got = ::pread(descriptor_, bytes.data(), most, static_cast<off_t>(offset));
    if (got < 0) throw system_error("cannot read " + file_.string(), errno);
    bytes.resize(static_cast<std::size_t>(got));
    return bytes;
  }
  void write(std::uint64_t offset, std::string_view bytes) const {
    while (!bytes.empty()) {
      const auto written = ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) throw system_error("cannot write " + file_.string(), errno);
      offset += static_cast<std::uint64_t>(written);
      bytes.remove_prefix(static_cast<std::size_t>(written));
    }
  }
  void cut(std::uint64_t bytes) const {
    if (::ftruncate(descriptor_, static_cast<off_t>(bytes)) != 0)
      throw system_error("cannot shorten " + file_.string(), errno);
  }
  void sync() const {
    if (::fsync(descriptor_) != 0) throw system_error("cannot write " + file_.string(), errno);
  }

 private:
  const fs::path file_;
  const int descriptor_;
};

/// One pass from where the part ends. Returns: whether the whole file has come; its digest is in `digest`.
bool fetch_rest(const File& part, std::uint64_t bytes, bool damaged, const GetPiece& get, Waits& waits,
                Sha256& digest) {
  std::uint64_t have = 0;
  for (const std::uint64_t end = part.size(); have < end;) {  // of an earlier start
    const std::string read = part.read(have, kPieceBytes);
    if (read.empty()) break;
    digest.update(read);
    have += read.size();
  }
  while (have < bytes) {
    auto got = insist(waits, [&] { return get(have, std::exchange(damaged, false)); });
    if (!got) return false;
    if (got->whole != bytes)
      throw Error{Code::kDataLoss,
                  fmt::format("the file has {} bytes there, and {} were expected", got->whole, bytes)};
    if (got->bytes.empty() || got->bytes.size() > bytes - have)
      throw Error{Code::kDataLoss, fmt::format("the file ends at {} of {} bytes there", have, bytes)};
    part.write(have, got->bytes);
    digest.update(got->bytes);
    have += got->bytes.size();
    if (have < bytes && !waits.go_on()) return false;
  }
  return true;
}

}  // namespace

bool send_in_pieces(const fs::path& file, std::uint64_t bytes, const PutPiece& put, const GoOn& go_on) {
  const File from{file, O_RDONLY};
  Waits waits{go_on};
  auto taken = insist(waits, [&] { return put(0, {}); });
  while (taken && !taken->whole) {
    if (taken->have >= bytes && bytes > 0)
      throw Error{Code::kDataLoss, "the other side has all of the file and does not say so"};
    const std::uint64_t at = taken->have;
    const std::string piece =
        from.read(at, static_cast<std::size_t>(std::min<std::uint64_t>(kPieceBytes, bytes - at)));
    if (piece.empty())
      throw Error{Code::kDataLoss, fmt::format("{} ends at {} of {} bytes", file.string(), at, bytes)};
    if (!go_on(0ms)) return false;
    // what is sent twice is not taken twice: the answer says where to go on
    taken = insist(waits, [&] { return put(at, piece); });
  }
  return taken.has_value();
}

fs::path part_of(const fs::path& file) { return file.string() + ".part"; }

bool fetch_in_pieces(const fs::path& file, const std::string& sha256, std::uint64_t bytes,
                     const GetPiece& get, const GoOn& go_on) {
  const fs::path part = part_of(file);
  Waits waits{go_on};
  for (bool again = false;; again = true) {
    {
      const File to{part, O_RDWR | O_CREAT | O_NOFOLLOW};
      if (again || to.size() > bytes) to.cut(0);
      Sha256 digest;
      if (!fetch_rest(to, bytes, again, get, waits, digest)) return false;
      if (digest.hex() == sha256) {
        to.sync();
        break;
      }
    }
    if (!again) continue;  // once more, and the other side looks at its file
    std::error_code gone;
    fs::remove(part, gone);
    throw Error{Code::kDataLoss, "what came has another SHA-256 than it should have, twice"};
  }
  fs::rename(part, file);
  return true;
}

}  // namespace abl
