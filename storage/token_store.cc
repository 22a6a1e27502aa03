// SPDX-License-Identifier: Apache-2.0
#include "storage/token_store.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/enum_names.h"
#include "base/nearest_name.h"
#include "base/utf8.h"

namespace abl::storage {
namespace {

constexpr std::size_t kLongestName = 100;

std::optional<Time> optional_time(const Statement& row, int column) {
  if (row.is_null(column)) return std::nullopt;
  return row.time(column);
}

/// Columns in the order of kColumns below.
TokenRecord record_of(const Statement& row) {
  return {.id = row.text(0),
          .role = value_named<Role>(row.text(1)).value_or(Role::kViewer),
          .name = row.text(2),
          .made_by = row.text(3),
          .created = row.time(4),
          .expires = optional_time(row, 5),
          .revoked = optional_time(row, 6),
          .used = optional_time(row, 7),
          .seen = optional_time(row, 8)};
}

bool is_hexadecimal(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

void expect_sound(const TokenDigest& token) {
  const auto& [record, sha256] = token;
  if (record.id.size() != 12 || !is_hexadecimal(record.id))
    throw Error{Code::kInvalidArgument, "the public part of a token is 12 hexadecimal digits"};
  if (sha256.size() != 64 || !is_hexadecimal(sha256))
    throw Error{Code::kInvalidArgument, "the digest of a token is 64 hexadecimal digits"};
  const bool odd = std::ranges::any_of(record.name, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
  if (record.name.empty() || record.name.size() > kLongestName || odd ||
      valid_utf8(record.name) != record.name)
    throw Error{Code::kInvalidArgument,
                fmt::format("name of a token's holder: 1 to {} bytes of text were expected", kLongestName)};
}

std::string shortened(const std::string& text) {
  if (text.size() <= TokenStore::kLongestText) return text;
  return valid_utf8(text.substr(0, TokenStore::kLongestText)) + "…";
}

}  // namespace

std::string TokenRecord::why_not(Time now) const {
  if (revoked) return "this token is revoked";
  if (used) return "this join token was used already: it is good for one worker";
  if (expires && *expires <= now)
    return fmt::format("this token expired on {:%Y-%m-%d at %H:%M} UTC",
                       fmt::gmtime(std::chrono::system_clock::to_time_t(*expires)));
  return {};
}

void TokenStore::add(const TokenDigest& token, Time now) {
  expect_sound(token);
  const TokenRecord& record = token.record;
  db_.prepared("DELETE FROM access_token WHERE COALESCE(revoked_ms, used_ms, expires_ms) < :before")
      .bind(":before", now - kKeptAfterItsEnd)
      .run();
  db_.prepared(R"sql(
      DELETE FROM access_token WHERE role = 'worker' AND revoked_ms < :before
        AND made_by IN (SELECT id FROM access_token WHERE role = 'join' AND made_by = :fleet))sql")
      .bind(":before", now - kPilotsKept)
      .bind(":fleet", kFleet)
      .run();
  db_.prepared(R"sql(
      DELETE FROM access_token WHERE role = 'join' AND made_by = :fleet
        AND COALESCE(revoked_ms, used_ms, expires_ms) < :before
        AND id NOT IN (SELECT made_by FROM access_token WHERE role = 'worker'))sql")
      .bind(":before", now - kPilotsKept)
      .bind(":fleet", kFleet)
      .run();
  const auto count = db_.prepared("SELECT COUNT(*) FROM access_token").one([](const Statement& row) {
    return row.integer(0);
  });
  if (count.value_or(0) >= kMostTokens)
    throw Error{
        Code::kResourceExhausted,
        fmt::format("limit of {} tokens reached: revoked and expired ones go after 90 days", kMostTokens)};
  if (find(record.id))
    throw Error{Code::kAlreadyExists, fmt::format("there is a token {} already", record.id)};
  if (record.role == Role::kWorker) {
    const auto other = db_.prepared(R"sql(
        SELECT id FROM access_token WHERE role = 'worker' AND name = :name AND revoked_ms IS NULL
                                          AND (expires_ms IS NULL OR expires_ms > :now) LIMIT 1)sql")
                           .bind(":name", record.name)
                           .bind(":now", now)
                           .one([](const Statement& row) { return row.text(0); });
    if (other)
      throw Error{Code::kAlreadyExists,
                  fmt::format("a worker {} has joined with token {}: give this one another --name, or revoke "
                              "that token",
                              record.name, *other)};
  }
  db_.prepared(R"sql(
      INSERT INTO access_token (id, role, name, sha256, made_by, created_ms, expires_ms)
      VALUES (:id, :role, :name, :sha256, :made_by, :created, :expires))sql")
      .bind(":id", record.id)
      .bind(":role", name_of(record.role))
      .bind(":name", record.name)
      .bind(":sha256", token.sha256)
      .bind(":made_by", record.made_by)
      .bind(":created", now)
      .bind(":expires", record.expires)
      .run();
}

std::optional<TokenRecord> TokenStore::find(const std::string& id) const {
  return db_
      .prepared(R"sql(
      SELECT id, role, name, made_by, created_ms, expires_ms, revoked_ms, used_ms, seen_ms FROM access_token
      WHERE id = :id)sql")
      .bind(":id", id)
      .one(record_of);
}

TokenRecord TokenStore::revoke(const std::string& id, Time now) {
  auto record = find(id);
  if (!record) {
    std::vector<std::string> known;
    for (const TokenRecord& token : list()) known.push_back(token.id);
    throw Error{Code::kNotFound, fmt::format("no token '{}'{}", id, did_you_mean(id, known))};
  }
  if (record->revoked) return *record;
  db_.prepared("UPDATE access_token SET revoked_ms = :now WHERE id = :id")
      .bind(":now", now)
      .bind(":id", id)
      .run();
  record->revoked = now;
  return *record;
}

void TokenStore::join(const std::string& join_id, TokenDigest worker, Time now) {
  worker.record.role = Role::kWorker;
  worker.record.made_by = join_id;
  const auto join = find(join_id);
  if (!join || join->role != Role::kJoin)
    throw Error{Code::kUnauthenticated,
                "this is not a join token: make one with 'ablate token create --role join'"};
  if (join->used) {
    const bool again = db_.prepared(R"sql(
        SELECT 1 FROM access_token WHERE id = :id AND sha256 = :sha256 AND made_by = :join AND name = :name
                                         AND revoked_ms IS NULL)sql")
                           .bind(":id", worker.record.id)
                           .bind(":sha256", worker.sha256)
                           .bind(":join", join_id)
                           .bind(":name", worker.record.name)
                           .one([](const Statement&) { return true; })
                           .value_or(false);
    if (again && !join->revoked) return;
  }
  if (const std::string why = join->why_not(now); !why.empty()) throw Error{Code::kUnauthenticated, why};
  add(worker, now);
  db_.prepared("UPDATE access_token SET used_ms = :now WHERE id = :id")
      .bind(":now", now)
      .bind(":id", join_id)
      .run();
}

std::vector<std::string> TokenStore::end_join(const std::string& id, Time now) {
  return db_
      .prepared(R"sql(
      UPDATE access_token SET revoked_ms = :now
      WHERE revoked_ms IS NULL AND ((id = :id AND role = 'join') OR (made_by = :id AND role = 'worker'))
      RETURNING id)sql")
      .bind(":now", now)
      .bind(":id", id)
      .all([](const Statement& row) { return row.text(0); });
}

std::optional<std::string> TokenStore::worker_of(const std::string& join_id) const {
  return db_.prepared("SELECT name FROM access_token WHERE made_by = :id AND role = 'worker' LIMIT 1")
      .bind(":id", join_id)
      .one([](const Statement& row) { return row.text(0); });
}

void TokenStore::note_seen(const std::string& id, Time now) {
  db_.prepared("UPDATE access_token SET seen_ms = :now WHERE id = :id")
      .bind(":now", now)
      .bind(":id", id)
      .run();
}

std::vector<TokenRecord> TokenStore::list() const {
  return db_
      .prepared(R"sql(
      SELECT id, role, name, made_by, created_ms, expires_ms, revoked_ms, used_ms, seen_ms FROM access_token
      ORDER BY created_ms DESC, id)sql")
      .all(record_of);
}

std::vector<TokenDigest> TokenStore::digests() const {
  return db_
      .prepared(R"sql(
      SELECT id, role, name, made_by, created_ms, expires_ms, revoked_ms, used_ms, seen_ms, sha256
      FROM access_token)sql")
      .all([](const Statement& row) { return TokenDigest{.record = record_of(row), .sha256 = row.text(9)}; });
}

void TokenStore::note(const AuditLine& line) {
  db_.prepared(R"sql(
      INSERT INTO audit (time_ms, token, who, what, target, outcome)
      VALUES (:time, :token, :who, :what, :target, :outcome))sql")
      .bind(":time", line.time)
      .bind(":token", line.token)
      .bind(":who", line.who)
      .bind(":what", line.what)
      .bind(":target", shortened(line.target))
      .bind(":outcome", shortened(line.outcome))
      .run();
  db_.prepared("DELETE FROM audit WHERE id <= :last")
      .bind(":last", db_.last_insert_id() - kMostAuditLines)
      .run();
}

std::vector<AuditLine> TokenStore::audit(std::int64_t most, const AuditFilter& filter) const {
  return db_
      .prepared(R"sql(
      SELECT id, time_ms, token, who, what, target, outcome FROM audit
      WHERE id < :before AND (:who = '' OR who = :who)
        AND (:what = '' OR what = :what OR what = :what || ' (dashboard)')
      ORDER BY id DESC LIMIT :most)sql")
      .bind(":before", filter.before > 0 ? filter.before : std::numeric_limits<std::int64_t>::max())
      .bind(":who", filter.who)
      .bind(":what", filter.what)
      .bind(":most", most)
      .all([](const Statement& row) {
        return AuditLine{.time = row.time(1),
                         .token = row.text(2),
                         .who = row.text(3),
                         .what = row.text(4),
                         .target = row.text(5),
                         .outcome = row.text(6),
                         .key = row.integer(0)};
      });
}

}  // namespace abl::storage
