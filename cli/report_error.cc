// SPDX-License-Identifier: Apache-2.0
#include "cli/report_error.h"

#include <array>
#include <nlohmann/json.hpp>
#include <regex>

#include "base/printable.h"

namespace abl::cli {
namespace {

/// gRPC's names, by number.
constexpr std::array kNames{
    "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
    "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
    "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
    "DATA_LOSS", "UNAUTHENTICATED"};

std::string as_json(Code code, const std::string& message, const std::vector<sweeps::Problem>& problems) {
  auto list = nlohmann::ordered_json::array();
  for (const sweeps::Problem& problem : problems)
    list.push_back({{"file", problem.file},
                    {"line", problem.place.line},
                    {"column", problem.place.column},
                    {"field", problem.field},
                    {"message", problem.message},
                    {"nearest", problem.nearest}});
  const nlohmann::ordered_json error{{"code", kNames.at(static_cast<std::size_t>(code))},
                                     {"message", message},
                                     {"problems", std::move(list)}};
  return nlohmann::ordered_json{{"error", error}}.dump(
      -1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);  // a file's name may be any bytes
}

}  // namespace

void say_error(const Context& context, const std::string& text) {
  static const std::regex place{"^[^\n]+:[0-9]+:[0-9]+: "};
  const std::string shown = context.err.interactive() ? printable(text) : text;
  const bool has_place = std::regex_search(shown.substr(0, 4096), place);
  context.err.line(has_place ? shown : context.err.paint(Style::kRed, "error: ") + shown);
}

void report_error(const Context& context, Code code, const std::string& message,
                  const std::vector<sweeps::Problem>& problems) {
  say_error(context, message);
  if (context.json) context.out.line(as_json(code, message, problems));
}

}  // namespace abl::cli
