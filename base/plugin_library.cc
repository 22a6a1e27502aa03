// SPDX-License-Identifier: Apache-2.0
#include "base/plugin_library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>

#include "base/file.h"
#include "base/printable.h"
#include "base/sha256.h"

namespace abl {
namespace {

constexpr std::size_t kLongestInterface = 400;

/// A file without a name that holds these bytes, from where the dynamic linker reads them: nobody can
/// exchange them between the look at them and that. What was loaded from it keeps it open for good: the
/// linker takes a file of the same path for the one that it has loaded, and the path is the descriptor's
/// number.
class HeldInMemory {
 public:
  explicit HeldInMemory(const std::string& bytes) : fd_{::memfd_create("ablate-plugin", MFD_CLOEXEC)} {
    if (fd_ < 0) throw system_error("cannot hold a plugin in memory", errno);
    for (std::size_t done = 0; done < bytes.size();) {
      const auto wrote = ::write(fd_, bytes.data() + done, bytes.size() - done);
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote < 0) {
        const int error = errno;
        ::close(fd_);
        throw system_error("cannot hold a plugin in memory", error);
      }
      done += static_cast<std::size_t>(wrote);
    }
  }
  ~HeldInMemory() {
    if (fd_ >= 0) ::close(fd_);
  }
  HeldInMemory(const HeldInMemory&) = delete;
  HeldInMemory& operator=(const HeldInMemory&) = delete;

  std::string path() const { return fmt::format("/proc/self/fd/{}", fd_); }
  void keep() { fd_ = -1; }

 private:
  int fd_;
};

/// What stands behind the mark in a file; empty where it has none.
std::string interface_in(const std::string& bytes, std::string_view mark) {
  const auto at = bytes.find(mark);
  if (at == std::string::npos) return {};
  const std::string_view rest = std::string_view{bytes}.substr(at + mark.size(), kLongestInterface);
  return printable_line(std::string{rest.substr(0, rest.find('\0'))});
}

}  // namespace

PluginLibrary load_plugin_library(const PluginKind& kind, const std::string& what,
                                  const std::filesystem::path& file, const std::string& sha256) {
  const auto refuse = [&](Code code, const std::string& why) {
    throw Error{code, printable_line(fmt::format("{}: {} {}", what, file.string(), why))};
  };
  const std::string bytes = read_file(file);
  PluginLibrary library{.sha256 = sha256_hex(bytes)};
  if (!sha256.empty() && library.sha256 != sha256)
    throw OtherFile{printable_line(fmt::format("{}: {} has the SHA-256 {}; the trial wants {}", what,
                                               file.string(), library.sha256, sha256))};

  const std::string_view mark = kind.interface.substr(0, kind.interface.find(": ") + 2);
  const std::string_view ours = kind.interface.substr(mark.size());
  const std::string theirs = interface_in(bytes, mark);
  if (theirs.empty())
    refuse(Code::kInvalidArgument,
           fmt::format("is not a plugin; expected a shared library that was built with {} (docs/plugins.md)",
                       kind.macro));
  if (theirs != ours)
    refuse(Code::kFailedPrecondition,
           fmt::format("was built for {}; this trainer is {}: build it again", theirs, ours));

  HeldInMemory held{bytes};
  void* const loaded = ::dlopen(held.path().c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!loaded) {
    std::string why = ::dlerror();
    for (std::size_t at; (at = why.find(held.path())) != std::string::npos;)
      why.replace(at, held.path().size(), "it");
    refuse(Code::kInvalidArgument, fmt::format("cannot be loaded: {}", why));
  }
  held.keep();
  library.function = ::dlsym(loaded, kind.symbol);
  if (!library.function) refuse(Code::kInvalidArgument, fmt::format("has no {}(…) in it", kind.macro));
  return library;
}

std::optional<Error> refused_by_system(const std::string& what, const std::exception& error) {
  const auto* refused = dynamic_cast<const std::system_error*>(&error);
  if (!refused) return std::nullopt;
  const std::error_code& code = refused->code();
  if (code.category() != std::system_category() && code.category() != std::generic_category())
    return std::nullopt;
  return Error{system_error(what, code.value()).code(),
               printable_line(fmt::format("{}: {}", what, error.what()))};
}

void add_formats(const std::vector<std::string>& files) {
  const char* const before = std::getenv(kFormatsVariable);
  std::string all = before ? before : "";
  for (const std::string& file : files) {
    const auto path = std::filesystem::absolute(file).lexically_normal().string();
    std::error_code unreadable;
    if (!std::filesystem::is_regular_file(path, unreadable))
      throw Error{Code::kNotFound, fmt::format("--format {}: no such file", file)};
    if (path.find(':') != std::string::npos)
      throw Error{Code::kInvalidArgument,
                  fmt::format("--format {}: a path with ':' cannot be passed on", path)};
    if ((":" + all + ":").find(":" + path + ":") == std::string::npos) all += (all.empty() ? "" : ":") + path;
  }
  if (!files.empty()) ::setenv(kFormatsVariable, all.c_str(), /*overwrite=*/1);
}

}  // namespace abl
