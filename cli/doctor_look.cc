// SPDX-License-Identifier: Apache-2.0
// What the doctor looks at. Nothing here writes, and what cannot be read is left out.
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <future>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "ablate/v1/workers.grpc.pb.h"
#include "access/certificates.h"
#include "access/reach.h"
#include "base/child_process.h"
#include "base/error.h"
#include "base/file.h"
#include "base/file_lock.h"
#include "cli/client.h"
#include "cli/doctor.h"
#include "cli/logins.h"
#include "config/document/result_version.h"
#include "protocol/command_line.h"
#include "protocol/trainer_program.h"
#include "storage/database.h"
#include "storage/schema.h"

namespace abl::cli {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

constexpr auto kAnswerPatience = 5s;  // with a program that is asked who it is

/// Of the file system that a folder lies on: the longest place in /proc/self/mounts that leads there.
std::string file_system_of(const fs::path& folder) {
  std::string kind, longest;
  std::ifstream mounts{"/proc/self/mounts"};
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream fields{line};
    std::string device, place, type;
    fields >> device >> place >> type;
    for (std::size_t at; (at = place.find("\\040")) != std::string::npos;) place.replace(at, 4, " ");
    const std::string below = place.ends_with('/') ? place : place + "/";
    if (!(folder.string() + "/").starts_with(below) || place.size() < longest.size()) continue;
    longest = place;
    kind = type;
  }
  return kind.empty() ? "unknown" : kind;
}

/// Of the nearest folder above that there is; nothing where none can be looked at.
std::optional<SeenDisk> disk_of(fs::path folder) {
  std::error_code absent;
  while (!fs::exists(folder, absent) && folder.has_relative_path()) folder = folder.parent_path();
  const fs::path real = fs::canonical(folder, absent);
  struct statvfs facts {};
  if (absent || ::statvfs(real.c_str(), &facts) != 0) return std::nullopt;
  return SeenDisk{.folder = folder.string(),
                  .kind = file_system_of(real),
                  .size = std::uint64_t{facts.f_blocks} * facts.f_frsize,
                  .free = std::uint64_t{facts.f_bavail} * facts.f_frsize,
                  .inodes = facts.f_files,
                  .free_inodes = facts.f_favail,
                  .is_read_only = (facts.f_flag & ST_RDONLY) != 0};
}

std::string line_of(const fs::path& file) {
  std::string line;
  std::getline(std::ifstream{file}, line);
  return line;
}

std::optional<std::uint64_t> number_of(const fs::path& file) {
  std::istringstream line{line_of(file)};
  std::uint64_t number = 0;
  return line >> number ? std::optional{number} : std::nullopt;
}

/// This process's cgroup and those above it, of version 2; of version 1 the one that a container sees.
void look_at_limits(Seen& seen) {
  std::vector<fs::path> groups{"/sys/fs/cgroup/memory", "/sys/fs/cgroup/cpu", "/sys/fs/cgroup"};
  if (const std::string line = line_of("/proc/self/cgroup"); line.starts_with("0::/"))
    for (fs::path group = line.substr(4); !group.empty(); group = group.parent_path())
      groups.push_back(fs::path{"/sys/fs/cgroup"} / group);
  for (const fs::path& group : groups) {
    for (const char* file : {"memory.max", "memory.limit_in_bytes"})
      if (const auto most = number_of(group / file); most && *most < seen.memory)
        seen.memory_limit = std::min(seen.memory_limit.value_or(*most), *most);
    double quota = 0, period = 0;
    if (std::istringstream line{line_of(group / "cpu.max")}; !(line >> quota >> period)) {
      quota = static_cast<double>(number_of(group / "cpu.cfs_quota_us").value_or(0));
      period = static_cast<double>(number_of(group / "cpu.cfs_period_us").value_or(0));
      if (line_of(group / "cpu.cfs_quota_us").starts_with('-')) quota = 0;
    }
    if (quota > 0 && period > 0)
      seen.cpu_limit = std::min(seen.cpu_limit.value_or(quota / period), quota / period);
  }
}

