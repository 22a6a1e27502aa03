// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/nearest_name.h"
#include "base/pattern.h"
#include "base/utf8.h"
#include "protocol/event_file.h"
#include "worker/metrics/growing_file.h"
#include "worker/metrics/watched_files.h"

namespace abl::metrics {
namespace fs = std::filesystem;
using protocol::MetricSource;
namespace {

constexpr std::size_t kMostEntries = 10'000;  // of folders that are looked through at once
constexpr int kDeepestFolder = 8;

/// One that is there: a link may lead nowhere.
bool is_event_file(const fs::path& path) {
  std::error_code failed;
  return path.filename().string().find("tfevents") != std::string::npos && fs::exists(path, failed);
}

/// "Nov27_00-24-16_host" of PyTorch's SummaryWriter, "20261127-002416-resnet50" of timm, "version_0" of
/// Lightning, "1732667056": what tells one start of a program from another, and nothing of the numbers. Not
/// "bs1024_lr0.0010_seed12".
constexpr const char* kStart =
    R"(^([A-Z][a-z]{2}\d{2}_\d{2}-\d{2}-\d{2}(_|$)|version_\d+$|\d{10,}(\.\d+)?$|)"
    R"((19|20)\d{2}[-_.]?[01]\d[-_.]?[0-3]\d([-_.T ]?\d{2}[-_.:h]?\d{2}([-_.:m]?\d{2})?)?([^0-9]|$)))";

class EventFiles final : public WatchedFiles {
 public:
  EventFiles(MetricSource source, fs::path folder, std::size_t most_files)
      : source_{std::move(source)}, folder_{std::move(folder)}, most_files_{most_files} {}

  bool look(Found& found) override {
    for (const fs::path& path : matching(folder_, source_.path)) add(path, path, 0, found);
    entries_ = 0;
    bool more = false;
    for (std::size_t i = 0; i < watched_.size() && !found.is_full();
         ++i, turn_ = (turn_ + 1) % watched_.size())
      more = read(watched_[turn_], found) || more;
    return more || found.is_full();
  }

  void close(Found& found) override {
    for (const Watched& one : watched_)
      if (one.events.waiting() > 0)
        found.note(fmt::format("'{}' ends in the middle of a record, of which {} bytes are there",
                               name_of(one), one.events.waiting()));
  }

  std::string lacking() const override {
    if (!tags_.empty()) {
      const std::vector<std::string> tags{tags_.begin(), tags_.end()};
      for (const auto& [tag, name] : source_.names)
        if (!tags_.contains(tag))
          return fmt::format("no tag '{}' in '{}'{}", tag, source_.path, did_you_mean(tag, tags));
      return {};
    }
    if (watched_.empty())
      return fmt::format("no event file of TensorBoard in '{}' of the run's folder", source_.path);
    const Watched& one = watched_.front();
    if (!one.file.problem().empty()) return fmt::format("'{}' {}", name_of(one), one.file.problem());
    if (!one.events.problem().empty()) return fmt::format("'{}': {}", name_of(one), one.events.problem());
    return fmt::format("'{}' has no scalar", name_of(one));
  }

 private:
  struct Watched {
    Watched(fs::path path, const fs::path& root, std::string before)
        : file{std::move(path), root}, prefix{std::move(before)} {}
    GrowingFile file;
    protocol::EventFileReader events;
    std::string prefix;  ///< of its tags
    bool again = false;  ///< written anew
    bool said_damage = false;
  };

  std::string name_of(const Watched& one) const {
    return one.file.path().lexically_relative(folder_).string();
  }

  /// Event files of a folder and of those in it; links in it are not followed. `root`: what the source names.
  void add(const fs::path& path, const fs::path& root, int depth, Found& found) {
    std::error_code failed;
    const bool is_folder = depth == 0 ? fs::is_directory(path, failed)
                                      : fs::symlink_status(path, failed).type() == fs::file_type::directory;
    if (is_folder && depth < kDeepestFolder) {
      std::vector<fs::path> inside;
      for (auto entry = fs::directory_iterator{path, failed};
           !failed && entry != fs::directory_iterator{} && ++entries_ <= kMostEntries;
           entry.increment(failed))
        inside.push_back(entry->path());
      std::ranges::sort(inside);
      for (const fs::path& each : inside) add(each, root, depth + 1, found);
      return;
    }
    if (!is_event_file(path)) return;
    const auto is_it = [&](const Watched& one) { return one.file.path() == path; };
    if (std::ranges::any_of(watched_, is_it)) return;
    if (watched_.size() >= most_files_) {
      if (!std::exchange(said_too_many_, true))
        found.note(fmt::format("more than {} event files in '{}': the others are not read", most_files_,
                               source_.path));
      return;
    }
    std::string prefix;
    if (path != root) {
      const fs::path below = path.parent_path().lexically_relative(root);
      bool first = true;
      for (const fs::path& part : below)
        if (const std::string name = part.string();
            name != "." && !(std::exchange(first, false) && start_.is_in(name)))
          prefix += name + "/";
    }
    watched_.emplace_back(path, folder_, std::move(prefix));
  }

  bool read(Watched& one, Found& found) {
    const GrowingFile::Piece piece = one.file.read(kPiece);
    if (piece.anew) {
      one.events = {};
      one.again = true;
      one.said_damage = false;
    }
    one.events.read(piece.bytes, [&](const protocol::EventValue& event) { take(one, event, found); });
    if (!one.events.problem().empty() && !std::exchange(one.said_damage, true))
      found.refuse(name_of(one), one.events.problem() + "; the rest of the file is not read");
    return !piece.at_end;
  }

  void take(const Watched& one, const protocol::EventValue& event, Found& found) {
    if (!event.scalar || event.tag.empty()) return;
    const std::string tag = one.prefix + valid_utf8(event.tag);
    if (event.step < 0 || event.step > std::numeric_limits<std::uint32_t>::max())
      return found.refuse(tag, fmt::format("step {} is not one from 0 to 4,294,967,295", event.step));
    const auto step = static_cast<std::uint32_t>(event.step);
    if (!tags_.contains(tag) && tags_.size() >= kMostMetrics) return;
    tags_.insert(tag);
    const auto [highest, is_new] = highest_.try_emplace(tag, step);
    if (!is_new && one.again && step <= highest->second) return;
    highest->second = std::max(highest->second, step);
    found.seen(step);
    found.point(protocol::metric_name(source_, tag), step, *event.scalar);
  }

  const MetricSource source_;
  const fs::path folder_;
  const std::size_t most_files_;
  const Pattern start_{kStart};
  std::vector<Watched> watched_;
  std::size_t turn_ = 0;  ///< of the files: where the next look begins
  std::set<std::string> tags_;
  std::map<std::string, std::uint32_t> highest_;
  std::size_t entries_ = 0;
  bool said_too_many_ = false;
};

}  // namespace

std::unique_ptr<WatchedFiles> watch_event_files(const MetricSource& source, const fs::path& folder,
                                                std::size_t most_files) {
  return std::make_unique<EventFiles>(source, folder, most_files);
}

}  // namespace abl::metrics
