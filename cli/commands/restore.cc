// SPDX-License-Identifier: Apache-2.0
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "base/error.h"
#include "base/file.h"
#include "cli/command.h"
#include "cli/format.h"
#include "cli/store_report.h"
#include "storage/backup.h"

namespace abl::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLogEndings[] = {"-wal", "-shm"};  // of SQLite, beside a file

/// "results.db.before-restore-20261123-130501", UTC; another where that is taken.
fs::path kept_name(const fs::path& store) {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  const std::string name = fmt::format("{}.before-restore-{:%Y%m%d-%H%M%S}", store.string(), utc);
  std::error_code unknown;
  for (int other = 1;; ++other)
    if (const fs::path free = other == 1 ? name : fmt::format("{}.{}", name, other);
        !fs::exists(free, unknown))
      return free;
}

void rename_file(const fs::path& from, const fs::path& to) {
  std::error_code failed;
  fs::rename(from, to, failed);
  if (failed)
    throw system_error(fmt::format("cannot rename {} to {}", from.string(), to.string()), failed.value());
}

/// Gives what was there another name, and puts the new file in its place: at each moment one of the two is
/// there. Returns: the other name, where there was something.
std::optional<fs::path> exchange(const fs::path& fresh, const fs::path& store) {
  std::error_code unknown;
  std::optional<fs::path> kept;
  if (fs::exists(store, unknown)) {
    kept = kept_name(store);
    storage::fold_log(store);
    for (const char* log : kLogEndings)  // of a file that could not be folded
      if (fs::exists(store.string() + log, unknown)) rename_file(store.string() + log, kept->string() + log);
    fs::create_hard_link(store, *kept, unknown);
    if (unknown) rename_file(store, *kept);  // a file system without links
    // its age, by which 'ablate gc' may take it, is from now
    for (const char* part : {"", "-wal", "-shm"})
      fs::last_write_time(kept->string() + part, fs::file_time_type::clock::now(), unknown);
  }
  rename_file(fresh, store);
  return kept;
}

nlohmann::ordered_json newer_json(const storage::Missing& newer) {
  return {{"sweeps", newer.sweeps},       {"trials", newer.trials},       {"runs", newer.runs},
          {"under_way", newer.under_way}, {"first_run", newer.first_run}, {"last_run", newer.last_run},
          {"folders", newer.folders}};
}

std::string newer_text(const storage::Missing& newer) {
  if (newer.runs == 0 && newer.trials == 0 && newer.sweeps.empty())
    return "what was there had nothing that this copy lacks\n";
  constexpr std::size_t kNamed = 8;
  const std::span named{newer.sweeps.data(), std::min(kNamed, newer.sweeps.size())};
  std::string text = "not in the copy, and kept only in what was there:\n";
  if (!newer.sweeps.empty())
    text += fmt::format("  {}: {}{}\n", plural(newer.sweeps.size(), "sweep"), fmt::join(named, ", "),
                        named.size() < newer.sweeps.size() ? ", …" : "");
  if (newer.trials > 0)
    text += fmt::format("  {}\n", plural(static_cast<std::uint64_t>(newer.trials), "trial"));
  if (newer.runs > 0)
    text += fmt::format(
        "  {} ({} to {}){}: their workers, when they come back, hear that they are not of this store\n",
        plural(static_cast<std::uint64_t>(newer.runs), "run"), newer.first_run, newer.last_run,
        newer.under_way > 0 ? fmt::format(", {} of them under way", newer.under_way) : "");
  if (!newer.folders.empty())
    text += fmt::format("  {} of these runs, such as {}: 'ablate gc' lists those of this machine\n",
                        plural(newer.folders.size(), "folder"), newer.folders.front());
  return text;
}

Run declare_restore(CLI::App& app, Context& context) {
  auto file = std::make_shared<std::string>();
  app.add_option("FILE", *file, "A copy that 'ablate backup' has made")->required()->type_name("");
  add_home(app, context);
  add_json(app, context);
  app.add_option("--store", context.store_flag, "Put it in the place of this results file [the home's]")
      ->type_name("FILE");
  return [&context, file]() -> int {
    const fs::path store = context.store();
    std::error_code unknown;
    if (fs::equivalent(*file, store, unknown))
      throw Error{Code::kInvalidArgument,
                  fmt::format("{}: is the results file itself; expected a copy of it", *file)};
    StoreProgress progress{context.err};
    storage::StoreFile copy{*file, progress.callback()};
    copy.check();
    if (copy.contents().count("archive") > 0)
      throw Error{
          Code::kInvalidArgument,
          fmt::format("{}: an archive of some sweeps, not a copy of a whole results file; 'ablate import {}' "
                      "brings them into the one that is there",
                      *file, *file)};
    make_folder(store.parent_path());
    const FileLock lock = lock_store(context, store);
    const fs::path fresh = store.string() + ".restored";
    copy.copy_to(fresh);
    progress.end();
    nlohmann::ordered_json newer;
    std::string text;
    if (fs::exists(store, unknown)) try {
        storage::StoreFile before{store};
        if (before.contents().store_id != copy.contents().store_id)
          text = "what was there is another store, not an earlier or later state of this one\n";
        else {
          const storage::Missing missing = before.missing_in(fresh);
          newer = newer_json(missing);
          text = newer_text(missing);
        }
      } catch (const Error& error) {
        text = fmt::format("what was there cannot be read: {}\n", error.what());
      }
    const auto kept = exchange(fresh, store);
    if (context.json) {
      auto json = contents_json(store, copy.contents());
      json["kept"] = kept ? nlohmann::json(kept->string()) : nlohmann::json();
      json["newer"] = newer;
      context.out.line(json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
      return kExitOk;
    }
    context.out.line(fmt::format("{}: {}", store.string(), contents_text(store, copy.contents())));
    if (kept) context.out.line("what was there is kept as " + kept->string());
    context.out.write(text);
    return kExitOk;
  };
}

}  // namespace

extern const Command kRestoreCommand{
    .place = 182,
    .name = "restore",
    .summary = "Put a copy of the results file in its place, while no scheduler runs",
    .example = "ablate down && ablate restore /backups/results-2026-11-20.db && ablate up --detach",
    .success = "restored",
    .declare = declare_restore,
};

}  // namespace abl::cli
