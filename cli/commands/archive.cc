// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/sha256.h"
#include "cli/command.h"
#include "cli/format.h"
#include "cli/store_report.h"
#include "storage/archive.h"

namespace abl::cli {
namespace {

namespace fs = std::filesystem;

struct ArchiveFlags {
  std::vector<std::string> sweeps;
  std::string file, points = "thin", checkpoints = "none";
  bool force = false, no_provenance = false;
};

std::string archive_host() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

storage::ArchiveOptions options_of(const ArchiveFlags& flags) {
  using storage::KeptCheckpoints, storage::KeptPoints;
  return {.points = flags.points == "all"    ? KeptPoints::kAll
                    : flags.points == "none" ? KeptPoints::kNone
                                             : KeptPoints::kThin,
          .checkpoints = flags.checkpoints == "best"   ? KeptCheckpoints::kBest
                         : flags.checkpoints == "last" ? KeptCheckpoints::kLast
                                                       : KeptCheckpoints::kNone,
          .provenance = !flags.no_provenance,
          .host = archive_host()};
}

nlohmann::ordered_json json_of(const std::vector<storage::ArchivedDiff>& diffs) {
  auto all = nlohmann::ordered_json::array();
  for (const auto& diff : diffs)
    all.push_back({{"sweep", diff.sweep}, {"bytes", diff.bytes}, {"files", diff.files}});
  return all;
}

/// What of its makers' machines travels with it.
std::string travels_text(const storage::Archived& made) {
  if (made.submissions == 0) return "";
  std::string text = fmt::format("it says of {} who made it, on which machine and in which folder{}",
                                 plural(static_cast<std::uint64_t>(made.submissions), "submission"),
                                 made.packages > 0 ? ", with which Python packages" : "");
  if (made.diffs.empty()) return text + "; --no-provenance leaves that out\n";
  text += ", and has what was changed there and not committed:\n";
  constexpr std::size_t kNamed = 5;
  for (const auto& diff : made.diffs) {
    const std::vector<std::string> named(
        diff.files.begin(),
        diff.files.begin() + static_cast<std::ptrdiff_t>(std::min(diff.files.size(), kNamed)));
    text += fmt::format(
        "  {}: {} in {}{}\n", diff.sweep, format_bytes(diff.bytes), fmt::join(named, ", "),
        diff.files.size() > kNamed ? fmt::format(" and {} more", diff.files.size() - kNamed) : "");
  }
  return text +
         "look for secrets in it (ablate show SWEEP --provenance); --no-provenance leaves all of it out\n";
}

Run declare_archive(CLI::App& app, Context& context) {
  auto flags = std::make_shared<ArchiveFlags>();
  app.add_option("SWEEP", flags->sweeps, "Sweeps that go into it")->required()->type_name("");
  app.add_option("-o,--output", flags->file, "The archive; it appears when it is whole")
      ->required()
      ->type_name("FILE");
  add_choice(app, "--points", flags->points, {"all", "thin", "none"},
             fmt::format("Metric points: all, at most {} of each curve, or none; tables are the same [thin]",
                         storage::ArchiveOptions::kThinTo));
  add_choice(app, "--checkpoints", flags->checkpoints, {"none", "last", "best"},
             "Files of checkpoints that go into it, of each trial [none]");
  app.add_flag("--no-provenance", flags->no_provenance,
               "Leave out who submitted the sweeps, from where, and what was not committed there");
  app.add_flag("--force", flags->force, "Replace a file that is there");
  add_home(app, context);
  add_json(app, context);
  app.add_option("--store", context.store_flag, "Take the sweeps from this results file [the home's]")
      ->type_name("FILE");
  return [&context, flags]() -> int {
    const fs::path from = store_in_use(context), to = flags->file;
    expect_place_for(to, from, flags->force, "study.db");
    const auto made = storage::make_archive(from, flags->sweeps, options_of(*flags), to);
    const std::string digest = sha256_file(to);
    if (context.json) {
      context.out.line(nlohmann::ordered_json{{"file", to.string()},
                                              {"bytes", made.bytes},
                                              {"sha256", digest},
                                              {"sweeps", made.sweeps},
                                              {"trials", made.trials},
                                              {"completed", made.completed},
                                              {"runs", made.runs},
                                              {"points", made.points},
                                              {"checkpoints", made.checkpoints},
                                              {"absent", made.absent},
                                              {"submissions", made.submissions},
                                              {"packages", made.packages},
                                              {"diffs", json_of(made.diffs)}}
                           .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    } else {
      context.out.line(fmt::format("{}: {}, {} ({} completed), {}, {} points, {}; {}, SHA-256 {}",
                                   to.string(), plural(static_cast<std::uint64_t>(made.sweeps), "sweep"),
                                   plural(static_cast<std::uint64_t>(made.trials), "trial"), made.completed,
                                   plural(static_cast<std::uint64_t>(made.runs), "run"),
                                   format_count(static_cast<std::uint64_t>(made.points)),
                                   plural(static_cast<std::uint64_t>(made.checkpoints), "checkpoint"),
                                   format_bytes(made.bytes), digest));
      context.out.write(travels_text(made));
    }
    if (!made.absent.empty())
      context.note(fmt::format(
          "{} not on this machine, or not as it was written, and left out, such as {}",
          made.absent.size() == 1 ? "a checkpoint is" : fmt::format("{} checkpoints are", made.absent.size()),
          made.absent.front()));
    return kExitOk;
  };
}

}  // namespace

extern const Command kArchiveCommand{
    .place = 183,
    .name = "archive",
    .summary = "Write sweeps with their results into one small file that opens anywhere",
    .example =
        "ablate archive msf-sharing -o msf-sharing.db\nablate table msf-sharing --store msf-sharing.db",
    .success = "written",
    .declare = declare_archive,
};

}  // namespace abl::cli
