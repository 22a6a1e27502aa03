// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "base/duration.h"
#include "base/error.h"
#include "base/file.h"
#include "base/file_lock.h"
#include "base/nearest_name.h"
#include "cli/command.h"
#include "cli/format.h"
#include "cli/shown.h"
#include "cli/store_report.h"
#include "protocol/checkpoint_files.h"
#include "storage/run_files.h"

namespace abl::cli {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;
using storage::RunState;
using storage::TrialFiles;
using storage::TrialState;

// What goes, in the words of --only and of the report.
constexpr const char* kCheckpoints = "checkpoints";
constexpr const char* kRuns = "runs";
constexpr const char* kUnknown = "unknown";
constexpr const char* kCopies = "copies";
constexpr const char* kLogs = "logs";
const std::map<std::string, const char*>& kinds() {
  static const std::map<std::string, const char*> kKinds{
      {kCheckpoints, "checkpoints beyond those that are kept"},
      {kRuns, "folders of runs that no sweep shows"},
      {kUnknown, "folders of runs that the results file does not know"},
      {kCopies, "earlier states of the results file"},
      {kLogs, "logs of 'ablate up', which is not running"}};
  return kKinds;
}
std::vector<std::string> kind_names() {
  std::vector<std::string> names;
  for (const auto& [name, meaning] : kinds()) names.push_back(name);
  return names;
}

struct GcFlags {
  std::string policy, runs_root, older_than;
  std::vector<std::string> only;
  std::optional<int> keep_checkpoints;
  bool yes = false, verbose = false;
};

/// "30d", "12h", "5m", "0s". Throws: Error{kInvalidArgument} naming where it stood.
seconds age(const std::string& text, const std::string& where) {
  if (const auto read = parse_duration(text)) return *read;
  throw Error{
      Code::kInvalidArgument,
      fmt::format("{}: invalid age '{}'; expected a number with s, m, h, d or w, such as 30d", where, text)};
}

/// Lines "keep-checkpoints = 2" of a file, by the names of the flags, which go before them.
void read_policy(GcFlags& flags) {
  if (flags.policy.empty()) return;
  std::istringstream lines{read_file(flags.policy)};
  const std::vector<std::string> keys{"keep-checkpoints", "older-than", "only"};
  const auto trimmed = [](std::string text) {
    text.erase(0, text.find_first_not_of(" \t\r"));
    text.erase(text.find_last_not_of(" \t\r") + 1);
    return text;
  };
  int number = 0;
  std::vector<std::string> only;
  for (std::string line; std::getline(lines, line);) {
    const std::string where = fmt::format("{}:{}", flags.policy, ++number);
    line = trimmed(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    const auto equals = line.find('=');
    const std::string key = trimmed(line.substr(0, equals));
    const std::string value = equals == std::string::npos ? "" : trimmed(line.substr(equals + 1));
    if (equals == std::string::npos || std::ranges::find(keys, key) == keys.end())
      throw Error{Code::kInvalidArgument,
                  fmt::format("{}: '{}'; expected a line KEY = VALUE with one of {}{}", where, line,
                              fmt::join(keys, ", "), did_you_mean(key, keys))};
    if (key == "older-than") {
      age(value, where);
      if (flags.older_than.empty()) flags.older_than = value;
    } else if (key == "keep-checkpoints") {
      int keep = -1;
      const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), keep);
      if (error != std::errc{} || end != value.data() + value.size() || keep < 0)
        throw Error{Code::kInvalidArgument,
                    fmt::format("{}: '{}'; expected a whole number from 0", where, value)};
      if (!flags.keep_checkpoints) flags.keep_checkpoints = keep;
    } else {
      std::istringstream words{value};
      for (std::string word; std::getline(words, word, ',');) {
        word = trimmed(word);
        if (!kinds().contains(word))
          throw Error{Code::kInvalidArgument,
                      fmt::format("{}: '{}'; expected some of {}{}", where, word,
                                  fmt::join(kind_names(), ", "), did_you_mean(word, kind_names()))};
        only.push_back(word);
      }
    }
  }
  if (flags.only.empty()) flags.only = only;
}

