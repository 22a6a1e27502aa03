// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "cli/command.h"
#include "cli/format.h"
#include "cli/store_report.h"
#include "storage/archive.h"

namespace abl::cli {
namespace {

namespace fs = std::filesystem;

std::string text_of(const storage::Merged& merged) {
  const auto some = [](std::int64_t count, const char* noun) {
    return plural(static_cast<std::uint64_t>(count), noun);
  };
  std::string text;
  if (!merged.sweeps.empty()) text += fmt::format("new here: {}\n", fmt::join(merged.sweeps, ", "));
  if (!merged.grown.empty())
    text += fmt::format("extended as in the archive: {}\n", fmt::join(merged.grown, ", "));
  if (!merged.known.empty()) text += fmt::format("here already: {}\n", fmt::join(merged.known, ", "));
  text += fmt::format("{} new; {} that waited here got a result; {} unchanged\n",
                      some(merged.new_trials, "trial"), merged.filled, merged.there);
  text += fmt::format("imported {}, {} points, {}\n", some(merged.runs, "run"),
                      format_count(static_cast<std::uint64_t>(merged.points)),
                      some(merged.checkpoints, "checkpoint"));
  return text;
}

Run declare_import(CLI::App& app, Context& context) {
  auto file = std::make_shared<std::string>();
  app.add_option("FILE", *file, "An archive that 'ablate archive' has made")->required()->type_name("");
  add_home(app, context);
  add_json(app, context);
  app.add_option("--store", context.store_flag, "Merge it into this results file [the home's]")
      ->type_name("FILE");
  return [&context, file]() -> int {
    const fs::path store = context.store();
    std::error_code unknown;
    if (fs::equivalent(*file, store, unknown))
      throw Error{Code::kInvalidArgument, fmt::format("{}: is the results file itself", *file)};
    make_folder(store.parent_path());
    const FileLock lock = lock_store(context, store);
    std::array<char, 256> host{};
    ::gethostname(host.data(), host.size() - 1);
    const auto merged = [&] {
      try {
        storage::Database db{store, storage::Database::Mode::kWrite};
        return storage::merge_archive(db, *file, store.parent_path() / "imported", host.data());
      } catch (const Error& error) {
        if (error.code() != Code::kResourceExhausted) throw;
        throw Error{error.code(), fmt::format("{}: the disk is full; free some space: nothing was imported",
                                              store.string())};
      }
    }();
    if (context.json)
      context.out.line(nlohmann::ordered_json{
          {"store", store.string()},
          {"sweeps", merged.sweeps},
          {"known", merged.known},
          {"grown", merged.grown},
          {"new_trials", merged.new_trials},
          {"filled", merged.filled},
          {"there", merged.there},
          {"runs", merged.runs},
          {"points", merged.points},
          {"checkpoints", merged.checkpoints},
          {"notes",
           merged.notes}}.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    else
      context.out.write(text_of(merged));
    for (const std::string& note : merged.notes) context.note(note);
    return kExitOk;
  };
}

}  // namespace

extern const Command kImportCommand{
    .place = 184,
    .name = "import",
    .summary = "Merge an archive into the results file, while no scheduler runs",
    .example = "ablate down && ablate import msf-sharing.db && ablate up --detach",
    .success = "merged; nothing is there twice",
    .declare = declare_import,
};

}  // namespace abl::cli
