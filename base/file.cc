// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "base/error.h"

namespace abl {
namespace fs = std::filesystem;

std::string read_file(const fs::path& file) {
  if (fs::is_directory(file))
    throw Error{Code::kInvalidArgument, file.string() + " is a folder, a file was expected"};
  std::ifstream in{file, std::ios::binary};
  if (!in) throw system_error("cannot read " + file.string(), errno);
  std::string text{std::istreambuf_iterator<char>{in}, {}};
  if (in.bad()) throw system_error("cannot read " + file.string(), errno);
  return text;
}

void write_file_atomically(const fs::path& file, std::string_view text) {
  std::string temporary = file.string() + ".XXXXXX";
  const int descriptor = ::mkostemp(temporary.data(), O_CLOEXEC);
  if (descriptor < 0) throw system_error("cannot write " + file.string(), errno);
  const auto fail = [&](int error_number) {
    ::unlink(temporary.c_str());
    return system_error("cannot write " + file.string(), error_number);
  };
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const int why = errno;
      ::close(descriptor);
      throw fail(why);
    }
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  const bool synced = ::fchmod(descriptor, 0644) == 0 && ::fsync(descriptor) == 0;
  const int why = errno;
  if (::close(descriptor) != 0 || !synced) throw fail(why);
  if (::rename(temporary.c_str(), file.c_str()) != 0) throw fail(errno);
}

void make_folder(const fs::path& folder) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) throw system_error("cannot create the folder " + folder.string(), failed.value());
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
