// SPDX-License-Identifier: Apache-2.0
#include "base/new_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/error.h"

namespace abl {

NewFile::NewFile(std::filesystem::path file, const Options& options) : file_{std::move(file)} {
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

void NewFile::publish() {
  if (::fsync(descriptor_) != 0 || ::rename(part_.c_str(), file_.c_str()) != 0) fail();
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
