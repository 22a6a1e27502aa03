// SPDX-License-Identifier: Apache-2.0
#include "cli/store_report.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/error.h"
#include "cli/format.h"

namespace abl::cli {

namespace fs = std::filesystem;

namespace {

std::uint64_t bytes_of(const std::filesystem::path& file) {
  std::error_code absent;
  const auto bytes = std::filesystem::file_size(file, absent);
  return absent ? 0 : bytes;
}

}  // namespace

storage::StoreFile::Progress StoreProgress::callback() {
  return [this, begun = std::chrono::steady_clock::now()](std::string_view what, double done,
                                                          double total) mutable {
    if (what != what_) {
      progress_.reset();
      what_ = what;
      begun = std::chrono::steady_clock::now();
      progress_ = std::make_unique<Progress>(terminal_, what_, total > 0 ? "pages" : "s", total);
    }
    progress_->update(
        total > 0 ? done : std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count());
  };
}

std::string contents_text(const std::filesystem::path& file, const storage::Contents& contents) {
  const auto some = [&](const char* table) { return static_cast<std::uint64_t>(contents.count(table)); };
  return fmt::format("{}, {}, {}, {} points; {}, schema {}, contents {}", plural(some("sweep"), "sweep"),
                     plural(some("trial"), "trial"), plural(some("run"), "run"), format_count(some("point")),
                     format_bytes(bytes_of(file)), contents.version, contents.digest.substr(0, 16));
}

nlohmann::ordered_json contents_json(const std::filesystem::path& file, const storage::Contents& contents) {
  return {{"file", file.string()},
          {"bytes", bytes_of(file)},
          {"schema", contents.version},
          {"store_id", contents.store_id},
          {"sweeps", contents.count("sweep")},
          {"trials", contents.count("trial")},
          {"runs", contents.count("run")},
          {"points", contents.count("point")},
          {"contents", contents.digest}};
}

fs::path store_in_use(const Context& context) {
  if (!context.store_flag.empty()) return context.store_flag;
  const auto up = running_up(context);
  return up && !up->store.empty() ? fs::path{up->store} : context.default_store();
}

void expect_place_for(const fs::path& to, const fs::path& from, bool force, const char* example) {
  std::error_code unknown;
  if (fs::is_directory(to, unknown))
    throw Error{Code::kInvalidArgument, fmt::format("{}: is a folder; expected the name of a file, e.g. {}",
                                                    to.string(), (to / example).string())};
  if (fs::equivalent(from, to, unknown))
    throw Error{Code::kInvalidArgument,
                fmt::format("{}: is the results file itself; give another name", to.string())};
  if (!force && fs::exists(to, unknown))
    throw Error{
        Code::kAlreadyExists,
        fmt::format("{}: is there already; give another name, or replace it with --force", to.string())};
}

FileLock lock_store(const Context& context, const fs::path& store) {
  if (FileLock::is_held(context.up_lock()) && store == context.default_store())
    throw Error{Code::kUnavailable,
                fmt::format("'ablate up' runs in {}: 'ablate down' first", context.home().string())};
  const fs::path file = store.string() + ".lock";
  auto lock = FileLock::try_lock(file);
  if (!lock) {
    std::string holder;
    std::getline(std::ifstream{file}, holder);
    throw Error{Code::kUnavailable,
                fmt::format("{} is in use by a scheduler{}: stop it first", store.string(),
                            holder.empty() ? "" : fmt::format(" (process {})", holder))};
  }
  lock->remove_after(lock->made_file());
  lock->sign();
  return *std::move(lock);
}

}  // namespace abl::cli