void look_at_machine(Seen& seen) {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  seen.descriptors = files.rlim_cur;
  seen.most_descriptors = files.rlim_max;
  seen.cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  seen.overcommits = number_of("/proc/sys/vm/overcommit_memory").value_or(0) != 2;
  std::ifstream memory{"/proc/meminfo"};
  for (std::string line; std::getline(memory, line);) {
    std::istringstream fields{line};
    std::string name;
    std::uint64_t kib = 0;
    fields >> name >> kib;
    if (name == "MemTotal:") seen.memory = kib << 10;
    if (name == "MemAvailable:") seen.memory_available = kib << 10;
  }
  std::ifstream processor{"/proc/cpuinfo"};
  for (std::string line; seen.instructions.empty() && std::getline(processor, line);) {
    if (!line.starts_with("flags") && !line.starts_with("Features")) continue;
    std::istringstream flags{line.substr(std::min(line.find(':') + 1, line.size()))};
    for (std::string flag; flags >> flag;) seen.instructions.push_back(flag);
  }
  look_at_limits(seen);
  if (struct timex clock{}; ::adjtimex(&clock) >= 0)
    seen.clock_is_synchronised = (clock.status & STA_UNSYNC) == 0;
}

void look_at_gpus(Seen& seen) {
  try {
    std::istringstream names{
        run_program({"nvidia-smi", "--query-gpu=name", "--format=csv,noheader"}, "", kAnswerPatience)};
    for (std::string name; std::getline(names, name);)
      if (!name.empty()) seen.gpus.push_back(name);
  } catch (const Error& error) {
    std::error_code absent;
    const fs::path driver = "/proc/driver/nvidia/gpus";
    if (error.code() != Code::kNotFound) seen.gpu_error = error.what();
    for (const auto& entry : fs::directory_iterator{driver, absent})
      if (error.code() == Code::kNotFound) seen.gpus.push_back(entry.path().filename().string());
  }
}

/// Looks at every page, in a thread: it may take minutes.
std::vector<std::string> damages_of(storage::Database& db, const std::function<void()>& waiting) {
  auto check = std::async(std::launch::async, [&] {
    auto lines =
        db.prepared("PRAGMA quick_check").all([](const storage::Statement& row) { return row.text(0); });
    std::erase(lines, "ok");
    return lines;
  });
  while (check.wait_for(100ms) != std::future_status::ready) waiting();
  return check.get();
}

void look_at_store(Seen::Store& store, bool deep, const std::function<void()>& waiting) {
  struct stat facts {};
  if (::stat(store.file.c_str(), &facts) != 0) return;
  store.exists = true;
  store.bytes = static_cast<std::uint64_t>(facts.st_size);
  store.mode = facts.st_mode;
  store.is_ours = facts.st_uid == ::geteuid();
  store.written = Time{std::chrono::seconds{facts.st_mtim.tv_sec}};
  std::error_code absent;
  const fs::path file = fs::canonical(store.file, absent);
  store.file_system = file_system_of(file.parent_path());
  if (const auto log = fs::file_size(store.file + "-wal", absent); !absent) store.log_bytes = log;
  const std::string name = file.filename().string();
  for (const auto& entry : fs::directory_iterator{file.parent_path(), absent}) {
    const std::string other = entry.path().filename().string();
    if (!other.starts_with(name + ".")) continue;
    // what the scheduler keeps there is no copy, and nobody is to be told to delete it
    constexpr std::array<std::string_view, 4> kOwn{"lock", "depot", "fleet.json", "slurm.sh"};
    if (std::ranges::find(kOwn, std::string_view{other}.substr(name.size() + 1)) != kOwn.end()) continue;
    store.copies.push_back(other);
    if (const auto bytes = entry.file_size(absent); !absent) store.copies_bytes += bytes;
  }
  std::ranges::sort(store.copies);
  try {
    storage::Database db{store.file, storage::Database::Mode::kReadOnly};
    const auto pragma = [&](const char* sql) {
      return db.prepared(sql).one([](const storage::Statement& row) { return row.integer(0); }).value_or(0);
    };
    store.version = static_cast<int>(pragma("PRAGMA user_version"));
    store.free_bytes =
        static_cast<std::uint64_t>(pragma("PRAGMA freelist_count") * pragma("PRAGMA page_size"));
    if (deep) store.damages = damages_of(db, waiting);
  } catch (const Error& error) {
    store.error = error.what();
    store.is_of_another_release = error.code() == Code::kFailedPrecondition;
  }
}

