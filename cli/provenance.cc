// SPDX-License-Identifier: Apache-2.0
#include "cli/provenance.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <optional>
#include <sstream>
#include <string_view>
#include <vector>

#include "base/child_process.h"
#include "base/sha256.h"
#include "base/utf8.h"
#include "cli/format.h"
#include "planning/validate.h"
#include "sweeps/sweep_spec.h"

namespace abl::cli {
namespace {

namespace fs = std::filesystem;
namespace v1 = ablate::v1;
using Monotonic = std::chrono::steady_clock;
using Sink = std::function<void(std::string_view)>;

/// What a program said, as far as it came.
struct Said {
  int code = -1;       ///< of its end; -1: it was killed, or did not start
  std::string errors;  ///< the end of what it wrote there, or why it did not start
  bool late = false;   ///< it was not done in time
  bool ok() const { return code == 0; }
};

/// Runs a program until a moment and no longer; what it writes goes to `sink` piece by piece, however much it
/// is.
Said run_until(const std::vector<std::string>& argv, const fs::path& folder, Monotonic::time_point end,
               const Sink& sink) {
  Said said;
  std::array<int, 2> out{-1, -1}, err{-1, -1};
  const auto close_all = [&] {
    for (int* fd : {&out[0], &out[1], &err[0], &err[1]})
      if (*fd >= 0) ::close(*fd), *fd = -1;
  };
  if (::pipe2(out.data(), O_CLOEXEC) != 0 || ::pipe2(err.data(), O_CLOEXEC) != 0) {
    close_all();
    said.errors = "no pipe could be made";
    return said;
  }
  std::optional<ChildProcess> child;
  try {
    child.emplace(
        ChildOptions{.argv = argv,
                     .environment = {{"GIT_OPTIONAL_LOCKS", "0"},  // a look changes nothing
                                     {"GIT_TERMINAL_PROMPT", "0"},
                                     {"GIT_LITERAL_PATHSPECS", "1"},  // a folder may be called ":(top)"
                                     {"GIT_NO_LAZY_FETCH", "1"},      // nothing comes from a remote
                                     {"GIT_ALLOW_PROTOCOL", "none"},
                                     {"LC_ALL", "C"}},
                     .working_directory = folder,
                     .stdout_fd = out[1],
                     .stderr_fd = err[1],
                     .grace = std::chrono::milliseconds{0}});
  } catch (const Error& error) {
    close_all();
    said.errors = error.what();
    return said;
  }
  for (int* fd : {&out[1], &err[1]}) ::close(*fd), *fd = -1;
  constexpr std::size_t kMostErrors = 4096;
  std::vector<char> buffer(64 << 10);
  while (out[0] >= 0 || err[0] >= 0) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Monotonic::now());
    if (left.count() <= 0) {
      said.late = true;
      break;
    }
    std::array<pollfd, 2> watched{pollfd{out[0], POLLIN, 0}, pollfd{err[0], POLLIN, 0}};
    const bool ended = child->poll().has_value();  // what it has left behind may hold the pipes open
    const int ready = ::poll(watched.data(), watched.size(),
                             ended ? 0 : static_cast<int>(std::min<long long>(left.count(), 100)));
    if (ended && ready == 0) break;
    const auto drain = [&](int& fd, short events, const Sink& into) {
      if (fd < 0 || events == 0) return;
      const ssize_t got = ::read(fd, buffer.data(), buffer.size());
      if (got > 0) into({buffer.data(), static_cast<std::size_t>(got)});
      if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN)) ::close(fd), fd = -1;
    };
    drain(out[0], watched[0].revents, sink);
    drain(err[0], watched[1].revents, [&](std::string_view bytes) {
      said.errors += bytes;
      if (said.errors.size() > kMostErrors) said.errors.erase(0, said.errors.size() - kMostErrors);
    });
  }
  close_all();
  if (said.late)
    child->kill();
  else if (const auto exit = child->wait(std::chrono::duration_cast<std::chrono::milliseconds>(
               std::max(end - Monotonic::now(), Monotonic::duration{std::chrono::milliseconds{100}}))))
    said.code = exit->signal == 0 ? exit->code : -1;
  else
    said.late = true, child->kill();
  return said;
}

