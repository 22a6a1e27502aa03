// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"

namespace abl::launchers {

/// What a program said and how it ended.
struct CallAnswer {
  int code = 0;         ///< exit code; -1: it was ended, as `ended` says
  std::string ended{};  ///< "no answer within 20 s"; empty: it ended by itself
  std::string out{}, err{};
};

/// An open descriptor that is closed with it.
class OpenFile {
 public:
  explicit OpenFile(int fd = -1) : fd_{fd} {}
  /// A file that has this text in memory alone, to be read from its begin.
  static OpenFile of_text(const std::string& text);
  /// Throws: Error naming the file.
  static OpenFile to_read(const std::string& file);
  OpenFile(OpenFile&& other) noexcept : fd_{other.release()} {}
  OpenFile& operator=(OpenFile&& other) noexcept;
  ~OpenFile();
  int fd() const { return fd_; }
  int release() {
    const int fd = fd_;
    fd_ = -1;
    return fd;
  }

 private:
  int fd_;
};

/// Runs a program that reads `input` and may say anything: no more of what it says than a quarter of a MiB is
/// kept, of each stream, and one that says more is ended. Ended it is also after `limit`, and when `stop` is
/// requested. Throws: Error where it cannot be started.
CallAnswer call_program(const std::vector<std::string>& argv, const OpenFile& input, Milliseconds limit,
                        const std::stop_token& stop);

}  // namespace abl::launchers
