// SPDX-License-Identifier: Apache-2.0
#include "base/new_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.h"

namespace abl {
namespace {

std::filesystem::path beside(const std::filesystem::path& file, const char* ending) {
  return file.string() + ending;
}

}  // namespace

OutputFile::OutputFile(const std::filesystem::path& file) : file_{file}, part_{beside(file, ".part")} {
  descriptor_ = ::open(part_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor_ < 0) fail();
}

OutputFile::~OutputFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(part_.c_str());
}

void OutputFile::fail() const { throw system_error("cannot write " + file_.string(), errno); }

void OutputFile::write(std::uint64_t offset, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail();
    offset += static_cast<std::uint64_t>(written);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

void OutputFile::publish() {
  if (::fsync(descriptor_) != 0 || ::rename(part_.c_str(), file_.c_str()) != 0) fail();
  ::close(descriptor_);
  descriptor_ = -1;
  const auto folder = std::filesystem::absolute(file_).parent_path();
  if (const int opened = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); opened >= 0) {
    ::fsync(opened);  // the name too; where a file system refuses, the content is safe at least
    ::close(opened);
  }
}

}  // namespace abl
