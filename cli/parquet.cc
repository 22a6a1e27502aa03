// SPDX-License-Identifier: Apache-2.0
#include "cli/parquet.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>

#include "base/child_process.h"
#include "base/error.h"
#include "base/stop_on_signals.h"

namespace abl::cli {
namespace {

// block by block: a study may have more points than there is memory
constexpr const char* kWriteScript = R"python(
import sys
try:
    import pyarrow as pa, pyarrow.csv as csv, pyarrow.parquet as parquet
except ImportError as error:
    sys.exit(f"no pyarrow: {error}")
types = {"sweep": pa.string(), "row": pa.string(), "seed": pa.int64(), "trial": pa.uint32(), "run": pa.uint32(),
         "metric": pa.string(), "step": pa.uint32(), "value": pa.float64(), "time_ms": pa.int64()}
convert = csv.ConvertOptions(column_types=types, null_values=[], strings_can_be_null=False)
reader = csv.open_csv(sys.argv[1], convert_options=convert, parse_options=csv.ParseOptions(newlines_in_values=True))
with parquet.ParquetWriter(sys.argv[2], pa.schema(list(types.items()))) as writer:
    for batch in reader:
        writer.write_batch(batch)
)python";
constexpr const char* kReadScript = R"python(
import sys
try:
    import pyarrow as pa, pyarrow.csv as csv, pyarrow.parquet as parquet
except ImportError as error:
    sys.exit(f"no pyarrow: {error}")
try:
    file = parquet.ParquetFile(sys.argv[1])
except pa.ArrowException as error:
    sys.exit(f"bad file: {error}")
schema = file.schema_arrow
for field in schema:
    if pa.types.is_nested(field.type):
        sys.exit(f"bad file: column '{field.name}' is nested; expected plain columns")
floats = [i for i, field in enumerate(schema) if pa.types.is_floating(field.type)]
with csv.CSVWriter(sys.argv[2], pa.schema([pa.field(f.name, pa.string()) for f in schema])) as writer:
    for batch in file.iter_batches():
        columns = []
        for i, column in enumerate(batch.columns):
            if i in floats:  # repr keeps every bit
                columns.append(pa.array([None if v is None else repr(v) for v in column.to_pylist()], pa.string()))
            else:
                columns.append(column.cast(pa.string()))
        writer.write_batch(pa.record_batch(columns, names=schema.names))
)python";

void run_python(const char* script, const std::filesystem::path& from, const std::filesystem::path& to,
                const char* what) {
  const char* const named = std::getenv("ABLATE_PYTHON");
  const std::string python = named && *named ? named : "python3";
  const std::atomic<bool>& stopped = stop_on_signals();
  std::stop_source stop;
  const std::jthread watch{[&](const std::stop_token& over) {
    while (!over.stop_requested() && !stopped) std::this_thread::sleep_for(std::chrono::milliseconds{50});
    if (stopped) stop.request_stop();
  }};
  try {
    run_program({python, "-c", script, from.string(), to.string()}, "", std::chrono::hours{24},
                stop.get_token());
  } catch (const Error& error) {
    if (stopped) throw Error{Code::kCancelled, "interrupted: nothing was written"};
    const std::string said = error.what();
    if (said.find("no pyarrow") != std::string::npos || said.find("No such file") != std::string::npos)
      throw Error{
          Code::kFailedPrecondition,
          fmt::format("{} needs pyarrow, which {} lacks; 'pip install pyarrow', or set ABLATE_PYTHON to a "
                      "Python that has it",
                      what, python)};
    if (const auto bad = said.find("bad file: "); bad != std::string::npos)
      throw Error{Code::kInvalidArgument, fmt::format("{}: {}", from.string(), said.substr(bad + 10))};
    throw;
  }
}

}  // namespace

void csv_to_parquet(const std::filesystem::path& csv, const std::filesystem::path& parquet) {
  run_python(kWriteScript, csv, parquet, "--format parquet");
}

void parquet_to_csv(const std::filesystem::path& parquet, const std::filesystem::path& csv) {
  run_python(kReadScript, parquet, csv, "a Parquet file");
}

}  // namespace abl::cli
