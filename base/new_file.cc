// SPDX-License-Identifier: Apache-2.0
#include "base/new_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/error.h"
#include "base/fail_point.h"

namespace abl {
namespace {

constexpr std::string_view kUnfinished = ".tmp";

}  // namespace

std::string unfinished_ending() { return fmt::format(".{}{}", ::getpid(), kUnfinished); }

std::optional<std::string_view> finished_name(std::string_view unfinished) {
  if (!unfinished.ends_with(kUnfinished)) return std::nullopt;
  unfinished.remove_suffix(kUnfinished.size());
  const std::size_t dot = unfinished.find_last_not_of("0123456789");
  if (dot == std::string_view::npos || dot + 1 == unfinished.size() || unfinished[dot] != '.')
    return std::nullopt;
  return unfinished.substr(0, dot);
}

NewFile::NewFile(std::filesystem::path file, const Options& options) : file_{std::move(file)} {
  namespace fs = std::filesystem;
  std::error_code failed;
  if (fs::is_symlink(fs::symlink_status(file_, failed)))  // what it leads to is written; the link stays
    if (const fs::path real = fs::weakly_canonical(file_, failed); !failed) file_ = real;
  if (const auto there = fs::status(file_, failed); fs::exists(there) && !fs::is_regular_file(there))
    throw Error{Code::kInvalidArgument,
                fmt::format("cannot write {}: not a regular file; expected the name of one", file_.string())};
  std::string part = file_.string() + options.ending;
  if (part.ends_with("XXXXXX")) {
    descriptor_ = ::mkostemp(part.data(), O_CLOEXEC);
  } else {
    ::unlink(part.c_str());
    descriptor_ = ::open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, options.mode);
  }
  if (descriptor_ < 0) fail();
  part_ = part;
  if (options.ending.ends_with("XXXXXX") && ::fchmod(descriptor_, options.mode) != 0) {
    const int why = errno;
    ::unlink(part_.c_str());
    ::close(descriptor_);
    throw system_error("cannot write " + file_.string(), why);
  }
}

NewFile::~NewFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(part_.c_str());
}

void NewFile::fail() const { throw system_error("cannot write " + file_.string(), errno); }

void NewFile::append(std::string_view bytes) {
  write(end_, bytes);
  end_ += bytes.size();
}

void NewFile::write(std::uint64_t offset, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail();
    offset += static_cast<std::uint64_t>(written);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

void NewFile::take_content_of(const std::filesystem::path& written) {
  std::error_code failed;
  std::filesystem::remove(part_, failed);  // no second name is given over a file
  std::filesystem::create_hard_link(written, part_, failed);
  if (failed) std::filesystem::copy_file(written, part_, failed);
  if (failed) throw system_error("cannot write " + file_.string(), failed.value());
  const int opened = ::open(part_.c_str(), O_RDONLY | O_CLOEXEC);  // enough to sync it
  if (opened < 0) fail();
  ::close(std::exchange(descriptor_, opened));
}

void NewFile::publish() {
  if (::fsync(descriptor_) != 0) fail();
  fail_point(FailPoint::kBeforeRename);
  if (::rename(part_.c_str(), file_.c_str()) != 0) fail();
  fail_point(FailPoint::kAfterRename);
  ::close(std::exchange(descriptor_, -1));
  // the name too; where a file system, or a folder that cannot be read, refuses, the content is safe at least
  const auto folder = std::filesystem::absolute(file_).parent_path();
  const int opened = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (opened < 0) return;
  const int why = ::fsync(opened) == 0 ? 0 : errno;
  ::close(opened);
  if (why == EIO || why == ENOSPC || why == EDQUOT) throw system_error("cannot write " + file_.string(), why);
}

}  // namespace abl
