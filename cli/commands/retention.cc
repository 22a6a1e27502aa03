// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "cli/command.h"
#include "cli/format.h"
#include "cli/shown.h"
#include "cli/source.h"

namespace abl::cli {
namespace {

std::string amount(std::uint64_t number, const std::string& unit) {
  return unit == "bytes" ? format_bytes(number) : fmt::format("{} {}", number, unit);
}

/// "12 of 100000 lines", "1.2 GB", or nothing.
std::string use_of(const ablate::v1::Kept& kept) {
  if (kept.has_used() && kept.has_limit())
    return kept.unit() == "bytes"
               ? fmt::format("{} of {}", format_bytes(kept.used()), format_bytes(kept.limit()))
               : fmt::format("{} of {} {}", kept.used(), kept.limit(), kept.unit());
  if (kept.has_used()) return amount(kept.used(), kept.unit());
  return kept.has_limit() ? "at most " + amount(kept.limit(), kept.unit()) : "";
}

std::string text_of(const ablate::v1::Retention& retention, const Terminal& terminal) {
  std::string text;
  for (const auto& place : retention.places()) {
    std::string bytes = place.has_bytes() ? format_bytes(place.bytes()) : "";
    if (place.has_limit()) bytes += " of " + format_bytes(place.limit());
    text += (text.empty() ? "" : "\n") + terminal.paint(Style::kBold, place.name());
    for (const std::string& more : {bytes, place.path()})
      if (!more.empty()) text += ", " + more;
    text += "\n";
    if (!place.note().empty()) text += place.note() + "\n";
    for (const auto& kept : place.kept()) {
      const std::string use = use_of(kept);
      text += fmt::format("  {}{}: {}{}\n", kept.what(), use.empty() ? "" : fmt::format(" ({})", use),
                          kept.rule(), kept.setting().empty() ? "" : fmt::format(" [{}]", kept.setting()));
    }
  }
  return text;
}

Run declare_retention(CLI::App& app, Context& context) {
  add_source(app, context);
  return [&context]() -> int {
    const auto retention = open_source(context)->retention();
    if (context.json)
      context.print_json(retention);
    else
      context.out.write(text_of(shown(retention, context.out), context.out));
    return kExitOk;
  };
}

}  // namespace

extern const Command kRetentionCommand{
    .place = 183,
    .name = "retention",
    .summary = "What is kept for how long, and how much of it there is",
    .example = "ablate retention\nablate retention --json",
    .declare = declare_retention,
};

}  // namespace abl::cli