/// A file or folder with all that is in it; links are not followed.
struct Extent {
  std::uint64_t bytes = 0;
  fs::file_time_type newest = fs::file_time_type::min();
};
void add_extent(const fs::path& path, Extent& extent) {
  std::error_code failed;
  const auto status = fs::symlink_status(path, failed);
  if (failed) return;
  if (fs::is_symlink(status)) return;
  if (const auto time = fs::last_write_time(path, failed); !failed)
    extent.newest = std::max(extent.newest, time);
  if (fs::is_regular_file(status)) {
    const auto size = fs::file_size(path, failed);
    if (!failed) extent.bytes += size;
  }
  if (!fs::is_directory(status)) return;
  for (const auto& entry : fs::directory_iterator{path, failed}) add_extent(entry.path(), extent);
}

struct Item {
  std::string kind;
  fs::path path;
  std::uint64_t bytes = 0;
};

/// "7" or "7.2", and "7.node1" of a part of a run: trials and attempts, as workers name their folders.
std::optional<std::pair<std::uint32_t, int>> numbers(const std::string& name) {
  std::uint32_t first = 0;
  int second = 1;
  const char* const end = name.data() + name.size();
  auto [at, error] = std::from_chars(name.data(), end, first);
  if (error != std::errc{} || first == 0) return std::nullopt;
  if (at == end) return std::pair{first, second};
  if (*at != '.') return std::nullopt;
  if (const std::string_view rest{at + 1, end}; rest.starts_with("node")) {
    const auto digits = rest.substr(4);
    const bool is_part = !digits.empty() && digits.find_first_not_of("0123456789.") == std::string_view::npos;
    return is_part ? std::optional{std::pair{first, second}} : std::nullopt;
  }
  const auto [last, wrong] = std::from_chars(at + 1, end, second);
  if (wrong != std::errc{} || last != end || second < 2) return std::nullopt;
  return std::pair{first, second};
}

std::string host_name() {
  std::string name(256, '\0');
  if (::gethostname(name.data(), name.size() - 1) != 0) return {};
  return name.c_str();
}

class Collector {
 public:
  /// `store`: the id of the results file, which workers leave in the folders of its runs.
  Collector(fs::path root, fs::file_time_type before, int keep, std::string store)
      : root_{std::move(root)}, before_{before}, keep_{keep}, store_{std::move(store)} {
    std::error_code absent;
    if (const auto real = fs::canonical(root_, absent); !absent) root_ = real;
    find_folders();
  }

  void add(const TrialFiles& trial) {
    const bool live = trial.state == TrialState::kLeased || trial.state == TrialState::kRunning ||
                      std::ranges::any_of(trial.runs, [](const auto& run) {
                        return run.state == RunState::kLeased || run.state == RunState::kRunning;
                      });
    for (const auto& run : trial.runs) {
      if (run.directory.empty()) {  // where it may have written: a guess protects, and is never taken
        known_.insert(root_ / std::to_string(trial.id) / std::to_string(run.attempt));
        continue;
      }
      const auto folder = real_place(run.directory);
      if (folder && folders_.contains(*folder)) {
        known_.insert(*folder);
        if (!live && !trial.shown && !trial.needed && !is_anothers(*folder))
          due_.emplace_back(kRuns, *folder);
      } else if (run.host != host_ || fs::exists(run.directory, absent_)) {
        ++elsewhere_[run.host];
      }
    }
    if (live)  // whatever name its folder has got
      for (const auto& [path, folder] : folders_)
        if (folder.trial == trial.id) known_.insert(path);
    if (live || trial.shown) add_checkpoints(trial, live || trial.needed);
  }

