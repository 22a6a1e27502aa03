// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/child_process.h"
#include "base/last_lines.h"
#include "protocol/events.h"
#include "worker/trainer/ranks/nodes.h"

namespace abl::ranks {

/// What a rank prints: events on stdout, as docs/trainer-protocol.md has them, and anything on stderr. The
/// events but `end` are said again by `events`, its stderr goes on to ours. Thread: one.
class RankOutput {
 public:
  /// `events`: null for a rank whose events are not to be heard.
  RankOutput(int rank, protocol::Events* events) : rank_{rank}, events_{events} {}

  void read_stdout(std::string_view piece);
  void read_stderr(std::string_view piece);

  const std::optional<protocol::End>& said_end() const { return end_; }
  /// The end of what it wrote to stderr.
  std::string last_words() const;

 private:
  void take_event(const std::string& line);
  void take_log(const std::string& line);

  const int rank_;
  protocol::Events* const events_;
  std::string out_, err_;  ///< begun lines
  std::optional<protocol::End> end_;
  LastLines last_;
};

/// One rank as a program of its own, with what it prints. It dies with the thread that started it; the
/// destructor kills it. Thread: one.
class RankProcess {
 public:
  RankProcess(int rank, const std::vector<std::string>& argv, protocol::Events* events);
  ~RankProcess();
  RankProcess(const RankProcess&) = delete;
  RankProcess& operator=(const RankProcess&) = delete;

  /// Reads what has come, without waiting; then looks whether the program has ended.
  void look();
  /// Asks it to stop at the end of a step. Heeded by the first rank.
  void ask_to_stop();
  void kill();

  int rank() const { return rank_; }
  const std::vector<int>& ends() const { return ends_; }  ///< to wait for: its stdout and stderr
  const RankOutput& output() const { return output_; }
  const std::optional<ChildExit>& exit() const { return exit_; }
  bool killed() const { return killed_; }  ///< by us
  /// Whether it ended, or said that it does, otherwise than as it should.
  bool failed() const;

 private:
  void read(int& end, void (RankOutput::*take)(std::string_view));

  const int rank_;
  RankOutput output_;
  std::vector<int> ends_;
  std::optional<ChildProcess> child_;
  std::optional<ChildExit> exit_;
  bool killed_ = false;
};

/// How a run of several ranks ended, and with which exit code the trainer tells.
struct RunEnd {
  protocol::End end;
  int exit_code = 0;
};

/// The command line of a rank.
using RankCommand = std::function<std::vector<std::string>(int rank)>;

/// Starts the ranks of a run on this machine, says again what the first one says, and waits until all have
/// ended. When one fails the others are ended within seconds, and the reason is that of the rank which failed
/// first. When `stop` is raised the first rank is asked, and all stop after the same step. The ranks die with
/// the calling thread.
///
/// `nodes`: of a run over several machines, of which these are this one's ranks, from `first_rank` on. When
/// those of another one fail, or it is gone, these are ended; the first machine tells the run's end. It is a
/// failure of the infrastructure where a machine is gone, or has asked to stop (then with a checkpoint).
RunEnd supervise_ranks(int ranks, const RankCommand& command, protocol::Events& events,
                       const std::atomic<bool>& stop, Nodes* nodes = nullptr);

}  // namespace abl::ranks
