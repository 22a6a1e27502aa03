// SPDX-License-Identifier: Apache-2.0
#include "storage/backup.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sqlite3.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "base/new_file.h"
#include "base/sha256.h"
#include "storage/database.h"
#include "storage/schema.h"
#include "storage/sqlite_error.h"

namespace abl::storage {
namespace fs = std::filesystem;
namespace {

constexpr int kPatienceMs = 10'000, kPagesAtOnce = 2000, kStepsBetweenWords = 1'000'000;

std::uint64_t spread(std::uint64_t value) {  // splitmix64
  value += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

std::uint64_t value_hash(sqlite3_value* value) {
  const int type = sqlite3_value_type(value);
  auto hash = spread(static_cast<std::uint64_t>(type));
  if (type == SQLITE_INTEGER) return spread(hash ^ static_cast<std::uint64_t>(sqlite3_value_int64(value)));
  if (type == SQLITE_FLOAT) return spread(hash ^ std::bit_cast<std::uint64_t>(sqlite3_value_double(value)));
  if (type == SQLITE_NULL) return hash;
  const auto* bytes = static_cast<const char*>(sqlite3_value_blob(value));
  const auto size = static_cast<std::size_t>(sqlite3_value_bytes(value));
  for (std::size_t at = 0; at < size; at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes + at, std::min<std::size_t>(8, size - at));
    hash = spread(hash ^ word);
  }
  return spread(hash ^ size);
}

/// content_digest(every column): the sum of all rows' hashes, in whatever order they come.
void add_row(sqlite3_context* context, int columns, sqlite3_value** values) {
  auto* sum = static_cast<std::uint64_t*>(sqlite3_aggregate_context(context, sizeof(std::uint64_t)));
  if (!sum) return sqlite3_result_error_nomem(context);
  std::uint64_t row = 0;
  for (int column = 0; column < columns; ++column) row = spread(row ^ value_hash(values[column]));
  *sum += row;
}
void end_rows(sqlite3_context* context) {
  const auto* sum = static_cast<std::uint64_t*>(sqlite3_aggregate_context(context, 0));
  sqlite3_result_int64(context, sum ? static_cast<std::int64_t>(*sum) : 0);
}

std::vector<std::string> texts(sqlite3* db, const std::string& sql) {
  return Statement{db, sql}.all([](const Statement& row) { return row.text(0); });
}
std::int64_t number_in(sqlite3* db, const std::string& sql) {
  return Statement{db, sql}.one([](const Statement& row) { return row.integer(0); }).value_or(0);
}

}  // namespace

std::int64_t Contents::count(const std::string& table) const {
  const auto found = rows.find(table);
  return found == rows.end() ? 0 : found->second;
}

StoreFile::StoreFile(fs::path file, Progress progress)
    : file_{std::move(file)}, progress_{std::move(progress)}, db_{nullptr, &sqlite3_close_v2} {
  std::error_code unknown;
  if (fs::status(file_, unknown).type() == fs::file_type::not_found)
    throw Error{Code::kNotFound, file_.string() + ": no such file; expected a results file"};
  if (fs::is_directory(file_, unknown))
    throw Error{Code::kInvalidArgument,
                file_.string() + ": is a folder; expected a results file, e.g. results.db"};
  sqlite3* raw = nullptr;
  const int result =
      sqlite3_open_v2(file_.c_str(), &raw, SQLITE_OPEN_READONLY | SQLITE_OPEN_EXRESCODE, nullptr);
  db_.reset(raw);
  if (result != SQLITE_OK) throw sqlite_error(raw, result, file_.string());
  sqlite3_busy_timeout(raw, kPatienceMs);
  const FileKind kind = file_kind(raw);
  if (kind.application_id != kApplicationId)
    throw Error{Code::kInvalidArgument,
                file_.string() + (kind.empty ? ": empty results file"
                                             : ": an SQLite file of another program, not a results file")};
  if (const int known = migrations().back().to; kind.version > known)
    throw Error{
        Code::kFailedPrecondition,
        fmt::format(
            "{}: written by a newer version of ablate (schema {}, this one knows up to {}); use that version",
            file_.string(), kind.version, known)};
  sqlite3_create_function(raw, "content_digest", -1, SQLITE_UTF8 | SQLITE_DETERMINISTIC, nullptr, nullptr,
                          add_row, end_rows);
  sqlite3_progress_handler(
      raw, kStepsBetweenWords,
      [](void* self) {
        auto& looked_at = *static_cast<StoreFile*>(self);
        if (!looked_at.what_.empty()) looked_at.say(looked_at.what_, ++looked_at.looked_, 0);
        return 0;
      },
      this);
  execute("BEGIN");  // from the first look on one state, whatever is written meanwhile
  number_in(raw, "SELECT COUNT(*) FROM sqlite_schema");
}

StoreFile::~StoreFile() = default;

void StoreFile::say(std::string_view what, double done, double total) const {
  if (progress_) progress_(what, done, total);
}

void StoreFile::execute(const std::string& sql) {
  if (const int result = sqlite3_exec(db_.get(), sql.c_str(), nullptr, nullptr, nullptr); result != SQLITE_OK)
    throw sqlite_error(db_.get(), result);
}

void StoreFile::check() {
  what_ = "checking";
  auto wrong = texts(db_.get(), "PRAGMA quick_check(5)");
  if (wrong == std::vector<std::string>{"ok"})
    wrong =
        texts(db_.get(),
              "SELECT 'a row of ' || \"table\" || ' refers to a row of ' || parent || ' that is not there' "
              "FROM pragma_foreign_key_check LIMIT 5");
  what_ = {};
  if (!wrong.empty())
    throw Error{Code::kDataLoss, fmt::format("{}: damaged: {}", file_.string(), fmt::join(wrong, "; "))};
}

const Contents& StoreFile::contents() {
  if (contents_) return *contents_;
  Contents contents{.version = file_kind(db_.get()).version};
  what_ = "reading";
  std::string lines;
  for (const std::string& table : texts(db_.get(),
                                        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT "
                                        "LIKE 'sqlite_%' ORDER BY name")) {
    const auto columns =
        texts(db_.get(),
              fmt::format("SELECT '\"' || name || '\"' FROM pragma_table_info('{}') ORDER BY cid", table));
    Statement{db_.get(),
              fmt::format("SELECT COUNT(*), content_digest({}) FROM \"{}\"", fmt::join(columns, ", "), table)}
        .one([&](const Statement& row) {
          contents.rows[table] = row.integer(0);
          lines += fmt::format("{} {} {:016x}\n", table, row.integer(0),
                               static_cast<std::uint64_t>(row.integer(1)));
          return 0;
        });
  }
  what_ = {};
  contents.digest = sha256_hex(lines);
  if (contents.rows.contains("store"))
    for (const std::string& id : texts(db_.get(), "SELECT id FROM store")) contents.store_id = id;
  contents_ = std::make_unique<Contents>(std::move(contents));
  return *contents_;
}

void StoreFile::copy_to(const fs::path& to) {
  NewFile copy{to, {.ending = ".partial", .mode = 0600}};
  {
    sqlite3* raw = nullptr;
    int result =
        sqlite3_open_v2(copy.part().c_str(), &raw, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
    const std::unique_ptr<sqlite3, int (*)(sqlite3*)> into{raw, &sqlite3_close_v2};
    if (result == SQLITE_OK) {
      sqlite3_backup* backup = sqlite3_backup_init(raw, "main", db_.get(), "main");
      result = backup ? SQLITE_OK : sqlite3_errcode(raw);
      while (result == SQLITE_OK) {
        result = sqlite3_backup_step(backup, kPagesAtOnce);
        const int pages = sqlite3_backup_pagecount(backup);
        say("copying", pages - sqlite3_backup_remaining(backup), pages);
      }
      if (const int finished = sqlite3_backup_finish(backup); finished != SQLITE_OK) result = finished;
      if (result == SQLITE_DONE)  // without a log of its own: it may be read where nobody can write
        result = sqlite3_exec(raw, "PRAGMA journal_mode = DELETE", nullptr, nullptr, nullptr);
    }
    if (result != SQLITE_OK) throw sqlite_error(raw, result, copy.part().string());
  }
  StoreFile written{copy.part(), progress_};
  written.check();
  if (written.contents() != contents())
    throw Error{Code::kDataLoss,
                fmt::format("{}: what was written there is not what {} holds", to.string(), file_.string())};
  copy.publish();
}

Missing StoreFile::missing_in(const fs::path& other) {
  execute("COMMIT");
  {
    Statement attach{db_.get(), "ATTACH :other AS other"};
    attach.bind(":other", other.string()).run();
  }
  execute("BEGIN");
  Missing missing{
      .sweeps = texts(
          db_.get(),
          "SELECT name FROM sweep s WHERE NOT EXISTS (SELECT 1 FROM other.sweep o WHERE o.id = s.id AND "
          "o.created_ms = s.created_ms) ORDER BY id"),
      .trials =
          number_in(db_.get(),
                    "SELECT COUNT(*) FROM trial t WHERE NOT EXISTS (SELECT 1 FROM other.trial o WHERE o.id = "
                    "t.id AND o.config_hash = t.config_hash)"),
  };
  const std::string runs =
      "FROM run r WHERE NOT EXISTS (SELECT 1 FROM other.run o WHERE o.id = r.id AND o.leased_ms = "
      "r.leased_ms)";
  Statement{db_.get(), "SELECT COUNT(*), MIN(id), MAX(id), SUM(state IN ('leased', 'running')) " + runs}.one(
      [&](const Statement& row) {
        missing.runs = row.integer(0);
        missing.first_run = row.integer(1);
        missing.last_run = row.integer(2);
        missing.under_way = row.integer(3);
        return 0;
      });
  missing.folders = texts(db_.get(), "SELECT directory " + runs + " AND directory <> '' ORDER BY id");
  return missing;
}

void fold_log(const fs::path& file) {
  sqlite3* raw = nullptr;
  if (sqlite3_open_v2(file.c_str(), &raw, SQLITE_OPEN_READWRITE, nullptr) == SQLITE_OK &&
      sqlite3_exec(raw, "SELECT COUNT(*) FROM sqlite_schema", nullptr, nullptr, nullptr) ==
          SQLITE_OK)  // finds the log
    sqlite3_wal_checkpoint_v2(raw, nullptr, SQLITE_CHECKPOINT_TRUNCATE, nullptr, nullptr);
  sqlite3_close_v2(raw);  // the last one that has it open: the log goes
}

}  // namespace abl::storage
