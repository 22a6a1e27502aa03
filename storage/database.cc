// SPDX-License-Identifier: Apache-2.0
#include "storage/database.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <mutex>
#include <shared_mutex>
#include <utility>

#include "base/guarded.h"
#include "storage/schema.h"
#include "storage/sqlite_error.h"
#include "storage/store_copy.h"

namespace abl::storage {
namespace fs = std::filesystem;
namespace {

constexpr int kBusyMs = 10'000;
/// Of the log: what SQLite copies into the file after a commit, and what is left of the log's file after
/// that.
constexpr int kPagesBetweenCheckpoints = 1000, kLogFileBytes = 16 << 20;
constexpr int kStepsBetweenLooks = 2000;  ///< of a statement, at whether it is to stop

int open_file(sqlite3** db, const std::string& name, int flags) {
  // Statistics of its memory, which nobody asks for, would take a lock at each allocation: 7 % of a submit.
  static const int without_statistics = sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
  (void)without_statistics;  // too late where somebody else in the process has begun: no harm
  return sqlite3_open_v2(name.c_str(), db, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, nullptr);
}

/// "file:" URI of a path, with what means something in a URI escaped.
std::string uri(const fs::path& file) {
  std::string result = "file:";
  for (const char c : fs::absolute(file).string()) {
    if (c == '?')
      result += "%3f";
    else if (c == '#')
      result += "%23";
    else if (c == '%')
      result += "%25";
    else
      result += c;
  }
  return result;
}

/// SQLite gives the log and the index beside a file the file's mode.
void create_for_owner(const fs::path& file) {
  if (const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600); fd >= 0)
    ::close(fd);
}

std::string pragma(sqlite3* db, const char* sql) {
  return Statement{db, sql}.one([](const Statement& row) { return row.text(0); }).value_or("");
}

}  // namespace

void Database::Close::operator()(sqlite3* db) const { sqlite3_close_v2(db); }

