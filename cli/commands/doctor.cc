// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/printable.h"
#include "cli/command.h"
#include "cli/format.h"

namespace abl::cli {
namespace {

using Verdict = Finding::Verdict;

const char* word_of(Verdict verdict) {
  return verdict == Verdict::kOk ? "ok" : verdict == Verdict::kNote ? "note" : "problem";
}

Style style_of(Verdict verdict) {
  return verdict == Verdict::kOk ? Style::kGreen : verdict == Verdict::kNote ? Style::kYellow : Style::kRed;
}

/// What others wrote may be in it: reasons of workers, names of files.
std::string readable(const Terminal& terminal, std::string text) {
  std::ranges::replace(text, '\n', ' ');
  return terminal.interactive() ? printable(text) : text;
}

Run declare_doctor(CLI::App& app, Context& context) {
  auto deep = std::make_shared<bool>(false);
  app.add_flag("--deep", *deep, "Also look at every page of the results file, which may take minutes");
  add_source(app, context);
  return [&context, deep]() -> int {
    if (std::error_code unknown;
        !context.store_flag.empty() && !std::filesystem::exists(context.store_flag, unknown))
      throw Error{Code::kNotFound,
                  fmt::format("--store {}: no such file; expected a results file", context.store_flag)};
    Seen seen;
    {
      Progress progress{context.err, "looking at every page", "s", 0};
      const auto start = std::chrono::steady_clock::now();
      seen = look(context, *deep,
                  [&] { progress.update(Seconds{std::chrono::steady_clock::now() - start}.count()); });
    }
    auto checks = nlohmann::ordered_json::array();
    std::size_t problems = 0, notes = 0;
    std::string_view area;
    for (const Check& check : doctor_checks()) {
      const auto finding = check.judge(seen);
      if (!finding) continue;
      problems += finding->verdict == Verdict::kProblem ? 1 : 0;
      notes += finding->verdict == Verdict::kNote ? 1 : 0;
      if (context.json) {
        checks.push_back({{"area", check.area},
                          {"check", check.name},
                          {"verdict", word_of(finding->verdict)},
                          {"message", finding->what},
                          {"advice", finding->to_do}});
        continue;
      }
      if (area != check.area) context.out.line(context.out.paint(Style::kBold, area = check.area));
      context.out.line(fmt::format(
          "  {} {} {}{}", context.out.paint(style_of(finding->verdict), pad(word_of(finding->verdict), 8)),
          pad(check.name, 14), readable(context.out, finding->what),
          finding->to_do.empty() ? "" : " → " + readable(context.out, finding->to_do)));
    }
    if (context.json)
      context.out.line(nlohmann::ordered_json{
          {"version", seen.version}, {"problems", problems}, {"notes", notes}, {"checks", std::move(checks)}}
                           .dump(context.out.interactive() ? 2 : -1, ' ', false,
                                 nlohmann::json::error_handler_t::replace));
    else
      context.out.line(problems == 0
                           ? fmt::format("no problems, {}", plural(notes, "note"))
                           : fmt::format("{}, {}", plural(problems, "problem"), plural(notes, "note")));
    return problems == 0 ? kExitOk : kExitFailed;
  };
}

}  // namespace

extern const Command kDoctorCommand{
    .place = 185,
    .name = "doctor",
    .summary = "Look at this machine, its results file, programs and scheduler, and say what is wrong",
    .example = "ablate doctor\nablate doctor --deep --json",
    .success = "no problems; there may be notes",
    .failure = "something is wrong",
    .declare = declare_doctor,
};

}  // namespace abl::cli