SeenProgram program_at(const fs::path& path) {
  SeenProgram program{.path = path.string()};
  try {
    program.version = run_program({path.string(), "--version"}, "", kAnswerPatience);
    program.version.erase(program.version.find_last_not_of(" \n") + 1);
  } catch (const Error& error) {
    program.error = error.what();
  }
  return program;
}

void look_at_trainer(Seen& seen) {
  const fs::path path = protocol::find_trainer();
  if (path.empty()) return;
  seen.trainer = SeenProgram{.path = path.string()};
  const auto ask = [&](int gpus) {
    const protocol::VersionCommand command{.json = true, .try_gpus = gpus};
    return run_program(protocol::with_program(path, command.arguments()), "", kAnswerPatience * 4);
  };
  try {
    const auto answer = nlohmann::json::parse(ask(0));
    seen.trainer->version = answer.value("version", "");
    seen.trainer_result_version = answer.value("result_version", 0);
  } catch (const std::exception& error) {
    seen.trainer->error = error.what();
    return;
  }
  if (seen.gpus.empty()) return;
  try {
    ask(static_cast<int>(seen.gpus.size()));
    seen.trainer_uses_gpus = true;
  } catch (const Error& error) {
    seen.trainer_uses_gpus = false;
    seen.trainer_gpu_error = own_words(error, "ablate-trainer").value_or(error.what());
  }
}

void look_at_spool(Seen& seen, const fs::path& home) {
  for (const fs::path& worker : {home, home / "worker"}) {
    std::error_code absent;
    for (const auto& entry : fs::directory_iterator{worker / "spool", absent}) {
      const auto bytes = entry.is_regular_file(absent) ? entry.file_size(absent) : 0;
      if (absent || bytes == 0) continue;
      ++seen.spool_files;
      seen.spooled_bytes += bytes;
    }
    if (fs::exists(worker / "worker.lock", absent) && FileLock::is_held(worker / "worker.lock"))
      seen.worker_runs = true;
  }
}

std::string this_host() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

void add_certificates(Seen& seen, const std::string& pem, Seen::Certificate::Kind kind,
                      const std::string& where) {
  const auto terms = access::terms_of(pem);
  if (!terms.empty()) seen.certificates.push_back({.kind = kind, .where = where, .ends = terms.front().ends});
}

/// Of a fleet that was made here.
void look_at_fleet(Seen& seen, const fs::path& fleet) {
  using Kind = Seen::Certificate::Kind;
  const auto look = [&](const fs::path& file, Kind kind) {
    try {
      if (std::error_code unknown; fs::is_regular_file(file, unknown))
        add_certificates(seen, read_file(file), kind, file.string());
    } catch (const Error&) {  // another user's
    }
  };
  look(fleet / "server.crt", Kind::kServer);
  look(fleet / "ca.crt", Kind::kAuthority);
  std::error_code absent;
  for (const auto& entry : fs::directory_iterator{fleet / "clients", absent})
    if (entry.path().extension() == ".crt") look(entry.path(), Kind::kClient);
}

