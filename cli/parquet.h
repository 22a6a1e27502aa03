// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

namespace abl::cli {

// Parquet by pyarrow, of the Python of $ABLATE_PYTHON, otherwise of python3 on the PATH: a program that
// writes it without would need a library as large as all else here.
// Throws (both): Error{kFailedPrecondition} where there is no Python, or no pyarrow; kCancelled after Ctrl-C.

/// Makes a Parquet file of one in CSV as `export` writes it.
void csv_to_parquet(const std::filesystem::path& csv, const std::filesystem::path& parquet);
/// The other way, of any Parquet file of plain columns.
void parquet_to_csv(const std::filesystem::path& parquet, const std::filesystem::path& csv);

}  // namespace abl::cli
