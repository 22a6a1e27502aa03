// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <filesystem>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "exchange/results.h"
#include "tests/fuzz/target.h"
#include "tests/temporary_folder.h"

namespace abl::fuzz {
namespace {

/// Keeps what is read, as text.
class Said final : public exchange::Sink {
 public:
  void point(const exchange::RunKey& run, const std::string& metric, std::uint32_t step, double value,
             std::int64_t time_ms) override {
    require(!run.row.empty() && !metric.empty(), "a point is of a row and a metric");
    text += fmt::format("{}/{}/{} {}@{}={} {}\n", run.sweep, run.row, run.seed, metric, step, value, time_ms);
  }
  void setting(const exchange::RunKey& run, const std::string& key, const std::string& json) override {
    text += fmt::format("{} {}={}\n", run.row, key, json);
  }
  std::string text;
};

std::string said_of(const std::filesystem::path& path, exchange::Format format) {
  Said said;
  try {
    for (const std::string& note : exchange::read_results(path, format, {}, said)) require_printable(note);
  } catch (const Error& error) {
    require_printable(error.what());
    said.text += error.what();
  }
  return said.text;
}

}  // namespace

/// A file is read twice, first to see whether it can be read: both have to say the same.
void read_imported_results(std::string_view bytes) {
  static const TemporaryFolder folder;
  static const std::filesystem::path run = [] {
    const auto made = folder / "mlruns/0/run";
    std::filesystem::create_directories(made / "metrics");
    write_file(made / "meta.yaml", "run_name: base\nlifecycle_stage: active\n");
    return made;
  }();
  write_file(folder / "input.tfevents", bytes);
  write_file(run / "metrics/acc", bytes);
  for (const auto format : {exchange::Format::kCsv, exchange::Format::kJsonLines,
                            exchange::Format::kTensorBoard, exchange::Format::kMlflow}) {
    const auto path = folder / (format == exchange::Format::kMlflow ? "mlruns" : "input.tfevents");
    require(said_of(path, format) == said_of(path, format), "a second reading says what the first has said");
  }
}

}  // namespace abl::fuzz
