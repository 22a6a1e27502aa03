// SPDX-License-Identifier: Apache-2.0
// A thousand workers and a hundred thousand trials under the scheduler's own policies, on a clock that jumps:
// what they come to, as a table. Usage: simulate
#include <fmt/format.h>

#include <chrono>
#include <string>
#include <vector>

#include "tests/scheduler/simulator.h"

namespace {

using abl::scheduler::jain;
using abl::scheduler::lengths_of;
using abl::scheduler::Simulator;
using namespace std::chrono_literals;

double percentile(std::vector<double> values, double share) {
  std::ranges::sort(values);
  return values.at(static_cast<std::size_t>(share * static_cast<double>(values.size() - 1)));
}

void report(const std::string& name, Simulator& simulator, std::size_t sweeps, std::size_t small) {
  const auto begun = std::chrono::steady_clock::now();
  simulator.run();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
  std::vector<double> waits;
  for (std::size_t sweep = 0; sweep < sweeps; ++sweep)
    waits.insert(waits.end(), simulator.outcome(sweep).waits.begin(), simulator.outcome(sweep).waits.end());
  double fairness = 1;
  for (std::int64_t hour = 1; hour < 10; ++hour) {
    std::vector<double> shares;
    for (std::size_t sweep = 0; sweep < 4; ++sweep) {
      const auto& hours = simulator.outcome(sweep).by_hour;
      if (const auto used = hours.find(hour); used != hours.end()) shares.push_back(used->second);
    }
    if (shares.size() == 4) fairness = std::min(fairness, jain(shares));
  }
  fmt::print(
      "{:28} {:>7} {:>9.1f} % {:>9.3f} {:>11.2f} {:>8.1f} {:>8.1f} {:>8.1f} {:>10.1f} {:>7} {:>7} {:>8.2f} "
      "s\n",
      name, waits.size(), 100 * simulator.utilisation(), simulator.makespan() / simulator.lower_bound(),
      fairness, percentile(waits, 0.5) / 3600, percentile(waits, 0.9) / 3600, percentile(waits, 1) / 3600,
      percentile(simulator.outcome(small).waits, 1) / 60, simulator.preempted(), simulator.lost(),
      took.count());
}

std::size_t failed(const Simulator& simulator, std::size_t sweeps) {
  std::size_t failed = 0;
  for (std::size_t sweep = 0; sweep < sweeps; ++sweep) failed += simulator.outcome(sweep).failed;
  return failed;
}

/// Four owners with as much work each, and a sweep of five that arrives in the fifth hour.
void submit(Simulator& simulator, int trials_each, int gpus = 1, bool urgent = false) {
  for (int i = 0; i < 4; ++i)
    simulator.submit(
        {.owner = fmt::format("owner {}", i),
         .gpus = i == 3 ? gpus : 1,
         .lengths = lengths_of(i == 3 ? trials_each / gpus : trials_each, 10u + static_cast<unsigned>(i))});
  simulator.submit({.owner = "late",
                    .priority = urgent ? 10 : 0,
                    .preempts = urgent,
                    .arrives = 5h,
                    .lengths = lengths_of(5, 5)});
}

}  // namespace

int main() {
  fmt::print(
      "1,000 workers of 4 GPUs, trials of 10 to 60 minutes; waits in hours: median, 90 %, longest; Jain's "
      "index: the lowest of "
      "any hour between the owners of as much work each\n\n");
  fmt::print("{:28} {:>7} {:>11} {:>9} {:>11} {:>8} {:>8} {:>8} {:>10} {:>7} {:>7} {:>10}\n", "", "trials",
             "GPUs used", "makespan", "Jain", "wait 50", "wait 90", "longest", "5 of late", "gave", "runs",
             "computed");
  fmt::print("{:28} {:>7} {:>11} {:>9} {:>11} {:>8} {:>8} {:>8} {:>10} {:>7} {:>7} {:>10}\n", "", "", "",
             "/ bound", "", "(h)", "(h)", "(h)", "(min)", "way", "lost", "in");
  {
    Simulator simulator{1000, 4};
    submit(simulator, 25'000);
    report("four owners", simulator, 5, 4);
  }
  {
    Simulator simulator{1000, 4};
    submit(simulator, 25'000, 4);
    report("one of them with 4 GPUs each", simulator, 5, 4);
  }
  {
    Simulator simulator{1000, 4};
    submit(simulator, 25'000, 1, true);
    report("the late one preempts", simulator, 5, 4);
  }
  {
    Simulator simulator{1000, 4};
    simulator.lose(0.1);
    submit(simulator, 25'000);
    report("every tenth run is lost", simulator, 5, 4);
  }
  {
    Simulator simulator{1000, 4};
    simulator.break_worker(500);
    submit(simulator, 25'000);
    report("on one worker all fails", simulator, 5, 4);
    fmt::print("{:28} {} trials failed, the worker was {} times in quarantine\n", "", failed(simulator, 5),
               simulator.quarantined());
  }
  {
    Simulator simulator{1000, 4};
    for (int i = 0; i < 4; ++i)
      simulator.submit({.owner = fmt::format("owner {}", i),
                        .lengths = lengths_of(25'000, 10u + static_cast<unsigned>(i)),
                        .levels = 10,
                        .failing_level = i == 0 ? 3 : -1});
    simulator.submit({.owner = "late", .arrives = 5h, .lengths = lengths_of(5, 5)});
    report("of one, a tenth fails", simulator, 5, 4);
    fmt::print("{:28} {} trials failed, {} were held\n", "", failed(simulator, 5), simulator.outcome(0).held);
  }
  return 0;
}
