// SPDX-License-Identifier: Apache-2.0
#include "sweeps/whole_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iostream>

#include "base/error.h"
#include "base/file.h"
#include "base/utf8.h"
#include "sweeps/other_sweeps.h"
#include "sweeps/paper_sweeps.h"
#include "sweeps/scale.h"
#include "sweeps/sweep_spec.h"

namespace abl::sweeps {
namespace {

constexpr std::string_view kFullScale = "full";
constexpr const char* kStandardInput = "/dev/stdin";

std::filesystem::path scales_beside(const std::filesystem::path& file) {
  return file.parent_path() / "scales.yaml";
}

/// What has no size is read no further than a sweep file may go.
Problem too_large_to_end(const std::string& file) {
  Problem problem = too_large(file, kLargestFile);
  problem.message = fmt::format("more than {} MiB; a sweep file has at most that", kLargestFile >> 20);
  return problem;
}

/// What has no size, such as a pipe: up to what no sweep file may have.
std::string read_stream(const std::filesystem::path& file) {
  std::error_code unknown;
  if (std::filesystem::is_directory(file, unknown)) return read_file(file);  // says so
  std::ifstream opened;  // standard input may be a socket, which cannot be opened by a name
  if (file != kStandardInput) opened.open(file, std::ios::binary);
  if (!opened) throw system_error("cannot read " + file.string(), errno);
  std::istream& in = file == kStandardInput ? std::cin : opened;
  std::string text(kLargestFile + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  return text;
}

/// Throws: SweepFileError with the place of the first wrong byte. No message could carry it to the scheduler.
void expect_utf8(const WholeFile& sweep) {
  const std::string& text = sweep.text;
  const std::string valid = valid_utf8(text);
  if (valid == text) return;
  const auto wrong = std::ranges::mismatch(text, valid).in1;
  const std::string before{text.begin(), wrong};
  const std::string line = before.substr(before.rfind('\n') + 1);
  const auto follows = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; };
  Problem problem{.file = sweep.path};
  problem.place.line = static_cast<int>(std::ranges::count(before, '\n')) + 1;
  problem.place.column =
      static_cast<int>(line.size() - static_cast<std::size_t>(std::ranges::count_if(line, follows))) + 1;
  problem.message =
      fmt::format("the file is not UTF-8 text: byte 0x{:02x}", static_cast<unsigned char>(*wrong));
  throw SweepFileError{{problem}};
}

WholeFile read_as_written(const std::filesystem::path& file) {
  WholeFile sweep;
  if (file == "-") return read_as_written(kStandardInput);
  sweep.path = file == kStandardInput ? "standard input" : file.string();
  std::error_code unknown;
  if (const auto size = std::filesystem::file_size(file, unknown); !unknown && size > kLargestFile)
    throw SweepFileError{{too_large(file.string(), size)}};
  sweep.text = std::filesystem::is_regular_file(file, unknown) ? read_file(file) : read_stream(file);
  if (sweep.text.size() > kLargestFile)  // a pipe has no size
    throw SweepFileError{{too_large_to_end(sweep.path)}};
  // without symbolic links: two names of one folder are one
  const auto place = std::filesystem::weakly_canonical(file, unknown);
  const bool is_pipe = unknown || !std::filesystem::is_regular_file(place, unknown);
  const std::string folder = is_pipe ? std::filesystem::current_path() : place.parent_path();
  if (valid_utf8(folder) == folder) sweep.folder = folder;  // otherwise no message can carry it
  expect_utf8(sweep);
  return sweep;
}

/// The text of a file at a scale.
std::string at_scale(const WholeFile& sweep, const std::filesystem::path& file, const std::string& scale,
                     int seeds) {
  const auto scales = scales_beside(file);
  std::error_code unknown;
  if (!std::filesystem::is_regular_file(file, unknown) || !std::filesystem::is_regular_file(scales, unknown))
    throw Error{Code::kNotFound, fmt::format("scale '{}': {} has no scales: {} does not exist", scale,
                                             sweep.path, scales.string())};
  return with_scale(sweep.text, sweep.path, read_file(scales), scales.string(), scale, seeds > 0);
}

/// The text of a file whose rows another names: a table of a paper, or a path from that one's folder.
std::string read_source(const std::string& key, const std::string& folder, const std::string& scale) {
  std::filesystem::path file = std::filesystem::path{folder} / key;
  if (!key.ends_with(".yaml") && !key.ends_with(".yml"))
    file = paper_sweep(key).file;
  else if (const auto papers = papers_folder(); papers && !std::filesystem::exists(file))
    if (std::filesystem::exists(*papers / key)) file = *papers / key;  // named by a table of a paper
  const WholeFile other = read_as_written(file);
  return scale.empty() ? other.text : at_scale(other, file, scale, 0);
}

}  // namespace

WholeFile read_whole(const std::filesystem::path& file, const std::string& wanted, int seeds) {
  const std::string scale = wanted == kFullScale ? "" : wanted;
  WholeFile sweep = read_as_written(file);
  if (seeds > 0) sweep.text = with_seeds(sweep.text, sweep.path, seeds);
  if (!scale.empty()) sweep.text = at_scale(sweep, file, scale, seeds);
  sweep.text = with_sources(sweep.text, sweep.path, [&](const std::string& key, bool scaled) {
    return read_source(key, sweep.folder, scaled ? scale : "");
  });
  return sweep;
}

std::vector<std::string> scales_of(const std::filesystem::path& file) {
  const auto scales = scales_beside(file);
  std::error_code unknown;
  if (!std::filesystem::is_regular_file(scales, unknown)) return {};
  return scale_names(read_file(scales), scales.string());
}

}  // namespace abl::sweeps
