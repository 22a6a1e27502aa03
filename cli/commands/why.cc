// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <google/protobuf/util/time_util.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "base/error.h"
#include "cli/command.h"
#include "cli/format.h"
#include "cli/provenance.h"
#include "cli/shown.h"
#include "cli/source.h"
#include "cli/sweep_checks.h"
#include "cli/words.h"
#include "planning/validate.h"
#include "printing/grid.h"

namespace abl::cli {
namespace {

using namespace ablate::v1;
using nlohmann::json;

/// "SWEEP/ROW/COLUMN" in one word, or in three. A sweep may be called as a paper's table is: "msf/table-1".
WhyRequest asked_for(const std::vector<std::string>& words) {
  WhyRequest request;
  if (words.size() == 3) {
    request.set_sweep(words[0]);
    request.set_row(words[1]);
    request.set_column(words[2]);
  } else {
    const std::string& cell = words.at(0);
    const auto last = cell.rfind('/');
    const auto middle =
        last == std::string::npos || last == 0 ? std::string::npos : cell.rfind('/', last - 1);
    if (words.size() != 1 || middle == std::string::npos)
      throw Error{
          Code::kInvalidArgument,
          fmt::format("invalid cell '{}'; expected SWEEP ROW COLUMN, or SWEEP/ROW/COLUMN; 'ablate table {} "
                      "--format csv' has the names of both",
                      fmt::join(words, " "), words.at(0).substr(0, words.at(0).find('/')))};
    request.set_sweep(cell.substr(0, middle));
    request.set_row(cell.substr(middle + 1, last - middle - 1));
    request.set_column(cell.substr(last + 1));
  }
  if (request.sweep().find('/') != std::string::npos)  // no sweep has a name like that
    request.set_sweep(planning::parse(read_sweep_file(request.sweep())).name);
  return request;
}

/// What the trainer said of itself when the run began.
json said_by(const RunDetail& run) {
  const json environment = json::parse(run.environment_json(), nullptr, false);
  return environment.is_object() ? environment : json::object();
}

std::string fact_text(const json& value) {
  return value.is_string() ? value.get<std::string>()
                           : value.dump(-1, ' ', false, json::error_handler_t::replace);
}

/// Facts that all runs have in common are said once, others for each seed.
class Facts {
 public:
  void add(const std::string& name, std::int64_t seed, const std::string& value) {
    const auto found = std::ranges::find(facts_, name, &Fact::name);
    Fact& fact = found == facts_.end() ? facts_.emplace_back(Fact{name, {}}) : *found;
    fact.values.emplace_back(seed, value);
  }
  std::string text(std::size_t runs) const {
    std::string text;
    for (const auto& [name, values] : facts_) {
      const bool common = values.size() == runs && std::ranges::all_of(values, [&](const auto& each) {
                            return each.second == values.front().second;
                          });
      if (common) {
        text += fmt::format("  {:<19} {}\n", name, values.front().second);
        continue;
      }
      for (const auto& [seed, value] : values)
        text += fmt::format("  {:<19} {} (seed {})\n", name, value, seed);
    }
    return text;
  }

