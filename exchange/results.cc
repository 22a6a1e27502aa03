// SPDX-License-Identifier: Apache-2.0
#include "exchange/results.h"

#include <fmt/format.h>

#include <cerrno>
#include <fstream>

#include "base/error.h"
#include "base/printable.h"
#include "exchange/readers.h"

namespace abl::exchange {
namespace {

namespace fs = std::filesystem;

/// Of a folder, by what lies in it, a few folders deep.
Format format_of_folder(const fs::path& folder) {
  constexpr int kDeepest = 6;
  std::error_code failed;
  if (fs::is_directory(folder / "metrics", failed) && fs::exists(folder / "meta.yaml", failed))
    return Format::kMlflow;
  bool has_events = false;
  for (auto entry = fs::recursive_directory_iterator(folder, failed);
       !failed && entry != fs::recursive_directory_iterator{}; entry.increment(failed)) {
    if (entry.depth() >= kDeepest) entry.disable_recursion_pending();
    const std::string name = entry->path().filename().string();
    if (name == "meta.yaml") return Format::kMlflow;
    has_events |= name.find("tfevents") != std::string::npos;
  }
  // an artifact of a run of MLflow may be an event file, and no event file has MLflow's files beside it
  if (has_events) return Format::kTensorBoard;
  if (failed) throw system_error("cannot read " + folder.string(), failed.value());
  throw Error{
      Code::kInvalidArgument,
      fmt::format(
          "{}: a folder with neither TensorBoard's event files nor MLflow's meta.yaml in it; expected "
          "one of these, or a file",
          folder.string())};
}

}  // namespace

Format format_of(const fs::path& path) {
  std::error_code failed;
  if (fs::is_directory(path, failed)) return format_of_folder(path);
  if (path.filename().string().find("tfevents") != std::string::npos) return Format::kTensorBoard;
  std::ifstream in{path, std::ios::binary};
  if (!in) throw system_error("cannot read " + path.string(), errno);
  std::string head(4096, '\0');
  in.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(in.gcount()));
  if (head.starts_with("SQLite format 3")) return Format::kMlflow;
  const auto first = head.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  if (first != std::string::npos && head[first] == '{') return Format::kJsonLines;
  if (first != std::string::npos && head[first] == '[')
    throw Error{Code::kInvalidArgument,
                fmt::format("{}:1:1: a JSON list; expected JSON Lines, an object a line", path.string())};
  return Format::kCsv;
}

namespace {

std::vector<std::string> read_as(const fs::path& path, Format format, const Mapping& mapping, Sink& sink) {
  switch (format) {
    case Format::kCsv:
      return read_csv(path, mapping, sink);
    case Format::kJsonLines:
      return read_json_lines(path, mapping, sink);
    case Format::kTensorBoard:
      return read_event_files(path, mapping, sink);
    case Format::kMlflow:
      return read_mlflow(path, mapping, sink);
  }
  return {};
}

}  // namespace

/// What is said of a file has pieces of it, which a terminal might take for commands.
std::vector<std::string> read_results(const fs::path& path, Format format, const Mapping& mapping,
                                      Sink& sink) {
  try {
    auto notes = read_as(path, format, mapping, sink);
    for (std::string& note : notes) note = printable_line(note);
    return notes;
  } catch (const Error& error) {
    throw Error{error.code(), printable_line(error.what())};
  }
}

}  // namespace abl::exchange
