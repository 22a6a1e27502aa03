// SPDX-License-Identifier: Apache-2.0
#include "cli/point_writer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/printable.h"
#include "protocol/csv.h"
#include "protocol/number.h"

namespace abl::cli {
using protocol::csv_field;
using protocol::csv_number;
PointWriter::PointWriter(const std::filesystem::path& file, PointFormat format)
    : format_{format}, is_terminal_{isatty(STDOUT_FILENO) == 1} {
  if (!file.empty())
    file_.emplace(file, NewFile::Options{.ending = fmt::format(".{}.part", getpid()), .mode = 0666});
  if (format_ == PointFormat::kCsv) put("sweep,row,seed,trial,run,metric,step,value,time_ms\n");
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
                                     {"value", protocol::json_number(series.values(at))},
                                     {"time_ms", series.times_ms(at)}}
                  .dump() +
              "\n";
  }
  put(text);
  points_ += static_cast<std::uint64_t>(series.steps_size());
}

void PointWriter::finish() {
  if (file_)
    file_->publish();
  else if (std::fflush(stdout) != 0)
    fail();
}

void PointWriter::put(const std::string& exact) {
  if (file_) return file_->append(exact);
  const std::string text = is_terminal_ ? printable(exact) : exact;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) fail();
}

void PointWriter::fail() const { throw system_error("cannot write standard output", errno); }

}  // namespace abl::cli
