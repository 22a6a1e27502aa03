// SPDX-License-Identifier: Apache-2.0
// How a bundle is written: tar (ustar), gzip in pieces that several cores compress, the same bytes each time.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <future>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/error.h"
#include "base/gzip.h"
#include "base/new_file.h"
#include "base/sha256.h"
#include "cli/bundle.h"

namespace abl::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPieceBytes = std::size_t{4} << 20;  // of which each is a member of the gzip file
constexpr int kGzipLevel = 6;
constexpr long long kFileTime = 946684800;  // of every file: 2000-01-01; tar warns of a time of 0
constexpr std::size_t kTarBlock = 512;      // tar's
constexpr std::size_t kBuildDigits = 16;

/// What is appended goes to the file in pieces, compressed by as many threads as there are cores.
class ArchiveFile {
 public:
  ArchiveFile(const fs::path& file, bool compress)
      : file_{file, {}}, compress_{compress}, at_once_{std::max(1U, std::thread::hardware_concurrency())} {}

  void append(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto part = bytes.substr(0, kPieceBytes - piece_.size());
      piece_ += part;
      bytes.remove_prefix(part.size());
      if (piece_.size() == kPieceBytes) end_piece();
    }
  }
  /// Returns: the archive's SHA-256.
  std::string publish() {
    if (!piece_.empty()) end_piece();
    while (!waiting_.empty()) write_oldest();
    file_.publish();
    return digest_.hex();
  }
  std::uint64_t written() const { return written_; }

 private:
  void end_piece() {
    std::string piece;
    piece.swap(piece_);
    if (waiting_.size() >= at_once_) write_oldest();
    waiting_.push_back(compress_ ? std::async(std::launch::async,
                                              [piece = std::move(piece)] { return gzip(piece, kGzipLevel); })
                                 : std::async(std::launch::deferred, [piece] { return piece; }));
  }
  void write_oldest() {
    const std::string bytes = waiting_.front().get();
    waiting_.erase(waiting_.begin());
    digest_.update(bytes);
    file_.append(bytes);
    written_ += bytes.size();
  }

  NewFile file_;
  const bool compress_;
  const std::size_t at_once_;
  std::string piece_;
  std::vector<std::future<std::string>> waiting_;  // oldest first
  Sha256 digest_;
  std::uint64_t written_ = 0;
};

/// The header of a file of 8 GiB at most. Its name is cut at a slash: tar has two fields for it.
std::string tar_header(const std::string& path, std::uint64_t size, bool executable) {
  constexpr std::size_t kName = 100, kPrefix = 155;
  constexpr std::uint64_t kLargest = (std::uint64_t{1} << 33) - 1;
  const auto cut = path.find('/', path.size() > kName ? path.size() - kName - 1 : 0);
  if (cut == std::string::npos || cut > kPrefix || size > kLargest)
    throw Error{Code::kInvalidArgument,
                fmt::format("{}: its name or its size is beyond what tar takes", path)};
  const std::string folder = path.substr(0, cut), name = path.substr(cut + 1);
  std::string header(kTarBlock, '\0');
  const auto put = [&](std::size_t at, std::string_view text) { header.replace(at, text.size(), text); };
  put(0, name);
  put(100, executable ? "0000755" : "0000644");
  put(108, "0000000");  // owner
  put(116, "0000000");  // group
  put(124, fmt::format("{:011o}", size));
  put(136, fmt::format("{:011o}", kFileTime));
  put(148, "        ");  // the checksum is of a header with spaces in its place
  put(156, "0");         // a file
  put(257, std::string_view{"ustar\00000", 8});
  put(265, "root");
  put(297, "root");
  put(345, folder);
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  put(148, fmt::format("{:06o}", sum));
  header[154] = '\0';
  return header;
}

