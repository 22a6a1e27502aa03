// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/spool.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <utility>

#include "base/error.h"
#include "base/file.h"

namespace abl::agent {
namespace fs = std::filesystem;
using ablate::v1::RunBatch;
namespace {

constexpr std::size_t kHead = 8;
constexpr std::uint64_t kCompactAbove = 1 << 20;  // bytes of acknowledged records

void put32(std::string& out, std::uint32_t value) {
  for (int shift = 0; shift < 32; shift += 8) out.push_back(static_cast<char>(value >> shift));
}
std::uint32_t get32(const char* in) {
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value |= std::uint32_t{static_cast<unsigned char>(in[i])} << (8 * i);
  return value;
}
std::uint32_t checksum(std::string_view bytes) {
  return static_cast<std::uint32_t>(
      crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size())));
}
std::string record_of(std::string_view payload) {
  std::string record;
  put32(record, static_cast<std::uint32_t>(payload.size()));
  put32(record, checksum(payload));
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

int open_file(const fs::path& file, int flags) {
  const int descriptor = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | flags, 0600);
  if (descriptor < 0) throw system_error("cannot open " + file.string(), errno);
  return descriptor;
}

}  // namespace

RunSpool::RunSpool(fs::path folder, std::uint32_t run)
    : folder_{std::move(folder)}, file_{folder_ / "batches"}, run_{run} {
  make_folder(folder_);
  descriptor_ = open_file(file_, 0);
  try {
    read_records();
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

RunSpool::RunSpool(RunSpool&& other) noexcept
    : folder_{std::move(other.folder_)},
      file_{std::move(other.file_)},
      run_{other.run_},
      descriptor_{std::exchange(other.descriptor_, -1)},
      end_{other.end_},
      last_{other.last_},
      acknowledged_{other.acknowledged_},
      ended_{other.ended_},
      records_{std::move(other.records_)} {}

RunSpool::~RunSpool() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void RunSpool::read_records() {
  for (;;) {
    const std::string head = read_at(descriptor_, end_, kHead, file_);
    if (head.size() < kHead) break;
    const std::uint32_t size = get32(head.data());
    const off_t file_size = ::lseek(descriptor_, 0, SEEK_END);
    if (file_size < 0 || end_ + kHead + size > static_cast<std::uint64_t>(file_size)) break;
    const std::string bytes = read_at(descriptor_, end_ + kHead, size, file_);
    RunBatch batch;
    if (checksum(bytes) != get32(head.data() + 4) || !batch.ParseFromString(bytes)) break;
    records_.push_back({.seq = batch.seq(), .offset = end_ + kHead, .size = size, .in_memory = {}});
    end_ += kHead + size;
    last_ = batch.seq();
    ended_ = batch.has_ended();
  }
  if (::ftruncate(descriptor_, static_cast<off_t>(end_)) != 0)
    throw system_error("cannot shorten " + file_.string(), errno);
}

void RunSpool::append(RunBatch batch) {
  batch.set_run(run_);
  batch.set_seq(last_ + 1);
  const std::string bytes = batch.SerializeAsString();
  try {
    write_at(descriptor_, end_, record_of(bytes), file_);
  } catch (const Error&) {
    [[maybe_unused]] const int shortened = ::ftruncate(descriptor_, static_cast<off_t>(end_));
    throw;
  }
  records_.push_back({.seq = ++last_,
                      .offset = end_ + kHead,
                      .size = static_cast<std::uint32_t>(bytes.size()),
                      .in_memory = {}});
  end_ += kHead + bytes.size();
  ended_ = batch.has_ended();
}

void RunSpool::append_in_memory(RunBatch batch) {
  batch.set_run(run_);
  batch.set_seq(last_ + 1);
  records_.push_back({.seq = ++last_, .offset = end_, .size = 0, .in_memory = batch.SerializeAsString()});
  ended_ = batch.has_ended();
}

std::string RunSpool::payload(const Record& record) const {
  return record.in_memory.empty() ? read_at(descriptor_, record.offset, record.size, file_)
                                  : record.in_memory;
}

std::optional<RunBatch> RunSpool::after(std::uint64_t seq) const {
  if (records_.empty() || seq >= last_) return std::nullopt;
  const std::uint64_t first = records_.front().seq;
  const Record& record = records_[seq < first ? 0 : seq + 1 - first];
  RunBatch batch;
  if (!batch.ParseFromString(payload(record)) || batch.seq() != record.seq)
    throw Error{Code::kDataLoss, fmt::format("{} is damaged at byte {}", file_.string(), record.offset)};
  return batch;
}

void RunSpool::acknowledge(std::uint64_t seq) {
  acknowledged_ = std::max(acknowledged_, std::min(seq, last_));
  const auto first_kept = std::find_if(records_.begin(), records_.end(), [&](const Record& record) {
    return record.seq > acknowledged_ || record.seq == last_;
  });
  if (first_kept == records_.end()) return;
  const std::uint64_t dead = first_kept->offset;
  if (dead > kCompactAbove && dead > end_ / 2) compact();
}

void RunSpool::compact() {
  std::string kept;
  std::deque<Record> records;
  for (const Record& record : records_) {
    if (record.seq <= acknowledged_ && record.seq != last_) continue;
    records.push_back(record);
    if (!record.in_memory.empty()) continue;
    records.back().offset = kept.size() + kHead;
    kept += record_of(payload(record));
  }
  // no fsync: this must survive the end of the program, not of the machine
  const fs::path fresh = folder_ / "batches.new";
  const int descriptor = open_file(fresh, O_TRUNC);
  try {
    write_at(descriptor, 0, kept, fresh);
    if (::rename(fresh.c_str(), file_.c_str()) != 0)
      throw system_error("cannot replace " + file_.string(), errno);
  } catch (const Error&) {
    ::close(descriptor);
    ::unlink(fresh.c_str());
    throw;
  }
  ::close(std::exchange(descriptor_, descriptor));
  records_ = std::move(records);
  end_ = kept.size();
}

void RunSpool::remove() {
  ::close(std::exchange(descriptor_, -1));
  std::error_code
      ignored;  // what cannot be deleted is sent again by the next start, and refused by the scheduler
  fs::remove_all(folder_, ignored);
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
