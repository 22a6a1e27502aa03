// SPDX-License-Identifier: Apache-2.0
#include "worker/metrics/finder.h"

#include <algorithm>

#include "worker/metrics/watched_files.h"

namespace abl::metrics {
using protocol::MetricSource;

Finder::Finder(const std::vector<MetricSource>& sources, const std::filesystem::path& folder,
               std::uint32_t resume_step) {
  const auto of_files = static_cast<std::size_t>(std::ranges::count_if(
      sources, [](const auto& source) { return source.kind != MetricSource::Kind::kPattern; }));
  const std::size_t most_files = std::min(kMostFiles, kMostFilesOfARun / std::max<std::size_t>(1, of_files));
  for (const MetricSource& source : sources) switch (source.kind) {
      case MetricSource::Kind::kPattern:
        patterns_.emplace_back(source, resume_step);
        break;
      case MetricSource::Kind::kFile:
        files_.push_back(watch_tables(source, folder, most_files, resume_step));
        break;
      case MetricSource::Kind::kTensorboard:
        files_.push_back(watch_event_files(source, folder, most_files));
        break;
    }
}
Finder::~Finder() = default;

void Finder::read_log(MetricSource::Stream stream, std::string_view bytes, Found& found) {
  if (patterns_.empty()) return;
  auto& lines = stream == MetricSource::Stream::kStderr ? err_ : out_;
  for (const std::string& line : lines.read(bytes)) read_line(stream, line, found);
}

void Finder::read_line(MetricSource::Stream stream, const std::string& line, Found& found) {
  const LastStep before = last_;
  for (LogPatterns& patterns : patterns_)
    if (patterns.reads(stream)) patterns.read(line, last_, found);
  if (last_ != before)
    for (LogPatterns& patterns : patterns_) patterns.goes_on(last_, found);
}

bool Finder::look(Found& found) {
  bool more = false;
  for (std::size_t i = 0; i < files_.size() && !found.is_full(); ++i, turn_ = (turn_ + 1) % files_.size())
    more = files_[turn_]->look(found) || more;
  return more || found.is_full();
}

void Finder::close(Found& found) {
  for (const auto& [stream, lines] :
       {std::pair{MetricSource::Stream::kStdout, &out_}, std::pair{MetricSource::Stream::kStderr, &err_}})
    for (const std::string& line : lines->close()) read_line(stream, line, found);
  for (LogPatterns& patterns : patterns_) patterns.close(found);
  for (const auto& files : files_) files->close(found);
}

std::string Finder::lacking() const {
  for (const LogPatterns& patterns : patterns_)
    if (!patterns.found_any()) return patterns.lacking();
  for (const auto& files : files_)
    if (const std::string why = files->lacking(); !why.empty()) return why;
  return {};
}

}  // namespace abl::metrics
