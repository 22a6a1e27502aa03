// SPDX-License-Identifier: Apache-2.0
#include "launchers/ssh.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <stdlib.h>

#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "base/sha256.h"
#include "launchers/shell_script.h"

namespace abl::launchers {
namespace {

namespace fs = std::filesystem;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

struct FakeClock final : Clock {
  Time now() const override { return time; }
  Time time{std::chrono::hours{1000}};
};

/// Machines that are folders of this one: whatever ssh would be sent to `w1` a shell gets whose home is `w1`.
class SshTest : public testing::Test {
 protected:
  SshTest() {
    std::string name = fs::temp_directory_path() / "ablate-ssh-test-XXXXXX";
    folder = ::mkdtemp(name.data());
    for (const char* machine : {"w1", "w2", "w3"}) fs::create_directory(folder / machine);
    worker("#!/bin/sh\necho \"$$ $*\" >>\"$ABLATE_STARTED\"\nexec sleep 300\n");
    ::setenv("ABLATE_STARTED", (folder / "started").c_str(), 1);
  }
  ~SshTest() override {
    launcher.reset();
    for (const char* machine : {"w1", "w2", "w3"})
      for (const fs::path& file : files(folder / machine / "ablate/store/pilots", "pilot.pid"))
        ::kill(std::stoi(read_file(file)), SIGKILL);
    std::error_code ignored;
    fs::remove_all(folder, ignored);
  }

  void worker(const std::string& text) {
    write_file(folder / "ablate-worker", text);
    fs::permissions(folder / "ablate-worker", fs::perms::owner_all);
  }
  QueueConfig queue(const std::string& name = "desk") const {
    QueueConfig queue{.name = name, .kind = LauncherKind::kSsh};
    queue.program = folder / "ablate-worker";
    queue.home = "ablate";
    for (const char* machine : {"w1", "w2", "w3"}) queue.hosts.push_back({.name = machine});
    return queue;
  }
  void begin(const std::vector<QueueConfig>& queues) {
    launcher.reset();
    launcher = std::make_unique<SshLauncher>(
        SshOptions{
            .store_id = "store", .scheduler = "head:7071", .sockets = {}, .ask_every = Milliseconds{0}},
        queues, clock,
        [this](const std::vector<std::string>& argv, const OpenFile& input, Milliseconds limit,
               const std::stop_token& stop) { return call(argv, input, limit, stop); });
  }
  CallAnswer call(const std::vector<std::string>& argv, const OpenFile& input, Milliseconds limit,
                  const std::stop_token& stop) {
    const std::string& machine = argv.at(argv.size() - 2);
    {
      auto lock = calls.lock();
      lock->push_back(argv);
    }
    if (down.lock()->contains(machine))
      return {.code = 255, .err = "ssh: connect to host " + machine + ": refused\n"};
    return call_program({"/bin/sh", "-c", "cd \"$1\" && eval \"$2\"", "sh", folder / machine, argv.back()},
                        input, limit, stop);
  }
  std::vector<fs::path> files(const fs::path& place, const std::string& name) const {
    std::vector<fs::path> found;
    if (fs::exists(place))
      for (const auto& entry : fs::recursive_directory_iterator{place})
        if (entry.path().filename() == name) found.push_back(entry.path());
    return found;
  }
  /// Lists until something is so: starts are on threads of their own.
  template <class Condition>
  std::vector<Pilot> until(Condition condition) {
    for (int i = 0; i < 1000; ++i) {
      const auto pilots = launcher->list({});
      for (const News& one : launcher->news()) heard.push_back(one.text);
      if (condition(pilots)) return pilots;
      std::this_thread::sleep_for(Milliseconds{10});
    }
    ADD_FAILURE() << "waited in vain";
    return {};
  }
  std::vector<Pilot> started(std::size_t workers) {
    return until([&](const std::vector<Pilot>& pilots) { return running(pilots) == workers; });
  }
  static std::size_t running(const std::vector<Pilot>& pilots) {
    return static_cast<std::size_t>(std::ranges::count(pilots, PilotState::kRunning, &Pilot::state));
  }
  fs::path pilot_folder(const Pilot& pilot) const {
    return folder / pilot.machine / "ablate/store/pilots" / pilot.worker();
  }

