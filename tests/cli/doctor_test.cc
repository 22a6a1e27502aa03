// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor.h"

#include <gmock/gmock.h>

#include <map>
#include <set>

namespace abl::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using Verdict = Finding::Verdict;

constexpr std::uint64_t kGiB = 1 << 30;

/// Nothing is wrong with it.
Seen healthy() {
  Seen seen{.version = "1.2.0", .now = Time{std::chrono::hours{500'000}}};
  seen.home = SeenDisk{.folder = "/home/me/.local/state/ablate",
                       .kind = "ext4",
                       .size = 900 * kGiB,
                       .free = 400 * kGiB,
                       .inodes = 1'000'000,
                       .free_inodes = 900'000};
  seen.runs = seen.home;
  seen.shared_memory = SeenDisk{.folder = "/dev/shm", .kind = "tmpfs", .size = 32 * kGiB, .free = 32 * kGiB};
  seen.descriptors = 1024, seen.most_descriptors = 1 << 20;
  seen.memory = 64 * kGiB, seen.memory_available = 60 * kGiB;
  seen.cores = 16;
  seen.instructions = {"sse2", "avx2", "avx512f"};
  seen.clock_is_synchronised = true;
  seen.store = {.file = "/home/me/results.db",
                .exists = true,
                .version = 8,
                .bytes = 10 << 20,
                .mode = 0600,
                .written = seen.now,
                .file_system = "ext4"};
  seen.programs = {{"/usr/bin/ablate-scheduler", "1.2.0", ""}, {"/usr/bin/ablate-worker", "1.2.0", ""}};
  seen.trainer = SeenProgram{"/usr/bin/ablate-trainer", "1.2.0", ""};
  seen.trainer_result_version = seen.newest_result_version = 13;
  seen.address = "unix:/home/me/run/scheduler.sock";
  seen.answers = true;
  seen.scheduler_version = "1.2.0";
  seen.workers = {{.name = "w", .version = "1.2.0", .connected = true, .is_here = true}};
  return seen;
}

std::map<std::string, Finding> findings(const Seen& seen) {
  std::map<std::string, Finding> found;
  for (const Check& check : doctor_checks())
    if (auto finding = check.judge(seen)) found.emplace(std::string{check.area} + "/" + check.name, *finding);
  return found;
}

/// What a change of a healthy machine brings, beside what is well: "area/check: text".
std::map<std::string, Finding> complaints(const std::function<void(Seen&)>& change) {
  Seen seen = healthy();
  change(seen);
  auto found = findings(seen);
  std::erase_if(found, [](const auto& entry) { return entry.second.verdict == Verdict::kOk; });
  return found;
}

void expect_one(const std::function<void(Seen&)>& change, const std::string& check, Verdict verdict,
                const std::string& text) {
  const auto found = complaints(change);
  ASSERT_EQ(found.size(), 1U) << check;
  EXPECT_EQ(found.begin()->first, check);
  EXPECT_EQ(found.begin()->second.verdict, verdict) << check;
  EXPECT_THAT(found.begin()->second.what, HasSubstr(text));
  EXPECT_FALSE(found.begin()->second.to_do.empty()) << "what to do: " << check;
}

TEST(Doctor, OfAHealthyMachineItHasNothingToSay) {
  EXPECT_THAT(complaints([](Seen&) {}), IsEmpty());
  EXPECT_GE(findings(healthy()).size(), 18U);
}

TEST(Doctor, NoCheckHasTheNameOfAnother) {
  std::set<std::pair<std::string, std::string>> names;
  for (const Check& check : doctor_checks())
    EXPECT_TRUE(names.emplace(check.area, check.name).second) << check.name;
}

TEST(Doctor, NothingIsAProblemOfWhatIsNotThere) {
  Seen nothing{.version = "1.2.0", .now = Time{std::chrono::hours{500'000}}};
  for (const Check& check : doctor_checks()) (void)check.judge(nothing);  // nor does it fall
}

TEST(Doctor, ADiskIsNamedBeforeItIsFull) {
  const auto free = [](std::uint64_t bytes) {
    return [bytes](Seen& seen) { seen.home->free = bytes, seen.runs = seen.home; };
  };
  expect_one(free(2 * kGiB), "machine/home", Verdict::kNote, "only 2.00 GiB");
  expect_one(free(1 << 20), "machine/home", Verdict::kProblem, "only 1.00 MiB");
  expect_one([](Seen& seen) { seen.home->is_read_only = true, seen.runs = seen.home; }, "machine/home",
             Verdict::kProblem, "read-only");
  expect_one([](Seen& seen) { seen.home->free_inodes = 10, seen.runs = seen.home; }, "machine/home",
             Verdict::kProblem, "inodes");
  expect_one(
      [](Seen& seen) { seen.runs = SeenDisk{.folder = "/r", .kind = "ext4", .size = kGiB, .free = 1000}; },
      "machine/runs", Verdict::kProblem, "/r");
}

TEST(Doctor, RunsInMemoryAreNoted) {
  expect_one(
      [](Seen& seen) {
        seen.runs = SeenDisk{.folder = "/runs", .kind = "tmpfs", .size = 32 * kGiB, .free = 32 * kGiB};
      },
      "machine/runs", Verdict::kNote, "in memory");
}

TEST(Doctor, AFileSystemWithoutInodesIsNotFull) {
  EXPECT_THAT(
      complaints([](Seen& seen) { seen.home->inodes = seen.home->free_inodes = 0, seen.runs = seen.home; }),
      IsEmpty());
}

TEST(Doctor, ASmallMachineIsToldFromAFullOne) {
  expect_one([](Seen& seen) { seen.memory_available = 1 << 20; }, "machine/memory", Verdict::kProblem,
             "available");
  expect_one([](Seen& seen) { seen.memory_limit = 8 * kGiB; }, "machine/memory", Verdict::kNote,
             "limit of this cgroup");
  expect_one([](Seen& seen) { seen.cpu_limit = 1.5; }, "machine/processor", Verdict::kNote,
             "1.5 by the limit");
  expect_one([](Seen& seen) { seen.instructions = {"sse2"}; }, "machine/processor", Verdict::kNote,
             "without AVX2");
  expect_one([](Seen& seen) { seen.descriptors = 128; }, "machine/open files", Verdict::kProblem, "128");
  expect_one([](Seen& seen) { seen.overcommits = false; }, "machine/overcommit", Verdict::kNote,
             "overcommit_memory");
  expect_one([](Seen& seen) { seen.shared_memory->size = 64 << 20; }, "machine/shared memory", Verdict::kNote,
             "64.00 MiB");
}

TEST(Doctor, AClockThatCannotBeRightIsAProblem) {
  expect_one([](Seen& seen) { seen.now = Time{}, seen.store.written = Time{}; }, "machine/clock",
             Verdict::kProblem, "clock");
  expect_one([](Seen& seen) { seen.store.written = seen.now + std::chrono::hours{5}; }, "machine/clock",
             Verdict::kProblem, "5h 00m from now");
  expect_one([](Seen& seen) { seen.clock_is_synchronised = false; }, "machine/clock", Verdict::kNote,
             "network's time");
  EXPECT_THAT(complaints([](Seen& seen) { seen.clock_is_synchronised = std::nullopt; }), IsEmpty());
}

TEST(Doctor, GpusAreThoseOfTheDriverAndOfTheTrainer) {
  const auto with_gpus = [](Seen& seen) {
    seen.gpus = {"NVIDIA H100", "NVIDIA H100"}, seen.trainer_uses_gpus = true;
  };
  EXPECT_THAT(complaints(with_gpus), IsEmpty());
  expect_one(
      [&](Seen& seen) {
        with_gpus(seen), seen.trainer_uses_gpus = false,
                         seen.trainer_gpu_error = "0 of 2 GPUs can be used here";
      },
      "worker/trainer's GPUs", Verdict::kProblem, "0 of 2");
  expect_one([](Seen& seen) { seen.gpu_error = "nvidia-smi: exit code 9"; }, "machine/GPUs",
             Verdict::kProblem, "exit code 9");
}

TEST(Doctor, AStoreThatDoesNotOpenIsAProblem) {
  expect_one([](Seen& seen) { seen.store.error = "results.db: file is not a database"; }, "store/file",
             Verdict::kProblem, "not a database");
  expect_one(
      [](Seen& seen) {
        seen.store.error = "results.db: written by an older version; start a scheduler on it once";
        seen.store.is_of_another_release = true;
      },
      "store/file", Verdict::kNote, "older version");
  expect_one([](Seen& seen) { seen.store.file_system = "nfs4"; }, "store/place", Verdict::kProblem, "nfs4");
  expect_one([](Seen& seen) { seen.store.mode = 0666; }, "store/owner", Verdict::kProblem, "0666");
  expect_one([](Seen& seen) { seen.store.mode = 0644; }, "store/owner", Verdict::kNote, "0644");
  expect_one([](Seen& seen) { seen.store.is_ours = false; }, "store/owner", Verdict::kNote, "another user");
  expect_one([](Seen& seen) { seen.store.log_bytes = 2 * kGiB; }, "store/log", Verdict::kProblem, "2.00 GiB");
  expect_one([](Seen& seen) { seen.store.copies = {"results.db.v7.bak"}; }, "store/copies", Verdict::kNote,
             "v7.bak");
  expect_one(
      [](Seen& seen) {
        seen.store.damages = {"row 7 missing", "b", "c", "d"};
      },
      "store/pages", Verdict::kProblem, "row 7 missing; b; c; …");
  EXPECT_THAT(complaints([](Seen& seen) { seen.store.damages.emplace(); }), IsEmpty());
}

TEST(Doctor, AHomeInWhichNothingWasStartedHasNotesAlone) {
  const auto found = complaints([](Seen& seen) {
    seen.store = {.file = "/home/me/results.db"};
    seen.answers = false;
    seen.workers.clear();
    seen.scheduler_error = "none answers";
  });
  EXPECT_EQ(found.size(), 2U);
  for (const auto& [check, finding] : found) EXPECT_EQ(finding.verdict, Verdict::kNote) << check;
}

TEST(Doctor, ASchedulerThatShouldAnswerAndDoesNotIsAProblem) {
  expect_one(
      [](Seen& seen) {
        seen.answers = false, seen.up_runs = true, seen.scheduler_error = "it gave no answer within 5 s";
      },
      "scheduler/answers", Verdict::kProblem, "no answer");
  expect_one([](Seen& seen) { seen.ailments = "disk is full"; }, "scheduler/health", Verdict::kProblem,
             "disk is full");
}

TEST(Doctor, ASchedulerThatWasNamedAndIsNotReachedIsAProblemWithItsReason) {
  expect_one(
      [](Seen& seen) {
        seen.answers = false, seen.is_elsewhere = true, seen.address = "gpu-head:7071";
        seen.scheduler_error = "the certificate of gpu-head:7071 expired on 2026-11-24 at 10:00 UTC";
      },
      "scheduler/answers", Verdict::kProblem, "the certificate of gpu-head:7071 expired");
}

TEST(Doctor, CertificatesThatEndWithinAMonthAreNamed) {
  using Kind = Seen::Certificate::Kind;
  const auto ending = [](std::chrono::hours in, Kind kind) {
    return [=](Seen& seen) {
      seen.certificates = {{Kind::kAuthority, "/h/fleet/ca.crt", seen.now + std::chrono::hours{24 * 3000}},
                           {kind, "/h/fleet/server.crt", seen.now + in}};
    };
  };
  EXPECT_THAT(complaints(ending(std::chrono::hours{24 * 31}, Kind::kServer)), IsEmpty());
  expect_one(ending(std::chrono::hours{24 * 29}, Kind::kServer), "scheduler/certificates", Verdict::kNote,
             "/h/fleet/server.crt is good until 2027-");
  expect_one(ending(std::chrono::hours{-1}, Kind::kServer), "scheduler/certificates", Verdict::kProblem,
             "/h/fleet/server.crt was good until 2027-");
  expect_one(ending(std::chrono::hours{24}, Kind::kAuthority), "scheduler/certificates", Verdict::kNote,
             "is good until");
}

TEST(Doctor, ProgramsOfSeveralVersionsAreNamed) {
  expect_one([](Seen& seen) { seen.programs[1].version = "1.1.0"; }, "worker/programs", Verdict::kProblem,
             "1.1.0");
  expect_one([](Seen& seen) { seen.programs[0].error = "no such file"; }, "worker/programs",
             Verdict::kProblem, "no such file");
  expect_one([](Seen& seen) { seen.scheduler_version = "1.1.0"; }, "scheduler/version", Verdict::kNote,
             "1.1.0");
  expect_one([](Seen& seen) { seen.scheduler_version.clear(); }, "scheduler/version", Verdict::kNote,
             "older");
  expect_one([](Seen& seen) { seen.trainer->version = "1.1.0"; }, "worker/trainer", Verdict::kNote, "1.1.0");
  expect_one([](Seen& seen) { seen.trainer_result_version = 14; }, "worker/trainer", Verdict::kProblem, "14");
  expect_one([](Seen& seen) { seen.trainer_result_version = 12; }, "worker/trainer", Verdict::kNote, "12");
  expect_one([](Seen& seen) { seen.trainer.reset(); }, "worker/trainer", Verdict::kNote, "ABLATE_TRAINER");
  expect_one([](Seen& seen) { seen.workers[0].version = "1.1.0"; }, "scheduler/workers", Verdict::kNote,
             "w 1.1.0");
}

TEST(Doctor, AnIllWorkerIsAProblemWhereItIsThisMachines) {
  expect_one([](Seen& seen) { seen.workers[0].trouble = "its disk is full"; }, "scheduler/workers",
             Verdict::kProblem, "w: its disk is full");
  expect_one(
      [](Seen& seen) { seen.workers[0].trouble = "its disk is full", seen.workers[0].is_here = false; },
      "scheduler/workers", Verdict::kNote, "its disk is full");
  expect_one([](Seen& seen) { seen.workers[0].connected = false, seen.workers[0].trouble = "old"; },
             "scheduler/workers", Verdict::kNote, "no worker is connected");
}

TEST(Doctor, AWorkerThatSomebodyDrainedOrThatIsInQuarantineIsNotWell) {
  const auto drained = [](const char* reason) {
    return [reason](Seen& seen) { seen.workers[0].drained = reason; };
  };
  expect_one(drained("new driver"), "scheduler/workers", Verdict::kNote, "w is drained: new driver");
  expect_one(drained(""), "scheduler/workers", Verdict::kNote, "w is drained");
  expect_one([](Seen& seen) { seen.workers[0].quarantine = "3 trials failed on it"; }, "scheduler/workers",
             Verdict::kNote, "w is in quarantine: 3 trials failed on it");
  EXPECT_THAT(
      complaints([](Seen& seen) { seen.workers.push_back({.name = "gone", .drained = "it is broken"}); }),
      IsEmpty())
      << "it is not connected";
}

TEST(Doctor, WhatAWorkerLeftIsNotedUntilItRunsAgain) {
  expect_one([](Seen& seen) { seen.spool_files = 2, seen.spooled_bytes = 1 << 20; }, "worker/spool",
             Verdict::kNote, "2 spool files");
  EXPECT_THAT(complaints([](Seen& seen) { seen.spool_files = 2, seen.worker_runs = true; }), IsEmpty());
}

}  // namespace
}  // namespace abl::cli
