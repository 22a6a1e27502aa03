// SPDX-License-Identifier: Apache-2.0
#include "cli/event_writer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cctype>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "protocol/event_file.h"

namespace abl::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBytesTogether = 1 << 20;  // bytes, before they are written
constexpr std::size_t kLongestFolder = 100;

double in_seconds(std::int64_t time_ms) { return static_cast<double>(time_ms) / 1000; }

}  // namespace

std::string folder_name(const std::string& row) {
  std::string name;
  for (const char c : row)
    name += std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                    std::string_view{"-_.,=+@"}.find(c) != std::string_view::npos
                ? c
                : '_';
  if (name.size() > kLongestFolder) name.resize(kLongestFolder);
  if (name.empty() || name.front() == '.') name.insert(0, "_");
  return name;
}

EventWriter::EventWriter(fs::path folder)
    : folder_{std::move(folder)}, part_{folder_.string() + fmt::format(".{}.part", ::getpid())} {
  std::error_code failed;
  if (fs::exists(fs::symlink_status(folder_, failed)))
    throw Error{Code::kInvalidArgument,
                fmt::format("{} is there already; expected the name of a new folder", folder_.string())};
  fs::remove_all(part_, failed);  // of a process of this number that is gone
  fs::create_directories(part_, failed);
  if (failed) throw system_error("cannot make " + part_.string(), failed.value());
}

EventWriter::~EventWriter() {
  file_.reset();
  std::error_code ignored;
  fs::remove_all(part_, ignored);
}

void EventWriter::write(const std::string& sweep, const ablate::v1::ExportBlock& block) {
  const auto& series = block.series();
  if (series.steps().empty()) return;
  if (!file_ || block.run() != run_) begin_run(sweep, block);
  for (int at = 0; at < series.steps_size(); ++at) {
    pending_ += protocol::scalar_record(series.name(), series.steps(at), series.values(at),
                                        in_seconds(series.times_ms(at)));
    if (pending_.size() < kBytesTogether) continue;
    file_->append(pending_);
    pending_.clear();
  }
  points_ += static_cast<std::uint64_t>(series.steps_size());
}

void EventWriter::begin_run(const std::string& sweep, const ablate::v1::ExportBlock& block) {
  end_run();
  auto [row, is_new] = rows_.try_emplace(block.row(), folder_name(block.row()));
  if (is_new)  // two ids may have one name
    for (int i = 2; !names_.insert(row->second).second; ++i)
      row->second = fmt::format("{}~{}", folder_name(block.row()), i);
  const fs::path folder = part_ / row->second / fmt::format("seed-{}", block.seed());
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) throw system_error("cannot make " + folder.string(), failed.value());
  const double begun = in_seconds(block.series().times_ms(0));
  file_ = std::make_unique<NewFile>(folder / fmt::format("events.out.tfevents.{:010}.ablate.{}",
                                                         block.series().times_ms(0) / 1000, block.run()),
                                    NewFile::Options{.mode = 0666});
  run_ = block.run();
  pending_ = protocol::first_record(begun);
  pending_ += protocol::text_record("ablate/run", "ablate",
                                    nlohmann::json{{"sweep", sweep},
                                                   {"row", block.row()},
                                                   {"seed", block.seed()},
                                                   {"trial", block.trial()},
                                                   {"run", block.run()}}
                                        .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
                                    begun);
}

void EventWriter::end_run() {
  if (!file_) return;
  file_->append(std::exchange(pending_, {}));
  file_->publish();
  file_.reset();
}

void EventWriter::finish() {
  end_run();
  if (::rename(part_.c_str(), folder_.c_str()) != 0)
    throw system_error("cannot make " + folder_.string(), errno);
}

}  // namespace abl::cli
