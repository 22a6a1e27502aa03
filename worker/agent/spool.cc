// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/spool.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <map>
#include <string_view>
#include <utility>

#include "base/crc32.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"

namespace abl::agent {
namespace fs = std::filesystem;
using ablate::v1::RunBatch;
namespace {

constexpr std::size_t kHead = 8;
constexpr std::uint64_t kSegment = 512 << 10;      // bytes after which the next one begins
constexpr std::uint32_t kLargestBatch = 16 << 20;  // gRPC takes 4 MiB: a larger length is damage
constexpr std::uint32_t kNote = 1U << 31;          // in a record's length
constexpr std::size_t kKeptInMemory = 128 << 10;   // of a batch that waits to be sent
constexpr std::size_t kKeptEmpty = 64;             // files that serve the next runs
constexpr std::string_view kEnding = ".spool";
constexpr std::string_view kOldPrefix = "segment-", kOldFile = "batches", kOldProgram = "program";

void put32(std::string& out, std::uint32_t value) {
  for (int shift = 0; shift < 32; shift += 8) out.push_back(static_cast<char>(value >> shift));
}
std::uint32_t get32(const char* in) {
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value |= std::uint32_t{static_cast<unsigned char>(in[i])} << (8 * i);
  return value;
}
std::string record_of(std::string_view payload, bool is_note) {
  std::string record;
  put32(record, static_cast<std::uint32_t>(payload.size()) | (is_note ? kNote : 0));
  put32(record, crc32(payload));
  return record.append(payload);
}

/// Fewer bytes than asked for only at the end of the file.
std::string read_at(int descriptor, std::uint64_t offset, std::size_t size, const fs::path& file) {
  std::string bytes(size, '\0');
  std::size_t done = 0;
  while (done < size) {
    const ssize_t got =
        ::pread(descriptor, bytes.data() + done, size - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw system_error("cannot read " + file.string(), errno);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  bytes.resize(done);
  return bytes;
}

/// All of it or an error; `write` may write less than it is given when the disk becomes full.
void write_at(int descriptor, std::uint64_t offset, std::string_view bytes, const fs::path& file) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::pwrite(descriptor, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) throw system_error("cannot write " + file.string(), errno);
    bytes.remove_prefix(static_cast<std::size_t>(wrote));
    offset += static_cast<std::uint64_t>(wrote);
  }
}

/// The number that a text is as a whole.
std::optional<std::uint64_t> number_in(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// The number of a file of ours.
std::optional<std::uint64_t> number_of(const fs::path& file) {
  std::string name = file.filename();
  if (!name.ends_with(kEnding)) return std::nullopt;
  name.resize(name.size() - kEnding.size());
  return number_in(name);
}

/// Whether it still has a name: what has none is gone with this program.
bool is_there(int descriptor) {
  struct stat facts {};
  return ::fstat(descriptor, &facts) == 0 && facts.st_nlink > 0;
}

/// Closes what was opened to be read.
class Input {
 public:
  explicit Input(fs::path file) : file_{std::move(file)} {
    descriptor_ = ::open(file_.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor_ < 0) throw system_error("cannot open " + file_.string(), errno);
  }
  ~Input() { ::close(descriptor_); }
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  std::uint64_t size() const {
    const off_t end = ::lseek(descriptor_, 0, SEEK_END);
    return end < 0 ? 0 : static_cast<std::uint64_t>(end);
  }
  struct Record {
    bool is_note = false;
    std::uint64_t bytes = 0;
    RunBatch batch;
  };
  /// The whole record at `offset`; nothing where there is none.
  std::optional<Record> record(std::uint64_t offset) const {
    const std::string head = read_at(descriptor_, offset, kHead, file_);
    if (head.size() < kHead) return std::nullopt;
    const std::uint32_t length = get32(head.data()), size = length & ~kNote;
    if (size > kLargestBatch) return std::nullopt;
    const std::string bytes = read_at(descriptor_, offset + kHead, size, file_);
    Record record{.is_note = (length & kNote) != 0, .bytes = kHead + size, .batch = {}};
    if (bytes.size() < size || crc32(bytes) != get32(head.data() + 4) || !record.batch.ParseFromString(bytes))
      return std::nullopt;
    return record;
  }

 private:
  const fs::path file_;
  int descriptor_ = -1;
};

}  // namespace

SpoolFiles::SpoolFiles(fs::path folder) : folder_{std::move(folder)} {
  for (const fs::path& file : found()) named_ = std::max(named_, number_of(file).value_or(0));
}

SpoolFiles::~SpoolFiles() {
  for (const File& file : empty_) {
    if (file.descriptor >= 0) ::close(file.descriptor);
    ::unlink(file.path.c_str());
  }
}

std::vector<fs::path> SpoolFiles::found() const {
  std::vector<fs::path> all;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator{folder_, failed}) all.push_back(entry.path());
  if (failed && failed != std::errc::no_such_file_or_directory)
    throw system_error("cannot read " + folder_.string(), failed.value());
  std::ranges::sort(all);
  return all;
}

SpoolFiles::File SpoolFiles::take() {
  File file;
  {
    const std::scoped_lock lock{mutex_};
    if (empty_.empty()) {
      file.path = folder_ / fmt::format("{}{}", ++named_, kEnding);
    } else {
      file = std::move(empty_.back());
      empty_.pop_back();
    }
  }
  const auto open = [&] {
    file.descriptor = ::open(file.path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    return file.descriptor >= 0;
  };
  if (file.descriptor >= 0) {
    if (is_there(file.descriptor)) return file;
    ::close(file.descriptor);
  }
  if (open()) return file;
  if (errno == ENOENT) {
    make_folder(folder_);
    if (open()) return file;
  }
  throw system_error("cannot open " + file.path.string(), errno);
}

void SpoolFiles::give_back(File file) {
  const bool emptied =
      (file.descriptor >= 0 ? ::ftruncate(file.descriptor, 0) : ::truncate(file.path.c_str(), 0)) == 0;
  if (emptied) {
    const std::scoped_lock lock{mutex_};
    if (empty_.size() < kKeptEmpty) {
      empty_.push_back(std::move(file));
      return;
    }
  }
  if (file.descriptor >= 0) ::close(file.descriptor);
  // what cannot be deleted is sent again by the next start, and refused by the scheduler
  ::unlink(file.path.c_str());
}

/// A segment that is there, not read yet.
struct RunSpool::Found {
  fs::path file;
  std::uint64_t first = 0;  ///< number of its first batch; 0: of an earlier version's one file
  bool earlier = false;
};

RunSpool::RunSpool(SpoolFiles& files, std::uint32_t run, std::string token)
    : files_{files}, run_{run}, token_{std::move(token)} {}

RunSpool::~RunSpool() {
  writer_.close();
  reader_.close();
}

void RunSpool::Place::close() {
  if (descriptor >= 0) ::close(std::exchange(descriptor, -1));
}

/// Everything that follows something damaged goes.
void RunSpool::read(std::vector<Found> segments) {
  std::ranges::stable_sort(segments, {}, &Found::first);
  for (auto found = segments.begin(); found != segments.end(); ++found) {
    if (read_segment(*found)) continue;
    log_warning({{"run", run_}},
                "run {}: {} ends in the middle of a batch, or is damaged; what follows is left out", run_,
                found->file.string());
    for (auto later = found + 1; later != segments.end(); ++later)
      drop({.file = later->file, .earlier = later->earlier}, -1);
    break;
  }
  if (segments_.empty() || segments_.back().earlier) return;
  const Segment& newest = segments_.back();
  writer_ = {.descriptor = ::open(newest.file.c_str(), O_RDWR | O_CLOEXEC),
             .file = newest.file,
             .offset = newest.bytes};
  if (writer_.descriptor < 0) throw system_error("cannot open " + writer_.file.string(), errno);
  if (::ftruncate(writer_.descriptor, static_cast<off_t>(writer_.offset)) != 0)
    throw system_error("cannot shorten " + writer_.file.string(), errno);
}

/// Takes the whole records of a file in. Returns: false when something else follows them, another run's, say,
/// which a crash of the machine may have left where the file was used before, or when they are not the next
/// ones.
bool RunSpool::read_segment(const Found& found) {
  Segment segment{.file = found.file, .first = found.first, .earlier = found.earlier};
  bool whole = segments_.empty() || segment.first == last_ + 1, any = false;
  {
    const Input input{found.file};
    for (const std::uint64_t size = input.size(); whole && segment.bytes < size;) {
      const auto record = input.record(segment.bytes);
      whole = record && is_own(record->batch, found.earlier && record->is_note);
      if (whole && record->is_note) {
        program_ = record->batch.log();
      } else if (whole) {
        const std::uint64_t seq = record->batch.seq();
        if (segment.first == 0) segment.first = seq;
        whole = seq == (any ? last_ + 1 : segment.first);
        if (!whole) break;
        any = true;
        last_ = seq;
        ended_ = record->batch.has_ended();
      }
      if (!whole) break;
      if (token_.empty()) token_ = record->batch.token();
      segment.bytes += record->bytes;
    }
  }
  // one of an earlier version without a batch, or one that does not follow those before it
  if (!any && (segment.first == 0 || (!whole && !segments_.empty()))) {
    drop(std::move(segment), -1);
    return whole;
  }
  if (!any) last_ = std::max(last_, segment.first - 1);  // begun, and no batch written
  segments_.push_back(std::move(segment));
  return whole;
}

/// `unsaid`: a note of an earlier version does not say whose it is.
bool RunSpool::is_own(const RunBatch& batch, bool unsaid) const {
  return (unsaid || batch.run() == run_) && (token_.empty() || batch.token() == token_);
}

/// Lets a segment's file go.
void RunSpool::drop(Segment segment, int descriptor) {
  if (segment.earlier)
    ::unlink(segment.file.c_str());  // one that stays is sent again after a restart
  else
    files_.give_back({.path = std::move(segment.file), .descriptor = descriptor});
}

/// The one before it may be let go only when the new one's note is on disk.
void RunSpool::begin_segment() {
  const SpoolFiles::File file = files_.take();
  const std::uint64_t first = last() + 1;
  const std::string record = note(first);
  try {
    write_at(file.descriptor, 0, record, file.path);
  } catch (const Error&) {  // it begins anew when there is room
    files_.give_back(file);
    throw;
  }
  writer_.close();
  writer_ = {.descriptor = file.descriptor, .file = file.path, .offset = record.size()};
  const std::scoped_lock lock{mutex_};
  segments_.push_back({.file = file.path, .first = first, .bytes = record.size()});
}

/// At the end of the newest segment. Throws: Error; nothing of it stays then.
void RunSpool::write(std::string_view record) {
  try {
    write_at(writer_.descriptor, writer_.offset, record, writer_.file);
  } catch (const Error&) {
    [[maybe_unused]] const int shortened =
        ::ftruncate(writer_.descriptor, static_cast<off_t>(writer_.offset));
    throw;
  }
  writer_.offset += record.size();
  const std::scoped_lock lock{mutex_};
  segments_.back().bytes = writer_.offset;
}

/// The record of one, of the segment that begins with this number.
std::string RunSpool::note(std::uint64_t first) const {
  RunBatch note;
  note.set_run(run_);
  note.set_token(token_);
  note.set_seq(first);
  note.set_log(program_);
  return record_of(note.SerializeAsString(), /*is_note=*/true);
}

void RunSpool::keep_program(const std::string& record) {
  program_ = record;
  if (writer_.descriptor < 0) return begin_segment();
  std::uint64_t first = 0;
  {
    const std::scoped_lock lock{mutex_};
    first = segments_.back().first;
  }
  write(note(first));
}

void RunSpool::append(RunBatch batch) {
  batch.set_run(run_);
  batch.set_token(token_);
  batch.set_seq(last() + 1);
  const std::string bytes = batch.SerializeAsString();
  if (bytes.size() > kLargestBatch)
    throw Error{Code::kInternal, fmt::format("a batch of {} bytes cannot be kept", bytes.size())};
  if (writer_.descriptor < 0 || writer_.offset >= kSegment) begin_segment();
  write(record_of(bytes, /*is_note=*/false));
  const std::scoped_lock lock{mutex_};
  ++last_;
  ended_ = batch.has_ended();
  newest_.reset();
  if (bytes.size() <= kKeptInMemory) newest_ = std::move(batch);
}

void RunSpool::append_in_memory(RunBatch batch) {
  const std::scoped_lock lock{mutex_};
  batch.set_run(run_);
  batch.set_token(token_);
  batch.set_seq(last_ + 1);
  last_words_ = batch.SerializeAsString();
  ++last_;
  ended_ = batch.has_ended();
  newest_.reset();
}

std::optional<RunBatch> RunSpool::take_newest(std::uint64_t seq) {
  const std::scoped_lock lock{mutex_};
  if (!newest_ || newest_->seq() != seq + 1) return std::nullopt;
  return std::exchange(newest_, std::nullopt);
}

std::optional<RunBatch> RunSpool::after(std::uint64_t seq) {
  Segment segment;
  std::uint64_t wanted = seq + 1;
  RunBatch batch;
  {
    const std::scoped_lock lock{mutex_};
    if (seq >= last_) return std::nullopt;
    if (!segments_.empty()) wanted = std::max(wanted, segments_.front().first);
    if (!last_words_.empty() && (segments_.empty() || wanted == last_)) {
      batch.ParseFromString(last_words_);
      return batch;
    }
    const auto behind = std::find_if(segments_.begin(), segments_.end(),
                                     [&](const Segment& other) { return other.first > wanted; });
    segment = *std::prev(behind);
  }
  if (reader_.descriptor < 0 || reader_.segment != segment.first || reader_.next > wanted) {
    const int opened = ::open(segment.file.c_str(), O_RDONLY | O_CLOEXEC);
    if (opened < 0) throw system_error("cannot open " + segment.file.string(), errno);
    reader_.close();
    reader_ = {.descriptor = opened, .segment = segment.first, .next = segment.first};
  }
  const auto damaged = [&] {
    return Error{Code::kDataLoss,
                 fmt::format("{} is damaged at byte {}", segment.file.string(), reader_.offset)};
  };
  for (;;) {
    const std::string head = read_at(reader_.descriptor, reader_.offset, kHead, segment.file);
    const std::uint32_t length = head.size() < kHead ? 0 : get32(head.data()), size = length & ~kNote;
    if (head.size() < kHead || reader_.offset + kHead + size > segment.bytes) throw damaged();
    const bool is_note = (length & kNote) != 0;
    if (!is_note && reader_.next == wanted) {
      const std::string bytes = read_at(reader_.descriptor, reader_.offset + kHead, size, segment.file);
      if (bytes.size() < size || crc32(bytes) != get32(head.data() + 4) || !batch.ParseFromString(bytes) ||
          batch.seq() != wanted)
        throw damaged();
    }
    reader_.offset += kHead + size;
    if (!is_note && ++reader_.next > wanted) return batch;
  }
}

void RunSpool::acknowledge(std::uint64_t seq) {
  std::vector<Segment> done;
  {
    const std::scoped_lock lock{mutex_};
    acknowledged_ = std::max(acknowledged_, std::min(seq, last_));
    while (segments_.size() > 1 && segments_[1].first <= acknowledged_ + 1) {
      done.push_back(std::move(segments_.front()));
      segments_.pop_front();
    }
  }
  for (Segment& segment : done) drop(std::move(segment), -1);
}

void RunSpool::remove() {
  reader_.close();
  std::deque<Segment> segments;
  {
    const std::scoped_lock lock{mutex_};
    segments.swap(segments_);
  }
  for (Segment& segment : segments) {
    const bool is_open = writer_.descriptor >= 0 && segment.file == writer_.file;
    drop(std::move(segment), is_open ? std::exchange(writer_.descriptor, -1) : -1);
  }
  writer_.close();
  if (earlier_.empty()) return;
  std::error_code ignored;
  fs::remove_all(earlier_, ignored);
}

std::uint64_t RunSpool::last() const {
  const std::scoped_lock lock{mutex_};
  return last_;
}
std::uint64_t RunSpool::acknowledged() const {
  const std::scoped_lock lock{mutex_};
  return acknowledged_;
}
bool RunSpool::ended() const {
  const std::scoped_lock lock{mutex_};
  return ended_;
}
std::uint64_t RunSpool::bytes() const {
  const std::scoped_lock lock{mutex_};
  std::uint64_t sum = 0;
  for (const Segment& segment : segments_) sum += segment.bytes;
  return sum;
}

std::vector<std::unique_ptr<RunSpool>> read_spools(SpoolFiles& files) {
  std::map<std::uint32_t, std::vector<RunSpool::Found>> segments;
  std::map<std::uint32_t, fs::path> earlier;
  for (const fs::path& path : files.found()) {
    if (number_of(path)) {
      const auto note = Input{path}.record(0);
      if (note && note->is_note)
        segments[note->batch.run()].push_back({.file = path, .first = note->batch.seq()});
      else
        files.give_back({.path = path});  // empty, or its run had not begun to write
    } else if (const auto run = number_in(path.filename().native()); run && fs::is_directory(path)) {
      earlier.emplace(*run, path);
      auto& found = segments[static_cast<std::uint32_t>(*run)];
      for (const auto& entry : fs::directory_iterator{path}) {
        const std::string name = entry.path().filename();
        if (name == kOldFile)
          found.push_back({.file = entry.path(), .earlier = true});
        else if (name.starts_with(kOldPrefix))
          found.push_back({.file = entry.path(),
                           .first = number_in(name.substr(kOldPrefix.size())).value_or(0),
                           .earlier = true});
      }
    }
  }
  std::vector<std::unique_ptr<RunSpool>> spools;
  for (auto& [run, found] : segments) {
    auto& spool = *spools.emplace_back(std::make_unique<RunSpool>(files, run, ""));
    if (const auto folder = earlier.find(run); folder != earlier.end()) {
      spool.earlier_ = folder->second;
      if (fs::exists(spool.earlier_ / kOldProgram)) spool.program_ = read_file(spool.earlier_ / kOldProgram);
    }
    spool.read(std::move(found));
  }
  return spools;
}

}  // namespace abl::agent
