// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/error.h"
#include "cli/command.h"
#include "cli/format.h"
#include "cli/shown.h"
#include "cli/sweep_checks.h"
#include "planning/plan.h"
#include "planning/printed_table.h"
#include "planning/validate.h"
#include "printing/grid.h"
#include "printing/table.h"
#include "storage/count_store.h"
#include "storage/database.h"
#include "sweeps/paper_sweeps.h"
#include "views/convert.h"
#include "views/json.h"

namespace abl::cli {
namespace {

namespace v1 = ablate::v1;
using nlohmann::ordered_json;

/// What is stored, to be asked without a scheduler: of --store, or of the home.
std::optional<storage::Database> store_of(const Context& context) {
  const std::filesystem::path store =
      context.store_flag.empty() ? context.default_store() : std::filesystem::path{context.store_flag};
  std::error_code absent;
  if (context.store_flag.empty() && !std::filesystem::exists(store, absent)) return std::nullopt;
  return std::optional<storage::Database>{std::in_place, store, storage::Database::Mode::kReadOnly};
}

/// A table as it is listed.
struct Listed {
  std::string name, title, sweep, file;
  std::size_t rows = 0, trained = 0;
  std::map<std::string, std::vector<std::string>> not_trained;  ///< kind and why -> rows
  std::set<std::string> models, data, free, trained_columns;
  v1::SweepPlan plan;
};

/// The counts that are stored: a list starts no program to count.
planning::ModelCounter::Result stored_counts(const sweeps::SweepSpec& spec, storage::Database* db) {
  planning::ModelCounter::Result counts;
  if (!db) return counts;
  const storage::CountStore store{*db};
  for (const std::string& model : sweeps::models_of(spec))
    if (auto known = store.find(model)) counts.counts.emplace(model, *std::move(known));
  return counts;
}

Listed list(const std::string& name, const v1::SweepFile& file, const sweeps::SweepSpec& spec,
            storage::Database* db, const planning::ModelCounter::Result& counts) {
  Listed listed{.name = name, .title = spec.table.title, .sweep = spec.name, .file = file.path()};
  for (const sweeps::Row& row : spec.rows) {
    if (!row.sweep.empty()) {  // of another table
      listed.data.insert(row.data);
      continue;
    }
    ++listed.rows;
    if (row.not_trained) {
      listed.not_trained[fmt::format("{}: {}", name_of(*row.not_trained), row.not_trained_why)].push_back(
          row.id);
      continue;
    }
    ++listed.trained;
    listed.models.insert(row.model);
    if (!row.data.empty()) listed.data.insert(row.data);
  }
  for (const sweeps::Column& column : spec.table.columns) {
    if (column.kind == sweeps::Column::Kind::kCount) listed.free.insert(column.name);
    if (column.kind == sweeps::Column::Kind::kMetric) listed.trained_columns.insert(column.name);
  }
  listed.plan = planning::plan(spec, db, counts);
  return listed;
}

std::string gpu_hours(const Listed& listed) {
  return listed.plan.has_gpu_hours() ? fmt::format("{:.1f}", listed.plan.gpu_hours().value()) : "–";
}

ordered_json json_of(const Listed& listed) {
  ordered_json not_trained = ordered_json::array();
  for (const auto& [why, rows] : listed.not_trained)
    not_trained.push_back(
        {{"kind", why.substr(0, why.find(':'))}, {"why", why.substr(why.find(':') + 2)}, {"rows", rows}});
  return {{"name", listed.name},
          {"title", listed.title},
          {"sweep", listed.sweep},
          {"file", listed.file},
          {"rows", listed.rows},
          {"trained", listed.trained},
          {"not_trained", not_trained},
          {"models", listed.models.size()},
          {"data", listed.data},
          {"free", listed.free},
          {"metrics", listed.trained_columns},
          {"trials", listed.plan.trials()},
          {"stored", listed.plan.stored()},
          {"gpu_hours",
           listed.plan.has_gpu_hours() ? ordered_json(listed.plan.gpu_hours().value()) : ordered_json()}};
}

std::string list_text(const std::vector<Listed>& all, const Terminal& out) {
  enum Rank { kTitle = 1, kFree, kData };
  printing::Grid grid{{{.heading = "table"},
                       {.heading = "rows", .right_aligned = true},
                       {.heading = "can be trained", .right_aligned = true},
                       {.heading = "models", .right_aligned = true},
                       {.heading = "trials stored", .right_aligned = true},
                       {.heading = "GPU hours left", .right_aligned = true},
                       {.heading = "data", .least = 8, .rank = kData},
                       {.heading = "free", .least = 6, .rank = kFree},
                       {.heading = "title", .least = 12, .rank = kTitle}}};
  std::size_t trained = 0, rows = 0;
  for (const Listed& listed : all) {
    rows += listed.rows, trained += listed.trained;
    grid.add({listed.name, fmt::format("{}", listed.rows), fmt::format("{}", listed.trained),
              fmt::format("{}", listed.models.size()),
              fmt::format("{}/{}", listed.plan.stored(), listed.plan.trials()), gpu_hours(listed),
              fmt::format("{}", fmt::join(listed.data, ", ")),
              fmt::format("{}", fmt::join(listed.free, ", ")), listed.title});
  }
  grid.fit_to(out.width());
  return grid.text(&out) +
         fmt::format(
             "\n{}; {} of {} can be trained here: 'ablate papers {}' shows a table, and why its other rows "
             "cannot\n",
             plural(static_cast<std::uint32_t>(all.size()), "table"), trained,
             plural(static_cast<std::uint32_t>(rows), "row"), all.empty() ? "" : all.front().name);
}

/// A table's facts, then the table as its file has it.
std::string detail_text(const Listed& listed, const v1::Table& table, const Context& context) {
  std::string text = context.out.paint(Style::kBold, listed.name) +
                     (listed.title.empty() ? "" : ": " + listed.title) + "\n\n";
  const auto line = [&](const char* heading, const std::string& value) {
    if (!value.empty()) text += fmt::format("{:<13}{}\n", heading, value);
  };
  line("sweep", fmt::format("{}, {}", listed.sweep, listed.file));
  line("rows", fmt::format("{}, {} can be trained, {}", listed.rows, listed.trained,
                           plural(static_cast<std::uint32_t>(listed.models.size()), "model")));
  for (const auto& [why, rows] : listed.not_trained)
    line("not trained", fmt::format("{} ({})", why.substr(why.find(':') + 2),
                                    plural(static_cast<std::uint32_t>(rows.size()), "row")));
  line("data", fmt::format("{}", fmt::join(listed.data, ", ")));
  line("free", fmt::format("{}", fmt::join(listed.free, ", ")));
  line("metrics", fmt::format("{}", fmt::join(listed.trained_columns, ", ")));
  if (listed.plan.trials() > 0) {
    line("stored", fmt::format("{} of {} trials completed", listed.plan.stored(), listed.plan.trials()));
    line("GPU hours", listed.plan.has_gpu_hours() ? gpu_hours(listed) + " left, estimated"
                                                  : "not known: 'ablate plan --measure' measures");
  }
  return text + "\n" +
         printing::render_table(shown(table, context.out), printing::TableFormat::kText, &context.out);
}

Run declare_papers(CLI::App& app, Context& context) {
  auto name = std::make_shared<std::string>();
  app.add_option("TABLE", *name, "A paper, one of its tables (msf/table-1), or a sweep file [all]")
      ->type_name("");
  add_home(app, context);
  add_json(app, context);
  app.add_option("--store", context.store_flag, "Look into this results file for what is stored")
      ->type_name("FILE");
  return [&context, name]() -> int {
    auto db = store_of(context);
    storage::Database* stored = db ? &*db : nullptr;
    std::vector<sweeps::PaperSweep> tables;
    if (name->empty() || (name->find('/') == std::string::npos && !std::filesystem::is_regular_file(*name)))
      tables = sweeps::paper_sweeps(*name);
    if (!tables.empty()) {
      std::vector<Listed> all;
      for (const sweeps::PaperSweep& table : tables) {
        const v1::SweepFile file = read_sweep_file(table.file);
        const sweeps::SweepSpec spec = planning::parse(file);
        all.push_back(list(table.name(), file, spec, stored, stored_counts(spec, stored)));
      }
      ordered_json json = ordered_json::array();
      for (const Listed& listed : all) json.push_back(json_of(listed));
      context.out.write(context.json ? ordered_json{{"tables", json}}.dump() + "\n"
                                     : list_text(all, context.out));
      return kExitOk;
    }
    const v1::SweepFile file = read_sweep_file(*name);
    const sweeps::SweepSpec spec = planning::parse(file);
    const auto counts = planning::ModelCounter{}.count(sweeps::models_of(spec), stored);
    const Listed listed = list(*name, file, spec, stored, counts);
    v1::Table table = planning::printed_table(spec, counts);
    if (context.json) {
      ordered_json json = json_of(listed);
      json["table"] = ordered_json::parse(views::to_json(table, false));
      context.out.line(json.dump());
    } else {
      if (views::has_pivot(table)) table = views::pivoted(table);
      context.out.write(detail_text(listed, table, context));
    }
    return kExitOk;
  };
}

}  // namespace

extern const Command kPapersCommand{
    .place = 25,
    .name = "papers",
    .summary =
        "List the papers' tables: what is trained, what is free, what is stored; or show one as printed",
    .example = "ablate papers\nablate papers msf\nablate papers msf/table-7",
    .declare = declare_papers,
};

}  // namespace abl::cli
