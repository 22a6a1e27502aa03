// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "storage/database.h"
#include "views/table_cache.h"
#include "web/server/answer.h"
#include "web/server/target.h"

namespace abl::web {

/// One request of the API: a read of views/reads/, or a log: URL -> stored records -> JSON. Whatever is
/// thrown on the way becomes an error answer here and only here. Thread: the connection's.
Answer api_answer(const Target& target, storage::Database& db, views::TableCache& tables);

/// Which kind of address it is, of few: "/api/v1/runs/*", or "/api" where there is none such.
std::string api_route(const Target& target);
/// All of them.
std::vector<std::string> api_routes();

/// Whether a request takes no longer than a few lookups, however much is stored.
bool is_quick(const Target& target);

}  // namespace abl::web
