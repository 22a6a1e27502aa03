// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "cli/command.h"
#include "cli/format.h"
#include "cli/parquet.h"
#include "cli/results_import.h"
#include "cli/scratch.h"
#include "cli/store_report.h"
#include "storage/archive.h"
#include "storage/schema.h"

namespace abl::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

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

ordered_json json_of(const fs::path& store, const storage::Merged& merged) {
  return {{"store", store.string()},
          {"sweeps", merged.sweeps},
          {"known", merged.known},
          {"grown", merged.grown},
          {"new_trials", merged.new_trials},
          {"filled", merged.filled},
          {"there", merged.there},
          {"runs", merged.runs},
          {"points", merged.points},
          {"checkpoints", merged.checkpoints},
          {"notes", merged.notes}};
}

std::string text_of(const ImportedFile& imported, bool dry_run) {
  if (imported.runs == 0)
    return fmt::format("{}: nothing new: {} there already, the same\n", imported.file,
                       imported.unchanged == 1
                           ? fmt::format("1 run is of sweep {}", imported.sweep)
                           : fmt::format("{} runs are of sweep {}", imported.unchanged, imported.sweep));
  return fmt::format(
      "{}: {} {} of {} into {} {}{}\n", imported.file, dry_run ? "would import" : "imported",
      plural(imported.points, "point"), plural(imported.runs, "run"),
      imported.is_new_sweep ? "the new sweep" : "sweep", imported.sweep,
      imported.unchanged > 0 ? fmt::format("; {} there already", plural(imported.unchanged, "run")) : "");
}

ordered_json json_of(const ImportedFile& imported) {
  return {{"file", imported.file},     {"format", imported.format},
          {"sweep", imported.sweep},   {"new_sweep", imported.is_new_sweep},
          {"new_rows", imported.rows}, {"runs", imported.runs},
          {"points", imported.points}, {"unchanged", imported.unchanged},
          {"notes", imported.notes}};
}

enum class Kind { kArchive, kParquet, kResults };
Kind kind_of(const fs::path& file) {
  std::error_code failed;
  if (fs::is_directory(file, failed)) return Kind::kResults;
  if (!fs::exists(file, failed) && !failed) throw Error{Code::kNotFound, file.string() + ": no such file"};
  std::ifstream in{file, std::ios::binary};
  if (!in) throw system_error("cannot read " + file.string(), errno);
  std::string head(72, '\0');
  in.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(in.gcount()));
  if (head.starts_with("PAR1")) return Kind::kParquet;
  if (!head.starts_with("SQLite format 3") || head.size() < 72) return Kind::kResults;
  std::uint32_t application = 0;  // bytes 68 to 71, the highest first
  for (int i = 68; i < 72; ++i)
    application = application << 8 | static_cast<unsigned char>(head[static_cast<std::size_t>(i)]);
  return application == static_cast<std::uint32_t>(storage::kApplicationId) ? Kind::kArchive : Kind::kResults;
}

/// A Parquet file as the CSV that is read of it; removed at the end.
class AsCsv {
 public:
  explicit AsCsv(const fs::path& parquet)
      : parquet_{parquet}, file_{scratch_.path() / (parquet.stem().string() + ".csv")} {
    parquet_to_csv(parquet, file_);
  }
  const fs::path& file() const { return file_; }
  /// What is said of it, in the words of whoever knows the Parquet file alone.
  std::string named(std::string text) const {
    for (std::size_t at = 0; (at = text.find(file_.string(), at)) != std::string::npos;
         at += parquet_.string().size())
      text.replace(at, file_.string().size(), parquet_.string());
    return text;
  }

 private:
  const Scratch scratch_;
  const fs::path parquet_, file_;
};

/// A results file that is made for an import, and goes again where nothing came into it.
class MadeStore {
 public:
  explicit MadeStore(fs::path store) : store_{std::move(store)} {
    std::error_code unknown;
    is_made_ = !fs::exists(store_, unknown) && !unknown;
  }
  ~MadeStore() {
    std::error_code ignored;
    for (const char* ending : {"", "-wal", "-shm"})
      if (is_made_) fs::remove(store_.string() + ending, ignored);
  }
  MadeStore(const MadeStore&) = delete;
  MadeStore& operator=(const MadeStore&) = delete;
  void keep() { is_made_ = false; }

 private:
  const fs::path store_;
  bool is_made_ = false;
};

struct ImportFlags {
  std::vector<std::string> files;
  std::string format = "auto";
  bool dry_run = false;
  ImportOptions options;
};

/// `db`: null in a dry run where there is no results file yet.
std::vector<ImportedFile> import_one(Context& context, storage::Database* db, const fs::path& file, Kind kind,
                                     const ImportFlags& flags) {
  ImportOptions options = flags.options;
  const auto import_it = [&](const fs::path& from) {
    return flags.dry_run ? would_import(db, from, options) : import_results(*db, from, options);
  };
  if (flags.format != "auto") options.format = value_named<exchange::Format>(flags.format);
  Progress progress{context.err, "importing " + file.string(), "points", 0};
  options.progress = [&](std::uint64_t points, std::uint64_t) {
    progress.update(static_cast<double>(points));
  };
  if (kind != Kind::kParquet) return import_it(file);
  const AsCsv csv{file};
  options.origin = file.filename().string();
  try {
    auto reports = import_it(csv.file());
    for (ImportedFile& report : reports) {
      report.file = file.string(), report.format = "parquet";
      for (std::string& note : report.notes) note = csv.named(note);
    }
    return reports;
  } catch (const Error& error) {
    throw Error{error.code(), csv.named(error.what())};
  }
}