/// What a program wrote: its first bytes, and the length and the digest of all.
struct Kept {
  Said said;
  std::string text, sha256;
  std::uint64_t bytes = 0;
};

Kept run_kept(const std::vector<std::string>& argv, const fs::path& folder, Monotonic::time_point end,
              std::size_t most) {
  Kept kept;
  Sha256 digest;
  kept.said = run_until(argv, folder, end, [&](std::string_view bytes) {
    digest.update(bytes);
    kept.bytes += bytes.size();
    kept.text += bytes.substr(0, most - std::min(most, kept.text.size()));
  });
  kept.sha256 = digest.hex();
  return kept;
}

/// The first bytes of a text that are whole characters, with what is not UTF-8 replaced.
std::string as_utf8(std::string text, bool cut) {
  if (cut)  // a character in two halves is not a wrong one
    for (int i = 0; i < 3 && !text.empty() && (static_cast<unsigned char>(text.back()) & 0x80) != 0; ++i) {
      const bool lead = (static_cast<unsigned char>(text.back()) & 0x40) != 0;
      text.pop_back();
      if (lead) break;
    }
  return valid_utf8(text);
}

std::string last_line(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return valid_utf8(text.substr(text.rfind('\n') + 1));
}

std::string seconds_text(std::chrono::milliseconds time) {
  return fmt::format("{} s", static_cast<double>(time.count()) / 1000);
}

/// git, in one folder, until one moment.
class Git {
 public:
  Git(fs::path folder, const ProvenanceLimits& limits)
      : folder_{std::move(folder)}, end_{Monotonic::now() + limits.patience} {}

  Kept run(const std::vector<std::string>& arguments, std::size_t most = 1 << 16) const {
    return run_kept(command(arguments), folder_, end_, most);
  }
  /// A line that it prints, without its end; nothing where it fails.
  std::optional<std::string> line(const std::vector<std::string>& arguments) const {
    Kept kept = run(arguments);
    if (!kept.said.ok()) return std::nullopt;
    if (!kept.text.empty() && kept.text.back() == '\n') kept.text.pop_back();
    return std::move(kept.text);
  }
  Said each(const std::vector<std::string>& arguments, const Sink& sink) const {
    return run_until(command(arguments), folder_, end_, sink);
  }
  void enter(fs::path folder) { folder_ = std::move(folder); }
  Monotonic::time_point end() const { return end_; }

 private:
  static std::vector<std::string> command(const std::vector<std::string>& arguments) {
    // no program that a repository's configuration names is run
    std::vector<std::string> argv{
        "git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.quotePath=true"};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    return argv;
  }
  fs::path folder_;
  Monotonic::time_point end_;
};

/// Why git knows no work tree there.
std::string why_none(const Said& said, const ProvenanceLimits& limits) {
  if (said.late) return fmt::format("git gave no answer within {}", seconds_text(limits.patience));
  if (said.errors.find("not a git repository") != std::string::npos) return "no git repository";
  if (said.errors.find("must be run in a work tree") != std::string::npos)
    return "a git repository without a work tree";
  if (said.errors.find("dubious ownership") != std::string::npos)
    return "git refuses the repository of another user";
  return last_line(said.errors).empty() ? "git failed" : last_line(said.errors);
}

/// What switches off the filters that the configuration names: git would run them to compare a file, and a
/// folder that somebody has unpacked may bring its own. Nothing where one cannot be switched off.
std::optional<std::vector<std::string>> without_filters(const Git& git) {
  const Kept list = git.run({"config", "--null", "--name-only", "--get-regexp", "^filter\\."}, 1 << 20);
  if (list.said.late || list.bytes > list.text.size()) return std::nullopt;
  std::vector<std::string> flags;
  std::istringstream names{list.text};
  for (std::string key; std::getline(names, key, '\0');) {
    if (key.find('=') != std::string::npos) return std::nullopt;  // a flag's key ends there
    flags.insert(flags.end(), {"-c", key + (key.ends_with(".required") ? "=false" : "=")});
  }
  return flags;
}

