// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/data/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.h"

namespace abl::trainer {

MappedFile::MappedFile(const std::filesystem::path& file) : path_{file} {
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a FIFO would wait
  if (descriptor < 0) throw system_error("cannot read " + file.string(), errno);
  struct stat status {};
  const bool known = ::fstat(descriptor, &status) == 0;
  if (!known || !S_ISREG(status.st_mode)) {
    const auto error = known ? Error{Code::kInvalidArgument, file.string() + " is no regular file"}
                             : system_error("cannot read " + file.string(), errno);
    ::close(descriptor);
    throw error;
  }
  const auto size = static_cast<std::size_t>(status.st_size);
  void* memory = size > 0 ? ::mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor, 0) : nullptr;
  const int why = errno;
  ::close(descriptor);
  if (memory == MAP_FAILED) throw system_error("cannot map " + file.string(), why);
  if (memory) bytes_ = {static_cast<const char*>(memory), size};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<char*>(bytes_.data()), bytes_.size());
}

}  // namespace abl::trainer
