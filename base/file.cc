// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "base/error.h"
#include "base/new_file.h"

namespace abl {
namespace fs = std::filesystem;

namespace {

/// Closes what was opened.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_{number} {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  operator int() const { return number_; }

 private:
  const int number_;
};

}  // namespace

std::string read_file(const fs::path& file) {
  const auto fail = [&] { return system_error("cannot read " + file.string(), errno); };
  const Descriptor in{::open(file.c_str(), O_RDONLY | O_CLOEXEC)};
  struct stat facts {};
  if (in < 0 || ::fstat(in, &facts) != 0) throw fail();
  if (S_ISDIR(facts.st_mode))
    throw Error{Code::kInvalidArgument, file.string() + " is a folder, a file was expected"};
  // the size is a guess: files of /proc say 0, others may grow; a byte more shows the end at once
  std::string text(static_cast<std::size_t>(facts.st_size) + 1, '\0');
  for (std::size_t size = 0;;) {
    const ssize_t got = ::read(in, text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw fail();
    size += static_cast<std::size_t>(got);
    if (got == 0) {
      text.resize(size);
      return text;
    }
    if (size == text.size()) text.resize(2 * size + 4096);
  }
}

void write_file(const fs::path& file, std::string_view text) {
  const Descriptor out{::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)};
  while (out >= 0 && !text.empty()) {
    const ssize_t wrote = ::write(out, text.data(), text.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) break;
    text.remove_prefix(static_cast<std::size_t>(wrote));
  }
  if (out < 0 || !text.empty()) throw system_error("cannot write " + file.string(), errno);
}

void write_file_atomically(const fs::path& file, std::string_view text) {
  NewFile out{file, {.ending = ".XXXXXX"}};
  out.append(text);
  out.publish();
}

std::vector<fs::path> make_folder(const fs::path& folder) {
  std::error_code unknown;
  if (folder.empty() || fs::is_directory(folder, unknown)) return {};
  const fs::path above = folder.has_filename() ? folder.parent_path() : folder.parent_path().parent_path();
  std::vector<fs::path> made = make_folder(above);
  if (::mkdir(folder.c_str(), 0700) == 0)
    made.push_back(folder);
  else if (errno != EEXIST || !fs::is_directory(folder, unknown))
    throw system_error("cannot create the folder " + folder.string(), errno == EEXIST ? ENOTDIR : errno);
  return made;
}

void try_to_write(const fs::path& folder, std::size_t bytes) {
  make_folder(folder);
  std::string file = (folder / ".probe-XXXXXX").string();
  const int descriptor = ::mkostemp(file.data(), O_CLOEXEC);
  if (descriptor < 0) throw system_error("cannot write in " + folder.string(), errno);
  ::unlink(file.c_str());
  int why = 0;
  const std::string block(64 << 10, 'p');
  while (bytes > 0 && why == 0) {
    const ssize_t wrote = ::write(descriptor, block.data(), std::min(bytes, block.size()));
    if (wrote >= 0)
      bytes -= static_cast<std::size_t>(wrote);
    else if (errno != EINTR)
      why = errno;
  }
  if (why == 0 && ::fsync(descriptor) != 0) why = errno;
  if (::close(descriptor) != 0 && why == 0) why = errno;
  if (why != 0) throw system_error("cannot write in " + folder.string(), why);
}

fs::path program_folder() { return fs::read_symlink("/proc/self/exe").parent_path(); }

fs::path home_folder() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string{value ? value : ""};
  };
  if (const auto home = variable("ABLATE_HOME"); !home.empty()) return fs::absolute(home);
  if (const auto state = variable("XDG_STATE_HOME"); !state.empty()) return fs::path{state} / "ablate";
  const auto home = variable("HOME");
  if (home.empty())
    throw Error{Code::kFailedPrecondition,
                "neither ABLATE_HOME nor HOME is set: no folder for the results; set ABLATE_HOME"};
  return fs::path{home} / ".local/state/ablate";
}

}  // namespace abl
