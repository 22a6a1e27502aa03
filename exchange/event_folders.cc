// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "exchange/readers.h"
#include "protocol/event_file.h"

namespace abl::exchange {
namespace {

namespace fs = std::filesystem;
using protocol::EventValue;

constexpr std::size_t kMostTags = 100'000;

bool is_event_file(const fs::path& file) {
  return file.filename().string().find("tfevents") != std::string::npos;
}

/// "lr=0.1/seed-3" is seed 3 of a row "lr=0.1"; what has no such end is a row with the seed 0.
RunKey key_of(const std::string& path, const std::string& otherwise) {
  RunKey key{.row = path == "." || path.empty() ? otherwise : path};
  const auto last = key.row.find_last_of('/');
  const std::string_view end = std::string_view{key.row}.substr(last == std::string::npos ? 0 : last + 1);
  if (!end.starts_with("seed")) return key;
  std::string_view digits = end.substr(4);
  if (!digits.empty() && (digits.front() == '-' || digits.front() == '_' || digits.front() == '='))
    digits.remove_prefix(1);
  std::int64_t seed = 0;
  const auto [rest, error] = std::from_chars(digits.data(), digits.data() + digits.size(), seed);
  if (digits.empty() || error != std::errc{} || rest != digits.data() + digits.size()) return key;
  key.row = last == std::string::npos ? otherwise : key.row.substr(0, last);
  key.seed = seed;
  return key;
}

/// What `ablate export` has written of the run; nothing of another tool's.
std::optional<RunKey> own_key(const EventValue& value) {
  if (value.plugin != "ablate") return std::nullopt;
  const auto said = nlohmann::json::parse(value.text, nullptr, false);
  if (!said.is_object() || !said.contains("row") || !said["row"].is_string()) return std::nullopt;
  RunKey key{.row = said["row"].get<std::string>()};
  if (said.contains("sweep") && said["sweep"].is_string()) key.sweep = said["sweep"].get<std::string>();
  if (said.contains("seed") && said["seed"].is_number_integer()) key.seed = said["seed"].get<std::int64_t>();
  return key;
}

/// Returns: bytes of a record at the end that its writer did not finish. Throws: Error{kInvalidArgument}
/// "FILE: byte N: …" for what is damaged, or no event file; what `take` throws.
std::uint64_t read_values(const fs::path& file, const std::function<void(const EventValue&)>& take) {
  std::ifstream in{file, std::ios::binary};
  if (!in) throw system_error("cannot read " + file.string(), errno);
  protocol::EventFileReader reader;
  std::string piece(1 << 20, '\0');
  while (in.read(piece.data(), static_cast<std::streamsize>(piece.size())), in.gcount() > 0) {
    reader.read(std::string_view{piece}.substr(0, static_cast<std::size_t>(in.gcount())), take);
    if (reader.problem().empty()) continue;
    throw Error{
        Code::kInvalidArgument,
        fmt::format("{}: {}", file.string(),
                    reader.offset() == 0 ? "byte 0: not an event file of TensorBoard" : reader.problem())};
  }
  if (in.bad()) throw system_error("cannot read " + file.string(), EIO);
  return reader.waiting();
}

/// Throws: Error{kInvalidArgument} for a step that none can be.
const EventValue& with_step(const fs::path& file, const EventValue& value) {
  constexpr auto kHighest = std::numeric_limits<std::uint32_t>::max();
  if (value.step < 0 || value.step > kHighest)
    throw Error{Code::kInvalidArgument, fmt::format("{}: step {} of {}; expected 0 to {}", file.string(),
                                                    value.step, value.tag, kHighest)};
  return value;
}

struct Notes {
  std::vector<std::string> cut_off;
  std::uint64_t others = 0;         ///< values that are no scalars
  std::uint64_t without_steps = 0;  ///< tags
};

using TakeScalar = std::function<void(const RunKey& key, const EventValue& value)>;
/// Each wanted scalar of the files of one run, which lie in one folder.
void each_scalar(const std::vector<fs::path>& files, RunKey key, const Mapping& mapping, Notes& notes,
                 const TakeScalar& take) {
  for (const auto& file : files) {
    const std::uint64_t cut_off = read_values(file, [&](const EventValue& value) {
      if (const auto own = own_key(value)) key = *own;
      if (!value.scalar || value.tag.empty())
        notes.others += value.plugin != "ablate";
      else if (mapping.metrics.empty() ||
               std::ranges::find(mapping.metrics, value.tag) != mapping.metrics.end())
        take(key, with_step(file, value));
    });
    if (cut_off > 0)
      notes.cut_off.push_back(fmt::format("{} is cut off: its complete records were read", file.string()));
  }
}

/// Twice: whether the values of a tag have steps is known at its end. Where none of several has one, which
/// writers store as step 0, each is one step.
void read_run(const std::vector<fs::path>& files, const RunKey& key, const Mapping& mapping, Notes& notes,
              Sink& sink) {
  struct Tag {
    std::uint64_t values = 0;
    bool has_steps = false;
    std::uint32_t counted = 0;
  };
  std::map<std::pair<RunKey, std::string>, Tag> tags;
  each_scalar(files, key, mapping, notes, [&](const RunKey& of, const EventValue& value) {
    Tag& tag = tags[{of, value.tag}];
    if (tags.size() > kMostTags)
      throw Error{
          Code::kInvalidArgument,
          fmt::format("more than {} tags in one folder; --metric NAME takes some of them", kMostTags)};
    ++tag.values;
    tag.has_steps |= value.step != 0;
  });
  for (auto& [place, tag] : tags) {
    tag.has_steps |= tag.values == 1;
    notes.without_steps += !tag.has_steps;
  }
  Notes said_already;
  each_scalar(files, key, mapping, said_already, [&](const RunKey& of, const EventValue& value) {
    Tag& tag = tags[{of, value.tag}];
    const double ms = value.wall_time * 1000;
    sink.point(of, value.tag, tag.has_steps ? static_cast<std::uint32_t>(value.step) : tag.counted++,
               *value.scalar, std::isfinite(ms) && std::abs(ms) < 9e15 ? std::llround(ms) : 0);
  });
}

}  // namespace

std::vector<std::string> read_event_files(const fs::path& path, const Mapping& mapping, Sink& sink) {
  std::map<fs::path, std::vector<fs::path>> runs;  // folder -> its files
  std::error_code failed;
  const bool is_folder = fs::is_directory(path, failed);
  if (is_folder) {
    for (const auto& entry : fs::recursive_directory_iterator(path, failed))
      if (entry.is_regular_file(failed) && is_event_file(entry.path()))
        runs[entry.path().parent_path()].push_back(entry.path());
    if (failed) throw system_error("cannot read " + path.string(), failed.value());
  } else {
    runs[path.parent_path()].push_back(path);
  }
  fs::path named = fs::absolute(path).lexically_normal();
  if (!is_folder || !named.has_filename())
    named = named.parent_path();  // of a file its folder; of "runs/" runs
  std::string otherwise = mapping.as_row;
  if (otherwise.empty()) otherwise = named.filename().string();
  if (otherwise.empty()) otherwise = "run";
  Notes notes;
  for (auto& [folder, files] : runs) {
    std::ranges::sort(files);
    const fs::path& root = is_folder ? path : folder;
    read_run(files, key_of(folder.lexically_relative(root).generic_string(), otherwise), mapping, notes,
             sink);
  }
  std::vector<std::string> lines = std::move(notes.cut_off);
  if (notes.others > 0)
    lines.push_back(fmt::format("skipped {} value{} that {} (pictures, histograms)", notes.others,
                                notes.others == 1 ? "" : "s",
                                notes.others == 1 ? "is not a scalar" : "are not scalars"));
  if (notes.without_steps > 0)
    lines.push_back(fmt::format("{} tag{} logged without a step: the values are numbered in order",
                                notes.without_steps, notes.without_steps == 1 ? " was" : "s were"));
  return lines;
}

}  // namespace abl::exchange
