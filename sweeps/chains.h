// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sweeps/sweep_spec.h"
#include "sweeps/yaml_reader.h"

/// Rows that take the weights of other rows: `from` and `teacher`.
namespace abl::sweeps {

/// So many rows may take each other's weights, one after the other.
inline constexpr std::size_t kLongestChain = 20;

/// `from: {row: a, take: best}` as it is written.
struct DraftSource {
  RowSource::Role role = RowSource::Role::kStart;
  std::string sweep;  ///< that the row is of, as it is written; empty: this one
  std::string row;
  protocol::Taken take = protocol::Taken::kBest;
  std::optional<std::int64_t> seed;
  Place place, sweep_place, row_place, seed_place;
  std::string field;  ///< "rows.b.from"
};

/// Reads those that a row has. `field`: what the row is called.
std::vector<DraftSource> read_sources(YamlReader& reader, const Node& row, const std::string& field);

/// A row by what its chains depend on.
struct Chained {
  std::string id;
  std::vector<DraftSource> sources;
};

/// Indices of all rows, each after those whose weights it takes. Rows that are not there, and circles, are
/// problems; what leads there is left out of `sources`.
std::vector<std::size_t> in_order_of_chains(std::vector<Chained>& rows, Problems& problems);

/// What of a source's model cannot become that of a row, as far as it is known without their tensors; empty:
/// nothing. Canonical model documents.
std::string why_weights_do_not_fit(const std::string& source_model, const std::string& model);

/// The document of a row with a seed: `config` as it is for all seeds, with the names of the weights that
/// these sources have. `hashes`: of each source's own trial.
std::string chained_config(const std::string& config, const std::vector<RowSource>& sources,
                           const std::vector<std::string>& hashes, std::int64_t seed);

/// The key of a recipe that names a source's weights.
const char* weights_key(RowSource::Role role);

}  // namespace abl::sweeps