  /// Which folders that belong to no trial go.
  enum class Unknown {
    kNone,
    kOurs,      ///< those that say that they are of this results file
    kUnsigned,  ///< and those that do not say of which they are
  };
  /// After every trial: what goes beneath the root.
  void finish(Unknown which) {
    for (const auto& [kind, path] : due_) take(kind, path);
    for (const auto& [path, folder] : folders_) {
      if (known_.contains(path)) continue;
      if (is_anothers(path))
        ++others_;
      else if (folder.store.empty() && which != Unknown::kUnsigned)
        ++unsigned_;
      else if (which == Unknown::kNone)
        ++ours_left_;
      else
        take(kUnknown, path);
    }
  }

  void take(const char* kind, const fs::path& path) {
    if (std::ranges::any_of(used_,
                            [&](const auto& use) { return use.owner != path && is_within(use.file, path); }))
      return;
    Extent extent;
    add_extent(path, extent);
    if (extent.newest < before_) items_.push_back({kind, path, extent.bytes});
  }

  /// Folders of runs that are in no trial and were left: of another results file; of which nobody says whose
  /// they are; of this results file.
  std::size_t others() const { return others_; }
  std::size_t unsigned_ones() const { return unsigned_; }
  std::size_t ours_left() const { return ours_left_; }
  const std::vector<Item>& items() const { return items_; }
  const std::map<std::string, int>& elsewhere() const { return elsewhere_; }

 private:
  struct Use {
    fs::path file, owner;  // that the run of this folder has read
  };
  struct Folder {
    storage::TrialId trial = 0;
    std::string store;  // empty: of a worker of an older release, or not of ours
  };

  /// That a worker has made it for a run of another results file, which uses the same root.
  bool is_anothers(const fs::path& folder) const {
    const auto found = folders_.find(folder);
    return found != folders_.end() && !found->second.store.empty() && found->second.store != store_;
  }

  static bool is_within(const fs::path& path, const fs::path& folder) {
    const auto [end, rest] = std::ranges::mismatch(folder, path);
    return end == folder.end();
  }

  /// Where a path leads, where that is beneath the root and no link is the last of it.
  std::optional<fs::path> real_place(const fs::path& path) const {
    std::error_code absent;
    const auto folder = fs::canonical(path.parent_path(), absent);
    if (absent || path.filename().empty() || path.filename() == ".." || path.filename() == ".")
      return std::nullopt;
    const auto place = folder / path.filename();
    if (!is_within(place, root_) || fs::is_symlink(fs::symlink_status(place, absent))) return std::nullopt;
    return place;
  }

  void find_folders() {
    std::error_code failed;
    for (const auto& trial : fs::directory_iterator{root_, failed}) {
      const auto number = numbers(trial.path().filename());
      if (!number || trial.is_symlink(failed) || !trial.is_directory(failed)) continue;
      for (const auto& run : fs::directory_iterator{trial.path(), failed}) {
        if (!numbers(run.path().filename()) || run.is_symlink(failed) || !run.is_directory(failed)) continue;
        folders_[run.path()] = {.trial = number->first, .store = protocol::store_of_folder(run.path())};
        note_uses(run.path());
      }
    }
  }

  /// Files beneath the root that a trial has started from: the weights of another, say.
  void note_uses(const fs::path& folder) {
    std::error_code absent;
    const auto file = folder / "launch.json";
    if (!fs::is_regular_file(file, absent)) return;
    const auto record = nlohmann::json::parse(read_file(file), nullptr, false);
    if (!record.is_object()) return;
    const auto note = [&](const nlohmann::json& path) {
      if (!path.is_string()) return;
      const auto real = fs::canonical(path.get<std::string>(), absent);
      if (!absent && is_within(real, root_)) used_.push_back({real, folder});
    };
    if (record.contains("data")) note(record["data"]);
    const auto weights = record.find("weights");
    if (weights != record.end() && weights->is_object())
      for (const auto& [name, path] : weights->items()) note(path);
  }

