// SPDX-License-Identifier: Apache-2.0
#include "scheduler/depot.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"

namespace abl::scheduler {
namespace fs = std::filesystem;
namespace {

using namespace std::chrono_literals;

constexpr const char* kPartEnding = ".part";
constexpr const char* kDataFolder = "data";
constexpr std::string_view kTrialFolder = "trial-";
constexpr auto kInUse = 2min;  // after a piece of it was read or written
constexpr auto kStale = 1h;    // a beginning that nobody goes on with
constexpr std::size_t kMostFiles = 100'000;
constexpr std::size_t kMostParts = 200;       // beginnings, of data and of checkpoints each
constexpr std::size_t kMostPartsOfTrial = 4;  // a newer checkpoint overtakes
constexpr auto kLookAgain = 1min;             // at a file that is said to be damaged

bool is_digest(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::optional<DepotOwner> owner_named(std::string_view name) {
  if (name == kDataFolder) return DepotOwner{};
  if (!name.starts_with(kTrialFolder)) return std::nullopt;
  name.remove_prefix(kTrialFolder.size());
  DepotOwner owner;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), owner.trial);
  if (error != std::errc{} || end != name.data() + name.size() || owner.trial == 0) return std::nullopt;
  return owner;
}

/// A file of the depot's own, never what a link leads to.
class Descriptor {
 public:
  Descriptor(const fs::path& file, int flags)
      : file_{file}, descriptor_{::open(file.c_str(), flags | O_NOFOLLOW | O_CLOEXEC, 0600)} {
    if (descriptor_ < 0) throw system_error("cannot open " + file.string(), errno);
  }
  ~Descriptor() { ::close(descriptor_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  void write(std::uint64_t offset, std::string_view bytes) {
    while (!bytes.empty()) {
      const auto written = ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) throw system_error("cannot write " + file_.string(), errno);
      offset += static_cast<std::uint64_t>(written);
      bytes.remove_prefix(static_cast<std::size_t>(written));
    }
  }
  std::string read(std::uint64_t offset, std::size_t most) {
    std::string bytes(most, '\0');
    std::size_t have = 0;
    while (have < most) {
      const auto got =
          ::pread(descriptor_, bytes.data() + have, most - have, static_cast<off_t>(offset + have));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) throw system_error("cannot read " + file_.string(), errno);
      if (got == 0) break;
      have += static_cast<std::size_t>(got);
    }
    bytes.resize(have);
    return bytes;
  }
  void cut(std::uint64_t bytes) {
    if (::ftruncate(descriptor_, static_cast<off_t>(bytes)) != 0)
      throw system_error("cannot shorten " + file_.string(), errno);
  }
  void sync() {
    if (::fsync(descriptor_) != 0) throw system_error("cannot write " + file_.string(), errno);
  }

