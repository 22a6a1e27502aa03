// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "storage/database.h"

namespace abl::storage {

/// What a token is good for. Each of the first three may do what those before it may; a worker's is for its
/// stream alone, a join token for becoming a worker's, once.
enum class Role { kViewer, kSubmitter, kAdmin, kWorker, kJoin };
constexpr std::string_view name_of(Role role) {
  switch (role) {
    case Role::kViewer:
      return "viewer";
    case Role::kSubmitter:
      return "submitter";
    case Role::kAdmin:
      return "admin";
    case Role::kWorker:
      return "worker";
    case Role::kJoin:
      return "join";
  }
  return {};
}

/// What may be known of a token: neither it nor its digest.
struct TokenRecord {
  std::string id;  ///< its public part
  Role role = Role::kViewer;
  std::string name;     ///< of its holder
  std::string made_by;  ///< a name; of a worker's the id of the join token that it was exchanged for
  Time created{};
  std::optional<Time> expires, revoked, used, seen;

  /// Why it is good for nothing any more: "this token is revoked"; empty: it is good.
  std::string why_not(Time now) const;
};

/// With the SHA-256 of the whole token, by which it is recognised: for whoever checks tokens.
struct TokenDigest {
  TokenRecord record;
  std::string sha256;
};

/// One line of what people and programs have asked for.
struct AuditLine {
  Time time{};
  std::string token;  ///< its public part; empty: the owner of the machine, on its socket
  std::string who;
  std::string what;    ///< the request
  std::string target;  ///< sweep, worker or token
  std::string outcome{"ok"};
  std::int64_t key = 0;  ///< a newer line has a greater one; given when it is stored
};

/// Which lines of the audit.
struct AuditFilter {
  std::int64_t before = 0;  ///< those older than the line of this key; 0: from the newest on
  std::string who;          ///< of this name alone; empty: of everybody
  std::string what;         ///< this request alone, from a dashboard or not; empty: every one
};

/// Tokens, and what was done with them.
/// Thread: the connection's.
class TokenStore {
 public:
  static constexpr std::int64_t kMostTokens = 10'000, kMostAuditLines = 100'000;
  static constexpr std::size_t kLongestText = 300;  ///< of a line of the audit
  static constexpr std::chrono::hours kKeptAfterItsEnd{24 * 90};
  static constexpr std::chrono::hours kPilotsKept{24};  ///< of a fleet's workers, after their end
  /// Who makes the tokens of pilots: many, of which nobody asks a day after their end.
  static constexpr const char* kFleet = "fleet";

  explicit TokenStore(Database& db) : db_{db} {}

  /// Of those that ended long ago some go to make room.
  /// Throws: Error{kInvalidArgument} for an id, a digest or a name that makes no sense; {kAlreadyExists}
  /// where there is one of that id, or of a worker one that is good; {kResourceExhausted} beyond kMostTokens.
  void add(const TokenDigest& token, Time now);
  std::optional<TokenRecord> find(const std::string& id) const;
  /// Throws: Error{kNotFound} naming the nearest that there is.
  TokenRecord revoke(const std::string& id, Time now);
  /// Ends a join token, and adds the worker's token that it is exchanged for. A worker that did not hear the
  /// answer may ask again with the same one. In one step: two that come at once do not both succeed.
  /// Throws: Error{kUnauthenticated} of one that is used, expired, revoked or none; and as `add`.
  void join(const std::string& join_id, TokenDigest worker, Time now);
  /// Revokes a join token and those of the workers that it let in. Returns: those that it revoked.
  std::vector<std::string> end_join(const std::string& id, Time now);
  /// The worker that a join token let in; nothing: none yet.
  std::optional<std::string> worker_of(const std::string& join_id) const;
  void note_seen(const std::string& id, Time now);
  std::vector<TokenRecord> list() const;     ///< newest first
  std::vector<TokenDigest> digests() const;  ///< of all

  void note(const AuditLine& line);
  /// The newest that the filter lets through, newest first. Looks at all kMostAuditLines at most.
  std::vector<AuditLine> audit(std::int64_t most, const AuditFilter& filter = {}) const;

 private:
  Database& db_;
};

}  // namespace abl::storage
