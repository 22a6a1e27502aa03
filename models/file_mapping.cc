// SPDX-License-Identifier: Apache-2.0
#include "models/file_mapping.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.h"

namespace abl::models {

FileMapping::FileMapping(const std::filesystem::path& file) {
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe must not wait
  if (descriptor < 0) throw system_error("cannot read " + file.string(), errno);
  struct stat status {};
  const bool regular = ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
  size_ = static_cast<std::uint64_t>(status.st_size);
  void* start = nullptr;  // stays so for an empty file, which cannot be mapped
  if (regular && size_ > 0)
    start = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, descriptor, 0);
  const int why = errno;
  ::close(descriptor);
  if (!regular) throw Error{Code::kInvalidArgument, file.string() + " is not a regular file"};
  if (start == MAP_FAILED) throw system_error("cannot map " + file.string(), why);
  start_ = static_cast<char*>(start);
}

FileMapping::~FileMapping() {
  if (start_ != nullptr) ::munmap(start_, size_);
}

}  // namespace abl::models
