// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "access/certificates.h"
#include "cli/format.h"

namespace abl::cli {
namespace {

using Verdict = Finding::Verdict;
using Judged = std::optional<Finding>;

constexpr std::uint64_t kMiB = 1 << 20, kGiB = 1 << 30;

Finding fine(std::string what) { return {Verdict::kOk, std::move(what), ""}; }
Finding noted(std::string what, std::string to_do) {
  return {Verdict::kNote, std::move(what), std::move(to_do)};
}
Finding wrong(std::string what, std::string to_do) {
  return {Verdict::kProblem, std::move(what), std::move(to_do)};
}

std::string size_text(std::uint64_t bytes) {
  return bytes >= kGiB ? format_gib(static_cast<double>(bytes)) + " GiB"
                       : format_mib(static_cast<double>(bytes)) + " MiB";
}

bool is_network(std::string_view file_system) {
  constexpr std::array kOfNetworks{"nfs",  "cifs", "smb", "lustre", "ceph",
                                   "gpfs", "fuse", "9p",  "afs",    "beegfs"};
  return std::ranges::any_of(kOfNetworks, [&](const char* kind) { return file_system.starts_with(kind); });
}

// --- this machine ---

/// `little`: below so many bytes it will not be enough for long.
Judged judge_disk(const std::optional<SeenDisk>& disk, std::uint64_t little) {
  if (!disk) return std::nullopt;
  const std::string where = fmt::format("{} ({})", disk->folder, disk->kind);
  if (disk->is_read_only)
    return wrong(where + " is mounted read-only", "mount it to be written, or pass another --home");
  if (disk->inodes > 0 && disk->free_inodes < 1000)
    return wrong(fmt::format("{}: {} of {} inodes are free: no files can be made", where, disk->free_inodes,
                             disk->inodes),
                 "delete files there: runs of old sweeps have many");
  const std::string room =
      fmt::format("{} of {} free at {}", size_text(disk->free), size_text(disk->size), where);
  if (disk->free < little / 10)
    return wrong("only " + room, "make room: nothing can be stored on a full disk");
  if (disk->free < little)
    return noted("only " + room, "make room before long runs: checkpoints and logs go there");
  if (disk->inodes > 0 && disk->free_inodes < disk->inodes / 50)
    return noted(fmt::format("{}: {} of {} inodes are free", where, disk->free_inodes, disk->inodes),
                 "delete files there");
  return fine(room);
}

Judged judge_home_disk(const Seen& seen) { return judge_disk(seen.home, 5 * kGiB); }
Judged judge_runs_disk(const Seen& seen) {
  if (!seen.runs || (seen.home && seen.runs->kind == seen.home->kind && seen.runs->size == seen.home->size &&
                     seen.runs->inodes == seen.home->inodes))
    return std::nullopt;  // the same disk
  if (seen.runs->kind == "tmpfs" || seen.runs->kind == "ramfs")
    return noted(fmt::format("{} is in memory ({}, {} free)", seen.runs->folder, seen.runs->kind,
                             size_text(seen.runs->free)),
                 "checkpoints are lost with the machine's power and take its memory; keep runs on a disk");
  return judge_disk(seen.runs, 5 * kGiB);
}
Judged judge_shared_memory(const Seen& seen) {
  if (!seen.shared_memory)
    return noted("there is no /dev/shm", "loaders of PyTorch programs need one: mount a tmpfs there");
  if (seen.shared_memory->size < 512 * kMiB)
    return noted(fmt::format("/dev/shm has {}", size_text(seen.shared_memory->size)),
                 "loaders of PyTorch programs and NCCL need more; in a container: --shm-size 8g");
  return judge_disk(seen.shared_memory, 256 * kMiB);
}
Judged judge_memory(const Seen& seen) {
  const std::uint64_t most = std::min(seen.memory, seen.memory_limit.value_or(seen.memory));
  const std::string limit =
      most < seen.memory ? fmt::format(", {} by the limit of this cgroup", size_text(most)) : "";
  const std::string text =
      fmt::format("{} of {} available{}", size_text(seen.memory_available), size_text(seen.memory), limit);
  if (std::min(seen.memory_available, most) < 512 * kMiB)
    return wrong("only " + text, "end other programs: trials will be killed for memory");
  if (!limit.empty()) return noted(text, "trials that need more are killed; raise the limit where they do");
  return fine(text);
}
Judged judge_overcommit(const Seen& seen) {
  if (seen.overcommits) return fine("memory may be promised beyond what there is, as trainers expect");
  return noted("overcommit_memory is 2: memory must be there when it is promised",
               "where trials fail for memory though much is free: sysctl vm.overcommit_memory=0");
}
Judged judge_processor(const Seen& seen) {
  const auto has = [&](const char* flag) {
    return std::ranges::find(seen.instructions, flag) != seen.instructions.end();
  };
  const char* widest = has("avx512f") ? "AVX-512" : has("avx2") ? "AVX2" : has("asimd") ? "NEON" : nullptr;
  const std::string cores =
      plural(static_cast<std::uint64_t>(seen.cores), "core") +
      (seen.cpu_limit ? fmt::format(", {:.3g} by the limit of this cgroup", *seen.cpu_limit) : "");
  if (!widest)
    return noted(cores + ", without AVX2",
                 "training on this processor is slow; results of other machines may differ in the last bits");
  if (seen.cpu_limit && *seen.cpu_limit < seen.cores)
    return noted(fmt::format("{}, {}", cores, widest), "give workers --threads that fit the limit");
  return fine(fmt::format("{}, {}{}", cores, widest, has("amx_bf16") ? ", AMX for bfloat16" : ""));
}
Judged judge_descriptors(const Seen& seen) {
  const std::string text =
      fmt::format("{} files may be open (at most {})", seen.descriptors, seen.most_descriptors);
  if (seen.descriptors < 256) return wrong("only " + text, "ulimit -n 4096");
  if (seen.descriptors < 1024)
    return noted("only " + text, "a worker of many slots needs more: ulimit -n 4096");
  return fine(text);
}
Judged judge_clock(const Seen& seen) {
  constexpr Time kThisWasWritten{std::chrono::hours{490'000}};  // end of 2025
  if (seen.now < kThisWasWritten)
    return wrong("the clock stands before this program was written", "set it: dates of runs would be wrong");
  if (seen.store.exists && seen.store.written > seen.now + std::chrono::minutes{10})
    return wrong(
        fmt::format("the results file was written {} from now",
                    format_duration(Seconds{seen.store.written - seen.now}.count())),
        "the clock was set back, or was wrong before: set it; deadlines do not depend on it, dates do");
  if (seen.clock_is_synchronised == false)
    return noted("the clock is not kept by the network's time, as the kernel knows",
                 "start an NTP service where machines are to agree");
  return fine("the clock is plausible");
}
Judged judge_gpus(const Seen& seen) {
  if (!seen.gpu_error.empty())
    return wrong("the driver of the GPUs does not answer: " + seen.gpu_error, "look at nvidia-smi and dmesg");
  if (seen.gpus.empty()) return fine("no NVIDIA GPU: workers share the processor's cores");
  return fine(fmt::format("{}: {}", plural(seen.gpus.size(), "GPU"), fmt::join(seen.gpus, ", ")));
}

// --- this store ---

Judged judge_store_opens(const Seen& seen) {
  if (!seen.store.exists) return noted(seen.store.file + " is not there", "the first 'ablate up' makes it");
  if (seen.store.is_of_another_release) return noted(seen.store.error, "do not restore a copy for that");
  if (!seen.store.error.empty())
    return wrong(seen.store.error,
                 "'ablate restore' puts a copy in its place; 'sqlite3 FILE .recover' reads what is left");
  return fine(
      fmt::format("{}, {}, schema {}", seen.store.file, size_text(seen.store.bytes), seen.store.version));
}
Judged judge_store_place(const Seen& seen) {
  if (!seen.store.exists) return std::nullopt;
  if (is_network(seen.store.file_system))
    return wrong(fmt::format("the results file is on {}: locks and logs of SQLite do not hold there",
                             seen.store.file_system),
                 "keep it on a local disk: --home or --store");
  return fine(fmt::format("on a local file system ({})", seen.store.file_system));
}
Judged judge_store_owner(const Seen& seen) {
  if (!seen.store.exists) return std::nullopt;
  const std::string mode = fmt::format("mode {:04o}", seen.store.mode & 07777);
  if (!seen.store.is_ours)
    return noted("the results file belongs to another user, " + mode,
                 "only that user's scheduler can write it");
  if (seen.store.mode & 022)
    return wrong("others may write the results file: " + mode, "chmod 600 " + seen.store.file);
  if (seen.store.mode & 044)
    return noted("others may read the results file: " + mode,
                 "chmod 600 " + seen.store.file + " where that is not meant");
  return fine("this user's, " + mode);
}
Judged judge_store_log(const Seen& seen) {
  if (!seen.store.exists || !seen.store.error.empty()) return std::nullopt;
  const std::string text = fmt::format("the write-ahead log has {}", size_text(seen.store.log_bytes));
  if (seen.store.log_bytes > kGiB)
    return wrong(text,
                 "a program has been reading one state for very long: close open sqlite3 or pandas sessions");
  if (seen.store.log_bytes > 256 * kMiB)
    return noted(text, "it becomes short when nobody reads an old state any more");
  return fine(text);
}
Judged judge_store_free(const Seen& seen) {
  if (!seen.store.exists || !seen.store.error.empty()) return std::nullopt;
  const std::string text = fmt::format("{} of {} are free within the file", size_text(seen.store.free_bytes),
                                       size_text(seen.store.bytes));
  if (seen.store.free_bytes > kGiB && seen.store.free_bytes > seen.store.bytes / 2)
    return noted(text, "they are used again; VACUUM gives them back while no scheduler runs");
  return fine(text);
}
Judged judge_store_copies(const Seen& seen) {
  if (seen.store.copies.empty()) return std::nullopt;
  return noted(
      fmt::format("{} beside the results file, {}: {}",
                  seen.store.copies.size() == 1 ? "a copy" : plural(seen.store.copies.size(), "file"),
                  size_text(seen.store.copies_bytes), fmt::join(seen.store.copies, ", ")),
      "rescued files hold what the results file may lack; delete what is not needed");
}
Judged judge_store_pages(const Seen& seen) {
  if (!seen.store.damages) return std::nullopt;
  if (seen.store.damages->empty()) return fine("every page is whole");
  return wrong(fmt::format("the file is damaged: {}{}",
                           fmt::join(seen.store.damages->begin(),
                                     seen.store.damages->begin() +
                                         std::min<std::ptrdiff_t>(3, std::ssize(*seen.store.damages)),
                                     "; "),
                           seen.store.damages->size() > 3 ? "; …" : ""),
               "stop the scheduler, keep a copy, and restore a backup, or read what is left with 'sqlite3 "
               "FILE .recover'");
}

// --- programs ---

Judged judge_programs(const Seen& seen) {
  for (const SeenProgram& program : seen.programs) {
    if (!program.error.empty())
      return wrong(program.path + ": " + program.error,
                   "install ablate as a whole: its programs lie in one folder");
    if (program.version != seen.version)
      return wrong(fmt::format("{} is version {}, this one {}", program.path, program.version, seen.version),
                   "install programs of one version");
  }
  return fine(fmt::format("version {}, scheduler and worker beside this program", seen.version));
}
Judged judge_trainer(const Seen& seen) {
  if (!seen.trainer)
    return noted("ablate-trainer is not beside this program, and ABLATE_TRAINER is not set",
                 "without one, workers run only sweeps with a command: of their own");
  if (!seen.trainer->error.empty())
    return wrong(fmt::format("{} does not start: {}", seen.trainer->path, seen.trainer->error),
                 "install PyTorch again, or set ABLATE_TRAINER");
  if (seen.trainer->version != seen.version)
    return noted(fmt::format("{} is version {}, this program {}", seen.trainer->path, seen.trainer->version,
                             seen.version),
                 "build both of one source");
  if (seen.trainer_result_version > seen.newest_result_version)
    return wrong(fmt::format("the trainer's results are of version {}, this program knows {}",
                             seen.trainer_result_version, seen.newest_result_version),
                 "its worker would get no trials: update the scheduler");
  if (seen.trainer_result_version < seen.newest_result_version)
    return noted(fmt::format("the trainer's results are of version {}, the newest is {}",
                             seen.trainer_result_version, seen.newest_result_version),
                 "trials that later corrections touch wait for another worker: update the trainer");
  return fine(fmt::format("{}, result version {}", seen.trainer->path, seen.trainer_result_version));
}
Judged judge_trainer_gpus(const Seen& seen) {
  if (!seen.trainer_uses_gpus) return std::nullopt;
  if (*seen.trainer_uses_gpus) return fine("the trainer can use " + plural(seen.gpus.size(), "GPU"));
  return wrong("the driver lists GPUs that the trainer cannot use: " + seen.trainer_gpu_error,
               "a PyTorch for CUDA whose version fits the driver; see docs/training.md");
}
Judged judge_spool(const Seen& seen) {
  if (seen.spool_files == 0 || seen.worker_runs) return std::nullopt;
  return noted(fmt::format("{} of a worker that does not run, {}", plural(seen.spool_files, "spool file"),
                           size_text(seen.spooled_bytes)),
               "it sends what runs have said when it is started again");
}

// --- the scheduler ---

Judged judge_scheduler_answers(const Seen& seen) {
  if (seen.answers) return fine("it answers at " + seen.address);
  if (seen.is_elsewhere)
    return wrong(seen.scheduler_error, "'ablate doctor' on its own machine says how it is there");
  if (seen.up_runs)
    return wrong(seen.scheduler_error, "'ablate up' runs here: see logs/scheduler.log in its home");
  return noted("none answers at " + seen.address, "'ablate up' starts one");
}
Judged judge_scheduler_version(const Seen& seen) {
  if (!seen.answers) return std::nullopt;
  if (seen.scheduler_version.empty())
    return noted("it does not say its version: it is older than this program", "update it");
  if (seen.scheduler_version != seen.version)
    return noted(fmt::format("it is version {}, this program {}", seen.scheduler_version, seen.version),
                 "use programs of one version");
  return fine("version " + seen.scheduler_version);
}
Judged judge_scheduler_health(const Seen& seen) {
  if (!seen.answers) return std::nullopt;
  if (!seen.ailments.empty()) return wrong(seen.ailments, "see its log");
  return fine("it stores what it is told");
}
Judged judge_workers(const Seen& seen) {
  if (!seen.answers) return std::nullopt;
  std::size_t connected = 0;
  std::vector<std::string> ill, quarantined, drained, other;
  for (const Seen::Worker& worker : seen.workers) {
    if (!worker.connected) continue;
    ++connected;
    if (!worker.trouble.empty()) ill.push_back(fmt::format("{}: {}", worker.name, worker.trouble));
    if (worker.drained)
      drained.push_back(fmt::format("{} is drained{}{}", worker.name, worker.drained->empty() ? "" : ": ",
                                    *worker.drained));
    else if (!worker.quarantine.empty())
      quarantined.push_back(fmt::format("{} is in quarantine: {}", worker.name, worker.quarantine));
    if (!worker.version.empty() && worker.version != seen.version)
      other.push_back(fmt::format("{} {}", worker.name, worker.version));
  }
  const auto first = [](const std::vector<std::string>& list) {
    return list.front() + (list.size() > 1 ? fmt::format(" (and {} more)", list.size() - 1) : "");
  };
  if (connected == 0)
    return noted("no worker is connected",
                 "'ablate up' starts one, 'ablate-worker --scheduler ADDRESS' adds one");
  if (!ill.empty()) {
    const bool here = std::ranges::any_of(seen.workers, [](const auto& worker) {
      return worker.is_here && worker.connected && !worker.trouble.empty();
    });
    const std::string to_do = "it takes runs again when that has passed; see 'ablate workers'";
    return here ? wrong(first(ill), to_do) : noted(first(ill), to_do);
  }
  if (!quarantined.empty())
    return noted(first(quarantined),
                 "look at what failed there; 'ablate workers resume NAME' gives it trials as before");
  if (!drained.empty()) return noted(first(drained), "'ablate workers resume NAME' gives it trials again");
  if (!other.empty()) return noted("of another version: " + first(other), "use programs of one version");
  return fine(plural(connected, "worker") + " connected, all well");
}

Judged judge_certificates(const Seen& seen) {
  using Kind = Seen::Certificate::Kind;
  if (seen.certificates.empty()) return std::nullopt;
  const auto& first = *std::ranges::min_element(seen.certificates, {}, &Seen::Certificate::ends);
  const std::string text =
      fmt::format("{} {} until {}", first.where, first.ends < seen.now ? "was good" : "is good",
                  access::day_of(first.ends));
  const char* to_do = first.kind == Kind::kServer ? "'ablate init-fleet --renew' on the scheduler's machine"
                      : first.kind == Kind::kClient
                          ? "'ablate init-fleet --client NAME' on the scheduler's machine makes another"
                          : "an authority is not renewed: make a new fleet, give everybody its ca.crt";
  if (first.ends < seen.now) return wrong(text, to_do);
  if (first.ends - seen.now < access::kTellBeforeEnd) return noted(text, to_do);
  return fine(seen.certificates.size() == 1
                  ? text
                  : fmt::format("{}, {} more for longer", text, seen.certificates.size() - 1));
}

}  // namespace

const std::vector<Check>& doctor_checks() {
  static const std::vector<Check> kChecks{
      {"machine", "home", judge_home_disk},
      {"machine", "runs", judge_runs_disk},
      {"machine", "shared memory", judge_shared_memory},
      {"machine", "memory", judge_memory},
      {"machine", "overcommit", judge_overcommit},
      {"machine", "processor", judge_processor},
      {"machine", "open files", judge_descriptors},
      {"machine", "clock", judge_clock},
      {"machine", "GPUs", judge_gpus},
      {"store", "file", judge_store_opens},
      {"store", "place", judge_store_place},
      {"store", "owner", judge_store_owner},
      {"store", "log", judge_store_log},
      {"store", "free pages", judge_store_free},
      {"store", "copies", judge_store_copies},
      {"store", "pages", judge_store_pages},
      {"worker", "programs", judge_programs},
      {"worker", "trainer", judge_trainer},
      {"worker", "trainer's GPUs", judge_trainer_gpus},
      {"worker", "spool", judge_spool},
      {"scheduler", "answers", judge_scheduler_answers},
      {"scheduler", "version", judge_scheduler_version},
      {"scheduler", "health", judge_scheduler_health},
      {"scheduler", "workers", judge_workers},
      {"scheduler", "certificates", judge_certificates},
  };
  return kChecks;
}

}  // namespace abl::cli
