// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/processes.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <memory>
#include <string_view>

#include "base/error.h"
#include "base/file.h"

namespace abl::agent {
namespace {

/// A small file of /proc; 0 where it cannot be opened or read, with why in errno.
std::size_t read_small(const char* name, std::array<char, 2048>& buffer) {
  const int file = ::open(name, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const ssize_t size = ::read(file, buffer.data(), buffer.size());
  const int why = errno;
  ::close(file);
  errno = why;
  return size < 0 ? 0 : static_cast<std::size_t>(size);
}

/// Numbers and words between blanks.
class Fields {
 public:
  explicit Fields(std::string_view text) : rest_{text} {}
  std::string_view next() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(' '), rest_.size()));
    const auto field = rest_.substr(0, rest_.find_first_of(" \n"));
    rest_.remove_prefix(field.size());
    return field;
  }
  void skip(int fields) {
    while (fields-- > 0) next();
  }
  template <class Number>
  Number number() {
    const auto field = next();
    Number value = 0;
    if (std::from_chars(field.data(), field.data() + field.size(), value).ec != std::errc{})
      is_whole_ = false;
    return value;
  }
  bool is_whole() const { return is_whole_; }

 private:
  std::string_view rest_;
  bool is_whole_ = true;
};

}  // namespace

std::optional<Process> look_at(pid_t id) {
  std::array<char, 2048> buffer;
  const std::string_view text{buffer.data(), read_small(fmt::format("/proc/{}/stat", id).c_str(), buffer)};
  const auto name_end = text.rfind(')');  // the name before it may hold anything
  if (name_end == std::string_view::npos) return std::nullopt;
  Fields fields{text.substr(name_end + 1)};
  Process process{.id = id};
  const auto state = fields.next();
  process.state = state.empty() ? '\0' : state.front();
  process.parent = fields.number<pid_t>();
  process.group = fields.number<pid_t>();
  process.session = fields.number<pid_t>();
  fields.skip(7);                                                               // tty_nr to cmajflt
  for (int i = 0; i < 4; ++i) process.ticks += fields.number<std::uint64_t>();  // utime to cstime
  fields.skip(4);                                                               // priority to itrealvalue
  process.start = fields.number<std::uint64_t>();
  fields.skip(1);  // vsize
  process.resident_pages = fields.number<std::uint64_t>();
  return fields.is_whole() ? std::optional{process} : std::nullopt;
}

std::vector<Process> all_processes() {
  std::vector<Process> all;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder{::opendir("/proc"), ::closedir};
  if (!folder) return all;
  while (const dirent* entry = ::readdir(folder.get())) {
    const std::string_view name = entry->d_name;
    pid_t id = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), id);
    if (error != std::errc{} || end != name.data() + name.size() || id == ::getpid()) continue;
    if (const auto process = look_at(id)) all.push_back(*process);
  }
  return all;
}

std::optional<std::string> variable_of(pid_t id, const std::string& name) {
  std::string text;
  try {
    text = read_file(fmt::format("/proc/{}/environ", id));
  } catch (const Error&) {
    return std::nullopt;
  }
  const std::string wanted = name + "=";
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find('\0', start), text.size());
    if (text.compare(start, wanted.size(), wanted) == 0)
      return text.substr(start + wanted.size(), end - start - wanted.size());
    start = end + 1;
  }
  return std::nullopt;
}

std::optional<DiskTraffic> disk_traffic_of(pid_t id, bool& denied) {
  std::array<char, 2048> buffer;
  errno = 0;
  const std::string_view text{buffer.data(), read_small(fmt::format("/proc/{}/io", id).c_str(), buffer)};
  if (text.empty()) {
    if (errno == EACCES || errno == EPERM || (errno == ENOENT && look_at(id))) denied = true;
    return std::nullopt;
  }
  const auto number = [&](std::string_view key, std::uint64_t& value) {
    const auto found = text.find(key);
    if (found == std::string_view::npos) return false;
    const char* const begin = text.data() + found + key.size();
    return std::from_chars(begin, text.data() + text.size(), value).ec == std::errc{};
  };
  DiskTraffic traffic;
  if (number("\nread_bytes: ", traffic.read) && number("\nwrite_bytes: ", traffic.written)) return traffic;
  denied = true;
  return std::nullopt;
}

}  // namespace abl::agent
