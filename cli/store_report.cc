// SPDX-License-Identifier: Apache-2.0
#include "cli/store_report.h"

#include <fmt/format.h>

#include <chrono>

#include "cli/format.h"

namespace abl::cli {
namespace {

std::uint64_t bytes_of(const std::filesystem::path& file) {
  std::error_code absent;
  const auto bytes = std::filesystem::file_size(file, absent);
  return absent ? 0 : bytes;
}

}  // namespace

storage::StoreFile::Progress StoreProgress::callback() {
  return [this, begun = std::chrono::steady_clock::now()](std::string_view what, double done,
                                                          double total) mutable {
    if (what != what_) {
      progress_.reset();
      what_ = what;
      begun = std::chrono::steady_clock::now();
      progress_ = std::make_unique<Progress>(terminal_, what_, total > 0 ? "pages" : "s", total);
    }
    progress_->update(
        total > 0 ? done : std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count());
  };
}

std::string contents_text(const std::filesystem::path& file, const storage::Contents& contents) {
  const auto some = [&](const char* table) { return static_cast<std::uint64_t>(contents.count(table)); };
  return fmt::format("{}, {}, {}, {} points; {}, schema {}, contents {}", plural(some("sweep"), "sweep"),
                     plural(some("trial"), "trial"), plural(some("run"), "run"), format_count(some("point")),
                     format_bytes(bytes_of(file)), contents.version, contents.digest.substr(0, 16));
}

nlohmann::ordered_json contents_json(const std::filesystem::path& file, const storage::Contents& contents) {
  return {{"file", file.string()},
          {"bytes", bytes_of(file)},
          {"schema", contents.version},
          {"store_id", contents.store_id},
          {"sweeps", contents.count("sweep")},
          {"trials", contents.count("trial")},
          {"runs", contents.count("run")},
          {"points", contents.count("point")},
          {"contents", contents.digest}};
}

}  // namespace abl::cli