 private:
  struct Fact {
    std::string name;
    std::vector<std::pair<std::int64_t, std::string>> values;
  };
  std::vector<Fact> facts_;
};

std::string started_text(const google::protobuf::Timestamp& time) {
  std::string text = google::protobuf::util::TimeUtil::ToString(time);  // 2026-11-23T14:02:03.120Z
  if (text.size() > 10) text[10] = ' ';
  return text.substr(0, 19);
}

std::string took_text(const RunSummary& run) {
  if (run.has_took_seconds()) return format_duration(run.took_seconds());
  if (!run.has_started() || !run.has_ended()) return "";
  return format_duration(static_cast<double>(google::protobuf::util::TimeUtil::DurationToMilliseconds(
                             run.ended() - run.started())) /
                         1000);
}

std::string bits_text(const RunSummary& run) {
  if (!run.has_resumed_from_step()) return "one piece";
  return fmt::format("resumed at step {}{}", run.resumed_from_step(),
                     run.bit_exact() ? ", to the bit" : ", not bit-exact");
}

std::string number_text(const WhyValue& value) {
  return value.has_value() ? fmt::format("{}", value.value()) : "–";
}

/// Whether the cell is of a value for each seed.
bool is_of_seeds(const WhyResponse& why) {
  return why.column().kind() == Column::KIND_METRIC ||
         (why.column().kind() == Column::KIND_EXPRESSION && why.column().per_seed());
}

/// What the names of an expression stand for; the values of those that are the same for every seed.
std::string parts_text(const WhyResponse& why) {
  if (why.parts().empty()) return "";
  printing::Grid grid{{{""}, {"value", true}, {"of row"}, {"which is"}}};
  std::string seeds;
  for (const WhyPart& part : why.parts()) {
    grid.add({part.name(), part.text().empty() ? "–" : part.text(), part.row(), part.how()});
    if (part.by_seed() || part.values().empty()) continue;
    std::vector<std::string> values;
    for (const WhyValue& value : part.values())
      values.push_back(value.has_value() ? fmt::format("  seed {}: {}, run {}", value.seed(),
                                                       number_text(value), value.run().summary().id())
                                         : fmt::format("  seed {}: none: {}", value.seed(), value.missing()));
    seeds +=
        fmt::format("{}, whose mean every seed is held against\n{}\n", part.name(), fmt::join(values, "\n"));
  }
  return fmt::format("\n{} is made of\n{}{}", why.column().source(), grid.text(), seeds);
}

std::string values_text(const WhyResponse& why, const Terminal& terminal) {
  if (why.values().empty()) return "";
  std::vector<printing::Grid::Column> columns{
      {"seed", true},
      {why.column().kind() == Column::KIND_METRIC ? why.column().source() : why.column().name(), true}};
  for (const WhyPart& part : why.parts())
    if (part.by_seed()) columns.push_back({part.name(), true});
  for (const printing::Grid::Column& column : {printing::Grid::Column{"step", true},
                                               {"trial", true},
                                               {"run", true},
                                               {"attempt", true},
                                               {"state"},
                                               {.heading = "host", .rank = 1},
                                               {"started (UTC)"},
                                               {"took", true},
                                               {.heading = "bits", .rank = 2}})
    columns.push_back(column);
  printing::Grid grid{std::move(columns)};
  for (const auto& value : why.values()) {
    const RunSummary& run = value.run().summary();
    std::vector<std::string> line{fmt::format("{}", value.seed()), number_text(value)};
    for (const WhyPart& part : why.parts()) {
      if (!part.by_seed()) continue;
      const auto own =
          std::ranges::find(part.values(), value.seed(), [](const auto& each) { return each.seed(); });
      line.push_back(own == part.values().end() ? "–" : number_text(*own));
    }
    for (std::string text :
         {value.step() > 0 ? fmt::format("{}", value.step()) : "", fmt::format("{}", value.trial()),
          value.has_run() ? fmt::format("{}", run.id()) : "",
          value.has_run() ? fmt::format("{} of {}", run.attempt(), value.run().attempts_size()) : "",
          painted(value.state(), terminal), run.host(), run.has_started() ? started_text(run.started()) : "",
          took_text(run), value.has_run() ? bits_text(run) : ""})
      line.push_back(std::move(text));
    grid.add(std::move(line));
  }
  std::vector<std::string> left_out;
  for (const auto& column : grid.fit_to(terminal.width())) left_out.push_back(column.heading);
  std::string text = "\n" + grid.text(&terminal);
  if (!left_out.empty())
    text +=
        fmt::format("no room for: {} (a wider terminal, or --json, has them)\n", fmt::join(left_out, ", "));
  for (const auto& value : why.values())
    if (!value.missing().empty())
      text += fmt::format("seed {} gives no value: {}\n", value.seed(), value.missing());
  return text;
}

std::string facts_text(const WhyResponse& why) {
  Facts facts;
  std::size_t runs = 0;
  for (const auto& value : why.values()) {
    if (!value.has_run()) continue;
    ++runs;
    const RunDetail& run = value.run();
    facts.add("config", value.seed(), run.config_hash());
    facts.add("result version", value.seed(), fmt::format("{}", run.result_version()));
    if (!run.data_fingerprint().empty()) facts.add("data fingerprint", value.seed(), run.data_fingerprint());
    facts.add("worker", value.seed(), run.summary().worker());
    const json environment = said_by(run);
    for (const auto& [key, fact] : environment.items())
      if (key != "weights" || run.sources().empty())  // they are named below
        facts.add(key == "result_version" ? "trainer knows up to" : key, value.seed(),  // its own is above
                  fact_text(fact));
    const json config = json::parse(run.config_json(), nullptr, false);
    if (config.is_object() && config.contains("recipe"))
      facts.add("precision", value.seed(), config.value(json::json_pointer{"/recipe/precision"}, "fp32"));
    for (const auto& sentence : run.before_mend()) facts.add("made before", value.seed(), sentence);
    if (run.summary().packed_with() > 0)
      facts.add("shared its GPU", value.seed(), fmt::format("with {} others", run.summary().packed_with()));
  }
  return runs == 0 ? "" : "\nran with\n" + facts.text(runs);
}

std::string differences_text(const WhyResponse& why) {
  if (why.differences().empty()) {
    if (why.baseline().empty() || why.config_json().empty()) return "";
    return why.row() == why.baseline() ? "\nit is the baseline\n"
                                       : fmt::format("\nruns the same as the baseline {}\n", why.baseline());
  }
  std::string text = fmt::format("\ndiffers from the baseline {} in\n", why.baseline());
  for (const auto& each : why.differences())
    text += fmt::format("  {:<32} {}   baseline: {}\n", each.key(), each.value().empty() ? "–" : each.value(),
                        each.baseline().empty() ? "–" : each.baseline());
  return text;
}

std::string checkpoints_text(const WhyResponse& why) {
  std::string text;
  for (const auto& value : why.values()) {
    const auto& all = value.run().checkpoints();
    if (all.empty()) continue;
    const auto& newest = *std::ranges::max_element(all, {}, [](const auto& each) { return each.step(); });
    text += fmt::format("  seed {}, run {}, step {}: {}:{}{}\n", value.seed(), value.run().summary().id(),
                        newest.step(), newest.host(), newest.path(),
                        all.size() > 1 ? fmt::format(" and {} of earlier steps", all.size() - 1) : "");
  }
  return text.empty() ? "" : "\ncheckpoints\n" + text;
}

/// Whose weights the runs began with.
std::string sources_text(const WhyResponse& why) {
  std::string text;
  for (const auto& value : why.values())
    for (const RunSource& source : value.run().sources())
      text += fmt::format(
          "  seed {}: the {} of {}{}\n", value.seed(), source.take(),
          source.row().empty()
              ? fmt::format("trial {}, which is in no sweep here", source.trial())
              : fmt::format("sweep {}, row {}, seed {}", source.sweep(), source.row(), source.seed()),
          source.run() == 0 ? fmt::format(": {}", source.state())
                            : fmt::format(": run {}, step {}, SHA-256 {:.12}", source.run(), source.step(),
                                          source.sha256()));
  return text.empty() ? "" : "\nbegan with the weights of\n" + text;
}

/// Other places of the same trials.
std::string shared_text(const WhyResponse& why) {
  std::set<std::string> places;
  for (const auto& value : why.values())
    for (const auto& place : value.run().summary().rows())
      if (place.sweep() != why.sweep() || place.row() != why.row())
        places.insert(fmt::format("{}/{}", place.sweep(), place.row()));
  return places.empty() ? "" : fmt::format("\nthe same trials stand in {}\n", fmt::join(places, ", "));
}

std::string cell_head(const WhyResponse& why, const Terminal& terminal) {
  const Cell& cell = why.cell();
  std::string text = fmt::format("{}/{}/{}{}\n", why.sweep(), why.row(), why.column().name(),
                                 why.label().empty() || why.label() == why.row() ? "" : "  " + why.label());
  text += fmt::format("{}: {}\n", terminal.paint(Style::kBold, cell.text().empty() ? "–" : cell.text()),
                      why.how());
  if (!cell.missing().empty()) text += fmt::format("missing: {}\n", cell.missing());
  if (!cell.paper().empty())
    text +=
        fmt::format("{}: {}\n", why.paper_heading().empty() ? "paper" : why.paper_heading(), cell.paper());
  if (cell.has_comparison() && !cell.comparison().why().empty())
    text += fmt::format("against the baseline {}: {}\n", why.baseline(), cell.comparison().why());
  if (!why.counted().empty())
    text += fmt::format("counted of the model document with SHA-256 {}\n", why.counted());
  return text;
}

std::string cell_text(const WhyResponse& why, const Terminal& terminal) {
  std::string text = cell_head(why, terminal);
  text += parts_text(why);
  if (is_of_seeds(why)) text += values_text(why, terminal) + facts_text(why) + sources_text(why);
  text += differences_text(why);
  if (is_of_seeds(why)) text += checkpoints_text(why);
  text += shared_text(why);
  ProvenanceResponse from;
  *from.mutable_provenance() = why.provenance();
  text += "\n" + provenance_text(from, false);
  if (why.provenance_size() > 0) text += fmt::format("all of it: ablate show {} --provenance\n", why.sweep());
  for (const auto& note : why.notes()) text += "note: " + note + "\n";
  return text;
}

Run declare_why(CLI::App& app, Context& context) {
  auto words = std::make_shared<std::vector<std::string>>();
  app.add_option("CELL", *words,
                 "SWEEP ROW COLUMN, or SWEEP/ROW/COLUMN; a paper's table, msf/table-1, is its sweep")
      ->required()
      ->expected(-1)  // one or three: asked_for
      ->type_name("");
  add_source(app, context);
  return [&context, words]() -> int {
    const auto why = open_source(context)->why(asked_for(*words));
    if (context.json)
      context.print_json(why);
    else
      context.out.write(cell_text(shown(why, context.out), context.out));
    return kExitOk;
  };
}

}  // namespace

extern const Command kWhyCommand{
    .place = 155,
    .name = "why",
    .summary = "Say how a number of a table came about: runs, values, settings, code",
    .example = "ablate why msf-sharing a acc\nablate why msf-sharing/a/acc --json",
    .declare = declare_why,
};

}  // namespace abl::cli