 private:
  const fs::path file_;
  const int descriptor_;
};

std::string mib(std::uint64_t bytes) {
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

}  // namespace

void check_digest(const std::string& sha256) {
  if (!is_digest(sha256))
    throw Error{Code::kInvalidArgument, "a SHA-256 of 64 lower-case hexadecimal digits was expected"};
}

Depot::Depot(DepotOptions options, const Clock& clock) : options_{std::move(options)}, clock_{clock} {
  if (!open()) return;
  make_folder(options_.folder);
  fs::permissions(options_.folder, fs::perms::owner_all);
  for (const auto& entry : fs::directory_iterator{options_.folder})
    if (const auto owner = owner_named(entry.path().filename().string());
        owner && fs::is_directory(entry.symlink_status()))
      take_up(*owner);
}

/// What an earlier program left of an owner's files. What has no name of ours is left alone.
void Depot::take_up(DepotOwner owner) {
  for (const auto& entry : fs::directory_iterator{folder_of(owner)}) {
    std::string name = entry.path().filename();
    const bool whole = !name.ends_with(kPartEnding);
    if (!whole) name.resize(name.size() - std::string_view{kPartEnding}.size());
    if (!is_digest(name) || !fs::is_regular_file(entry.symlink_status())) continue;
    const std::uint64_t bytes = entry.file_size();
    files_[{owner, name}] = File{.bytes = bytes, .whole = whole, .used = clock_.steady(), .digest = {}};
    used_ += bytes;
    if (whole) count_whole(name, bytes);
  }
}

fs::path Depot::folder_of(DepotOwner owner) const {
  return options_.folder /
         (owner.trial == 0 ? std::string{kDataFolder} : fmt::format("{}{}", kTrialFolder, owner.trial));
}

fs::path Depot::path_of(const Key& key, bool whole) const {
  return folder_of(key.owner) / (whole ? key.sha256 : key.sha256 + kPartEnding);
}

std::uint64_t Depot::used() const {
  const std::lock_guard lock{mutex_};
  return used_;
}

std::size_t Depot::files() const {
  const std::lock_guard lock{mutex_};
  return whole_.size();
}

std::optional<std::uint64_t> Depot::bytes_of(const std::string& sha256) const {
  const std::lock_guard lock{mutex_};
  const auto found = whole_.find(sha256);
  return found == whole_.end() ? std::nullopt : std::optional{found->second.bytes};
}

void Depot::count_whole(const std::string& sha256, std::uint64_t bytes) {
  Whole& whole = whole_[sha256];
  whole.bytes = bytes;
  ++whole.owners;
}

std::set<DepotOwner> Depot::owners() const {
  std::set<DepotOwner> owners;
  const std::lock_guard lock{mutex_};
  for (const auto& [key, file] : files_) owners.insert(key.owner);
  return owners;
}

std::set<std::string> Depot::begun(DepotOwner owner) const {
  std::set<std::string> begun;
  const std::lock_guard lock{mutex_};
  for (const auto& [key, file] : files_)
    if (key.owner == owner && !file.whole) begun.insert(key.sha256);
  return begun;
}

std::optional<std::string> Depot::first_whole(DepotOwner owner,
                                              const std::vector<std::string>& digests) const {
  const std::lock_guard lock{mutex_};
  for (const std::string& digest : digests)
    if (const auto found = files_.find({owner, digest}); found != files_.end() && found->second.whole)
      return digest;
  return std::nullopt;
}

void Depot::forget(const Key& key) {
  std::error_code gone;
  fs::remove(path_of(key, true), gone);
  fs::remove(path_of(key, false), gone);
  {
    const std::lock_guard lock{mutex_};
    const auto found = files_.find(key);
    if (found == files_.end()) return;
    used_ -= found->second.bytes;
    if (found->second.whole && --whole_[key.sha256].owners == 0) whole_.erase(key.sha256);
    files_.erase(found);
    const auto next = files_.lower_bound({key.owner, ""});
    if (next != files_.end() && next->first.owner == key.owner) return;
  }
  fs::remove(folder_of(key.owner), gone);  // an empty one
}

void Depot::drop(DepotOwner owner, const std::string& sha256) { forget({owner, sha256}); }

void Depot::keep_only(DepotOwner owner, const std::set<std::string>& wanted) {
  std::vector<Key> unwanted;
  {
    const std::lock_guard lock{mutex_};
    for (auto file = files_.lower_bound({owner, ""}); file != files_.end() && file->first.owner == owner;
         ++file)
      if (!wanted.contains(file->first.sha256) && file->second.used + kInUse <= clock_.steady())
        unwanted.push_back(file->first);
  }
  for (const Key& key : unwanted) forget(key);
}

void Depot::drop_stale() {
  std::vector<Key> stale;
  {
    const std::lock_guard lock{mutex_};
    for (const auto& [key, file] : files_)
      if (!file.whole && file.used + kStale <= clock_.steady()) stale.push_back(key);
  }
  for (const Key& key : stale) forget(key);
}

/// For another beginning: who begins files and does not go on with them keeps nobody out for long, and those
/// who push data keep no run out.
/// Throws: Error{kResourceExhausted}.
void Depot::make_place(DepotOwner owner) {
  struct Begun {
    std::size_t count = 0;
    const std::pair<const Key, File>* oldest = nullptr;
    void add(const std::pair<const Key, File>& entry) {
      ++count;
      if (!oldest || entry.second.used < oldest->second.used) oldest = &entry;
    }
  } of_kind, of_owner;
  for (const auto& entry : files_) {
    if (entry.second.whole || (entry.first.owner.trial == 0) != (owner.trial == 0)) continue;
    of_kind.add(entry);
    if (entry.first.owner == owner) of_owner.add(entry);
  }
  const bool overtaken = owner.trial != 0 && of_owner.count >= kMostPartsOfTrial;
  const auto* goes = overtaken ? of_owner.oldest : of_kind.count >= kMostParts ? of_kind.oldest : nullptr;
  const bool in_use = goes && !overtaken && goes->second.used + kInUse > clock_.steady();
  if (files_.size() >= kMostFiles || in_use)
    throw Error{Code::kResourceExhausted, "the depot takes no further file now; try again later"};
  if (goes) forget(Key{goes->first});
}

/// Throws: Error{kResourceExhausted}.
void Depot::make_room(const Key& wanted, std::uint64_t bytes) {
  for (;;) {
    struct statvfs disk {};
    const bool known = ::statvfs(options_.folder.c_str(), &disk) == 0;
    const std::uint64_t left = known ? std::uint64_t{disk.f_bavail} * disk.f_frsize : bytes;
    const bool full_disk = known && left < bytes + options_.keep_free;
    std::optional<Key> oldest;
    {
      const std::lock_guard lock{mutex_};
      std::uint64_t data = 0;
      for (auto file = files_.lower_bound({DepotOwner{}, ""});
           file != files_.end() && file->first.owner.trial == 0; ++file)
        data += file->second.bytes;
      if (wanted.owner.trial == 0 && data + bytes > options_.limit / 2)
        throw Error{
            Code::kResourceExhausted,
            fmt::format("data sets may take half of the depot, {} (ablate-scheduler --depot-limit-mib): "
                        "remove some with 'ablate data rm'",
                        mib(options_.limit / 2))};
      if (!full_disk && used_ + bytes <= options_.limit) return;
      Time used = clock_.steady() - kInUse;
      for (const auto& [key, file] : files_)
        if (key.owner.trial != 0 && key != wanted && file.used <= used) oldest = key, used = file.used;
    }
    if (!oldest)
      throw Error{Code::kResourceExhausted,
                  full_disk
                      ? fmt::format("the depot takes nothing more: {} are free on the disk of {}, and {} "
                                    "are kept for the results file",
                                    mib(left), options_.folder.string(), mib(options_.keep_free))
                      : fmt::format("the depot is full: it holds {} (ablate-scheduler --depot-limit-mib)",
                                    mib(used()))};
    log_info("the depot drops the copy of a checkpoint of trial {} to make room", oldest->owner.trial);
    figures_.evicted.add();
    forget(*oldest);
  }
}

/// Throws: Error; the file then ends where it did.
void Depot::append(const Key& key, File& file, std::string_view piece) {
  make_folder(folder_of(key.owner));
  Descriptor part{path_of(key, false), O_WRONLY | O_CREAT};
  try {
    part.cut(file.bytes);  // what a piece left that was not written whole
    part.write(file.bytes, piece);
  } catch (const Error&) {
    try {
      part.cut(file.bytes);
    } catch (const Error&) {  // the next piece cuts it
    }
    throw;
  }
  if (file.bytes == 0) file.digest = std::make_unique<Sha256>();
  if (file.digest) file.digest->update(piece);
}

Depot::Have Depot::finish(const Key& key, File& file) {
  const fs::path part = path_of(key, false);
  // of what an earlier program began all is read again
  const std::string digest = file.digest ? std::exchange(file.digest, nullptr)->hex() : sha256_file(part);
  if (digest != key.sha256) {
    const std::uint64_t bytes = file.bytes;
    forget(key);
    figures_.damaged.add();
    throw Error{Code::kDataLoss, fmt::format("what came is not what was announced: {} with the SHA-256 {}, "
                                             "expected {}; it was dropped",
                                             mib(bytes), digest, key.sha256)};
  }
  Descriptor{part, O_WRONLY}.sync();
  std::error_code failed;
  fs::rename(part, path_of(key, true), failed);
  if (failed) throw system_error("cannot rename " + part.string(), failed.value());
  const std::lock_guard lock{mutex_};
  file.whole = true;
  count_whole(key.sha256, file.bytes);
  return {file.bytes, true};
}

Depot::Have Depot::put(DepotOwner owner, const std::string& sha256, std::uint64_t bytes, std::uint64_t offset,
                       std::string_view piece) {
  check_digest(sha256);
  if (!open()) throw Error{Code::kFailedPrecondition, "this scheduler has no depot (--depot-limit-mib 0)"};
  if (bytes == 0 || bytes > options_.limit)
    throw Error{Code::kResourceExhausted,
                fmt::format("a file of {} has no room in the depot, which holds {} (ablate-scheduler "
                            "--depot-limit-mib)",
                            mib(bytes), mib(options_.limit))};
  if (piece.size() > kMostPiece)
    throw Error{Code::kInvalidArgument,
                fmt::format("a piece of {} bytes; at most {} were expected", piece.size(), kMostPiece)};
  const Key key{owner, sha256};
  auto found = files_.find(key);  // this thread alone changes them
  if (found != files_.end() && found->second.whole) {
    found->second.used = clock_.steady();
    return {found->second.bytes, true};
  }
  if (found != files_.end() && found->second.bytes > bytes) {  // of another length: somebody erred
    forget(key);
    found = files_.end();
  }
  const std::uint64_t have = found == files_.end() ? 0 : found->second.bytes;
  if (offset > bytes || piece.size() > bytes - offset)
    throw Error{Code::kInvalidArgument,
                fmt::format("a piece beyond the end: {} bytes at {} of {}", piece.size(), offset, bytes)};
  if (offset != have || (piece.empty() && have < bytes)) return {have, false};
  if (found == files_.end()) make_place(owner);
  try {
    make_room(key, piece.size());
  } catch (const Error&) {
    forget(key);  // what it has of the file is of no use to anybody else
    throw;
  }
  {
    const std::lock_guard lock{mutex_};
    found = files_.try_emplace(key).first;
  }
  File& file = found->second;
  file.used = clock_.steady();
  try {
    append(key, file, piece);
  } catch (const Error& error) {
    // the results file needs the room more
    if (error.code() == Code::kResourceExhausted || file.bytes == 0) forget(key);
    throw;
  }
  {
    const std::lock_guard lock{mutex_};
    file.bytes += piece.size();
    used_ += piece.size();
  }
  figures_.received.add(piece.size());
  if (file.bytes < bytes) return {file.bytes, false};
  return finish(key, file);
}

std::map<Depot::Key, Depot::File>::iterator Depot::find_whole(const std::string& sha256) {
  return std::ranges::find_if(
      files_, [&](const auto& entry) { return entry.second.whole && entry.first.sha256 == sha256; });
}

Depot::Piece Depot::get(const std::string& sha256, std::uint64_t offset, std::size_t most) {
  check_digest(sha256);
  const auto found = find_whole(sha256);
  if (found == files_.end()) throw Error{Code::kNotFound, "the depot does not have this file (any more)"};
  auto& [key, file] = *found;
  file.used = clock_.steady();
  Piece piece{.bytes = {}, .whole = file.bytes};
  if (offset >= file.bytes) return piece;
  const std::size_t wanted =
      static_cast<std::size_t>(std::min<std::uint64_t>(std::min(most, kMostPiece), file.bytes - offset));
  try {
    piece.bytes = Descriptor{path_of(key, true), O_RDONLY}.read(offset, wanted);
  } catch (const Error& error) {
    if (error.code() == Code::kResourceExhausted) throw;  // no descriptors: nothing is known of it
    log_error("dropping a file of the depot that cannot be read: {}", error.what());
    forget(Key{key});  // somebody has removed it, or its disk fails: whoever waits for it waits for nothing
    figures_.damaged.add();
    throw Error{Code::kNotFound, "the depot's file cannot be read any more, and is gone"};
  }
  if (piece.bytes.size() < wanted) {  // somebody has cut it
    forget(Key{key});
    figures_.damaged.add();
    throw Error{Code::kNotFound, "the depot's file was damaged on its disk, and is gone"};
  }
  figures_.sent.add(piece.bytes.size());
  return piece;
}

bool Depot::look_at(const std::string& sha256) {
  check_digest(sha256);
  const auto found = find_whole(sha256);
  if (found == files_.end()) return true;
  const Key key = found->first;
  if (found->second.looked && *found->second.looked + kLookAgain > clock_.steady()) return false;
  found->second.looked = clock_.steady();
  try {
    if (sha256_file(path_of(key, true)) == sha256) return false;
  } catch (const Error& error) {
    if (error.code() == Code::kResourceExhausted) throw;  // no descriptors: nothing is known of it
  }
  log_error("a file of the depot is damaged on its disk and is dropped: {}", path_of(key, true).string());
  figures_.damaged.add();
  forget(key);
  return true;
}

}  // namespace abl::scheduler
