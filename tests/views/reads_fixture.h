// SPDX-License-Identifier: Apache-2.0
// A store, and the answers of the HTTP API's reads of it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/storage/fixtures.h"
#include "views/read.h"

namespace abl::views {

class ReadsTest : public storage::StoreTest {
 protected:
  /// The answer of the read at `path`; `name`: what stands for the star in it.
  nlohmann::json ask(std::string_view path, std::vector<std::pair<std::string, std::string>> parameters = {},
                     const std::string& name = {}) {
    for (const Read* read : all_reads()) {
      if (read->path != path) continue;
      const Query query{.name = name, .parameters = std::move(parameters), .declared = read->parameters};
      query.check();
      return nlohmann::json::parse(read->answer(query, {db, tables_}));
    }
    throw Error{Code::kNotFound, "no read " + std::string{path}};
  }

 private:
  TableCache tables_{folder / "results.db"};
};

}  // namespace abl::views
