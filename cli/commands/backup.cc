// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/command.h"
#include "cli/format.h"
#include "cli/store_report.h"
#include "storage/backup.h"

namespace abl::cli {
namespace {

namespace fs = std::filesystem;

struct BackupFlags {
  std::string file;
  bool force = false;
};

Run declare_backup(CLI::App& app, Context& context) {
  auto flags = std::make_shared<BackupFlags>();
  app.add_option("FILE", flags->file, "The copy; it appears when it is whole and checked")
      ->required()
      ->type_name("");
  app.add_flag("--force", flags->force, "Replace a file that is there");
  add_home(app, context);
  add_json(app, context);
  app.add_option("--store", context.store_flag, "Copy this results file [the home's]")->type_name("FILE");
  return [&context, flags]() -> int {
    const fs::path from = store_in_use(context), to = flags->file;
    expect_place_for(to, from, flags->force, "results.db");
    StoreProgress progress{context.err};
    storage::StoreFile store{from, progress.callback()};
    store.copy_to(to);
    progress.end();
    const auto& contents = store.contents();
    if (context.json)
      context.out.line(contents_json(to, contents).dump());
    else
      context.out.line(fmt::format("{}: {}", to.string(), contents_text(to, contents)));
    return kExitOk;
  };
}

}  // namespace

extern const Command kBackupCommand{
    .place = 181,
    .name = "backup",
    .summary = "Copy the results file while it is in use, and check the copy",
    .example = "ablate backup /backups/results-$(date +%F).db",
    .success = "copied, checked and equal",
    .declare = declare_backup,
};

}  // namespace abl::cli