class SourceFile {
 public:
  explicit SourceFile(const fs::path& file)
      : file_{file}, descriptor_{::open(file.c_str(), O_RDONLY | O_CLOEXEC)} {
    if (descriptor_ < 0) throw system_error("cannot open " + file.string(), errno);
  }
  ~SourceFile() { ::close(descriptor_); }
  SourceFile(const SourceFile&) = delete;
  SourceFile& operator=(const SourceFile&) = delete;
  std::string_view next() {
    const ssize_t got = ::read(descriptor_, buffer_.data(), buffer_.size());
    if (got < 0) throw system_error("cannot read " + file_.string(), errno);
    return {buffer_.data(), static_cast<std::size_t>(got)};
  }
  char* data() { return buffer_.data(); }

 private:
  const fs::path& file_;
  int descriptor_;
  std::string buffer_ = std::string(std::size_t{1} << 20, '\0');
};

/// The part of a change that lies in so many bytes from `offset` on.
void apply_change(const Change& change, char* bytes, std::uint64_t offset, std::size_t size) {
  const std::uint64_t from = std::max(offset, change.offset),
                      to = std::min(offset + size, change.offset + change.bytes.size());
  if (from < to)
    std::memcpy(bytes + (from - offset), change.bytes.data() + (from - change.offset), to - from);
}

}  // namespace

WrittenBundle write_bundle(const Bundle& bundle, const fs::path& file,
                           const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
  WrittenBundle written;
  std::vector<std::uint64_t> sizes;
  for (const BundledFile& each : bundle.files) {
    std::error_code unreadable;
    sizes.push_back(each.source.empty() ? each.text.size() : fs::file_size(each.source, unreadable));
    if (unreadable) throw system_error("cannot read " + each.source.string(), unreadable.value());
    written.unpacked_bytes += sizes.back();
    tar_header(bundle.name + "/" + each.path, sizes.back(),
               each.executable);  // before hundreds of MB are read
  }
  ArchiveFile output{file, !file.string().ends_with(".tar")};
  std::uint64_t done = 0;
  nlohmann::ordered_json listed = nlohmann::ordered_json::array();
  Sha256 all;
  std::string sums;

  /// Returns: the digest of what stands in the bundle.
  const auto append = [&](const BundledFile& each, std::uint64_t size) {
    output.append(tar_header(bundle.name + "/" + each.path, size, each.executable));
    Sha256 digest;
    std::uint64_t at = 0;
    if (each.source.empty()) {
      digest.update(each.text);
      output.append(each.text);
      at = each.text.size();
    } else {
      SourceFile source{each.source};
      for (std::string_view bytes; !(bytes = source.next()).empty(); at += bytes.size()) {
        for (const Change& change : each.changes) apply_change(change, source.data(), at, bytes.size());
        digest.update(bytes);
        output.append(bytes);
        progress(done += bytes.size(), written.unpacked_bytes);
      }
    }
    if (at != size)
      throw Error{Code::kAborted, fmt::format("{}: has changed while it was read", each.source.string())};
    output.append(std::string((kTarBlock - size % kTarBlock) % kTarBlock, '\0'));
    const std::string sha256 = digest.hex();
    sums += sha256 + "  " + each.path + "\n";
    return sha256;
  };

  for (std::size_t i = 0; i < bundle.files.size(); ++i) {
    const BundledFile& each = bundle.files[i];
    const std::string sha256 = append(each, sizes[i]);
    listed.push_back({{"path", each.path}, {"bytes", sizes[i]}, {"sha256", sha256}});
    all.update(sha256 + " " + each.path + "\n");
  }
  written.build = all.hex().substr(0, kBuildDigits);
  const nlohmann::ordered_json manifest{
      {"name", bundle.name},     {"version", bundle.version},
      {"build", written.build},  {"trainer", bundle.trainer},
      {"device", bundle.device}, {"needs", {{"machine", bundle.machine}, {"glibc", bundle.glibc}}},
      {"files", listed}};
  const BundledFile described{.path = "manifest.json", .text = manifest.dump(1) + "\n"};
  append(described, described.text.size());
  const BundledFile checked{.path = "SHA256SUMS", .text = sums};
  append(checked, checked.text.size());
  written.unpacked_bytes += described.text.size() + checked.text.size();
  output.append(std::string(2 * kTarBlock, '\0'));
  written.sha256 = output.publish();
  written.bytes = output.written();
  return written;
}

}  // namespace abl::cli