  /// That the file itself, and no link, lies in a folder of the trial's own: a program may say any path.
  bool is_own(const fs::path& path, storage::TrialId trial) const {
    const auto place = real_place(path);
    std::error_code absent;
    const auto own = root_ / std::to_string(trial);
    if (!place || *place == own || !is_within(*place, own)) return false;
    if (!fs::is_regular_file(fs::symlink_status(*place, absent))) return false;
    return !is_anothers(own / *place->lexically_relative(own).begin());
  }

  /// Which of the trial's checkpoints go. Those that it counts on keep others' folders, where they lie there.
  void add_checkpoints(const TrialFiles& trial, bool live) {
    // as resuming looks for them; whether they are among those of which some are kept, and stored, goes first
    using Rank = std::tuple<bool, bool, int, std::uint32_t>;
    struct File {
      Rank rank;
      bool own = false;
    };
    const bool completed = trial.state == TrialState::kCompleted;
    std::map<fs::path, File> files;  // a path may be reported for many steps, by many attempts
    for (const auto& run : trial.runs) {
      const bool counts = !completed || run.state == RunState::kCompleted;
      const auto add = [&](std::uint32_t step, const fs::path& path, bool stored) {
        std::error_code absent;
        const auto real = fs::canonical(path, absent);
        if (absent || !is_within(real, root_)) return;
        File& file = files[real];
        file.rank = std::max(file.rank, Rank{counts, stored, run.attempt, step});
        file.own = file.own || is_own(path, trial.id);
      };
      for (const auto& [step, path] : run.checkpoints) add(step, path, /*stored=*/true);
      std::error_code failed;
      if (!run.directory.empty())
        for (const auto& entry : fs::directory_iterator{run.directory, failed}) {
          const std::string name = entry.path().filename();
          if (const auto step = protocol::step_of_checkpoint(name))
            add(static_cast<std::uint32_t>(*step), entry.path(), /*stored=*/false);
          else if (name == protocol::kBestCheckpoint && (!counts || keep_ == 0) && completed)
            add(0, entry.path(), /*stored=*/false);
        }
    }
    std::vector<std::pair<Rank, fs::path>> ranked;
    for (const auto& [path, file] : files) ranked.emplace_back(file.rank, path);
    std::ranges::sort(ranked, std::greater{});
    constexpr int kToGoOn = 2;  // the newest may be damaged
    int left = completed ? keep_ : std::max(keep_, kToGoOn);
    bool any_stored = false;
    for (const auto& [rank, path] : ranked) {
      const auto [counts, stored, attempt, step] = rank;
      any_stored = any_stored || (counts && stored);
      bool kept = live;
      if (counts && stored)
        kept = left-- > 0 || live;
      else if (!stored)  // found there: nobody says what it is
        kept = !completed || (counts && keep_ > 0 && !any_stored) || live;
      if (!kept && files.at(path).own) due_.emplace_back(kCheckpoints, path);
      if (kept && !is_within(path, root_ / std::to_string(trial.id))) used_.push_back({path, {}});
    }
  }

  fs::path root_;
  const fs::file_time_type before_;
  const int keep_;
  const std::string store_;
  std::map<fs::path, Folder> folders_;                 // of runs, as they lie there
  std::set<fs::path> known_;                           // that may be of a run that the results file has
  std::vector<std::pair<const char*, fs::path>> due_;  // unless it is used
  std::size_t others_ = 0, unsigned_ = 0, ours_left_ = 0;
  std::vector<Use> used_;
  std::map<std::string, int> elsewhere_;  // runs by host
  const std::string host_ = host_name();
  std::error_code absent_;
  std::vector<Item> items_;
};

