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
#include <cstdlib>
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
constexpr std::string_view kPrefix = "segment-";
constexpr std::string_view kOldFile = "batches", kOldProgram = "program";

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

}  // namespace

RunSpool::RunSpool(fs::path folder, std::uint32_t run, std::string token)
    : folder_{std::move(folder)}, run_{run}, token_{std::move(token)} {}

RunSpool::RunSpool(fs::path folder, std::uint32_t run) : folder_{std::move(folder)}, run_{run} {
  if (std::error_code unknown; fs::exists(folder_ / kOldProgram, unknown))
    program_ = read_file(folder_ / kOldProgram);
  const auto files = segment_files();
  try {
    for (auto file = files.begin(); file != files.end(); ++file) {
      if (read_segment(*file)) continue;
      log_warning("run {}: {} ends in the middle of a batch, or is damaged; what follows is left out", run_,
                  file->string());
      for (auto later = file + 1; later != files.end(); ++later) fs::remove(*later);
      break;
    }
    if (segments_.empty()) return;
    writer_.open(segments_.back().file, O_RDWR);
    writer_.offset = segments_.back().bytes;
    if (::ftruncate(writer_.descriptor, static_cast<off_t>(writer_.offset)) != 0)
      throw system_error("cannot shorten " + writer_.file.string(), errno);
  } catch (const fs::filesystem_error& error) {
    writer_.close();
    throw system_error("cannot delete " + error.path1().string(), error.code().value());
  } catch (...) {
    writer_.close();
    throw;
  }
}

RunSpool::~RunSpool() {
  writer_.close();
  reader_.close();
}

void RunSpool::Place::open(const fs::path& path, int flags) {
  const int opened = ::open(path.c_str(), O_CLOEXEC | flags, 0600);
  if (opened < 0) throw system_error("cannot open " + path.string(), errno);
  close();
  descriptor = opened;
  file = path;
  offset = 0;
}

void RunSpool::Place::close() {
  if (descriptor >= 0) ::close(std::exchange(descriptor, -1));
}

/// By the number of their first batch, which the names give; a file of an earlier version comes first.
std::vector<fs::path> RunSpool::segment_files() const {
  std::vector<fs::path> files;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator{folder_, failed})
    if (const std::string name = entry.path().filename(); name == kOldFile || name.starts_with(kPrefix))
      files.push_back(entry.path());
  if (failed && failed != std::errc::no_such_file_or_directory)
    throw system_error("cannot read " + folder_.string(), failed.value());
  static_assert(std::string_view{kOldFile} < std::string_view{kPrefix});
  std::sort(files.begin(), files.end());
  return files;
}

/// Takes the whole records of a file in. Returns: false when something else follows them, or when they are
/// not the next ones.
bool RunSpool::read_segment(const fs::path& file) {
  Place place;
  place.open(file, O_RDONLY);
  const off_t file_size = ::lseek(place.descriptor, 0, SEEK_END);
  Segment segment{.file = file};
  const std::string name = file.filename();
  if (name.starts_with(kPrefix)) segment.first = std::strtoull(name.c_str() + kPrefix.size(), nullptr, 10);
  bool whole = file_size >= 0, any = false;
  try {
    while (whole && segment.bytes < static_cast<std::uint64_t>(file_size)) {
      const std::string head = read_at(place.descriptor, segment.bytes, kHead, file);
      const std::uint32_t length = head.size() < kHead ? 0 : get32(head.data()), size = length & ~kNote;
      RunBatch batch;
      std::string bytes;
      whole = head.size() == kHead && size <= kLargestBatch;
      if (whole) bytes = read_at(place.descriptor, segment.bytes + kHead, size, file);
      whole = whole && bytes.size() == size && crc32(bytes) == get32(head.data() + 4) &&
              batch.ParseFromString(bytes);
      if (!whole) break;
      if ((length & kNote) != 0) {
        program_ = batch.log();
      } else {
        if (segment.first == 0) segment.first = batch.seq();  // of an earlier version
        const std::uint64_t expected = any ? last_ + 1 : segment.first;
        whole = batch.seq() == expected && (segments_.empty() || batch.seq() == last_ + 1);
        if (!whole) break;
        any = true;
        last_ = batch.seq();
        ended_ = batch.has_ended();
      }
      if (!batch.token().empty()) token_ = batch.token();
      segment.bytes += kHead + size;
    }
  } catch (...) {
    place.close();
    throw;
  }
  place.close();
  if (!any && (segment.first == 0 || (!whole && !segments_.empty()))) {
    fs::remove(file);  // an old one without a batch, or one that does not follow those before it
    return whole;
  }
  if (!any) last_ = std::max(last_, segment.first - 1);  // begun, and no batch written
  segments_.push_back(std::move(segment));
  return whole;
}

