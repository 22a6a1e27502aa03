// SPDX-License-Identifier: Apache-2.0
#include "cli/provenance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "base/child_process.h"
#include "base/file.h"
#include "base/sha256.h"
#include "tests/temporary_folder.h"

namespace abl::cli {
namespace {

namespace fs = std::filesystem;
using ablate::v1::Provenance;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;
using namespace std::chrono_literals;

TEST(Provenance, UrlsLoseUsersPasswordsAndQueries) {
  EXPECT_EQ(without_secrets("https://eve:s3cret@host/a.git"), "https://host/a.git");
  EXPECT_EQ(without_secrets("https://eve:p@ss@host/a?token=1#egg=x"), "https://host/a#egg=x");
  EXPECT_EQ(without_secrets("torch==2.1\nx @ git+ssh://u@h/p\ny==1\n"),
            "torch==2.1\nx @ git+ssh://h/p\ny==1\n");
  EXPECT_EQ(without_secrets("me@example.org"), "me@example.org");
  EXPECT_EQ(without_secrets("https://"), "https://");
  EXPECT_EQ(without_secrets("https://u:p@"), "https://");
}

/// A folder with a repository, or with what stands for git.
class GitTest : public testing::Test {
 protected:
  TemporaryFolder folder;
  fs::path root = folder / "study";
  std::string path = ::getenv("PATH");