/// "results.db.v7.bak" and the like, each with its log. `only_copies`: those that may be the only ones of
/// some results too.
void add_copies(Collector& collector, const fs::path& store, bool only_copies) {
  std::error_code failed;
  const std::string name = store.filename().string() + ".";
  for (const auto& entry : fs::directory_iterator{store.parent_path(), failed}) {
    const std::string other = entry.path().filename();
    if (!other.starts_with(name) || entry.is_symlink(failed) || !entry.is_regular_file(failed)) continue;
    std::string rest = other.substr(name.size());
    if (rest.starts_with("rescued-") || rest.starts_with("before-restore-")) {
      if (only_copies) collector.take(kCopies, entry.path());
      continue;
    }
    for (const std::string log : {"-wal", "-shm", "-journal"})
      if (rest.ends_with(log)) rest.resize(rest.size() - log.size());
    if (rest == "partial" || rest == "restored" || rest == "restored.partial" ||
        (rest.starts_with("v") && (rest.ends_with(".bak") || rest.ends_with(".bak.partial"))))
      collector.take(kCopies, entry.path());
  }
}

void add_logs(Collector& collector, const Context& context) {
  if (FileLock::is_held(context.up_lock())) return;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator{context.home() / "logs", failed})
    if (!entry.is_symlink(failed) && entry.is_regular_file(failed) && entry.path().extension() == ".log")
      collector.take(kLogs, entry.path());
}

/// Takes it away, and the folder of its trial with the last of it. Returns: what went wrong, or empty.
std::string remove(const Item& item) {
  std::error_code failed;
  if (item.kind == kRuns || item.kind == kUnknown)
    fs::remove_all(item.path, failed);
  else
    fs::remove(item.path, failed);
  if (failed) return fmt::format("{}: {}", item.path.string(), failed.message());
  if (item.kind == kRuns || item.kind == kUnknown)
    fs::remove(item.path.parent_path(), failed);  // an empty one goes
  return {};
}

