// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/resource_sampler.h"

#include <sys/statvfs.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/log.h"

namespace abl::agent {
using ablate::v1::ResourceSample;
namespace {

constexpr int kPartsOfAge = 600;

Milliseconds since_boot() {
  timespec time{};
  ::clock_gettime(CLOCK_BOOTTIME, &time);
  return std::chrono::floor<Milliseconds>(std::chrono::seconds{time.tv_sec} +
                                          std::chrono::nanoseconds{time.tv_nsec});
}

std::uint32_t whole_ms(Seconds time) {
  return static_cast<std::uint32_t>(std::clamp<long long>(std::llround(time.count() * 1000), 0, 0xffff'ffff));
}

}  // namespace

Milliseconds sample_interval(Milliseconds age, Milliseconds shortest) {
  return std::max(shortest, age / kPartsOfAge);
}

ResourceSampler::Watched::Watched(SampledRun what)
    : run{std::move(what)}, usage{run.leader, run.directory, run.group}, began{since_boot()} {}

ResourceSampler::ResourceSampler(Sink sink, Milliseconds shortest)
    : sink_{std::move(sink)},
      shortest_{shortest},
      thread_{[this](const std::stop_token& stop) { work(stop); }} {}

ResourceSampler::~ResourceSampler() {
  thread_.request_stop();
  thread_.join();
}

std::unique_ptr<ResourceSampler::Watch> ResourceSampler::watch(SampledRun run) {
  auto watched = std::make_shared<Watched>(std::move(run));
  watched->due = watched->sampled + shortest_;
  const std::scoped_lock lock{mutex_};
  runs_.emplace(++last_number_, std::move(watched));
  changed_.notify_all();
  return std::make_unique<Watch>(*this, last_number_);
}

void ResourceSampler::end(std::uint64_t number) {
  std::shared_ptr<Watched> ended;
  {
    const std::scoped_lock lock{mutex_};
    ended = std::move(runs_.extract(number).mapped());
  }
  sink_.end(ended->run.run, ended->run.token);
}

void ResourceSampler::waited(std::uint64_t number, const DataWait& wait) {
  const std::scoped_lock lock{mutex_};
  DataWait& sum = runs_.at(number)->wait;
  sum.waited += wait.waited;
  sum.of += wait.of;
}

void ResourceSampler::work(const std::stop_token& stop) {
  SteadyTime looked{};
  std::unique_lock lock{mutex_};
  while (!stop.stop_requested()) {
    // GPUs are asked in between: what they say is of a moment
    SteadyTime next = SteadyTime::max();
    for (const auto& [number, watched] : runs_)
      next = std::min(next,
                      watched->run.gpus.empty() ? watched->due : std::min(watched->due, looked + shortest_));
    next = next == SteadyTime::max() ? next : std::max(next, looked + shortest_);
    const std::size_t known = runs_.size();
    const std::uint64_t newest = last_number_;
    const auto others = [&] { return last_number_ != newest || (known > 0 && runs_.empty()); };
    if (next == SteadyTime::max())
      changed_.wait(lock, stop, others);
    else
      changed_.wait_until(lock, stop, next, others);
    const auto now = std::chrono::steady_clock::now();
    if (stop.stop_requested() || now < next) continue;
    looked = now;
    std::vector<std::pair<std::uint64_t, std::shared_ptr<Watched>>> due;
    std::vector<std::shared_ptr<Watched>> with_gpus;
    for (const auto& [number, watched] : runs_) {
      if (!watched->run.gpus.empty()) with_gpus.push_back(watched);
      if (watched->due <= now + shortest_ / 2) due.emplace_back(number, watched);  // one look for all
    }
    lock.unlock();
    try {
      look_at_gpus(with_gpus);
      if (!due.empty()) {
        const ProcessTable table{all_processes(), folders_};
        for (const auto& [number, watched] : due) {
          auto taken = sample(*watched, table);
          const std::scoped_lock again{mutex_};
          if (!taken || !runs_.contains(number)) continue;  // it has ended meanwhile
          if (const DataWait wait = std::exchange(watched->wait, {}); wait.of > Seconds{0}) {
            taken->set_data_wait_ms(whole_ms(wait.waited));
            taken->set_data_of_ms(whole_ms(wait.of));
          }
          sink_.add(watched->run.run, watched->run.token, *std::move(taken));
        }
      }
    } catch (const std::exception& error) {  // no memory, no descriptor: a sample is missing
      log_warning("runs were not sampled: {}", error.what());
    }
    lock.lock();
    for (const auto& [number, watched] : due)
      watched->due = now + sample_interval(since_boot() - watched->began, shortest_);
  }
}

/// Each GPU once, however many runs have it.
void ResourceSampler::look_at_gpus(const std::vector<std::shared_ptr<Watched>>& runs) {
  std::map<std::string, std::optional<double>> seen;
  for (const auto& watched : runs) {
    double sum = 0;
    bool has_all = true;
    for (const std::string& gpu : watched->run.gpus) {
      const auto [known, is_new] = seen.try_emplace(gpu);
      if (is_new) known->second = nvml_.utilisation(gpu);
      has_all = has_all && known->second;
      sum += known->second.value_or(0);
    }
    if (!has_all) continue;
    watched->gpu_sum += sum / static_cast<double>(watched->run.gpus.size());
    ++watched->gpu_looks;
  }
}

std::optional<ResourceSample> ResourceSampler::sample(Watched& watched, const ProcessTable& table) {
  const auto usage = watched.usage.look(table);
  if (!usage) return std::nullopt;
  const auto now = std::chrono::steady_clock::now();
  const auto over = std::chrono::duration_cast<Milliseconds>(now - std::exchange(watched.sampled, now));
  const double seconds = std::max(1e-3, std::chrono::duration<double>(over).count());
  ResourceSample sample;
  sample.set_at_ms(static_cast<std::uint64_t>((since_boot() - watched.began).count()));
  sample.set_over_ms(static_cast<std::uint32_t>(over.count()));
  if (usage->cpu_seconds) sample.set_cpu_cores(*usage->cpu_seconds / seconds);
  sample.set_memory_bytes(usage->memory_bytes);
  if (usage->disk) {
    sample.set_read_bytes_per_s(static_cast<double>(usage->disk->read) / seconds);
    sample.set_written_bytes_per_s(static_cast<double>(usage->disk->written) / seconds);
  }
  if (const int looks = std::exchange(watched.gpu_looks, 0); looks > 0)
    sample.set_gpu(std::exchange(watched.gpu_sum, 0) / looks);
  std::uint64_t taken = 0;
  bool has_all = !watched.run.gpus.empty();
  for (const std::string& gpu : watched.run.gpus) {
    const auto memory = nvml_.memory_taken(gpu);
    has_all = has_all && memory;
    taken += memory.value_or(0);
  }
  if (has_all) sample.set_gpu_memory_bytes(taken);
  struct statvfs disk {};
  if (::statvfs(watched.run.directory.c_str(), &disk) == 0)
    sample.set_free_bytes(std::uint64_t{disk.f_bavail} * disk.f_frsize);
  return sample;
}

}  // namespace abl::agent
