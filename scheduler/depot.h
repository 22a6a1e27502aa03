// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/instruments.h"
#include "base/sha256.h"
#include "storage/types.h"

namespace abl::scheduler {

struct DepotOptions {
  std::filesystem::path folder;
  std::uint64_t limit = std::uint64_t{20} << 30;     ///< bytes of all its files; 0: there is no depot
  std::uint64_t keep_free = std::uint64_t{1} << 30;  ///< of its disk, which the results file needs as well
  std::uint64_t rate = std::uint64_t{100} << 20;     ///< bytes a second, in and out together; 0: no bound
  Milliseconds every{10 * 60'000};                   ///< a run's checkpoint comes at most so often
};

/// Whose a file of the depot is: a trial, or the pushed data sets.
struct DepotOwner {
  storage::TrialId trial = 0;  ///< 0: data
  auto operator<=>(const DepotOwner&) const = default;
};

/// Files by their SHA-256, in a folder for each owner. They come in pieces from the beginning; one that does
/// not have its digest at its end is dropped. What a crash leaves is a beginning, which is gone on with, or
/// goes after a while. Checkpoints are copies: where there is no room, those go that were used longest ago.
/// Thread: one, but for the methods that say otherwise.
class Depot {
 public:
  static constexpr std::size_t kMostPiece = 1 << 20;

  /// Makes the folder, for its owner alone, and takes up what an earlier program left there.
  /// Throws: Error naming the folder.
  Depot(DepotOptions options, const Clock& clock);
  bool open() const { return options_.limit > 0; }  ///< Thread: any.
  const DepotOptions& options() const { return options_; }

  struct Have {
    std::uint64_t bytes = 0;
    bool whole = false;
  };
  /// Appends a piece that begins where the file ends by now, and nothing otherwise: the answer says where.
  /// `bytes`: of the whole file.
  /// Throws: Error{kInvalidArgument} for what no sender would say; kResourceExhausted where there is no room;
  /// kDataLoss when all of it is there and has another digest: it is dropped.
  Have put(DepotOwner owner, const std::string& sha256, std::uint64_t bytes, std::uint64_t offset,
           std::string_view piece);

  struct Piece {
    std::string bytes;
    std::uint64_t whole = 0;
  };
  /// Of whichever owner. Throws: Error{kNotFound} where no whole file has this digest.
  Piece get(const std::string& sha256, std::uint64_t offset, std::size_t most);
  /// Somebody has got another content than the digest says: it is read as a whole, once a minute at most.
  /// Returns: whether the file here is damaged: then it is gone.
  bool look_at(const std::string& sha256);

  /// Of a whole file. Thread: any.
  std::optional<std::uint64_t> bytes_of(const std::string& sha256) const;

  std::set<DepotOwner> owners() const;
  /// Files of an owner that are not whole yet.
  std::set<std::string> begun(DepotOwner owner) const;
  /// Drops what of an owner's files is not wanted, but for what somebody has read or written just now.
  void keep_only(DepotOwner owner, const std::set<std::string>& wanted);
  /// Drops beginnings that nobody has gone on with for an hour.
  void drop_stale();
  void drop(DepotOwner owner, const std::string& sha256);
  /// The first of these, in their order, that is whole.
  std::optional<std::string> first_whole(DepotOwner owner, const std::vector<std::string>& digests) const;

  /// Counted where it happens. Thread: any.
  struct Figures {
    Tally received, sent, damaged, evicted;  // bytes, bytes, files, files
  };
  const Figures& figures() const { return figures_; }
  std::uint64_t used() const;  ///< bytes of all files. Thread: any.
  std::size_t files() const;   ///< whole ones. Thread: any.

  const std::filesystem::path& folder() const { return options_.folder; }
  std::filesystem::path folder_of(DepotOwner owner) const;

 private:
  struct Key {
    DepotOwner owner;
    std::string sha256;
    auto operator<=>(const Key&) const = default;
  };
  struct File {
    std::uint64_t bytes = 0;  // on the disk
    bool whole = false;
    Time used{};
    std::optional<Time>
        looked{};  // when it was last read as a whole for somebody who said that it is damaged
    std::unique_ptr<Sha256> digest;  // of a beginning, as far as this program has written it itself
  };
  void take_up(DepotOwner owner);
  std::filesystem::path path_of(const Key& key, bool whole) const;
  void make_place(DepotOwner owner);
  void make_room(const Key& wanted, std::uint64_t bytes);
  void forget(const Key& key);
  void append(const Key& key, File& file, std::string_view piece);
  void count_whole(const std::string& sha256, std::uint64_t bytes);
  Have finish(const Key& key, File& file);
  std::map<Key, File>::iterator find_whole(const std::string& sha256);

  const DepotOptions options_;
  const Clock& clock_;
  mutable std::mutex mutex_;  // of files_ and used_, never held while the disk works
  std::map<Key, File> files_;
  struct Whole {
    std::uint64_t bytes = 0;
    int owners = 0;
  };
  std::map<std::string, Whole> whole_;  // by digest
  std::uint64_t used_ = 0;
  Figures figures_;
};

/// A data set that was pushed: a packed file in the depot.
struct PushedSet {
  std::string sha256, fingerprint;
  std::uint64_t bytes = 0;
  Time pushed{};
  std::string by;  ///< whoever pushed it
};

/// The data sets in the depot, by name. A file beside them says which they are; no name is a part of a path.
/// Thread: all methods, from any.
class PushedData {
 public:
  static constexpr std::size_t kMost = 1000;

  /// Reads `folder`/names.json, if it is there. One that cannot be read is said in the log, and stays as it
  /// is: nothing is added or removed then.
  explicit PushedData(const std::filesystem::path& folder);

  bool readable() const { return trouble_.empty(); }
  std::map<std::string, PushedSet> all() const;
  std::map<std::string, std::string> fingerprints() const;  ///< by name
  std::optional<PushedSet> find(const std::string& name) const;
  /// Throws: Error{kInvalidArgument} for a name that no sweep could use; Error{kAlreadyExists} where it
  /// stands for another content; Error{kFailedPrecondition} where the file cannot be read; Error of the disk,
  /// and nothing has changed then.
  void add(const std::string& name, const PushedSet& set);
  /// Throws: Error{kNotFound}.
  PushedSet remove(const std::string& name);

 private:
  void expect_readable() const;
  void write(const std::map<std::string, PushedSet>& sets) const;

  const std::filesystem::path file_;
  std::string trouble_;  // why the file cannot be read; set once
  mutable std::mutex mutex_;
  std::map<std::string, PushedSet> sets_;
};

/// Throws: Error{kInvalidArgument} for what is not a SHA-256 in lower-case hexadecimal.
void check_digest(const std::string& sha256);

}  // namespace abl::scheduler