int collect(const Context& context, GcFlags flags) {
  read_policy(flags);
  const seconds older = age(flags.older_than.empty() ? "1d" : flags.older_than, "--older-than");
  const fs::path store = fs::absolute(store_in_use(context));
  const fs::path root = flags.runs_root.empty() ? context.home() / "runs" : fs::absolute(flags.runs_root);
  const auto is_named = [&](const char* kind) {
    return std::ranges::find(flags.only, kind) != flags.only.end();
  };
  storage::Database db{store, storage::Database::Mode::kReadOnly};
  // the folders before the trials: what a run makes after that is not among them
  Collector collector{root, fs::file_time_type::clock::now() - older, flags.keep_checkpoints.value_or(2),
                      db.store_id()};
  storage::each_trial_with_files(db, [&](const TrialFiles& trial) { collector.add(trial); });
  // a file that --store names may be a copy, which does not know the newest runs
  const bool in_doubt = !context.store_flag.empty() && !is_named(kUnknown);
  const bool all = flags.only == std::vector<std::string>{kUnknown};
  using Unknown = Collector::Unknown;
  collector.finish(in_doubt ? Unknown::kNone : all ? Unknown::kUnsigned : Unknown::kOurs);
  if (flags.only.empty() || is_named(kUnknown)) {
    const auto note = [&](std::size_t folders, const std::string& which) {
      if (folders > 0)
        context.note(fmt::format("left {} in {} {}", plural(folders, "run folder"), root.string(), which));
    };
    note(collector.others(), fmt::format("of another results file than {}", store.string()));
    note(collector.unsigned_ones(),
         fmt::format("without the id of a results file, unknown to {}: '--only {}' "
                     "takes them",
                     store.string(), kUnknown));
    note(collector.ours_left(),
         fmt::format("unknown to {}, which may be a copy: '--only {}' takes them", store.string(), kUnknown));
  }
  add_copies(collector, store, is_named(kCopies));
  add_logs(collector, context);

  std::vector<Item> items;
  for (const Item& item : collector.items())
    if (flags.only.empty() || is_named(item.kind.c_str())) items.push_back(item);
  std::map<std::string, std::pair<int, std::uint64_t>> sums;
  std::uint64_t bytes_of_all = 0;
  std::vector<std::string> failures;
  {
    Progress progress{context.err, "removing", "files and folders", static_cast<double>(items.size())};
    std::size_t done = 0;
    for (const Item& item : items) {
      if (flags.yes) {
        progress.update(static_cast<double>(++done));
        if (std::string failure = remove(item); !failure.empty()) {
          failures.push_back(std::move(failure));
          continue;
        }
      }
      auto& [count, bytes] = sums[item.kind];
      ++count;
      bytes += item.bytes;
      bytes_of_all += item.bytes;
    }
  }
  if (context.json) {
    nlohmann::ordered_json json{
        {"removed", flags.yes}, {"bytes", bytes_of_all}, {"kinds", nlohmann::json::array()}};
    for (const auto& [kind, sum] : sums)
      json["kinds"].push_back({{"kind", kind}, {"count", sum.first}, {"bytes", sum.second}});
    if (flags.verbose) {
      json["paths"] = nlohmann::json::array();
      for (const Item& item : items) json["paths"].push_back(item.path.string());
    }
    json["elsewhere"] = collector.elsewhere();
    json["others"] = collector.others();
    json["unsigned"] = collector.unsigned_ones();
    json["unasked"] = collector.ours_left();
    json["failures"] = failures;
    context.out.line(json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  } else {
    for (const auto& [kind, sum] : sums)
      context.out.line(fmt::format("{:<12} {:>10} {:>10}  {}", kind, format_bytes(sum.second),
                                   format_count(static_cast<std::uint64_t>(sum.first)), kinds().at(kind)));
    if (flags.verbose)
      for (const Item& item : items) context.out.line(shown(item.path.string(), context.out));
    for (const auto& [host, runs] : collector.elsewhere())
      context.note(fmt::format(
          "{} of {} lie elsewhere and were not looked at: run this there, with a copy of the results file "
          "(--store) and --runs-root",
          plural(static_cast<std::uint64_t>(runs), "run folder"), host));
    context.out.line(items.empty() ? "nothing to remove"
                     : flags.yes
                         ? fmt::format("removed {}", format_bytes(bytes_of_all))
                         : fmt::format("{} would be removed: pass --yes to do it, --verbose to see the paths",
                                       format_bytes(bytes_of_all)));
  }
  for (const std::string& failure : failures) context.err.line("error: cannot remove " + failure);
  return failures.empty() ? kExitOk : kExitFailed;
}

Run declare_gc(CLI::App& app, Context& context) {
  auto flags = std::make_shared<GcFlags>();
  app.add_flag("--yes,-y", flags->yes, "Remove it; without, only say what would go");
  app.add_flag("--verbose,-v", flags->verbose, "Print every path");
  app.add_option("--keep-checkpoints", flags->keep_checkpoints,
                 "Newest checkpoints kept of a completed run [2]")
      ->check(whole_number(0, 1'000'000))
      ->type_name("N");
  app.add_option("--older-than", flags->older_than, "Only what nobody has written for so long [1d]")
      ->type_name("AGE");
  app.add_option("--only", flags->only, "Only this kind; repeatable")
      ->check(CLI::IsMember(kind_names()).description(""))
      ->type_name(fmt::format("{}", fmt::join(kind_names(), "|")));
  app.add_option("--policy", flags->policy,
                 "File with lines such as keep-checkpoints = 2; flags go before it")
      ->type_name("FILE");
  app.add_option("--runs-root", flags->runs_root, "Folder of the runs [HOME/runs]")->type_name("FOLDER");
  add_home(app, context);
  add_json(app, context);
  app.add_option("--store", context.store_flag, "The results file that says what is needed [the home's]")
      ->type_name("FILE");
  return [&context, flags]() -> int { return collect(context, *flags); };
}

}  // namespace

extern const Command kGcCommand{
    .place = 183,
    .name = "gc",
    .summary = "Free the disk of checkpoints, folders and copies that nothing needs; a dry run first",
    .example = "ablate gc --older-than 30d\nablate gc --policy ~/ablate-gc.policy --yes",
    .success = "done, or said what would be done",
    .failure = "something could not be removed",
    .declare = declare_gc,
};

}  // namespace abl::cli