void look_at_login(Seen& seen, const access::ClientAccess& login) {
  using Kind = Seen::Certificate::Kind;
  if (!login.tls) return;
  add_certificates(seen, access::shown_certificates(seen.address), Kind::kServer,
                   "the certificate of " + seen.address);
  add_certificates(seen, login.authorities, Kind::kAuthority,
                   "the authority of the login at " + seen.address);
  try {
    if (login.own.given())
      add_certificates(seen, read_file(login.own.certificate), Kind::kClient, login.own.certificate.string());
  } catch (const Error&) {  // the call says why
  }
}

void look_at_scheduler(Seen& seen, const Context& context) {
  seen.address = context.scheduler();
  seen.is_elsewhere = !seen.address.starts_with("unix:");
  look_at_fleet(seen, context.home() / "fleet");
  access::ClientAccess login;
  std::shared_ptr<grpc::ChannelCredentials> credentials;
  try {
    login = access_to(seen.address);
    credentials = access::channel_credentials(login);
  } catch (const Error& error) {
    seen.scheduler_error = error.what();
    seen.is_elsewhere = true;
    return;
  }
  look_at_login(seen, login);
  seen.up_runs = running_up(context).has_value() && seen.address == "unix:" + context.socket().string();
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  const auto stub =
      ablate::v1::Workers::NewStub(grpc::CreateCustomChannel(seen.address, credentials, arguments));
  grpc::ClientContext call;
  call.set_deadline(std::chrono::system_clock::now() + kAnswerPatience);
  ablate::v1::ListWorkersResponse list;
  const grpc::Status status = stub->ListWorkers(&call, {}, &list);
  seen.answers = status.ok();
  if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED)
    seen.scheduler_error =
        fmt::format("it gave no answer within {} s at {}", kAnswerPatience.count(), seen.address);
  else if (status.error_code() == grpc::StatusCode::UNAVAILABLE && seen.is_elsewhere)
    seen.scheduler_error = unreached(seen.address, login).what();
  else if (status.error_code() == grpc::StatusCode::UNAVAILABLE)
    seen.scheduler_error = fmt::format("none answers at {}", seen.address);
  else if (!status.ok())
    seen.scheduler_error = status.error_message();
  const auto said = [&](const char* key) {
    const auto& metadata = call.GetServerTrailingMetadata();
    const auto found = metadata.find(key);
    return found == metadata.end() ? std::string{} : std::string{found->second.data(), found->second.size()};
  };
  seen.scheduler_version = said("ablate-version");
  seen.ailments = said("ablate-health-bin");
  const std::string host = this_host();
  for (const auto& worker : list.workers())
    seen.workers.push_back({.name = worker.name(),
                            .version = worker.version(),
                            .trouble = worker.trouble(),
                            .connected = worker.connected(),
                            .is_here = worker.host() == host,
                            .drained = worker.has_drained() ? std::optional{worker.drained()} : std::nullopt,
                            .quarantine = worker.quarantine()});
}

}  // namespace

Seen look(const Context& context, bool deep, const std::function<void()>& waiting) {
  Seen seen{.version = ABLATE_VERSION, .now = SystemClock{}.now()};
  const fs::path home = context.home();
  seen.home = disk_of(home);
  seen.runs = disk_of(home / "runs");
  if (std::error_code absent; fs::is_directory("/dev/shm", absent)) seen.shared_memory = disk_of("/dev/shm");
  look_at_machine(seen);
  look_at_gpus(seen);
  seen.store.file = context.store().string();
  look_at_store(seen.store, deep, waiting);
  for (const char* program : {"ablate-scheduler", "ablate-worker"})
    seen.programs.push_back(program_at(program_folder() / program));
  seen.newest_result_version = config::newest_result_version();
  look_at_trainer(seen);
  look_at_spool(seen, home);
  look_at_scheduler(seen, context);
  return seen;
}

}  // namespace abl::cli