void say(Context& context, const std::string& text, const ordered_json& json,
         const std::vector<std::string>& notes) {
  if (context.json)
    context.out.line(json.dump(-1, ' ', false, ordered_json::error_handler_t::replace));
  else
    context.out.write(text);
  for (const std::string& note : notes) context.note(note);
}
void say(Context& context, const std::vector<ImportedFile>& imported, bool dry_run) {
  for (const ImportedFile& each : imported) say(context, text_of(each, dry_run), json_of(each), each.notes);
}

/// Makes no results file, and reads one that is there.
int dry_run(Context& context, const fs::path& store, const std::vector<std::pair<fs::path, Kind>>& files,
            const ImportFlags& flags) {
  std::optional<storage::Database> db;
  std::error_code unknown;
  if (fs::exists(store, unknown)) db.emplace(store, storage::Database::Mode::kReadOnly);
  for (const auto& [file, kind] : files)
    say(context, import_one(context, db ? &*db : nullptr, file, kind, flags), true);
  return kExitOk;
}

Run declare_import(CLI::App& app, Context& context) {
  auto flags = std::make_shared<ImportFlags>();
  auto& mapping = flags->options.mapping;
  app.add_option(
         "FILE", flags->files,
         "Archives that 'ablate archive' has made, or results of other tools: CSV, JSON Lines, Parquet, "
         "TensorBoard's event files or folder, MLflow's folder or SQLite file")
      ->required()
      ->type_name("");
  add_choice(app, "--format", flags->format, {"auto", "csv", "jsonl", "tensorboard", "mlflow"},
             "What they are [auto: by their content]");
  const auto list = [&](const char* name, std::vector<std::string>& values, const char* description) {
    app.add_option(name, values, description)
        ->type_name("NAME")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  };
  const auto column = [&](const char* name, std::string& value, const char* description) {
    return app.add_option(name, value, description)->type_name("NAME");
  };
  column("--sweep", flags->options.sweep,
         "Sweep that they go into, a new one or one that is there [as the file says, its name]");
  column("--row", mapping.row, "Column with the name of the row [row, run_name, run, name]");
  column("--seed", mapping.seed, "Column of seeds [seed]");
  column("--step", mapping.step, "Column of steps [step, _step, global_step, epoch; without: one step]");
  column("--time", mapping.time,
         "Column of times, in ms or seconds since 1970 [time_ms, _timestamp, timestamp]");
  list("--metric", mapping.metrics, "Column, or metric, to take; may be repeated [all columns of numbers]");
  list("--setting", mapping.settings, "Column that configures a run; may be repeated");
  column("--as-row", mapping.as_row, "Name of the row, of a file without a column for it [the file's name]");
  column("--prefix", flags->options.prefix, "What the names of the imported rows begin with");
  app.add_option(
         "--table", flags->options.table,
         "Columns, labels and printed values of a new sweep, as 'ablate table SWEEP --json' wrote them "
         "[a column for each metric]")
      ->type_name("FILE");
  app.add_flag("--dry-run", flags->dry_run, "Say what would be imported");
  add_home(app, context);
  add_json(app, context);
  app.add_option("--store", context.store_flag, "Merge it into this results file [the home's]")
      ->type_name("FILE");
  return [&context, flags]() -> int {
    const fs::path store = context.store();
    std::vector<std::pair<fs::path, Kind>> files;
    for (const auto& name : flags->files) {
      const fs::path file = name;
      std::error_code unknown;
      if (fs::equivalent(file, store, unknown))
        throw Error{Code::kInvalidArgument, fmt::format("{}: is the results file itself", name)};
      files.emplace_back(file, kind_of(file));
      if (files.back().second == Kind::kArchive && flags->dry_run)
        throw Error{Code::kInvalidArgument,
                    fmt::format("{}: is an archive; --dry-run is of results of other tools", name)};
    }
    if (flags->dry_run) return dry_run(context, store, files, *flags);
    make_folder(store.parent_path());
    const FileLock lock = lock_store(context, store);
    MadeStore made{store};
    std::array<char, 256> host{};
    ::gethostname(host.data(), host.size() - 1);
    for (const auto& [file, kind] : files) {
      std::optional<storage::Merged> merged;
      std::vector<ImportedFile> imported;
      try {
        storage::Database db{store, storage::Database::Mode::kWrite};
        if (kind == Kind::kArchive)
          merged = storage::merge_archive(db, file, store.parent_path() / "imported", host.data());
        else
          imported = import_one(context, &db, file, kind, *flags);
      } catch (const Error& error) {
        if (error.code() != Code::kResourceExhausted) throw;
        throw Error{error.code(),
                    fmt::format("{}: the disk is full; free some space: nothing of {} was imported",
                                store.string(), file.string())};
      }
      made.keep();
      if (merged) say(context, text_of(*merged), json_of(store, *merged), merged->notes);
      say(context, imported, false);
    }
    return kExitOk;
  };
}

}  // namespace

extern const Command kImportCommand{
    .place = 184,
    .name = "import",
    .summary = "Import an archive or results of other tools into the results file; stop the scheduler first",
    .example =
        "ablate import msf-sharing.db\n"
        "ablate import points.csv --sweep msf-sharing --prefix old-\n"
        "ablate import mlruns --sweep baselines\n"
        "ablate import wandb.csv --row Name --metric val_acc",
    .success = "merged; nothing is there twice",
    .declare = declare_import,
};

}  // namespace abl::cli