  fs::path folder;
  FakeClock clock;
  std::unique_ptr<SshLauncher> launcher;
  Guarded<std::set<std::string>> down;
  Guarded<std::vector<std::vector<std::string>>> calls;
  std::vector<std::string> heard;
};

TEST(ShellScript, AWordIsOneWordWhateverIsInIt) {
  for (const std::string word : {"", " ", "a b", "'", "''", "it's", "$HOME", "`id`", "$(id)", "\"", "\\",
                                 "a\nb\n", "*", "~", "-n", "!x", "\xff\x01", "'; rm -rf /; '"}) {
    const OpenFile script = OpenFile::of_text(script_with("printf '%s|%s' \"$1\" \"$2\"\n", {word, "end"}));
    const CallAnswer answer = call_program({"/bin/sh"}, script, seconds{20}, {});
    EXPECT_EQ(answer.out, word + "|end") << answer.err;
  }
  EXPECT_THROW(shell_word(std::string_view{"a\0b", 3}), Error);
}

TEST(ShellScript, OneWhoseEndDidNotArriveDoesNothing) {
  const std::string whole = script_with("echo one\necho two\n", {"word"});
  for (std::size_t size = 0; size + 1 < whole.size(); ++size)
    EXPECT_EQ(call_program({"/bin/sh"}, OpenFile::of_text(whole.substr(0, size)), seconds{20}, {}).out, "")
        << size;
}

TEST(BoundedCall, EndsWhatSaysTooMuchOrTakesTooLong) {
  const OpenFile nothing = OpenFile::of_text("");
  EXPECT_THAT(call_program({"yes"}, nothing, seconds{60}, {}).ended, HasSubstr("says more than 256 KiB"));
  EXPECT_THAT(call_program({"sleep", "60"}, nothing, Milliseconds{200}, {}).ended, HasSubstr("no answer"));
  EXPECT_EQ(call_program({"sh", "-c", "echo no >&2; exit 3"}, nothing, seconds{60}, {}).code, 3);
}

TEST(SshScripts, WhatAMachineSaysBesideIsLeftOut) {
  EXPECT_FALSE(ssh::parse_list("Welcome!\n")) << "no list at all";
  const auto found = ssh::parse_list(
      "Welcome!\nablate-machine 1000\nablate-pilot a|running|900||\nablate-pilot b|running|900|||\n"
      "ablate-pilot c|exited|900|950|2|no | such flag\nablate-pilot d|odd|1|2|3|\nablate-pilot "
      "e|exited|x|-1|no|\n");
  ASSERT_TRUE(found);
  ASSERT_THAT(*found, SizeIs(3));
  EXPECT_EQ(found->at(0).name, "b");
  EXPECT_EQ(found->at(0).ran, seconds{100});
  EXPECT_EQ(found->at(1).code, 2);
  EXPECT_EQ(found->at(1).ran, seconds{50});
  EXPECT_EQ(found->at(1).said, "no | such flag");
  EXPECT_EQ(found->at(2).code, 255) << "not a number: no success";
  const auto ages = ssh::parse_list("ablate-machine 9223372036854775807\nablate-pilot a|running|0|||\n");
  EXPECT_LE(ages.value().at(0).ran, std::chrono::hours{24 * 366 * 100}) << "what can be added to others";
  EXPECT_THROW(ssh::parse_prepared("ablate-bundle much\n"), Error);
  EXPECT_FALSE(ssh::parse_prepared("hello\nablate-bundle ready\n"));
}

TEST_F(SshTest, StartsOneWorkerOnEachMachineAndFindsThemAfterARestart) {
  begin({queue()});
  EXPECT_EQ(launcher->room(queue())->pilots, 0) << "nobody was asked yet";
  launcher->list({});
  EXPECT_EQ(launcher->room(queue())->pilots, 3);
  const std::string first = launcher->submit(queue(), {}, {});
  EXPECT_EQ(launcher->room(queue())->pilots, 2);
  launcher->submit(queue(), {}, {});
  launcher->submit(queue(), {}, {});
  EXPECT_THROW(launcher->submit(queue(), {}, {}), Error);
  const auto pilots = started(3);
  EXPECT_THAT(launcher->room(queue())->why, HasSubstr("3 of 3 machines have a worker"));
  std::set<std::string> machines, ids;
  for (const Pilot& pilot : pilots) machines.insert(pilot.machine), ids.insert(pilot.id);
  EXPECT_THAT(machines, ElementsAre("w1", "w2", "w3"));
  EXPECT_TRUE(ids.contains(first));

  begin({queue()});
  const auto found = launcher->list({});
  EXPECT_EQ(running(found), 3U);
  for (const Pilot& pilot : found) EXPECT_TRUE(ids.contains(pilot.id));
  const std::string log = read_file(folder / "started");
  EXPECT_THAT(
      log, HasSubstr("--scheduler head:7071 --name desk-" + first + " --slots 1 --label queue=desk --home " +
                     (folder / "w1/ablate/store/pilots").string()));
  EXPECT_THAT(log, HasSubstr("--runs-root " + (folder / "w1/ablate/runs").string()));
}

TEST_F(SshTest, HandsAPassOverInAFileAndInNoArgument) {
  begin({queue()});
  launcher->list({});
  const Pass pass{
      .id = "0123456789ab", .token = "abl_0123456789ab_secret", .authorities = "-----BEGIN\nx'y\n-----END\n"};
  EXPECT_EQ(launcher->submit(queue(), pass, {}), pass.id);
  const Pilot pilot = started(1).at(0);
  const fs::path token = pilot_folder(pilot) / "join.token";
  EXPECT_EQ(read_file(token), pass.token + "\n");
  EXPECT_EQ(fs::status(token).permissions() & fs::perms::all, fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_THAT(read_file(pilot_folder(pilot) / "ca.crt"), HasSubstr("x'y"));
  for (const auto& argv : *calls.lock()) EXPECT_THAT(argv, Each(Not(HasSubstr("secret"))));
  const std::string log = read_file(folder / "started");
  EXPECT_THAT(log, AllOf(HasSubstr("--join-token-file " + token.string()), Not(HasSubstr("secret"))));

  launcher->remove(queue(), {.passes = {pass.id}}, {});
  launcher->list({});
  EXPECT_FALSE(fs::exists(token));
  launcher->remove(queue(), {.workers = {pilot.worker(), "../../w1", "desk-../../../x"}}, {});
  launcher->list({});
  EXPECT_TRUE(fs::exists(pilot_folder(pilot))) << "its worker runs";
}

TEST_F(SshTest, EndsAWorkerByAskingAndThenByInsisting) {
  worker("#!/bin/sh\ntrap 'echo asked >>\"$ABLATE_STARTED\"' TERM\nwhile :; do sleep 0.05; done\n");
  begin({queue()});
  launcher->list({});
  launcher->submit(queue(), {}, {});
  const auto pilots = started(1);
  launcher->cancel(pilots, {});
  until([&](const auto&) { return fs::exists(folder / "started"); });
  EXPECT_EQ(read_file(folder / "started"), "asked\n");
  EXPECT_EQ(running(launcher->list({})), 1U) << "it has heard it, and has something to do";
  launcher->cancel(pilots, {});
  const auto ended = started(0);
  EXPECT_THAT(ended.at(0).said, HasSubstr("exit code 137 on w1"));
  launcher->remove(queue(), {.workers = {pilots.at(0).worker()}}, {});
  launcher->list({});
  EXPECT_THAT(launcher->list({}), IsEmpty());
}

TEST_F(SshTest, AProcessIdOfAnotherProgramOrOfAnotherBootIsNoWorker) {
  begin({queue()});
  launcher->list({});
  launcher->submit(queue(), {}, {});
  const Pilot pilot = started(1).at(0);
  const fs::path file = pilot_folder(pilot) / "pilot.pid";
  const std::string known = read_file(file);
  const auto pid_end = known.find(' '), begin_end = known.find(' ', pid_end + 1),
             boot_end = known.find(' ', begin_end + 1);
  write_file(file, known.substr(0, pid_end) + " 17" + known.substr(begin_end));
  EXPECT_THAT(launcher->list({}).at(0).said, HasSubstr("its process on w1 is gone"));
  launcher->cancel({pilot}, {});
  EXPECT_EQ(::kill(std::stoi(known), 0), 0) << "the other program lives";
  fs::remove(pilot_folder(pilot) / "pilot.exit");  // which says that it is gone
  write_file(file, known.substr(0, begin_end) + " another-boot" + known.substr(boot_end));
  EXPECT_EQ(launcher->list({}).at(0).said, "w1 was started anew");
  EXPECT_EQ(launcher->room(queue())->pilots, 3);
  write_file(file, "");
  EXPECT_EQ(running(launcher->list({})), 0U) << "a file that the machine's end cut off";
  write_file(file, known);
  EXPECT_EQ(running(launcher->list({})), 1U);
}

TEST_F(SshTest, AMachineThatDoesNotAnswerIsLeftInPeaceAndTheOthersGoOn) {
  down.lock()->insert("w2");
  begin({queue()});
  launcher->list({});
  EXPECT_EQ(launcher->room(queue())->pilots, 2);
  EXPECT_THAT(launcher->room(queue())->why,
              HasSubstr("w2 does not answer (ssh: connect to host w2: refused)"));
  EXPECT_THAT(launcher->news().at(0).text, HasSubstr("w2 does not answer"));
  const auto asked = [&] {
    std::size_t times = 0;
    for (const auto& argv : *calls.lock()) times += argv.at(argv.size() - 2) == "w2" ? 1 : 0;
    return times;
  };
  for (int i = 0; i < 20; ++i) launcher->list({});
  EXPECT_EQ(asked(), 1U);
  for (int i = 0; i < 600; ++i) {  // ten minutes
    clock.time += seconds{1};
    if (i % 5 == 0) launcher->list({});
  }
  EXPECT_LE(asked(), 8U);
  EXPECT_THAT(launcher->news(), IsEmpty()) << "said once";
  down.lock()->clear();
  clock.time += SshLauncher::kLongestPause;
  launcher->list({});
  EXPECT_EQ(launcher->news().at(0).text, "w2 answers again");
  EXPECT_EQ(launcher->room(queue())->pilots, 3);
}

TEST_F(SshTest, PilotsOfASilentMachineAreAsTheyWereForAWhileAndAreFoundAgain) {
  begin({queue()});
  launcher->list({});
  launcher->submit(queue(), {}, {});
  const Pilot pilot = started(1).at(0);
  down.lock()->insert("w1");
  auto pilots = launcher->list({});
  EXPECT_EQ(running(pilots), 1U);
  EXPECT_THAT(pilots.at(0).said, HasSubstr("w1 does not answer"));
  launcher->cancel({pilot}, {});
  clock.time += SshLauncher::kSilence;
  pilots = launcher->list({});
  EXPECT_EQ(running(pilots), 0U);
  EXPECT_THAT(pilots.at(0).said, HasSubstr("w1 has not answered for 10 minutes"));
  EXPECT_FALSE(pilots.at(0).failed);
  EXPECT_TRUE(pilots.at(0).perhaps);
  down.lock()->clear();
  clock.time += SshLauncher::kLongestPause;
  launcher->list({});
  const auto ended =
      until([](const auto& all) { return all.size() == 1 && all[0].state == PilotState::kEnded; });
  EXPECT_THAT(ended.at(0).said, HasSubstr("exit code 143")) << "it was told to end when its machine answered";
}

TEST_F(SshTest, AClockThatWasSetMakesNoPilotCostMoreThanItsTimeLimit) {
  QueueConfig limited = queue();
  limited.time_limit = std::chrono::hours{1};
  begin({limited});
  launcher->list({});
  launcher->submit(limited, {}, {});
  const fs::path file = pilot_folder(started(1).at(0)) / "pilot.pid";
  const std::string known = read_file(file);
  write_file(file, known.substr(0, known.find_last_of(' ')) + " 17\n");  // it began in 1970
  const auto pilots = launcher->list({});
  ASSERT_EQ(running(pilots), 1U);
  EXPECT_LE(pilots.at(0).ran, std::chrono::hours{2});
}

TEST_F(SshTest, AfterARestartAMachineThatHasNotAnsweredMayHaveAPilotForAWhile) {
  begin({queue()});
  EXPECT_FALSE(launcher->knows_all(queue())) << "nobody was asked";
  down.lock()->insert("w1");
  launcher->list({});
  EXPECT_FALSE(launcher->knows_all(queue()));
  clock.time += SshLauncher::kSilence;
  EXPECT_TRUE(launcher->knows_all(queue())) << "a pilot of a machine that is off has ended";
  begin({queue()});
  down.lock()->clear();
  launcher->list({});
  EXPECT_TRUE(launcher->knows_all(queue()));
}

TEST_F(SshTest, AWorkerThatFailsAtOnceSaysWhyAndItsMachineIsNotUsedForAWhile) {
  worker("#!/bin/sh\necho 'ablate-worker: unknown flag --gpu | expected --slots'\nexit 2\n");
  begin({queue()});
  launcher->list({});
  launcher->submit(queue(), {}, {});
  const auto pilots =
      until([](const auto& all) { return !all.empty() && all[0].state == PilotState::kEnded; });
  EXPECT_EQ(pilots.at(0).said, "exit code 2 on w1: ablate-worker: unknown flag --gpu | expected --slots");
  EXPECT_TRUE(pilots.at(0).failed);
  EXPECT_EQ(launcher->room(queue())->pilots, 2);
  EXPECT_THAT(launcher->room(queue())->why, HasSubstr("w1 is not used for a while"));
  clock.time += SshLauncher::kFirstPause;
  EXPECT_EQ(launcher->room(queue())->pilots, 3);
}

TEST_F(SshTest, AProgramThatIsNotThereIsTheMachinesTroubleWhereOthersWork) {
  QueueConfig config = queue();
  config.program = "./ablate-worker";  // of each machine's own home
  for (const char* machine : {"w1", "w3"})
    fs::copy_file(folder / "ablate-worker", folder / machine / "ablate-worker");
  begin({config});
  launcher->list({});
  for (int i = 0; i < 3; ++i) launcher->submit(config, {}, {});
  const auto pilots = until([](const auto& all) {
    return running(all) == 2 &&
           std::ranges::any_of(all, [](const auto& p) { return p.state == PilotState::kEnded; });
  });
  for (const Pilot& pilot : pilots) {
    if (pilot.state != PilotState::kEnded) continue;
    EXPECT_THAT(pilot.said, HasSubstr("w2: ./ablate-worker: there is no such program"));
    EXPECT_FALSE(pilot.failed) << "the queue has two that work";
  }
  EXPECT_THAT(heard, Contains(HasSubstr("w2 is not used for 10 s")));
}

class BundleTest : public SshTest {
 protected:
  BundleTest() { pack("first"); }
  void pack(const std::string& build) {
    fs::create_directories(folder / "pack/name/bin");
    fs::copy_file(folder / "ablate-worker", folder / "pack/name/bin/ablate-worker",
                  fs::copy_options::overwrite_existing);
    write_file(folder / "pack/name/build", build);
    const CallAnswer packed =
        call_program({"tar", "-czf", folder / "bundle.tar.gz", "-C", folder / "pack", "name"},
                     OpenFile::of_text(""), seconds{60}, {});
    ASSERT_EQ(packed.code, 0) << packed.err;
  }
  QueueConfig with_bundle() const {
    QueueConfig config = queue();
    config.program.clear();
    config.bundle = folder / "bundle.tar.gz";
    config.hosts.resize(1);
    return config;
  }
  std::string digest() const { return sha256_file(folder / "bundle.tar.gz"); }
  fs::path bundles() const { return folder / "w1/ablate/store/bundles"; }
  std::vector<std::string> there() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator{bundles()}) names.push_back(entry.path().filename());
    std::ranges::sort(names);
    return names;
  }
  void run_one() {
    launcher->list({});
    launcher->submit(with_bundle(), {}, {});
    const auto pilots = started(1);
    launcher->cancel(pilots, {});
    started(0);
  }
  std::size_t copies() {
    std::size_t times = 0;
    for (const auto& argv : *calls.lock()) times += argv.back().find("exec cat") != std::string::npos ? 1 : 0;
    return times;
  }
};

TEST_F(BundleTest, IsCopiedOnceForEachBuildAndOldOnesGo) {
  begin({with_bundle()});
  run_one();
  run_one();
  EXPECT_EQ(copies(), 1U);
  EXPECT_THAT(there(), ElementsAre(digest().substr(0, 16)));
  pack("second");
  run_one();
  EXPECT_EQ(copies(), 2U);
  EXPECT_THAT(there(), ElementsAre(digest().substr(0, 16))) << "nobody needs the first";
  EXPECT_EQ(read_file(bundles() / digest().substr(0, 16) / "build"), "second");
}

TEST_F(BundleTest, AHalfCopyIsFinishedADamagedOneIsMadeAnew) {
  begin({with_bundle()});
  const std::string archive = read_file(folder / "bundle.tar.gz");
  const fs::path part = bundles() / (".desk+" + digest().substr(0, 16) + ".part");
  fs::create_directories(bundles());
  write_file(part, archive.substr(0, archive.size() / 2));
  fs::create_directories(bundles() / ".desk+0123456789abcdef.new/bin");
  write_file(bundles() / ".desk+0123456789abcdef.part", "of an older build");
  run_one();
  EXPECT_EQ(copies(), 1U);
  EXPECT_THAT(there(), ElementsAre(digest().substr(0, 16)));

  fs::remove_all(bundles());
  fs::create_directories(bundles());
  write_file(part, std::string(archive.size() / 2, 'x'));
  launcher->list({});
  launcher->submit(with_bundle(), {}, {});
  const auto pilots = until([](const auto& all) {
    return std::ranges::any_of(all, [](const Pilot& pilot) {
      return pilot.said.find("the copy of the bundle") != std::string::npos;
    });
  });
  EXPECT_THAT(there(), IsEmpty()) << "nothing of it is unpacked, and nothing stays";
  clock.time += SshLauncher::kLongestPause;
  run_one();
  EXPECT_THAT(there(), ElementsAre(digest().substr(0, 16)));
}

TEST_F(BundleTest, AnArchiveOfSomethingElseIsRefusedInWords) {
  fs::remove(folder / "pack/name/bin/ablate-worker");
  ASSERT_EQ(call_program({"tar", "-czf", folder / "bundle.tar.gz", "-C", folder / "pack", "name"},
                         OpenFile::of_text(""), seconds{60}, {})
                .code,
            0);
  begin({with_bundle()});
  launcher->list({});
  launcher->submit(with_bundle(), {}, {});
  const auto pilots =
      until([](const auto& all) { return !all.empty() && all[0].state == PilotState::kEnded; });
  EXPECT_THAT(pilots.at(0).said, HasSubstr("the archive has no bin/ablate-worker"));
  fs::remove(folder / "bundle.tar.gz");
  clock.time += SshLauncher::kLongestPause;
  launcher->list({});
  launcher->submit(with_bundle(), {}, {});
  until([](const auto& all) {
    return std::ranges::any_of(
        all, [](const Pilot& pilot) { return pilot.said.find("No such file") != std::string::npos; });
  });
}

TEST_F(BundleTest, OneThatAWorkerRunsFromStays) {
  begin({with_bundle()});
  launcher->list({});
  launcher->submit(with_bundle(), {}, {});
  started(1);
  const std::string first = digest().substr(0, 16);
  pack("second");
  QueueConfig other = with_bundle();
  other.name = "other";
  begin({other});  // of the same store, with a newer fleet file
  launcher->list({});
  launcher->submit(other, {}, {});
  started(1);
  EXPECT_THAT(there(), testing::UnorderedElementsAre(first, digest().substr(0, 16)));
}

}  // namespace
}  // namespace abl::launchers