/// Folders of a work tree, from its root; none of them is within another. The root is ".".
class Folders {
 public:
  /// Of those that lie in it.
  Folders(const std::vector<fs::path>& folders, const fs::path& root) {
    for (const fs::path& folder : folders) {
      std::error_code unknown;
      const fs::path place = fs::weakly_canonical(folder, unknown);
      const fs::path name = unknown ? fs::path{} : place.lexically_relative(root);
      if (!name.empty() && *name.begin() != "..") add(name.string());
    }
  }
  const std::vector<std::string>& names() const { return names_; }
  bool have(std::string_view file) const {
    return std::ranges::any_of(names_, [&](const std::string& name) { return is_within(file, name); });
  }

 private:
  static bool is_within(std::string_view path, const std::string& folder) {
    return folder == "." || path == folder || path.starts_with(folder + "/");
  }
  void add(const std::string& name) {
    if (have(name)) return;
    std::erase_if(names_, [&](const std::string& other) { return is_within(other, name); });
    names_.push_back(name);
  }
  std::vector<std::string> names_;
};

/// "git diff …", without any program that the repository names; nothing where that cannot be.
std::optional<std::vector<std::string>> diff_command(const Git& git, const char* how) {
  auto arguments = without_filters(git);
  if (!arguments) return std::nullopt;
  for (const char* word :
       {"diff", how, "--no-ext-diff", "--no-textconv", "--no-color", "--no-renames", "--full-index",
        "--submodule=short", "--ignore-submodules=dirty", "--src-prefix=a/", "--dst-prefix=b/", "HEAD", "--"})
    arguments->emplace_back(word);
  return arguments;
}

/// How many tracked files outside of these folders differ from the commit.
void count_elsewhere(const Git& git, const Folders& folders, v1::Git& message) {
  const auto arguments = diff_command(git, "--name-only");
  if (!arguments || folders.have("")) return;
  auto separated = *arguments;
  separated.insert(std::ranges::find(separated, "--name-only"), "-z");
  std::string name;
  std::uint32_t files = 0;
  git.each(separated, [&](std::string_view bytes) {
    for (const char c : bytes) {
      if (c != '\0') {
        name += c;
      } else {
        files += !folders.have(name);
        name.clear();
      }
    }
  });
  message.set_changed_elsewhere(files);
}

void add_diff(const Git& git, const Folders& folders, const ProvenanceLimits& limits, v1::Git& message) {
  if (message.commit().empty()) {
    message.set_diff_missing("nothing is committed yet");
    return;
  }
  auto arguments = diff_command(git, "--patch");
  if (!arguments) {
    message.set_diff_missing("git's configuration names filters that cannot be switched off");
    return;
  }
  arguments->insert(arguments->end(), folders.names().begin(), folders.names().end());
  Kept diff = git.run(*arguments, limits.diff);
  if (diff.said.ok() && diff.bytes == 0) return;
  if (!diff.said.ok()) {  // what came so far is a part of nobody knows how much
    message.set_diff_missing(diff.said.late
                                 ? fmt::format("git diff took longer than {}", seconds_text(limits.patience))
                                 : "git diff failed: " + last_line(diff.said.errors));
    return;
  }
  message.set_dirty(true);
  message.set_diff_sha256(diff.sha256);
  message.set_diff_bytes(diff.bytes);
  const bool cut = diff.bytes > diff.text.size();
  message.set_diff(as_utf8(std::move(diff.text), cut));
  if (cut) message.set_diff_missing(fmt::format("cut after {} of {} bytes", limits.diff, diff.bytes));
}

/// Of a regular file its size, and its digest where that is worth reading.
void add_untracked(const fs::path& root, const std::string& name, Monotonic::time_point end,
                   std::uint64_t& may_read, v1::Git& message) {
  auto& file = *message.add_untracked();
  file.set_name(valid_utf8(name));
  std::error_code failed;
  const fs::path path = root / fs::path{name};
  if (fs::symlink_status(path, failed).type() != fs::file_type::regular) return;  // a pipe is not opened
  const auto bytes = fs::file_size(path, failed);
  if (failed) return;
  file.set_bytes(bytes);
  if (bytes > may_read || Monotonic::now() >= end) return;
  may_read -= bytes;
  try {
    file.set_sha256(sha256_file(path));
  } catch (const Error&) {  // it may not be read
  }
}

