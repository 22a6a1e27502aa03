// SPDX-License-Identifier: Apache-2.0
#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.h"

namespace abl {

MappedFile::MappedFile(const std::filesystem::path& file, Access access) : path_{file} {
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a FIFO would wait
  if (descriptor < 0) throw system_error("cannot read " + file.string(), errno);
  struct stat status {};
  const bool known = ::fstat(descriptor, &status) == 0;
  if (!known || !S_ISREG(status.st_mode)) {
    const auto error = known ? Error{Code::kInvalidArgument, file.string() + " is not a regular file"}
                             : system_error("cannot read " + file.string(), errno);
    ::close(descriptor);
    throw error;
  }
  const bool writable = access == Access::kCopyOnWrite;
  const auto size = static_cast<std::size_t>(status.st_size);
  void* memory = nullptr;  // stays so for an empty file, which cannot be mapped
  if (size > 0)
    memory = ::mmap(nullptr, size, writable ? PROT_READ | PROT_WRITE : PROT_READ,
                    writable ? MAP_PRIVATE | MAP_NORESERVE : MAP_SHARED, descriptor, 0);
  const int why = errno;
  ::close(descriptor);
  if (memory == MAP_FAILED) throw system_error("cannot map " + file.string(), why);
  start_ = static_cast<char*>(memory), size_ = size;
}

MappedFile::~MappedFile() {
  if (start_ != nullptr) ::munmap(start_, size_);
}

}  // namespace abl
