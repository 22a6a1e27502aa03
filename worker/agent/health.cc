// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/health.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/child_process.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/named_path.h"
#include "base/sha256.h"
#include "protocol/command_line.h"
#include "worker/agent/data_look.h"

namespace abl::agent {
namespace fs = std::filesystem;
namespace {

using namespace std::chrono_literals;

constexpr const char *kData = "data set", *kWeights = "weights";  // what a name is of
constexpr auto kPatience = 120s;              // with a program that is started to see whether it starts
constexpr auto kDataPatience = 20min;         // with one that opens a data set of millions of files
constexpr auto kRelapse = 5min;               // trouble that comes back so soon is looked at ever less often
constexpr int kDescriptors = 24;              // about what two runs and a connection need
constexpr std::uint64_t kReserve = 64 << 20;  // of a disk that was full, where nobody knows how much it lacks

/// Why a disk has not the room that something lacked, or empty. What is more than the disk will ever hold is
/// no reason to wait.
std::string shortage(const fs::path& folder, std::uint64_t wanted) {
  struct statvfs disk {};
  if (::statvfs(folder.c_str(), &disk) != 0) return {};
  const std::uint64_t all = disk.f_blocks * disk.f_frsize, left = disk.f_bavail * disk.f_frsize;
  const bool known = wanted > 0 && wanted <= all;
  const std::uint64_t needed = known ? wanted : std::min(kReserve, all / 8);
  if (left >= needed) return {};
  constexpr double kMiB = 1 << 20;
  return fmt::format("cannot write in {}: {:.1f} MiB are free, and {:.1f} MiB are needed", folder.string(),
                     static_cast<double>(left) / kMiB, static_cast<double>(needed) / kMiB);
}

/// Throws: Error when there are not some descriptors left.
void try_descriptors() {
  std::array<int, kDescriptors> opened;
  opened.fill(-1);
  int why = 0;
  for (int& descriptor : opened)
    if (descriptor = ::open("/dev/null", O_RDONLY | O_CLOEXEC); descriptor < 0 && why == 0) why = errno;
  for (const int descriptor : opened)
    if (descriptor >= 0) ::close(descriptor);
  if (why != 0) throw system_error("cannot open files", why);
}

/// Why what a name stands for is not there, or empty. An empty folder counts as gone: so looks a disk that
/// is not mounted.
std::string why_gone(const std::string& kind, const std::string& name, const fs::path& place) {
  if (place.empty()) return {};  // the trainer draws it itself
  std::error_code failed;
  const fs::file_status status = fs::status(place, failed);
  std::string why;
  if (status.type() == fs::file_type::not_found)
    why = "does not exist";
  else if (failed)
    why = "cannot be looked at: " + failed.message();
  else if (fs::is_directory(status) && fs::is_empty(place, failed) && !failed)
    why = "is empty";
  else if (failed)
    why = "cannot be read: " + failed.message();
  return why.empty() ? ""
                     : fmt::format("{} '{}' not found: {} {}", is_plugin(name) ? kind_of_file(name) : kind,
                                   name_of_file(name), place.string(), why);
}

/// What changes when a file is written, exchanged or made readable: to read only then again what may be
/// large. Empty where there is none.
std::string mark_of(const fs::path& file) {
  struct stat now {};
  if (::stat(file.c_str(), &now) != 0) return {};
  return fmt::format("{}:{} {} {}.{} {}.{}", now.st_dev, now.st_ino, now.st_size, now.st_mtim.tv_sec,
                     now.st_mtim.tv_nsec, now.st_ctim.tv_sec, now.st_ctim.tv_nsec);
}

/// What reading a file of weights showed.
struct Reading {
  std::string why;   ///< it is not the one that is wanted, or empty
  std::string mark;  ///< of the file that was read; empty where it could not be, which may pass
};

Reading read_weights(const WantedWeights& wanted, const fs::path& file) {
  Reading reading{.why = {}, .mark = mark_of(file)};
  try {
    const std::string digest = sha256_file(file);
    if (digest == wanted.sha256) return reading;
    reading.why = fmt::format("{} has the SHA-256 {}", file.string(), digest);
  } catch (const std::exception& error) {  // of the disk, or no memory for it
    reading = {.why = error.what(), .mark = {}};
  }
  reading.why = fmt::format("{} '{}' not usable: {}; expected {}", kind_of_file(wanted.name),
                            name_of_file(wanted.name), reading.why, wanted.sha256);
  return reading;
}

/// Looks at those that are gone, and forgets those that are back.
template <class IsBack>
void look_again(const std::string& kind, const std::map<std::string, fs::path>& places,
                std::map<std::string, std::string>& gone, const IsBack& is_back) {
  for (auto entry = gone.begin(); entry != gone.end();) {
    const fs::path& place = places.at(entry->first);
    if (std::string why = why_gone(kind, entry->first, place); !why.empty())
      entry++->second = why;
    else
      entry = is_back(entry->first, place) ? gone.erase(entry) : std::next(entry);
  }
}

/// Reads the files that are others than when they were read, or that could not be, and forgets those that are
/// right now.
void read_again(const std::map<std::string, fs::path>& places, std::map<WantedWeights, std::string>& wrong,
                std::map<WantedWeights, std::string>& marks) {
  for (auto entry = wrong.begin(); entry != wrong.end();) {
    const auto& [wanted, why] = *entry;
    const fs::path& file = places.at(wanted.name);
    std::string& mark = marks[wanted];
    if (mark.empty() || mark != mark_of(file)) {
      Reading reading = read_weights(wanted, file);
      mark = std::move(reading.mark);
      entry->second = std::move(reading.why);
    }
    entry = entry->second.empty() ? wrong.erase(entry) : std::next(entry);
  }
}

}  // namespace

Health::Health(HealthOptions options, std::function<void()> changed)
    : options_{std::move(options)},
      changed_{std::move(changed)},
      thread_{[this](const std::stop_token& stop) { watch(stop); }} {}

Health::~Health() {
  thread_.request_stop();
  thread_.join();
}

void Health::trouble(const Trouble& trouble) {
  if (!trouble.data.empty()) return data_trouble(trouble);
  {
    const std::scoped_lock lock{mutex_};
    ++troubles_;
    tried_.trainer = tried_.trainer || trouble.trainer;
    tried_.gpus = tried_.gpus || trouble.gpus;
    tried_.room = std::max(tried_.room, trouble.room);
    if (!state_.trouble.empty()) return;
    state_.trouble = trouble.reason;
  }
  log_error("this worker takes no runs until it is well again: {}", trouble.reason);
  wake_.notify_all();
  changed_();
}

/// What a run could not open is not offered until a look at it succeeds.
void Health::data_trouble(const Trouble& trouble) {
  {
    const std::scoped_lock lock{mutex_};
    if (!options_.data.contains(trouble.data)) return;
    ++troubles_;
    if (trouble.trainer) unopened_.insert(trouble.data);
    state_.gone_data.insert_or_assign(
        trouble.data, fmt::format("{} '{}' not usable: {}", kData, trouble.data, trouble.reason));
  }
  log_error("no runs that need the {} '{}' until it is usable: {}", kData, trouble.data, trouble.reason);
  wake_.notify_all();
  changed_();
}

bool Health::can_open(const fs::path& place, const std::stop_token& stop) const {
  try {
    expect_data(options_.trainer, place, DataLook::kOpen, kDataPatience, stop);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

std::string Health::lacks_room() const { return shortage(options_.runs, 0); }

std::string Health::vanished(const ablate::v1::Assign& assign) {
  std::string first;
  bool news = false;
  const auto look = [&](const std::string& kind, const std::string& name,
                        const std::map<std::string, fs::path>& places,
                        std::map<std::string, std::string> State::*gone) {
    const auto place = places.find(name);
    if (place == places.end()) return;
    const std::string why = why_gone(kind, name, place->second);
    if (why.empty()) return;
    if (first.empty()) first = why;
    const std::scoped_lock lock{mutex_};
    if ((state_.*gone).insert_or_assign(name, why).second) {
      news = true;
      log_error("no runs that need it until it is back: {}", why);
    }
  };
  look(kData, assign.data(), options_.data, &State::gone_data);
  for (const std::string& name : assign.weights())
    look(kWeights, name, options_.weights, &State::gone_weights);
  if (news) {
    wake_.notify_all();
    changed_();
  }
  return first;
}

std::string Health::other_weights(const WantedDigests& digests) {
  std::string first;
  bool news = false;
  for (const auto& [name, sha256] : digests) {
    const auto place = options_.weights.find(name);
    if (place == options_.weights.end()) continue;
    const WantedWeights wanted{name, sha256};
    const auto [why, mark] = read_weights(wanted, place->second);
    if (why.empty()) continue;
    if (first.empty()) first = why;
    const std::scoped_lock lock{mutex_};
    read_[wanted] = mark;
    if (state_.wrong_weights.insert_or_assign(wanted, why).second) {
      news = true;
      log_error("no runs that want them until they are here: {}", why);
    }
  }
  if (news) {
    wake_.notify_all();
    changed_();
  }
  return first;
}

std::string Health::cannot_write() {
  try {
    for (const fs::path& folder : options_.folders) try_to_write(folder, options_.probe_bytes);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

Health::State Health::state() const {
  const std::scoped_lock lock{mutex_};
  return state_;
}

/// Does what a run needs. Returns: why that fails, or empty.
std::string Health::probe(const Trouble& trouble, const std::stop_token& stop) {
  try {
    if (auto why = cannot_write(); !why.empty()) return why;
    if (trouble.room)
      if (auto why = shortage(options_.runs, *trouble.room); !why.empty()) return why;
    try_descriptors();
    std::vector<std::string> program{"true"};
    if ((trouble.trainer || trouble.gpus) && !options_.trainer.empty())
      program = protocol::with_program(
          options_.trainer,
          protocol::VersionCommand{.try_gpus = trouble.gpus ? options_.gpus : 0}.arguments());
    run_program(program, "", kPatience, stop);
  } catch (const std::exception& error) {
    return error.what();
  }
  return {};
}

void Health::watch(const std::stop_token& stop) {
  Milliseconds pause = options_.first;
  auto well_since = std::chrono::steady_clock::time_point::min();
  std::unique_lock lock{mutex_};
  while (!stop.stop_requested()) {
    if (state_.well()) {
      wake_.wait(lock, stop, [this] { return !state_.well(); });
      const bool relapse = well_since + kRelapse > std::chrono::steady_clock::now();
      if (!relapse) pause = options_.first;
    }
    wake_.wait_for(lock, stop, pause, [] { return false; });
    if (stop.stop_requested()) return;
    pause = std::min(pause * 2, options_.longest);
    const State before = state_;
    State now = before;
    const Trouble tried = tried_;
    const std::set<std::string> unopened = unopened_;
    auto read = read_;
    const std::uint64_t troubles = troubles_;
    lock.unlock();  // the disk may be slow, or hang
    if (!now.trouble.empty()) now.trouble = probe(tried, stop);
    look_again(kData, options_.data, now.gone_data, [&](const std::string& name, const fs::path& place) {
      return !unopened.contains(name) || can_open(place, stop);
    });
    look_again(kWeights, options_.weights, now.gone_weights, [](const auto&...) { return true; });
    read_again(options_.weights, now.wrong_weights, read);
    lock.lock();
    if (stop.stop_requested()) return;
    if (state_ != before || troubles_ != troubles) continue;  // more has gone wrong in the meantime
    state_ = now;
    read_ = std::move(read);
    if (now == before) continue;
    std::erase_if(unopened_, [&](const std::string& name) { return !now.gone_data.contains(name); });
    if (now.trouble.empty()) tried_ = {};
    if (now.well()) well_since = std::chrono::steady_clock::now();
    lock.unlock();
    if (now.trouble.empty() && !before.trouble.empty()) log_info("this worker is well again: it takes runs");
    for (const auto& [gone, still] :
         {std::pair{&before.gone_data, &now.gone_data}, std::pair{&before.gone_weights, &now.gone_weights}})
      for (const auto& [name, why] : *gone)
        if (!still->contains(name)) log_info("'{}' is back", name);
    for (const auto& [wanted, why] : before.wrong_weights)
      if (!now.wrong_weights.contains(wanted))
        log_info("{} '{}': the wanted file is there again", kind_of_file(wanted.name),
                 name_of_file(wanted.name));
    changed_();
    lock.lock();
  }
}

}  // namespace abl::agent