void add_untracked(const Git& git, const Folders& folders, const fs::path& root,
                   const ProvenanceLimits& limits, v1::Git& message) {
  std::vector<std::string> names, arguments{"ls-files", "--others", "--exclude-standard", "-z", "--"};
  arguments.insert(arguments.end(), folders.names().begin(), folders.names().end());
  std::string rest;
  std::uint32_t more = 0;
  const Said said = git.each(arguments, [&](std::string_view bytes) {
    for (const char c : bytes) {
      if (c != '\0') {
        if (static_cast<int>(names.size()) < limits.untracked) rest += c;
      } else if (static_cast<int>(names.size()) < limits.untracked) {
        names.push_back(std::exchange(rest, {}));
      } else {
        ++more;
      }
    }
  });
  std::uint64_t may_read = limits.hashed;
  for (const std::string& name : names) add_untracked(root, name, git.end(), may_read, message);
  message.set_untracked_left_out(more);
  if (!names.empty()) message.set_dirty(true);
  if (!said.ok() && message.diff_missing().empty())
    message.set_diff_missing(said.late ? fmt::format("untracked files: not all were listed within {}",
                                                     seconds_text(limits.patience))
                                       : "untracked files: " + last_line(said.errors));
}

std::string own_user() {
  const passwd* user = ::getpwuid(::geteuid());
  return user ? valid_utf8(user->pw_name) : fmt::format("{}", ::geteuid());
}

std::string own_host() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? valid_utf8(name.data()) : "";
}

/// The program of a command where it is a Python.
std::string python_of(const sweeps::Command& command) {
  const std::string& program = command.argv.at(0);
  const std::string name = fs::path{program}.filename().string();
  if (program.find('{') != std::string::npos || !name.starts_with("python") ||
      name.find_first_not_of("0123456789.", std::string_view{"python"}.size()) != std::string::npos)
    return "";
  // as execvp takes it: a name with a slash starts at the folder
  return program.find('/') == std::string::npos || fs::path{program}.is_absolute() || command.folder.empty()
             ? program
             : (fs::path{command.folder} / program).lexically_normal().string();
}

/// Where the files lie that a command line names: its program, and scripts that this is given.
std::vector<fs::path> folders_of_files(const sweeps::Command& command, const fs::path& folder) {
  std::vector<fs::path> places;
  for (const std::string& word : command.argv) {
    std::error_code unknown;
    if (word.empty() || word.find('{') != std::string::npos) continue;
    const fs::path file = fs::weakly_canonical(folder / word, unknown);
    if (!unknown && fs::is_regular_file(file, unknown)) places.push_back(file.parent_path());
  }
  return places;
}

void add_packages(const std::string& python, const fs::path& folder, const ProvenanceLimits& limits,
                  v1::Provenance& message) {
  message.set_python(valid_utf8(python));
  const auto end = Monotonic::now() + limits.patience;
  // with the folder off Python's path: a pip.py there is not pip
  Kept list = run_kept({python, "-c",
                        "import sys\n"
                        "sys.path[:] = [p for p in sys.path if p]\n"
                        "sys.argv = ['pip', '--disable-pip-version-check', '--no-input', 'freeze']\n"
                        "import runpy; runpy.run_module('pip', run_name='__main__')"},
                       folder, end, limits.packages);
  if (!list.said.ok() && !list.said.late && list.said.errors.find("No module named pip") != std::string::npos)
    list = run_kept(
        {python, "-c",
         "import sys\n"
         "sys.path[:] = [p for p in sys.path if p]\n"
         "import importlib.metadata as m\n"
         "for name, version in sorted({(d.metadata['Name'] or '?', d.version) for d in m.distributions()}): "
         "print(f'{name}=={version}')"},
        folder, end, limits.packages);
  if (!list.said.ok()) {
    message.set_packages_missing(
        list.said.late ? fmt::format("pip freeze took longer than {}", seconds_text(limits.patience))
                       : last_line(list.said.errors));
    if (message.packages_missing().empty()) message.set_packages_missing("pip freeze failed");
    return;
  }
  message.set_packages_sha256(list.sha256);
  message.set_packages_bytes(list.bytes);
  const bool cut = list.bytes > list.text.size();
  if (cut) list.text.resize(list.text.rfind('\n') + 1);  // whole lines: the secret of a URL stays whole too
  message.set_packages(without_secrets(as_utf8(std::move(list.text), false)));
}

}  // namespace

