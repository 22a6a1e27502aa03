// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "storage/database.h"
#include "views/query.h"
#include "views/read.h"
#include "views/table_cache.h"
#include "web/server/answer.h"
#include "web/server/target.h"

namespace abl::web {

/// What is answered as text, where a read of views/reads/ is answered as a message.
struct TextRead {
  std::string_view path;  ///< as of views::Read, and what follows
  const views::Parameter* of = nullptr;
  std::string_view about;
  std::vector<views::Parameter> parameters;
  std::vector<std::string_view> types;  ///< of its answers
  bool quick = false;
  Answer (*answer)(const views::Query&, const views::Stored&);
};
/// All of them.
std::span<const TextRead* const> text_reads();
extern const TextRead kLogRead;
/// A sweep's table as `ablate table` prints it, to the byte (printed.cc).
extern const TextRead kPrintedRead;

/// What the event stream takes.
inline constexpr views::Parameter kEventsParameters[] = {
    {.name = "after", .about = "The `id` of the last event that was read: what changed since is told"}};

/// What the API is, as an OpenAPI document: each read with its parameters and its answer's message.
const std::string& api_description();

/// One request of the API: its description, a read of views/reads/, a log or a printed table: URL -> stored
/// records -> JSON or text. Whatever is thrown on the way becomes an error answer here and only here. Thread:
/// the connection's.
Answer api_answer(const Target& target, storage::Database& db, views::TableCache& tables,
                  const views::OtherPlaces& others = {});

/// Which kind of address it is, of few: "/api/v1/runs/*", or "/api" where there is none such.
std::string api_route(const Target& target);
/// All of them.
std::vector<std::string> api_routes();

/// Whether a request takes no longer than a few lookups, however much is stored.
bool is_quick(const Target& target);

}  // namespace abl::web
