// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct sqlite3;

namespace abl::storage {

/// What a results file holds, in numbers that differ where anything in it does.
struct Contents {
  int version = 0;                           ///< of its schema
  std::string store_id;                      ///< empty: from before there were any
  std::map<std::string, std::int64_t> rows;  ///< table -> how many
  std::string digest;                        ///< of every value in every table, in hexadecimal
  std::int64_t count(const std::string& table) const;
  bool operator==(const Contents&) const = default;
};

/// What one results file has that another has not.
struct Missing {
  std::vector<std::string> sweeps;  ///< names
  std::int64_t trials = 0, runs = 0, under_way = 0;
  std::int64_t first_run = 0, last_run = 0;
  std::vector<std::string> folders;  ///< of these runs, on the machines where they were
};

/// A results file of any version, to be copied and checked; it is read as it is at one moment and never
/// written, whoever writes it meanwhile. Thread: one at a time.
class StoreFile {
 public:
  /// How far something is; `total` 0: nobody knows, then `done` grows with what was looked at.
  using Progress = std::function<void(std::string_view what, double done, double total)>;

  /// Throws: Error naming the file: absent, not a results file, of a newer version.
  explicit StoreFile(std::filesystem::path file, Progress progress = {});
  ~StoreFile();
  StoreFile(const StoreFile&) = delete;
  StoreFile& operator=(const StoreFile&) = delete;

  /// Throws: Error{kDataLoss} with what is wrong in it.
  void check();
  /// Reads everything.
  const Contents& contents();
  /// Makes `to` a file for its owner alone that holds the same, in one piece without a log: copied, synced,
  /// read again, checked and compared; only then it has its name. What was at its place is replaced.
  void copy_to(const std::filesystem::path& to);
  /// What this file has and `other` has not. Both of one store.
  Missing missing_in(const std::filesystem::path& other);

 private:
  void say(std::string_view what, double done, double total) const;
  void execute(const std::string& sql);

  std::filesystem::path file_;
  Progress progress_;
  std::string_view what_;  // is looked at, for the progress
  double looked_ = 0;
  std::unique_ptr<sqlite3, int (*)(sqlite3*)> db_;
  std::unique_ptr<Contents> contents_;
};

/// Brings what its log has into a file that nobody uses, so that it is one file; where that cannot be done,
/// as in a damaged one, both stay as they are.
void fold_log(const std::filesystem::path& file);

}  // namespace abl::storage
