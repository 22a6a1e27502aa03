// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <vector>

#include "base/error.h"
#include "base/utf8.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/dashboard_link.h"
#include "cli/shown.h"
#include "cli/words.h"

namespace abl::cli {
namespace {

struct AnnotateFlags {
  std::vector<std::string> tags, untags;
  bool pin = false, unpin = false, archive = false, unarchive = false, no_notes = false;
  std::string notes;
};

/// The text of a file, or of standard input where it is "-".
std::string read_notes(const std::string& file) {
  constexpr std::size_t kMost = 64 << 10;  // as the scheduler takes them
  const std::string name = file == "-" ? "standard input" : file;
  std::ifstream in{file == "-" ? "/dev/stdin" : file, std::ios::binary};
  std::string text(kMost + 1, '\0');
  if (in) in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!in.eof() && !in.good())
    throw Error{Code::kNotFound, fmt::format("cannot read {}: {}", name, std::strerror(errno))};
  text.resize(static_cast<std::size_t>(in.gcount()));
  if (text.size() > kMost)
    throw Error{Code::kInvalidArgument,
                fmt::format("{}: too long; notes may have up to {} bytes", name, kMost)};
  if (valid_utf8(text) != text) throw Error{Code::kInvalidArgument, name + ": not UTF-8 text"};
  return text;
}

ablate::v1::AnnotateSweepRequest request_of(const std::string& sweep, const AnnotateFlags& flags) {
  ablate::v1::AnnotateSweepRequest request;
  request.set_sweep(sweep);
  for (const std::string& tag : flags.tags) request.add_add_tags(tag);
  for (const std::string& tag : flags.untags) request.add_remove_tags(tag);
  if (flags.pin || flags.unpin) request.set_pinned(flags.pin);
  if (flags.archive || flags.unarchive) request.set_archived(flags.archive);
  if (!flags.notes.empty()) request.set_notes(read_notes(flags.notes));
  if (flags.no_notes) request.set_notes("");
  return request;
}

std::string said(const ablate::v1::SweepSummary& sweep) {
  std::vector<std::string> parts;
  parts.push_back(sweep.tags().empty() ? "no tags" : fmt::format("tags {}", fmt::join(sweep.tags(), ", ")));
  if (sweep.pinned()) parts.emplace_back("pinned");
  if (sweep.archived()) parts.emplace_back("archived");
  return fmt::format("{}: {}", sweep.name(), fmt::join(parts, ", "));
}

Run declare_annotate(CLI::App& app, Context& context) {
  auto sweep = std::make_shared<std::string>();
  auto flags = std::make_shared<AnnotateFlags>();
  add_sweep(app, *sweep);
  app.add_option("--tag", flags->tags, "Add a tag of letters, digits, '.', '_', '-' and '/' (repeatable)")
      ->type_name("TAG")
      ->allow_extra_args(false);
  app.add_option("--untag", flags->untags, "Remove a tag (repeatable)")
      ->type_name("TAG")
      ->allow_extra_args(false);
  auto* const pin = app.add_flag("--pin", flags->pin, "List it first");
  app.add_flag("--unpin", flags->unpin, "Do not list it first")->excludes(pin);
  auto* const archive = app.add_flag(
      "--archive", flags->archive,
      "Leave it out of lists and keep its results ('ablate archive' writes it to a file instead)");
  app.add_flag("--unarchive", flags->unarchive, "List it again")->excludes(archive);
  auto* const notes =
      app.add_option("--notes", flags->notes, "Read its notes from FILE, in Markdown; -: standard input");
  notes->type_name("FILE");
  app.add_flag("--no-notes", flags->no_notes, "Remove its notes")->excludes(notes);
  add_scheduler(app, context);
  return [&context, sweep, flags]() -> int {
    const auto request = request_of(*sweep, *flags);
    if (request.add_tags().empty() && request.remove_tags().empty() && !request.has_pinned() &&
        !request.has_archived() && !request.has_notes())
      throw Error{Code::kInvalidArgument,
                  "nothing to change: expected at least one of --tag, --untag, --pin, --unpin, --archive, "
                  "--unarchive, --notes and --no-notes"};
    Client client{context};
    const auto annotated = client.call(&ablate::v1::Sweeps::Stub::AnnotateSweep, request);
    if (context.json) {
      context.print_json(annotated);
      return kExitOk;
    }
    context.out.line(said(annotated));
    print_dashboard_link(context, client, annotated.name());
    return kExitOk;
  };
}

}  // namespace

extern const Command kAnnotateCommand{
    .place = 148,
    .name = "annotate",
    .summary = "Tag, pin or archive a sweep, or write notes about it",
    .example =
        "ablate annotate msf-sharing --tag paper --pin\necho 'Groups above 8 diverge.' | ablate annotate "
        "msf-sharing --notes -",
    .declare = declare_annotate,
};

}  // namespace abl::cli
