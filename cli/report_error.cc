// SPDX-License-Identifier: Apache-2.0
#include "cli/report_error.h"

#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

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

/// Takes ":14" off the end, if it is there.
bool drop_number(std::string_view& text) {
  const std::size_t colon = text.find_last_not_of("0123456789");
  if (colon == std::string_view::npos || text[colon] != ':' || colon + 1 == text.size()) return false;
  text = text.substr(0, colon);
  return true;
}

/// "qkv.yaml:14:12: …"
bool has_place(std::string_view text) {
  text = text.substr(0, text.find('\n'));
  for (std::size_t at = text.find(": "); at != std::string_view::npos; at = text.find(": ", at + 1))
    if (auto place = text.substr(0, at); drop_number(place) && drop_number(place) && !place.empty())
      return true;
  return false;
}

}  // namespace

void say_error(const Context& context, const std::string& text) {
  const std::string shown = context.err.interactive() ? printable(text) : text;
  context.err.line(has_place(shown) ? shown : context.err.paint(Style::kRed, "error: ") + shown);
}

void report_error(const Context& context, Code code, const std::string& message,
                  const std::vector<sweeps::Problem>& problems) {
  say_error(context, message);
  if (context.json) context.out.line(as_json(code, message, problems));
}

}  // namespace abl::cli