std::string without_secrets(std::string_view text) {
  constexpr std::string_view kBegins = "://", kSpace = " \t\r\n";
  std::string clean;
  while (!text.empty()) {
    const auto found = text.find(kBegins);
    if (found == std::string_view::npos) break;
    clean += text.substr(0, found + kBegins.size());
    text.remove_prefix(found + kBegins.size());
    const auto host = text.substr(0, text.find_first_of("/ \t\r\n"));
    if (const auto user = host.rfind('@'); user != std::string_view::npos) text.remove_prefix(user + 1);
    const auto url = text.substr(0, text.find_first_of(kSpace));
    const auto path = url.substr(0, url.find_first_of("?#"));
    clean += path;
    text.remove_prefix(path.size());
    if (text.starts_with('?'))
      text.remove_prefix(std::min(url.find('#', path.size()), url.size()) - path.size());
  }
  return clean += text;
}

void add_git(const std::vector<fs::path>& folders, const ProvenanceLimits& limits, v1::Provenance& message) {
  for (const char* name : {"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_PREFIX",
                           "GIT_OBJECT_DIRECTORY", "GIT_NAMESPACE"})
    ::unsetenv(name);  // where a hook of another repository submits
  Git git{folders.at(0), limits};
  Kept root = git.run({"rev-parse", "--show-toplevel"});
  if (!root.said.ok()) {
    message.set_git_missing(why_none(root.said, limits));
    return;
  }
  if (!root.text.empty() && root.text.back() == '\n') root.text.pop_back();
  v1::Git& found = *message.mutable_git();
  found.set_root(valid_utf8(root.text));
  git.enter(fs::path{root.text});
  found.set_commit(valid_utf8(git.line({"rev-parse", "--verify", "--quiet", "HEAD"}).value_or("")));
  found.set_branch(valid_utf8(git.line({"symbolic-ref", "--quiet", "--short", "HEAD"}).value_or("")));
  const std::string remote =
      found.branch().empty()
          ? "origin"
          : git.line({"config", "--get", "branch." + found.branch() + ".remote"}).value_or("origin");
  std::string url = valid_utf8(git.line({"config", "--get", "remote." + remote + ".url"}).value_or(""));
  if (url.find("://") == std::string::npos)  // "git@host:path"
    if (const auto at = url.find('@'); at != std::string::npos && at < url.find_first_of("/:"))
      url.erase(0, at + 1);
  found.set_remote(without_secrets(url));
  const Folders own{folders, root.text};
  if (own.names().empty()) {  // its configuration names another place
    found.set_dirty(true);
    found.set_diff_missing("the folder is not in the work tree that git names");
    return;
  }
  for (const std::string& name : own.names()) found.add_folders(name == "." ? "" : valid_utf8(name));
  add_diff(git, own, limits, found);
  add_untracked(git, own, fs::path{root.text}, limits, found);
  if (!found.commit().empty()) count_elsewhere(git, own, found);
  if (found.commit().empty() || found.changed_elsewhere() > 0) found.set_dirty(true);
}

v1::Provenance provenance_of(const v1::SweepFile& file, const ProvenanceLimits& limits) {
  v1::Provenance message;
  message.set_user(own_user());
  message.set_host(own_host());
  message.set_version(ABLATE_VERSION);
  message.set_file_sha256(sha256_hex(file.text()));
  std::error_code unknown;
  if (const auto place = fs::weakly_canonical(file.path(), unknown);
      !unknown && fs::is_regular_file(place, unknown))
    message.set_file(valid_utf8(place.string()));
  fs::path folder = file.folder().empty() ? fs::current_path(unknown) : fs::path{file.folder()};
  std::optional<sweeps::Command> command;
  try {
    command = planning::parse(file).command;
  } catch (const std::exception&) {  // the scheduler says what is wrong with it
  }
  if (command && !command->folder.empty()) folder = command->folder;
  message.set_folder(valid_utf8(folder.string()));
  if (!fs::is_directory(folder, unknown)) {
    message.set_git_missing("the folder is not on this machine");
    return message;
  }
  std::vector<fs::path> folders{folder};
  if (!file.folder().empty()) folders.emplace_back(file.folder());
  if (command)
    for (const fs::path& place : folders_of_files(*command, folder)) folders.push_back(place);
  add_git(folders, limits, message);
  if (command && !command->argv.empty())
    if (const std::string python = python_of(*command); !python.empty())
      add_packages(python, folder, limits, message);
  return message;
}