Database::Database(const fs::path& file, Mode mode) : file_{file} {
  std::error_code unknown;  // what we may not look at, opening tells
  if (fs::is_directory(file, unknown))
    throw Error{Code::kInvalidArgument,
                file.string() + ": is a folder; expected a results file, e.g. results.db"};
  if (mode == Mode::kWrite)
    open_to_write();
  else
    open_to_read();
}
Database::~Database() {
  // SQLite would delete the log of whatever is at our path now
  if (place_ && !displaced().empty())
    sqlite3_db_config(db_.get(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
}

void Database::open_to_write() {
  std::error_code unknown;
  if (const auto folder = fs::absolute(file_).parent_path(); !fs::is_directory(folder, unknown))
    throw Error{Code::kNotFound,
                file_.string() + ": its folder does not exist; create " + folder.string() + " first"};
  create_for_owner(file_);
  sqlite3* raw = nullptr;
  const int result = open_file(&raw, file_.string(), SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
  db_.reset(raw);
  if (result != SQLITE_OK) throw sqlite_error(raw, result, file_.string());
  if (sqlite3_db_readonly(raw, "main") == 1)
    throw Error{Code::kPermissionDenied,
                file_.string() + ": not writable; change its permissions, or give another path"};
  sqlite3_busy_timeout(raw, kBusyMs);
  if (const FileKind kind = file_kind(raw);
      kind.empty || kind.application_id == kApplicationId) {  // else `migrate` refuses it
    if (const auto journal = pragma(raw, "PRAGMA journal_mode = WAL"); journal != "wal")
      throw Error{Code::kFailedPrecondition,
                  file_.string() + ": its file system cannot share a write-ahead log (journal mode '" +
                      journal + "'); keep the results file on a local disk"};
  }
  execute("PRAGMA synchronous = FULL");
  execute("PRAGMA cache_size = -65536");  // KiB: what does not fit is written to the log more than once
  execute("PRAGMA journal_size_limit = " + std::to_string(kLogFileBytes));
  sqlite3_wal_hook(raw, &Database::committed, this);
  migrate(raw, file_, migrations());
  if (Statement{raw, "SELECT 1 FROM archive WHERE digest <> ''"}.step())
    execute("UPDATE archive SET digest = ''");  // it will not be what was archived
  execute("PRAGMA foreign_keys = ON");
  // what a savepoint may have to undo: each one of a commit would otherwise make a file in /var/tmp, and a
  // full one there fail it
  execute("PRAGMA temp_store = MEMORY");
  place_ = place_of(file_.string());
  log_place_ = place_of(file_.string() + "-wal");
  gate_ = gate_of(place_.value());
}

/// Held by a writer while it empties the log; who is about to read waits at it.
struct Database::Gate {
  std::shared_mutex mutex;
};

std::shared_ptr<Database::Gate> Database::gate_of(const Place& place) {
  static Guarded<std::map<Place, std::weak_ptr<Gate>>> gates;
  auto held = gates.lock();
  std::erase_if(*held, [](const auto& entry) { return entry.second.expired(); });
  auto& known = (*held)[place];
  auto gate = known.lock();
  if (!gate) known = gate = std::make_shared<Gate>();
  return gate;
}

Reading::Reading(Database& db, std::function<bool()> stopped) : db_{db} {
  if (db_.gate_) const std::shared_lock passed{db_.gate_->mutex};  // in passing: SQLite knows who reads
  db_.stopped_ = std::move(stopped);
}

Reading::~Reading() {
  db_.end_statements();
  db_.stopped_ = {};
}

std::optional<Database::Place> Database::place_of(const std::string& file) {
  struct stat facts {};
  if (::stat(file.c_str(), &facts) != 0) return std::nullopt;
  return Place{facts.st_dev, facts.st_ino};
}

std::string Database::displaced() const {
  for (const auto& [file, opened] :
       {std::pair{file_.string(), place_}, {file_.string() + "-wal", log_place_}}) {
    const auto now = place_of(file);
    if (opened && now != opened)
      return file +
             (now ? " was replaced by another file while it was in use" : " was deleted while it was in use");
  }
  return {};
}

void Database::copy_to(const fs::path& file) { copy_store(db_.get(), file); }

/// SQLite's own hook does the same, but tells nobody how long the log is.
int Database::committed(void* database, sqlite3* db, const char* name, int pages) {
  auto* self = static_cast<Database*>(database);
  static constexpr std::int64_t kPageBytes = 4096;
  self->log_bytes_ = pages * kPageBytes;
  if (pages >= kPagesBetweenCheckpoints)
    sqlite3_wal_checkpoint_v2(db, name, SQLITE_CHECKPOINT_PASSIVE, nullptr,
                              nullptr);  // as far as readers allow
  return SQLITE_OK;
}

bool Database::empty_log(Milliseconds patience) {
  const std::unique_lock others_wait{gate_->mutex};
  sqlite3_busy_timeout(db_.get(), static_cast<int>(patience.count()));
  const int result =
      sqlite3_wal_checkpoint_v2(db_.get(), "main", SQLITE_CHECKPOINT_TRUNCATE, nullptr, nullptr);
  sqlite3_busy_timeout(db_.get(), kBusyMs);
  if (result == SQLITE_OK) log_bytes_ = 0;
  return result == SQLITE_OK;
}

void Database::open_to_read() {
  std::error_code none;
  if (fs::status(file_, none).type() == fs::file_type::not_found)
    throw Error{Code::kNotFound,
                file_.string() + ": no such file; start a scheduler to create it, or pass another path"};
  const auto open_and_look = [&](const std::string& name, int flags) {
    sqlite3* raw = nullptr;
    const int result = open_file(&raw, name, SQLITE_OPEN_READONLY | flags);
    db_.reset(raw);
    if (result != SQLITE_OK) throw sqlite_error(raw, result, file_.string());
    sqlite3_busy_timeout(raw, kBusyMs);
    sqlite3_progress_handler(
        raw, kStepsBetweenLooks,
        [](void* self) {
          const auto& stopped = static_cast<Database*>(self)->stopped_;
          return stopped && stopped() ? 1 : 0;
        },
        this);
    return file_kind(raw);
  };
  FileKind kind;
  try {
    kind = open_and_look(file_.string(), 0);
  } catch (const Error& error) {
    // In a folder that we may not write, a log cannot be shared; where there is none, nobody writes and the
    // file stands still.
    if (error.code() != Code::kPermissionDenied || fs::exists(file_.string() + "-wal", none)) throw;
    kind = open_and_look(uri(file_) + "?immutable=1", SQLITE_OPEN_URI);
  }
  if (const auto place = place_of(file_.string())) gate_ = gate_of(*place);
  const int version = migrations().back().to;
  if (kind.application_id != kApplicationId)
    throw Error{Code::kInvalidArgument,
                file_.string() + (kind.empty ? ": empty results file"
                                             : ": an SQLite file of another program, not a results file")};
  if (kind.version < version)
    throw Error{Code::kFailedPrecondition, file_.string() + ": written by an older version (schema " +
                                               std::to_string(kind.version) + ", this is " +
                                               std::to_string(version) +
                                               "); start a scheduler on it once, which updates it"};
  if (kind.version > version)
    throw Error{Code::kFailedPrecondition, file_.string() + ": written by a newer version (schema " +
                                               std::to_string(kind.version) + ", this is " +
                                               std::to_string(version) + "); use that version of ablate"};
}

namespace {

/// `note_touched(what, id)`, called by the triggers below.
void note(sqlite3_context* context, int, sqlite3_value** values) {
  auto& touched = *static_cast<Touched*>(sqlite3_user_data(context));
  const auto id = static_cast<std::uint32_t>(sqlite3_value_int64(values[1]));
  switch (sqlite3_value_int(values[0])) {
    case 0:
      touched.trials.push_back(id);
      break;
    case 1:
      touched.sweeps.push_back(id);
      break;
    default:
      touched.pins = true;
  }
}

/// Of this connection alone: in no file, and for whatever statement changes something.
constexpr const char* kNotes = R"sql(
CREATE TEMP TRIGGER new_trial AFTER INSERT ON main.trial BEGIN SELECT note_touched(0, NEW.id); END;
CREATE TEMP TRIGGER changed_trial AFTER UPDATE OF state, not_before_ms, shape_id, result_version, due_version, awaits ON main.trial
  BEGIN SELECT note_touched(0, NEW.id); END;
CREATE TEMP TRIGGER new_claim AFTER INSERT ON main.sweep_trial BEGIN SELECT note_touched(0, NEW.trial_id); END;
CREATE TEMP TRIGGER changed_claim AFTER UPDATE OF trial_id, withdrawn ON main.sweep_trial
  BEGIN SELECT note_touched(0, OLD.trial_id), note_touched(0, NEW.trial_id); END;
CREATE TEMP TRIGGER removed_claim AFTER DELETE ON main.sweep_trial BEGIN SELECT note_touched(0, OLD.trial_id); END;
CREATE TEMP TRIGGER removed_sweep AFTER DELETE ON main.sweep BEGIN SELECT note_touched(1, OLD.id); END;
CREATE TEMP TRIGGER new_sweep AFTER INSERT ON main.sweep BEGIN SELECT note_touched(1, NEW.id); END;
CREATE TEMP TRIGGER changed_sweep AFTER UPDATE OF state, priority, owner, weight, max_running, preempts, canary, spent ON main.sweep BEGIN SELECT note_touched(1, NEW.id); END;
CREATE TEMP TRIGGER new_probe AFTER INSERT ON main.probe BEGIN SELECT note_touched(0, (SELECT trial_id FROM main.run WHERE id = NEW.run_id)); END;
CREATE TEMP TRIGGER new_pin AFTER INSERT ON main.weights_pin BEGIN SELECT note_touched(2, 0); END;
)sql";

}  // namespace

void Database::note_touched() {
  touched_ = std::make_unique<Touched>();
  sqlite3_create_function(db_.get(), "note_touched", 2, SQLITE_UTF8, touched_.get(), note, nullptr, nullptr);
  execute(kNotes);
}

Touched Database::take_touched() { return touched_ ? std::exchange(*touched_, {}) : Touched{}; }

Statement& Database::prepared(const char* sql) {
  if (stopped_ && stopped_()) throw Error{Code::kCancelled, file_.string() + ": request cancelled"};
  auto found = statements_.find(sql);
  if (found == statements_.end()) found = statements_.emplace(sql, Statement{db_.get(), sql}).first;
  found->second.reset();
  return found->second;
}
void Database::end_statements() {
  for (auto& [sql, statement] : statements_) statement.end();
}
void Database::execute(const std::string& sql) {
  const int result = sqlite3_exec(db_.get(), sql.c_str(), nullptr, nullptr, nullptr);
  if (result != SQLITE_OK) throw sqlite_error(db_.get(), result);
}
std::int64_t Database::steps() const {
  std::int64_t sum = 0;
  for (const auto& [sql, statement] : statements_) sum += statement.steps();
  return sum;
}
std::int64_t Database::last_insert_id() const { return sqlite3_last_insert_rowid(db_.get()); }
int Database::changes() const { return sqlite3_changes(db_.get()); }
std::int64_t Database::data_version() {
  return prepared("PRAGMA data_version").one([](const Statement& row) { return row.integer(0); }).value_or(0);
}
std::string Database::store_id() {
  return prepared("SELECT id FROM store").one([](const Statement& row) { return row.text(0); }).value_or("");
}
bool Database::in_transaction() const { return sqlite3_get_autocommit(db_.get()) == 0; }

Transaction::Transaction(Database& db, Kind kind) : db_{db}, kind_{kind} {
  db_.prepared(kind_ == kImmediate ? "BEGIN IMMEDIATE" : "SAVEPOINT nested").run();
}
Transaction::~Transaction() {
  if (!open_ || !db_.in_transaction()) return;
  try {
    db_.execute(kind_ == kImmediate ? "ROLLBACK" : "ROLLBACK TO nested; RELEASE nested");
  } catch (const Error&) {
    // SQLite fails a rollback only when it has already undone the transaction by itself
  }
}
void Transaction::commit() {
  db_.prepared(kind_ == kImmediate ? "COMMIT" : "RELEASE nested").run();
  open_ = false;
}

Statement::Statement(sqlite3* db, std::string_view sql) : db_{db}, statement_{nullptr} {
  const int result = sqlite3_prepare_v3(db_, sql.data(), static_cast<int>(sql.size()),
                                        SQLITE_PREPARE_PERSISTENT, &statement_, nullptr);
  if (result != SQLITE_OK) throw sqlite_error(db_, result);
}
Statement::~Statement() { sqlite3_finalize(statement_); }
Statement::Statement(Statement&& other) noexcept
    : db_{other.db_}, statement_{std::exchange(other.statement_, nullptr)} {}

int Statement::index(const char* name) const {
  const int found = sqlite3_bind_parameter_index(statement_, name);
  if (found == 0)
    throw Error{Code::kInternal, std::string{"no parameter "} + name + " in: " + sqlite3_sql(statement_)};
  return found;
}
Statement& Statement::bind(const char* name, std::int64_t value) {
  sqlite3_bind_int64(statement_, index(name), value);
  return *this;
}
Statement& Statement::bind(const char* name, double value) {
  sqlite3_bind_double(statement_, index(name), value);
  return *this;
}
Statement& Statement::bind(const char* name, std::string_view value) {
  // a null pointer would bind NULL, not the empty text
  sqlite3_bind_text64(statement_, index(name), value.data() ? value.data() : "", value.size(),
                      SQLITE_TRANSIENT, SQLITE_UTF8);
  return *this;
}
Statement& Statement::bind(const char* name, Time value) {
  return bind(name, std::int64_t{value.time_since_epoch().count()});
}
Statement& Statement::bind_blob(const char* name, std::string_view value) {
  sqlite3_bind_blob64(statement_, index(name), value.data() ? value.data() : "", value.size(),
                      SQLITE_TRANSIENT);
  return *this;
}
Statement& Statement::bind_at(int place, std::int64_t value) {
  sqlite3_bind_int64(statement_, place, value);
  return *this;
}
Statement& Statement::bind_at(int place, double value) {
  sqlite3_bind_double(statement_, place, value);
  return *this;
}
Statement& Statement::bind_at(int place, std::string_view value) {
  sqlite3_bind_text64(statement_, place, value.data() ? value.data() : "", value.size(), SQLITE_TRANSIENT,
                      SQLITE_UTF8);
  return *this;
}
Statement& Statement::bind_null(const char* name) {
  sqlite3_bind_null(statement_, index(name));
  return *this;
}

void Statement::run() {
  while (step()) {
  }
}
bool Statement::step() {
  const int result = sqlite3_step(statement_);
  if (result == SQLITE_ROW) return true;
  if (result == SQLITE_DONE) {
    reset();
    return false;
  }
  const Error error = sqlite_error(db_, result);
  reset();
  throw error;
}
void Statement::reset() {
  sqlite3_reset(statement_);  // repeats the error of the last step, which `step` has thrown
  sqlite3_clear_bindings(statement_);
}
void Statement::end() {
  if (sqlite3_stmt_busy(statement_) != 0) reset();
}

std::int64_t Statement::steps() const {
  return sqlite3_stmt_status(statement_, SQLITE_STMTSTATUS_VM_STEP, /*resetFlg=*/0);
}
std::int64_t Statement::integer(int column) const { return sqlite3_column_int64(statement_, column); }
double Statement::real(int column) const { return sqlite3_column_double(statement_, column); }
std::string Statement::text(int column) const {
  const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement_, column));
  return bytes ? std::string{bytes, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))}
               : std::string{};
}
bool Statement::is_null(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }
Time Statement::time(int column) const { return Time{Milliseconds{integer(column)}}; }
std::optional<std::int64_t> Statement::optional_integer(int column) const {
  return is_null(column) ? std::nullopt : std::optional{integer(column)};
}

}  // namespace abl::storage
