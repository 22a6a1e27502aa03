// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace abl {

/// The end of what a program says, which tells why it failed. Keeps the last 1,000 bytes.
class LastLines {
 public:
  void add(std::string_view bytes);
  /// The last three lines that are not empty, "first | second | third", as valid UTF-8; empty where there are
  /// none. A carriage return ends a line too, as in a progress bar.
  std::string text() const;
  /// What is kept, as it came.
  const std::string& bytes() const { return tail_; }

 private:
  std::string tail_;
};

}  // namespace abl
