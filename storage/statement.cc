// SPDX-License-Identifier: Apache-2.0
#include <sqlite3.h>

#include <utility>

#include "storage/database.h"
#include "storage/sqlite_error.h"

namespace abl::storage {

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
