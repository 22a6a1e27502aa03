// SPDX-License-Identifier: Apache-2.0
#include "launchers/ssh.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <future>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "launchers/bounded_call.h"
#include "launchers/pilot_id.h"
#include "launchers/shell_script.h"
#include "launchers/ssh_scripts.h"

namespace abl::launchers {
namespace {

using std::chrono::seconds;

constexpr std::size_t kAtOnce = 16, kMostNews = 100;
constexpr std::size_t kLongestSocket = 107, kSocketName = 60;  // %C, and what ssh adds for a moment
constexpr seconds kSoon{60};                                   // a worker that fails before did nothing
constexpr seconds kBeyond{600};  // a worker's own end, at its time limit, comes by then

bool is_live(const Pilot& pilot) { return pilot.state != PilotState::kEnded; }

}  // namespace

void SshLauncher::Trouble::again(std::string why, Time now) {
  if (times == 0) since = now;
  text = std::move(why);
  next = now + std::min(kLongestPause, kFirstPause * (1 << std::min(times, 10)));
  ++times;
}

SshLauncher::SshLauncher(SshOptions options, const std::vector<QueueConfig>& queues, const Clock& clock,
                         Call call)
    : options_{std::move(options)}, queues_{queues}, clock_{clock}, call_{std::move(call)} {
  auto state = state_.lock();
  for (const QueueConfig& queue : queues_)
    for (const SshHost& host : queue.hosts) {
      state->machines.push_back(std::make_unique<Machine>());
      state->machines.back()->queue = &queue;
      state->machines.back()->host = host;
    }
}

SshLauncher::~SshLauncher() {
  std::vector<std::jthread> jobs;  // they end before what they use
  auto state = state_.lock();
  for (const auto& machine : state->machines) {
    machine->job.request_stop();
    jobs.push_back(std::move(machine->job));
  }
}

// --- how a machine is asked ---

std::vector<std::string> SshLauncher::ssh_argv(const Machine& machine, const std::string& command) const {
  std::vector<std::string> argv{"ssh", "-T"};
  if (!machine.queue->ssh_config.empty()) argv.insert(argv.end(), {"-F", machine.queue->ssh_config});
  const auto set = [&](std::string option) { argv.insert(argv.end(), {"-o", std::move(option)}); };
  for (const char* option : {"BatchMode=yes", "ConnectTimeout=10", "ServerAliveInterval=5",
                             "ServerAliveCountMax=3", "ForwardAgent=no", "ForwardX11=no",
                             "ClearAllForwardings=yes", "PermitLocalCommand=no", "LogLevel=ERROR"})
    set(option);
  const std::string sockets = options_.sockets.string();
  if (!sockets.empty() && sockets.size() + kSocketName <= kLongestSocket &&
      sockets.find_first_of(" %\"'$~\\") == std::string::npos) {
    set("ControlMaster=auto");
    set("ControlPersist=60");
    set("ControlPath=" + sockets + "/%C");
  } else {
    set("ControlPath=none");
  }
  argv.insert(argv.end(), {"--", machine.host.name, command});
  return argv;
}

CallAnswer SshLauncher::ask(const Machine& machine, std::string_view script,
                            const std::vector<std::string>& words, Milliseconds limit,
                            const std::stop_token& stop) const {
  try {
    if (!options_.sockets.empty()) make_folder(options_.sockets);
    return call_(ssh_argv(machine, "exec /bin/sh"), OpenFile::of_text(script_with(script, words)), limit,
                 stop);
  } catch (const Error& error) {  // no ssh, no memory
    return {.code = -1, .ended = error.what()};
  }
}

/// Behind the two words with which every script begins.
std::vector<std::string> SshLauncher::place(const Machine& machine, std::vector<std::string> words) const {
  words.insert(words.begin(), {machine.queue->home, options_.store_id});
  return words;
}

// --- what machines say ---

std::vector<Pilot> SshLauncher::list(const std::stop_token& stop) {
  std::vector<Machine*> due;
  {
    auto state = state_.lock();
    const Time now = clock_.steady();
    for (const auto& machine : state->machines) {
      if (machine->start && machine->start->over) machine->start.reset();
      const bool may = machine->silent.times == 0 || now >= machine->silent.next;
      if (may && (machine->hurry || now - machine->asked >= options_.ask_every)) due.push_back(machine.get());
    }
  }
  ask_all(due, stop);
  for (Machine* machine : due) catch_up(*machine, stop);
  if (stop.stop_requested()) throw Error{Code::kUnavailable, "it was stopped"};

  auto state = state_.lock();
  const Time now = clock_.steady();
  std::vector<Pilot> pilots;
  for (const auto& machine : state->machines) {
    for (Pilot& pilot : machine->pilots) {
      if (!is_live(pilot) || machine->silent.times == 0) continue;
      pilot.said = fmt::format("{} does not answer: {}", machine->host.name, machine->silent.text);
      if (now - machine->silent.since < kSilence) continue;
      pilot.state = PilotState::kEnded;  // its machine is off, most often; if not, it is found again
      pilot.perhaps = true;
      pilot.said = fmt::format("{} has not answered for {} minutes", machine->host.name, kSilence.count());
    }
    pilots.insert(pilots.end(), machine->pilots.begin(), machine->pilots.end());
    std::erase_if(machine->nothing, [&](const Pilot& pilot) {  // it has begun all the same
      return std::ranges::find(machine->pilots, pilot.id, &Pilot::id) != machine->pilots.end();
    });
    pilots.insert(pilots.end(), machine->nothing.begin(), machine->nothing.end());
    if (!machine->start || machine->start->over) continue;
    Pilot pilot = machine->start->pilot;
    pilot.said = "starts on " + machine->host.name;
    if (machine->start->copied_from >= 0)
      pilot.said =
          fmt::format("copies the bundle to {}: {} of {} MiB", machine->host.name,
                      ::lseek(machine->start->copied_from, 0, SEEK_CUR) >> 20, machine->start->all >> 20);
    pilots.push_back(std::move(pilot));
  }
  // one machine of several that fails is that machine's failure
  for (Pilot& pilot : pilots)
    pilot.failed = pilot.failed && std::ranges::none_of(pilots, [&](const Pilot& other) {
                     return other.queue == pilot.queue && other.state == PilotState::kRunning;
                   });
  return pilots;
}

bool SshLauncher::knows_all(const QueueConfig& queue) {
  auto state = state_.lock();
  const Time now = clock_.steady();
  return std::ranges::none_of(state->machines, [&](const auto& machine) {
    const bool long_silent = machine->silent.times > 0 && now - machine->silent.since >= kSilence;
    return machine->queue->name == queue.name && !machine->answered && !long_silent;
  });
}

int SshLauncher::starts_of(const Machine& machine) {
  auto state = state_.lock();
  return machine.starts;
}

void SshLauncher::ask_all(const std::vector<Machine*>& machines, const std::stop_token& stop) {
  for (std::size_t begin = 0; begin < machines.size() && !stop.stop_requested(); begin += kAtOnce) {
    std::vector<std::pair<int, std::future<CallAnswer>>> answers;
    const std::size_t end = std::min(machines.size(), begin + kAtOnce);
    for (std::size_t i = begin; i < end; ++i) {
      const int starts = starts_of(*machines[i]);
      answers.emplace_back(starts, std::async(std::launch::async, [this, machine = machines[i], &stop] {
                             return ask(*machine, ssh::kList, place(*machine, {}), options_.call_limit, stop);
                           }));
    }
    for (std::size_t i = begin; i < end; ++i) {
      const CallAnswer answer = answers[i - begin].second.get();
      auto state = state_.lock();
      if (!stop.stop_requested()) take(*state, *machines[i], answer, answers[i - begin].first);
    }
  }
}

void SshLauncher::take(State& state, Machine& machine, const CallAnswer& answer, int starts) {
  std::optional<std::vector<ssh::FoundPilot>> found;
  try {
    const std::string text = ssh::heard(answer, {});
    found = ssh::parse_list(text);
    if (!found)
      throw Error{Code::kUnavailable,
                  fmt::format("expected a list of pilots; it said '{}'", ssh::last_words(text))};
  } catch (const Error& error) {
    return silent(state, machine, error.what());
  }
  const Time now = clock_.steady();
  if (machine.silent.times > 0) say(state, machine, machine.host.name + " answers again");
  machine.silent = {};
  machine.answered = true;
  machine.asked = now;
  if (machine.starts != starts) return;  // of before a start that has ended meanwhile
  machine.hurry = false;
  const std::vector<Pilot> before = std::exchange(machine.pilots, {});
  for (const ssh::FoundPilot& one : *found) {
    const auto dash = one.name.rfind('-');
    if (dash == std::string::npos || one.name.substr(0, dash) != machine.queue->name ||
        !is_pilot_id(one.name.substr(dash + 1)))
      continue;
    Pilot pilot{.id = one.name.substr(dash + 1), .queue = machine.queue->name};
    if (machine.start && !machine.start->over && machine.start->pilot.id == pilot.id) continue;
    pilot.ran = one.ran;  // by that machine's clock, which somebody may have set meanwhile
    if (const seconds limit = machine.queue->time_limit; limit.count() > 0)
      pilot.ran = std::min(pilot.ran, limit + kBeyond);
    pilot.state = PilotState::kEnded;
    switch (one.life) {
      case ssh::Life::kStarting:
        pilot.state = PilotState::kWaiting;
        pilot.said = "starts on " + machine.host.name;
        break;
      case ssh::Life::kRunning:
        pilot.state = PilotState::kRunning;
        pilot.machine = machine.host.name;
        if (one.ran >= kSoon) machine.refused = {};
        break;
      case ssh::Life::kExited:
        pilot.failed = one.code != 0;
        pilot.said = fmt::format("exit code {} on {}{}{}", one.code.value_or(0), machine.host.name,
                                 one.said.empty() ? "" : ": ", one.said);
        break;
      case ssh::Life::kKilled:
        pilot.said =
            fmt::format("its process on {} is gone, and did not say how it ended", machine.host.name);
        break;
      case ssh::Life::kRebooted:
        pilot.said = machine.host.name + " was started anew";
        break;
    }
    const bool was_live = std::ranges::any_of(
        before, [&](const Pilot& known) { return known.id == pilot.id && is_live(known); });
    if (was_live && pilot.failed && one.ran < kSoon && !machine.asked_to_end.contains(one.name))
      refused(state, machine, "its worker ended: " + pilot.said);
    if (!is_live(pilot)) {
      machine.to_end.erase(one.name);
      machine.asked_to_end.erase(one.name);
    }
    machine.pilots.push_back(std::move(pilot));
  }
  const auto is_gone = [&](const std::string& name) {
    return std::ranges::none_of(*found, [&](const ssh::FoundPilot& one) { return one.name == name; });
  };
  std::erase_if(machine.to_end, is_gone);
  std::erase_if(machine.asked_to_end, is_gone);
}

void SshLauncher::say(State& state, const Machine& machine, std::string text) {
  if (state.news.size() < kMostNews) state.news.push_back({machine.queue->name, std::move(text)});
}

void SshLauncher::silent(State& state, Machine& machine, const std::string& why) {
  const Time now = clock_.steady();
  const bool is_new = machine.silent.times == 0;
  machine.silent.again(why, now);
  if (is_new)
    say(state, machine,
        fmt::format("{} does not answer: {}; it is asked again, and the others go on", machine.host.name,
                    why));
}

void SshLauncher::refused(State& state, Machine& machine, const std::string& why) {
  const Time now = clock_.steady();
  machine.refused.again(why, now);
  say(state, machine,
      fmt::format("{} is not used for {} s: {}", machine.host.name,
                  (machine.refused.next - now).count() / 1000, why));
}

/// What the machine was to be told while it did not answer.
void SshLauncher::catch_up(Machine& machine, const std::stop_token& stop) {
  std::vector<std::string> ends;
  Leftovers left;
  {
    auto state = state_.lock();
    if (machine.silent.times > 0) return;
    for (const std::string& name : std::exchange(machine.to_end, {})) {
      ends.push_back(name);
      machine.asked_to_end.insert(name);
      machine.hurry = true;
    }
    left = std::exchange(machine.left, {});
  }
  CallAnswer answer;
  if (!ends.empty()) {
    std::vector<std::string> words = ends;
    words.insert(words.begin(), "TERM");
    answer = ask(machine, ssh::kSignal, place(machine, words), options_.call_limit, stop);
  }
  if (answer.code == 0 && !left.empty()) {
    ends.clear();
    std::vector<std::string> words = left.passes;
    words.emplace_back();
    words.insert(words.end(), left.workers.begin(), left.workers.end());
    answer = ask(machine, ssh::kRemove, place(machine, words), options_.call_limit, stop);
    if (answer.code == 0) left = {};
  }
  if (answer.code == 0) return;
  auto state = state_.lock();
  machine.to_end.insert(ends.begin(), ends.end());
  machine.left = std::move(left);
  if (!stop.stop_requested())
    silent(*state, machine, answer.ended.empty() ? ssh::last_words(answer.err) : answer.ended);
}

// --- pilots ---

bool SshLauncher::is_free(const Machine& machine) const {
  return machine.answered && machine.silent.times == 0 &&
         (machine.refused.times == 0 || clock_.steady() >= machine.refused.next) &&
         (!machine.start || machine.start->over) && std::ranges::none_of(machine.pilots, is_live);
}

Room SshLauncher::room_of(const State& state, const std::string& queue) const {
  Room room;
  std::vector<std::string> reasons;
  int used = 0, all = 0;
  for (const auto& machine : state.machines) {
    if (machine->queue->name != queue) continue;
    ++all;
    if (is_free(*machine))
      ++room.pilots;
    else if (machine->silent.times > 0)
      reasons.push_back(fmt::format("{} does not answer ({})", machine->host.name, machine->silent.text));
    else if (!machine->answered)
      reasons.push_back(machine->host.name + " was not asked yet");
    else if (machine->refused.times > 0 && clock_.steady() < machine->refused.next)
      reasons.push_back(
          fmt::format("{} is not used for a while ({})", machine->host.name, machine->refused.text));
    else
      ++used;
  }
  if (used > 0 || reasons.empty())
    reasons.insert(reasons.begin(),
                   fmt::format("{} of {} machines {} a worker", used, all, used == 1 ? "has" : "have"));
  constexpr std::size_t kShown = 3;
  if (reasons.size() > kShown) {
    const std::size_t others = reasons.size() - kShown;
    reasons.resize(kShown);
    reasons.push_back(fmt::format("{} more", others));
  }
  room.why = fmt::format("{}", fmt::join(reasons, ", "));
  return room;
}

std::optional<Room> SshLauncher::room(const QueueConfig& queue) {
  return room_of(*state_.lock(), queue.name);
}

std::vector<News> SshLauncher::news() { return std::exchange(state_.lock()->news, {}); }

void SshLauncher::cancel(const std::vector<Pilot>& pilots, const std::stop_token& stop) {
  struct Order {
    Machine* machine;
    std::vector<std::string> ask, insist;
  };
  std::vector<Order> orders;
  {
    auto state = state_.lock();
    for (const auto& machine : state->machines) {
      Order order{.machine = machine.get()};
      for (const Pilot& pilot : pilots) {
        const std::string name = pilot.worker();
        if (machine->start && !machine->start->over && machine->start->pilot.id == pilot.id) {
          machine->job.request_stop();
          machine->to_end.insert(name);
        }
        if (std::ranges::find(machine->pilots, pilot.id, &Pilot::id) == machine->pilots.end()) continue;
        if (machine->silent.times > 0)
          machine->to_end.insert(name);
        else
          (machine->asked_to_end.insert(name).second ? order.ask : order.insist).push_back(name);
      }
      if (order.ask.empty() && order.insist.empty()) continue;
      machine->hurry = true;
      orders.push_back(std::move(order));
    }
  }
  for (Order& order : orders)
    for (const auto& [signal, names] : {std::pair{"TERM", &order.ask}, std::pair{"KILL", &order.insist}}) {
      if (names->empty()) continue;
      std::vector<std::string> words = *names;
      words.insert(words.begin(), signal);
      const CallAnswer answer =
          ask(*order.machine, ssh::kSignal, place(*order.machine, words), options_.call_limit, stop);
      if (answer.code == 0) continue;
      auto state = state_.lock();
      order.machine->to_end.insert(names->begin(), names->end());  // when it answers again
      silent(*state, *order.machine, answer.ended.empty() ? ssh::last_words(answer.err) : answer.ended);
    }
}

/// Each machine removes what is its own when it is asked next.
void SshLauncher::remove(const QueueConfig& queue, const Leftovers& leftovers, const std::stop_token&) {
  auto state = state_.lock();
  const auto give = [&](const std::string& name, std::vector<std::string> Leftovers::*kind) {
    const auto has = [&](const Machine& machine) {
      return std::ranges::any_of(machine.pilots, [&](const Pilot& pilot) { return pilot.worker() == name; });
    };
    const bool known =
        std::ranges::any_of(state->machines, [&](const auto& machine) { return has(*machine); });
    for (const auto& machine : state->machines) {
      if (machine->queue->name != queue.name || (known && !has(*machine))) continue;
      std::vector<std::string>& list = machine->left.*kind;
      if (list.size() < ssh::kMostPilots) list.push_back(name);
      machine->hurry = true;
    }
  };
  for (const std::string& pass : leftovers.passes)
    if (is_pilot_id(pass)) give(queue.name + "-" + pass, &Leftovers::passes);
  for (const std::string& worker : leftovers.workers)
    if (worker.starts_with(queue.name + "-") &&
        is_pilot_id(std::string_view{worker}.substr(queue.name.size() + 1)))
      give(worker, &Leftovers::workers);
}

}  // namespace abl::launchers