namespace {

std::string in_a_line(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  return text;
}

std::string utc_text(const google::protobuf::Timestamp& time) {
  const std::time_t seconds = time.seconds();
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S UTC", &utc);
  return text.data();
}

/// "3 files, +10 −2" of a diff that is whole.
std::string size_of_diff(const v1::Git& git) {
  std::size_t files = 0, added = 0, removed = 0;
  std::string_view rest = git.diff();
  while (!rest.empty()) {
    const auto line = rest.substr(0, rest.find('\n'));
    files += line.starts_with("diff --git ");
    added += line.starts_with("+") && !line.starts_with("+++ ");
    removed += line.starts_with("-") && !line.starts_with("--- ");
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
  }
  return fmt::format("{}, +{} −{} lines, {} with SHA-256 {}", plural(files, "file"), added, removed,
                     format_bytes(git.diff_bytes()), git.diff_sha256().substr(0, 12));
}

std::string git_text(const v1::Git& git) {
  std::string text =
      fmt::format("git          {} {}\n", git.commit().empty() ? "no commit yet" : "commit " + git.commit(),
                  git.branch().empty() ? "with a detached HEAD" : "on " + git.branch());
  text += fmt::format("             work tree {}{}\n", git.root(),
                      git.remote().empty() ? "" : ", remote " + git.remote());
  if (!git.dirty() && git.diff_missing().empty())
    return text + "             nothing changed since, no untracked files\n";
  if (git.folders_size() > 0 && !(git.folders_size() == 1 && git.folders(0).empty()))
    text += fmt::format("             what follows is of {} in it\n", fmt::join(git.folders(), " and "));
  if (git.diff_bytes() > 0) text += fmt::format("changed      {}\n", size_of_diff(git));
  if (!git.diff_missing().empty()) text += fmt::format("changed      {}\n", git.diff_missing());
  const char* heading = "untracked";
  constexpr int kNamed = 10;
  for (int i = 0; i < std::min(git.untracked_size(), kNamed); ++i) {
    const auto& file = git.untracked(i);
    text += fmt::format("{:<13}{}  {}{}\n", heading, in_a_line(file.name()), format_bytes(file.bytes()),
                        file.sha256().empty() ? "" : ", SHA-256 " + file.sha256().substr(0, 12));
    heading = "";
  }
  if (const auto more =
          static_cast<std::uint32_t>(std::max(0, git.untracked_size() - kNamed)) + git.untracked_left_out();
      more > 0)
    text += fmt::format("             and {}\n", plural(more, "more file"));
  if (git.changed_elsewhere() > 0)
    text += fmt::format("elsewhere    {} of the work tree changed, not recorded\n",
                        plural(git.changed_elsewhere(), "tracked file"));
  return text;
}

}  // namespace

std::string provenance_text(const v1::ProvenanceResponse& response, bool whole) {
  if (response.provenance().empty())
    return "nothing is recorded of where this sweep comes from: it was submitted by an older program, or "
           "with "
           "--no-provenance\n";
  std::string text;
  for (const auto& from : response.provenance()) {
    if (!text.empty()) text += "\n";
    text += fmt::format("submitted    {} by {} on {}, ablate {}\n", utc_text(from.time()), from.user(),
                        from.host(), from.version());
    text += fmt::format("sweep file   {}, SHA-256 {}\n", from.file().empty() ? "standard input" : from.file(),
                        from.file_sha256().substr(0, 12));
    text += fmt::format("folder       {}\n", from.folder());
    text += from.has_git() ? git_text(from.git()) : fmt::format("git          {}\n", from.git_missing());
    if (!from.python().empty())
      text += fmt::format(
          "packages     of {}: {}\n", from.python(),
          from.packages_missing().empty()
              ? plural(static_cast<std::uint64_t>(std::ranges::count(from.packages(), '\n')), "package")
              : from.packages_missing());
    if (!whole) continue;
    if (!from.packages().empty()) text += "\n" + from.packages();
    if (from.git().diff_bytes() > 0) text += "\n" + from.git().diff();
  }
  return text;
}

}  // namespace abl::cli