  void SetUp() override { fs::create_directory(root); }
  void TearDown() override { ::setenv("PATH", path.c_str(), 1); }
  void git(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(),
                     {"git", "-C", root.string(), "-c", "user.name=T", "-c", "user.email=t@t"});
    run_program(arguments, "", 20s);
  }
  void begin() {
    git({"init", "-q", "-b", "main"});
    write_file(root / "train.py", "one\n");
    git({"add", "."});
    git({"commit", "-q", "-m", "one"});
  }
  Provenance look(const ProvenanceLimits& limits = {}) {
    Provenance message;
    add_git({root}, limits, message);
    return message;
  }
  /// A program `git` that comes first.
  void stand_in(const std::string& script) {
    fs::create_directory(folder / "bin");
    write_file(folder / "bin" / "git", "#!/bin/sh\n" + script);
    ::chmod((folder / "bin" / "git").c_str(), 0755);
    ::setenv("PATH", ((folder / "bin").string() + ":" + path).c_str(), 1);
  }
};

TEST_F(GitTest, ACleanFolderHasACommitAndNoDiff) {
  begin();
  const auto seen = look().git();
  EXPECT_THAT(seen.commit(), SizeIs(40));
  EXPECT_EQ(seen.branch(), "main");
  EXPECT_FALSE(seen.dirty());
  EXPECT_EQ(seen.diff(), "");
}

TEST_F(GitTest, ALongDiffIsCutAndItsDigestIsOfAll) {
  begin();
  write_file(root / "train.py", std::string(300'000, 'x') + "\n");
  const auto whole = look().git();
  EXPECT_EQ(whole.diff_sha256(), sha256_hex(whole.diff()));
  const auto cut = look({.diff = 1000}).git();
  EXPECT_THAT(cut.diff(), SizeIs(1000));
  EXPECT_EQ(cut.diff_bytes(), whole.diff().size());
  EXPECT_EQ(cut.diff_sha256(), whole.diff_sha256());
  EXPECT_THAT(cut.diff_missing(), HasSubstr("cut after 1000 of"));
}

TEST_F(GitTest, NamesAndTextsThatAreNotUtf8AreShownAsWellAsCanBe) {
  begin();
  write_file(root / "train.py", "caf\xe9\n");
  write_file(root / "b\xe9\nc", "12345");
  const auto seen = look().git();
  EXPECT_THAT(seen.diff(), HasSubstr("caf\xef\xbf\xbd"));
  ASSERT_THAT(seen.untracked(), SizeIs(1));
  EXPECT_EQ(seen.untracked(0).name(), "b\xef\xbf\xbd\nc");
  EXPECT_EQ(seen.untracked(0).sha256(), sha256_hex("12345"));
  std::string bytes;
  EXPECT_TRUE(seen.SerializeToString(&bytes));
}

TEST_F(GitTest, UntrackedFilesAreCountedBeyondThoseThatAreNamedAndPipesAreNotOpened) {
  begin();
  for (int i = 0; i < 5; ++i) write_file(root / ("file-" + std::to_string(i)), "x");
  ASSERT_EQ(::mkfifo((root / "a-pipe").c_str(), 0600), 0);
  const auto seen = look({.untracked = 3, .hashed = 1}).git();
  EXPECT_THAT(seen.untracked(), SizeIs(3));
  EXPECT_EQ(seen.untracked_left_out(), 2u) << "git lists no pipes";
  EXPECT_THAT(seen.untracked(1).sha256(), "") << "no more is read than may be";
}

TEST_F(GitTest, NoFilterThatTheFolderNamesIsRun) {
  begin();
  write_file(root / ".gitattributes", "* filter=x\n");
  git({"add", "."});
  git({"commit", "-q", "-m", "two"});
  const auto mark = folder / "was-run";
  for (const char* key : {"filter.x.clean", "filter.x.smudge", "filter.x.process"})
    git({"config", key, "sh -c 'touch " + mark.string() + "; cat'"});
  git({"config", "filter.x.required", "true"});
  write_file(root / "train.py", "two\n");
  EXPECT_THAT(look().git().diff(), HasSubstr("+two"));
  EXPECT_FALSE(fs::exists(mark));
}

TEST_F(GitTest, OfARepositoryTheFoldersOfTheSweepAndItsProgramAreRecordedAndOfTheRestHowManyFilesChanged) {
  begin();
  for (const char* name : {"study", "study/deep", "program", "private"}) fs::create_directory(root / name);
  for (const char* name : {"study/a.yaml", "study/deep/b", "program/train.py", "private/keys", "studyX"})
    write_file(root / name, "one\n");
  git({"add", "."});
  git({"commit", "-q", "-m", "two"});
  for (const char* name : {"study/a.yaml", "program/train.py", "private/keys", "studyX"})
    write_file(root / name, "password of " + std::string{name} + "\n");
  write_file(root / "private" / "untracked", "x");
  write_file(root / "study" / "untracked", "x");
  Provenance message;
  add_git({root / "study", root / "study" / "deep", root / "program", folder.path()}, {}, message);
  const auto& seen = message.git();
  EXPECT_THAT(seen.folders(), ElementsAre("study", "program"));
  EXPECT_THAT(seen.diff(),
              AllOf(HasSubstr("password of study/a.yaml"), HasSubstr("password of program/train.py")));
  EXPECT_THAT(seen.ShortDebugString(), Not(HasSubstr("password of private")));
  EXPECT_THAT(seen.ShortDebugString(), Not(HasSubstr("studyX")));
  EXPECT_EQ(seen.changed_elsewhere(), 2u);
  ASSERT_THAT(seen.untracked(), SizeIs(1));
  EXPECT_EQ(seen.untracked(0).name(), "study/untracked");
  EXPECT_TRUE(seen.dirty());
  ablate::v1::ProvenanceResponse response;
  *response.add_provenance() = message;
  EXPECT_THAT(provenance_text(response, false),
              AllOf(HasSubstr("of study and program"),
                    HasSubstr("2 tracked files of the work tree changed, not recorded")));
}

TEST_F(GitTest, ASweepAndTheScriptThatItsCommandNamesAreWhatIsLookedAt) {
  begin();
  for (const char* name : {"sweeps", "code"}) fs::create_directory(root / name);
  write_file(root / "code" / "fit.py", "one\n");
  git({"add", "."});
  git({"commit", "-q", "-m", "two"});
  write_file(root / "code" / "fit.py", "two\n");
  write_file(root / "train.py", "elsewhere\n");
  ablate::v1::SweepFile file;
  file.set_folder((root / "sweeps").string());
  file.set_path((root / "sweeps" / "s.yaml").string());
  file.set_text(
      "ablate: 1\nname: s\ncommand: {argv: [sh, ../code/fit.py]}\nrows: [{id: a}]\nseeds: 1\n"
      "table: {columns: [{name: acc, metric: acc}]}\n");
  const auto message = provenance_of(file);
  EXPECT_THAT(message.git().folders(), ElementsAre("sweeps", "code"));
  EXPECT_THAT(message.git().diff(), AllOf(HasSubstr("code/fit.py"), Not(HasSubstr("train.py"))));
  EXPECT_EQ(message.git().changed_elsewhere(), 1u);
}

TEST_F(GitTest, NoProgramOfASubmoduleAHookOrARemoteIsRun) {
  begin();
  const fs::path outer = folder / "outer", mark = folder / "was-run";
  fs::create_directory(outer);
  const auto in = [](const fs::path& where, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"git", "-C", where.string(), "-c", "user.name=T", "-c",
                                         "user.email=t@t", "-c", "protocol.file.allow=always"});
    run_program(arguments, "", 20s);
  };
  in(outer, {"init", "-q", "-b", "main"});
  in(outer, {"submodule", "-q", "add", root.string(), "inner"});
  write_file(outer / "a", "one\n");
  in(outer, {"add", "."});
  in(outer, {"commit", "-q", "-m", "one"});
  const std::string touch = "touch " + mark.string();
  in(outer / "inner", {"config", "filter.x.clean", "sh -c '" + touch + "; cat'"});
  in(outer / "inner", {"config", "core.fsmonitor", touch});
  write_file(outer / "inner" / ".gitattributes", "* filter=x\n");
  write_file(outer / "inner" / "train.py", "two\n");
  fs::create_directories(outer / ".git" / "hooks");
  const fs::path hook = outer / ".git" / "hooks" / "post-index-change";
  write_file(hook, "#!/bin/sh\n" + touch + "\n");
  ::chmod(hook.c_str(), 0755);
  for (const char* key : {"diff.external", "core.pager", "core.fsmonitor", "core.sshCommand", "core.askPass",
                          "diff.x.textconv"})
    in(outer, {"config", key, touch});
  write_file(outer / ".gitattributes", "* diff=x\n");
  write_file(outer / "a", "two\n");
  fs::remove(mark);  // what the preparation ran
  Provenance message;
  add_git({outer}, {}, message);
  EXPECT_THAT(message.git().diff(), HasSubstr("+two"));
  EXPECT_FALSE(fs::exists(mark));

  // what a partial clone lacks would come from its remote, by a program that this names
  in(outer, {"config", "remote.origin.url", "ext::sh -c touch% " + mark.string()});
  in(outer, {"config", "remote.origin.promisor", "true"});
  in(outer, {"config", "core.repositoryFormatVersion", "1"});
  in(outer, {"config", "extensions.partialClone", "origin"});
  in(outer, {"config", "protocol.ext.allow", "always"});
  fs::remove(mark);
  fs::remove_all(outer / ".git" / "objects");
  fs::create_directory(outer / ".git" / "objects");
  Provenance partial;
  add_git({outer}, {}, partial);
  EXPECT_FALSE(fs::exists(mark));
}

TEST_F(GitTest, AWorkTreeBesideTheRepositoryAndADetachedHeadAreSaid) {
  begin();
  git({"worktree", "add", "-q", "--detach", (folder / "beside").string()});
  write_file(folder / "beside" / "train.py", "two\n");
  Provenance message;
  add_git({folder / "beside"}, {}, message);
  EXPECT_EQ(message.git().branch(), "");
  EXPECT_THAT(message.git().root(), HasSubstr("beside"));
  EXPECT_THAT(message.git().diff(), HasSubstr("+two"));
  EXPECT_FALSE(look().git().dirty());
}

TEST_F(GitTest, AWorkTreeThatTheConfigurationPutsElsewhereIsNotRead) {
  begin();
  const fs::path home = folder / "home";
  fs::create_directory(home);
  write_file(home / "secret", "s3cret");
  git({"config", "core.worktree", home.string()});
  const auto seen = look();
  EXPECT_THAT(seen.ShortDebugString(), Not(HasSubstr("s3cret")));
  EXPECT_THAT(seen.git().untracked(), SizeIs(0));
}

TEST_F(GitTest, ASubmoduleIsAFolderOfGitToo) {
  begin();
  const fs::path outer = folder / "outer";
  fs::create_directory(outer);
  run_program({"git", "-C", outer, "init", "-q", "-b", "main"}, "", 20s);
  run_program({"git", "-C", outer, "-c", "protocol.file.allow=always", "submodule", "-q", "add",
               root.string(), "inner"},
              "", 20s);
  Provenance message;
  add_git({outer / "inner"}, {}, message);
  EXPECT_THAT(message.git().commit(), SizeIs(40));
  EXPECT_THAT(message.git().root(), HasSubstr("outer/inner"));
}

TEST_F(GitTest, AGitThatHangsIsWaitedForNoLongerThanThatAndKilled) {
  stand_in("exec sleep 1000\n");
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_EQ(look({.patience = 100ms}).git_missing(), "git gave no answer within 0.1 s");
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 100s);
}

TEST_F(GitTest, ADiffThatHangsIsSaidToBeMissing) {
  begin();
  stand_in("case \"$*\" in *diff*) exec sleep 1000;; esac\nPATH='" + path + "'\nexec git \"$@\"\n");
  const auto seen = look({.patience = 2s}).git();
  EXPECT_THAT(seen.commit(), SizeIs(40));
  EXPECT_EQ(seen.diff_missing(), "git diff took longer than 2 s");
  EXPECT_EQ(seen.diff(), "");
}

TEST_F(GitTest, WithoutGitOrARepositoryItSaysSo) {
  EXPECT_EQ(look().git_missing(), "no git repository");
  ::setenv("PATH", folder.path().c_str(), 1);
  const auto seen = look();
  EXPECT_FALSE(seen.has_git());
  EXPECT_THAT(seen.git_missing(), HasSubstr("git"));
}

TEST_F(GitTest, TheVariablesOfAHookDoNotLeadElsewhere) {
  begin();
  ::setenv("GIT_DIR", (folder / "another").c_str(), 1);
  EXPECT_THAT(look().git().commit(), SizeIs(40));
}

}  // namespace
}  // namespace abl::cli
