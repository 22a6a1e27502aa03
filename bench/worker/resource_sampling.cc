// SPDX-License-Identifier: Apache-2.0
// What it costs a worker to look at what its runs take of the machine.
//   build/bench/resource_sampling [PROCESSES [LOOKS]]      (4, 50)
// 1, 10 and 100 runs of a program with PROCESSES children, as a trainer has loaders of data; of each number
// of runs the processor time of a look at all of them, medians with the lowest and highest of the looks, and
// the share of a core that it is where runs are looked at every two seconds. Nothing is asserted.
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "worker/agent/processes.h"
#include "worker/agent/resource_sampler.h"

namespace {

namespace agent = abl::agent;

/// A program that leads a group of its own, with children; none of them does anything.
class Program {
 public:
  explicit Program(int children) : leader_{::fork()} {
    if (leader_ == 0) {
      ::setpgid(0, 0);
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      while (children-- > 0 && ::fork() != 0) continue;
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      for (;;) ::pause();
    }
    ::setpgid(leader_, leader_);
  }
  ~Program() {
    ::kill(-leader_, SIGKILL);
    ::waitpid(leader_, nullptr, 0);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  pid_t leader() const { return leader_; }

 private:
  const pid_t leader_;
};

/// Of this thread, in milliseconds.
double processor_time() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

void measure(int runs, int children, int looks) {
  std::vector<std::unique_ptr<Program>> programs;
  std::vector<agent::RunUsage> usages;
  for (int run = 0; run < runs; ++run) {
    programs.push_back(std::make_unique<Program>(children));
    usages.emplace_back(programs.back()->leader(), "/run-" + std::to_string(run));
  }
  ::usleep(200'000);  // until all of them are there
  agent::FoldersOfChildren folders;
  std::vector<double> times;
  std::size_t seen = 0;
  for (int look = 0; look <= looks; ++look) {
    const double begun = processor_time();
    const agent::ProcessTable table{agent::all_processes(), folders};
    seen = 0;
    for (agent::RunUsage& usage : usages) seen += usage.look(table).has_value() ? 1 : 0;
    if (look > 0) times.push_back(processor_time() - begun);  // the first asks each child for its folder
  }
  std::ranges::sort(times);
  const double median = times[times.size() / 2];
  const double seconds = static_cast<double>(agent::ResourceSampler::kShortest.count()) / 1e3;
  fmt::print("{:>4} runs, {:>4} processes   {:>7.2f} ms a look ({:.2f} to {:.2f})   {:>6.3f} % of a core\n",
             seen, static_cast<int>(seen) * (1 + children), median, times.front(), times.back(),
             median / 10 / seconds);
}

int number(int count, char** words, int place, int otherwise) {
  return count > place ? std::max(1, std::atoi(words[place])) : otherwise;
}

}  // namespace

int main(int count, char** words) {
  for (const int runs : {1, 10, 100}) measure(runs, number(count, words, 1, 4), number(count, words, 2, 50));
  return 0;
}
