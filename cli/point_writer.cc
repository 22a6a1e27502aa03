// SPDX-License-Identifier: Apache-2.0
#include "cli/point_writer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/printable.h"
#include "cli/csv.h"

namespace abl::cli {
namespace {

nlohmann::json json_number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

}  // namespace

PointWriter::PointWriter(std::filesystem::path file, PointFormat format)
    : file_{std::move(file)},
      part_{file_.string() + fmt::format(".{}.part", getpid())},
      format_{format},
      stream_{stdout},
      is_terminal_{isatty(STDOUT_FILENO) == 1} {
  if (!file_.empty()) stream_ = std::fopen(part_.c_str(), "wbx");
  if (!stream_) throw system_error("cannot write " + file_.string(), errno);
  if (format_ == PointFormat::kCsv) put("sweep,row,seed,trial,run,metric,step,value,time_ms\n");
}

PointWriter::~PointWriter() {
  if (!stream_ || stream_ == stdout) return;
  std::fclose(stream_);
  std::error_code ignored;
  std::filesystem::remove(part_, ignored);
}

void PointWriter::write(const std::string& sweep, const ablate::v1::ExportBlock& block) {
  const auto& series = block.series();
  const std::string head =
      format_ == PointFormat::kCsv
          ? fmt::format("{},{},{},{},{},{},", csv_field(sweep), csv_field(block.row()), block.seed(),
                        block.trial(), block.run(), csv_field(series.name()))
          : "";
  std::string text;
  for (int at = 0; at < series.steps_size(); ++at) {
    if (format_ == PointFormat::kCsv)
      text += fmt::format("{}{},{},{}\n", head, series.steps(at), csv_number(series.values(at)),
                          series.times_ms(at));
    else
      text += nlohmann::ordered_json{{"sweep", sweep},
                                     {"row", block.row()},
                                     {"seed", block.seed()},
                                     {"trial", block.trial()},
                                     {"run", block.run()},
                                     {"metric", series.name()},
                                     {"step", series.steps(at)},
                                     {"value", json_number(series.values(at))},
                                     {"time_ms", series.times_ms(at)}}
                  .dump() +
              "\n";
  }
  put(text);
  points_ += static_cast<std::uint64_t>(series.steps_size());
}

void PointWriter::finish() {
  if (std::fflush(stream_) != 0) fail();
  if (stream_ == stdout) return;
  if (fsync(fileno(stream_)) != 0) fail();
  FILE* stream = std::exchange(stream_, nullptr);
  if (std::fclose(stream) != 0 || std::rename(part_.c_str(), file_.c_str()) != 0) fail();
}

void PointWriter::put(const std::string& exact) {
  const std::string text = stream_ == stdout && is_terminal_ ? printable(exact) : exact;
  if (std::fwrite(text.data(), 1, text.size(), stream_) != text.size()) fail();
}

void PointWriter::fail() const {
  throw system_error("cannot write " + (file_.empty() ? "standard output" : file_.string()), errno);
}

}  // namespace abl::cli