/// With the note of the run's program, where there is one: those before it may be deleted.
void RunSpool::begin_segment() {
  Segment segment{.file = folder_ / fmt::format("{}{:020}", kPrefix, last_ + 1), .first = last_ + 1};
  if (::mkdir(folder_.c_str(), 0700) != 0 && errno != EEXIST) make_folder(folder_);
  writer_.open(segment.file, O_RDWR | O_CREAT | O_TRUNC);
  {
    const std::scoped_lock lock{mutex_};
    segments_.push_back(std::move(segment));
  }
  if (program_.empty()) return;
  try {
    write_note();
  } catch (const Error&) {  // it begins anew, with the note, when there is room
    writer_.close();
    const std::scoped_lock lock{mutex_};
    segments_.pop_back();
    throw;
  }
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

void RunSpool::write_note() {
  RunBatch note;
  note.set_token(token_);
  note.set_log(program_);
  write(record_of(note.SerializeAsString(), /*is_note=*/true));
}

void RunSpool::keep_program(const std::string& record) {
  program_ = record;
  if (writer_.descriptor < 0)
    begin_segment();
  else
    write_note();
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
    reader_.open(segment.file, O_RDONLY);
    reader_.segment = reader_.next = segment.first;
  }
  const auto damaged = [&] {
    return Error{Code::kDataLoss,
                 fmt::format("{} is damaged at byte {}", segment.file.string(), reader_.offset)};
  };
  for (;;) {
    const std::string head = read_at(reader_.descriptor, reader_.offset, kHead, segment.file);
    const std::uint32_t length = head.size() < kHead ? 0 : get32(head.data()), size = length & ~kNote;
    if (head.size() < kHead || reader_.offset + kHead + size > segment.bytes) throw damaged();
    if ((length & kNote) != 0) {
      reader_.offset += kHead + size;
      continue;
    }
    if (reader_.next == wanted) {
      const std::string bytes = read_at(reader_.descriptor, reader_.offset + kHead, size, segment.file);
      if (bytes.size() < size || crc32(bytes) != get32(head.data() + 4) || !batch.ParseFromString(bytes) ||
          batch.seq() != wanted)
        throw damaged();
    }
    ++reader_.next;
    reader_.offset += kHead + size;
    if (reader_.next > wanted) return batch;
  }
}

void RunSpool::acknowledge(std::uint64_t seq) {
  std::vector<fs::path> done;
  {
    const std::scoped_lock lock{mutex_};
    acknowledged_ = std::max(acknowledged_, std::min(seq, last_));
    while (segments_.size() > 1 && segments_[1].first <= acknowledged_ + 1) {
      done.push_back(std::move(segments_.front().file));
      segments_.pop_front();
    }
  }
  for (const fs::path& file : done) ::unlink(file.c_str());  // one that stays is sent again after a restart
}

void RunSpool::remove() {
  writer_.close();
  reader_.close();
  std::deque<Segment> segments;
  {
    const std::scoped_lock lock{mutex_};
    segments.swap(segments_);
  }
  for (const Segment& segment : segments) ::unlink(segment.file.c_str());
  if (::rmdir(folder_.c_str()) == 0 || errno == ENOENT) return;
  std::error_code
      ignored;  // what cannot be deleted is sent again by the next start, and refused by the scheduler
  fs::remove_all(folder_, ignored);
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

std::vector<std::uint32_t> spooled_runs(const fs::path& folder) {
  std::vector<std::uint32_t> runs;
  if (!fs::exists(folder)) return runs;
  for (const auto& entry : fs::directory_iterator{folder}) {
    const std::string name = entry.path().filename();
    std::uint32_t run = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), run);
    if (error == std::errc{} && end == name.data() + name.size() && entry.is_directory()) runs.push_back(run);
  }
  std::sort(runs.begin(), runs.end());
  return runs;
}

}  // namespace abl::agent
