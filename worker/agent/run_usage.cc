// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/processes.h"

#include <unistd.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <string>

#include "base/error.h"
#include "base/file.h"

namespace abl::agent {
namespace fs = std::filesystem;

ProcessTable::ProcessTable(std::vector<Process> all, FoldersOfChildren& folders) : all_{std::move(all)} {
  FoldersOfChildren present;
  for (const Process& process : all_) {
    by_id_.emplace(process.id, &process);
    by_parent_[process.parent].push_back(&process);
    by_group_[process.group].push_back(&process);
    if (process.parent != ::getpid() || process.dead()) continue;
    auto known = folders.extract({process.id, process.start});
    const std::string folder =
        known.empty() ? variable_of(process.id, "ABLATE_RUN_DIR").value_or("") : std::move(known.mapped());
    by_folder_[folder].push_back(&process);
    present.emplace(std::pair{process.id, process.start}, folder);
  }
  folders = std::move(present);
}

std::span<const Process* const> ProcessTable::started_in(const std::string& folder) const {
  const auto found = by_folder_.find(folder);
  if (found == by_folder_.end()) return {};
  return found->second;
}

const Process* ProcessTable::find(pid_t id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : found->second;
}

std::span<const Process* const> ProcessTable::of(const Index& index, pid_t id) {
  const auto found = index.find(id);
  if (found == index.end()) return {};
  return found->second;
}

RunUsage::RunUsage(pid_t leader, fs::path directory, std::optional<fs::path> group)
    : leader_{leader},
      leader_start_{look_at(leader).value_or(Process{}).start},
      directory_{std::move(directory)},
      group_{std::move(group)} {
  if (group_) group_before_ = 0;  // it was made for the run
}

std::vector<const Process*> RunUsage::members(const ProcessTable& table) const {
  std::vector<const Process*> members;
  std::set<pid_t> seen;
  const auto add = [&](const Process& process) {
    if (seen.insert(process.id).second) members.push_back(&process);
  };
  const Process* const leader = table.find(leader_);
  // a number is not given again while a group has it: with another leader the group is another one
  if (leader_start_ != 0 && (!leader || leader->start == leader_start_))
    for (const Process* process : table.in_group(leader_)) add(*process);
  if (leader && leader->start == leader_start_) add(*leader);
  for (const Process* process : table.started_in(directory_.string())) add(*process);
  if (group_) try {
      std::istringstream ids{read_file(*group_ / "cgroup.procs")};
      for (pid_t id = 0; ids >> id;)
        if (const Process* process = table.find(id)) add(*process);
    } catch (const Error&) {  // it has been removed: the run has ended
    }
  for (std::size_t i = 0; i < members.size(); ++i)
    for (const Process* process : table.below(members[i]->id)) add(*process);
  return members;
}

std::optional<std::uint64_t> RunUsage::group_microseconds() const {
  if (!group_) return std::nullopt;
  try {
    std::istringstream lines{read_file(*group_ / "cpu.stat")};
    std::string key;
    for (std::uint64_t value = 0; lines >> key >> value;)
      if (key == "usage_usec") return value;
  } catch (const Error&) {  // it has been removed
  }
  return std::nullopt;
}

/// Since the look before. What has gone was reaped by the nearest above it that is there, in whose amounts it
/// is now. A look takes a while: what was gone when it came by may be reaped after its parent was looked at,
/// and is taken off the next time; not later, for it may be in nobody's amounts.
RunUsage::Amounts RunUsage::growth(Counted& now) const {
  const auto still = [&](pid_t id) {
    const auto old = before_.find(id);
    const auto present = now.find(id);
    return old != before_.end() && present != now.end() && old->second.start == present->second.start;
  };
  std::map<pid_t, Amounts> reaped;
  for (const auto& [id, old] : before_) {
    if (still(id)) continue;
    pid_t above = old.parent;
    for (std::size_t steps = 0; !still(above) && before_.contains(above) && steps < before_.size(); ++steps)
      above = before_.at(above).parent;
    if (!still(above)) continue;
    Amounts& sum = reaped[above];
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += old.amounts[i];
  }
  Amounts all{};
  for (auto& [id, counts] : now) {
    const Counts old = still(id) ? before_.at(id) : Counts{};
    const auto found = reaped.find(id);
    const Amounts of_reaped = found == reaped.end() ? Amounts{} : found->second;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::uint64_t grown = counts.amounts[i] - std::min(counts.amounts[i], old.amounts[i]);
      const std::uint64_t known = of_reaped[i] + old.owed[i];
      all[i] += grown - std::min(grown, known);
      if (grown < known) counts.owed[i] = std::min(of_reaped[i], known - grown);
    }
  }
  return all;
}

std::optional<Usage> RunUsage::look(const ProcessTable& table) {
  static const auto kTicks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  static const auto kPage = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const auto found = members(table);
  if (found.empty()) return std::nullopt;
  Usage usage;
  Counted now;
  bool denied = false;
  for (const Process* process : found) {
    Counts counts{.start = process->start, .parent = process->parent, .amounts = {process->ticks, 0, 0}};
    if (const auto old = before_.find(process->id);
        old != before_.end() && old->second.start == process->start)
      counts.amounts = {process->ticks, old->second.amounts[1], old->second.amounts[2]};
    if (!process->dead()) {  // of what waits to be reaped no more can be had
      if (const auto traffic = disk_traffic_of(process->id, denied))
        counts.amounts = {process->ticks, traffic->read, traffic->written};
      usage.memory_bytes += process->resident_pages * kPage;
    }
    now.emplace(process->id, counts);
  }
  const Amounts grown = growth(now);
  usage.cpu_seconds = static_cast<double>(grown[0]) / kTicks;
  if (group_) {
    const auto microseconds = group_microseconds();
    usage.cpu_seconds.reset();
    if (microseconds && group_before_ && *microseconds >= *group_before_)
      usage.cpu_seconds = static_cast<double>(*microseconds - *group_before_) * 1e-6;
    group_before_ = microseconds;
  }
  // a part of the traffic would pass for all of it
  if (!denied && !disk_denied_) usage.disk = DiskTraffic{.read = grown[1], .written = grown[2]};
  disk_denied_ = denied;
  before_ = std::move(now);
  return usage;
}

}  // namespace abl::agent
