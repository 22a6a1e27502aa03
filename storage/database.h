// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "storage/touched.h"

struct sqlite3;
struct sqlite3_stmt;

namespace abl::storage {

/// A prepared statement, bound by name and reset by the call that reads it. Move-only.
class Statement {
 public:
  Statement(sqlite3* db, std::string_view sql);
  ~Statement();
  Statement(Statement&& other) noexcept;
  Statement& operator=(Statement&&) = delete;

  Statement& bind(const char* name, std::int64_t value);
  Statement& bind(const char* name, int value) { return bind(name, std::int64_t{value}); }
  Statement& bind(const char* name, std::uint32_t value) { return bind(name, std::int64_t{value}); }
  Statement& bind(const char* name, double value);  ///< NaN is stored as NULL by SQLite: see metric_store.h
  Statement& bind(const char* name, std::string_view value);
  Statement& bind(const char* name, const char* value) { return bind(name, std::string_view{value}); }
  Statement& bind(const char* name, Time value);
  Statement& bind_blob(const char* name, std::string_view value);
  Statement& bind_null(const char* name);
  /// By its place, from 1: where there are too many to look each up by its name.
  Statement& bind_at(int place, std::int64_t value);
  Statement& bind_at(int place, std::uint32_t value) { return bind_at(place, std::int64_t{value}); }
  Statement& bind_at(int place, double value);
  Statement& bind_at(int place, std::string_view value);
  template <class T>
  Statement& bind(const char* name, const std::optional<T>& value) {
    return value ? bind(name, *value) : bind_null(name);
  }

  /// Runs a statement that returns nothing, and resets it.
  void run();
  /// The next row, if any; the statement resets itself after the last. A reader that stops early calls
  /// `reset`.
  bool step();
  void reset();
  void end();  ///< `reset`, where somebody stopped halfway
  /// The first row as `read` makes it, if there is one, or every row; both leave the statement reset, also
  /// when `read` throws.
  template <class F>
  auto one(F read) -> std::optional<std::invoke_result_t<F, const Statement&>>;
  template <class F>
  auto all(F read) -> std::vector<std::invoke_result_t<F, const Statement&>>;

  std::int64_t steps() const;  ///< of SQLite's machine, so far
  std::int64_t integer(int column) const;
  double real(int column) const;
  std::string text(int column) const;  ///< also for blobs
  bool is_null(int column) const;
  Time time(int column) const;
  std::optional<std::int64_t> optional_integer(int column) const;

 private:
  struct ResetAtEnd {
    Statement& statement;
    ~ResetAtEnd() { statement.reset(); }
  };
  int index(const char* name) const;
  sqlite3* db_;
  sqlite3_stmt* statement_;
};

/// A connection to a results file: WAL, synchronous=FULL, foreign keys, a busy timeout.
/// Thread: one at a time.
class Database {
 public:
  enum class Mode {
    kWrite,  ///< creates the file where it is absent, for its owner alone, and brings the schema up to date
             ///< (copying the file first)
    kReadOnly,  ///< never writes; refuses a file whose schema is not this program's
  };
  /// Throws: Error naming the file: not a results file, written by a newer version, not readable, disk full.
  Database(const std::filesystem::path& file, Mode mode);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  /// A statement kept for the life of the connection, ready to bind. `sql` must have static storage.
  Statement& prepared(const char* sql);
  /// Ends every statement that is still open. One that is keeps the state that it began to read: this
  /// connection would answer from it for ever, and the log could never be made empty.
  void end_statements();
  void execute(const std::string& sql);
  /// Steps of SQLite's machine that the statements of `prepared` have taken so far: what they cost, whatever
  /// else the processor does.
  std::int64_t steps() const;
  std::int64_t last_insert_id() const;
  int changes() const;
  /// What tells this store from any other; a copy of the file has the same.
  std::string store_id();
  /// Changes when another connection has committed (PRAGMA data_version).
  std::int64_t data_version();
  /// Bytes in the write-ahead log since it was last begun anew. For kWrite, as the two below.
  std::int64_t log_bytes() const { return log_bytes_; }
  /// Brings everything from the log into the file and makes the log empty, waiting at most `patience` for
  /// those who read older states. Returns: whether it is empty now.
  bool empty_log(Milliseconds patience);
  /// From now on, notes what this connection touches of the queue, for `take_touched`.
  void note_touched();
  /// What was touched since the call before; too much where something was undone.
  Touched take_touched();
  /// Why what is written here is lost: the file, or its log, was deleted or replaced since it was opened.
  /// Empty: it is in its place.
  std::string displaced() const;

  /// Writes what this connection reads into a file of its own; also where the one that it has open was
  /// deleted.
  /// Throws: as copy_store.
  void copy_to(const std::filesystem::path& file);

  /// False too when SQLite itself has rolled back, as it may on a full disk.
  bool in_transaction() const;
  const std::filesystem::path& file() const { return file_; }
  /// Whether who asked in this turn (`Reading`) waits no longer.
  bool stopped() const { return stopped_ && stopped_(); }

 private:
  struct Close {
    void operator()(sqlite3* db) const;
  };
  friend class Reading;
  /// A file by its device and number, which a path leads to or not.
  struct Place {
    std::uint64_t device = 0, number = 0;
    auto operator<=>(const Place&) const = default;
  };
  struct Gate;
  static std::shared_ptr<Gate> gate_of(const Place& place);
  static std::optional<Place> place_of(const std::string& file);
  static int committed(void* database, sqlite3* db, const char* name, int pages);
  void open_to_write();
  void open_to_read();

  std::filesystem::path file_;
  std::function<bool()> stopped_;
  std::int64_t log_bytes_ = 0;
  std::optional<Place> place_, log_place_;
  std::unique_ptr<Touched> touched_;
  std::shared_ptr<Gate> gate_;  // of all connections of this process to this file
  std::unique_ptr<sqlite3, Close> db_;
  std::map<const char*, Statement> statements_;  // after db_: finalized before it closes
};

/// A turn of reading on a connection that is shared by turns, for one caller. Its statements end with
/// Error{kCancelled} as soon as `stopped` is true. It begins when no writer of this process is making the log
/// empty: readers of whom one always begins before the other ends would keep it from ever being so.
class Reading {
 public:
  explicit Reading(Database& db, std::function<bool()> stopped = {});
  ~Reading();  ///< ends what it has left open: whoever reads next sees what is there then
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

 private:
  Database& db_;
};

/// Rolls back unless committed. kImmediate takes the write lock at once; kSavepoint nests in a running
/// transaction; kRead gives several queries one snapshot, nests too, and needs no commit.
class Transaction {
 public:
  enum Kind { kImmediate, kRead, kSavepoint };
  Transaction(Database& db, Kind kind);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  void commit();

 private:
  Database& db_;
  Kind kind_;
  bool open_ = true;
};

template <class F>
auto Statement::one(F read) -> std::optional<std::invoke_result_t<F, const Statement&>> {
  const ResetAtEnd end{*this};
  if (!step()) return std::nullopt;
  return read(*this);
}

template <class F>
auto Statement::all(F read) -> std::vector<std::invoke_result_t<F, const Statement&>> {
  const ResetAtEnd end{*this};
  std::vector<std::invoke_result_t<F, const Statement&>> rows;
  while (step()) rows.push_back(read(*this));
  return rows;
}

}  // namespace abl::storage
