// SPDX-License-Identifier: Apache-2.0
#include "sweeps/sweep_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "config/document/trial_document.h"
#include "config/model/model_section.h"
#include "config/recipe/most_ranks.h"
#include "config/tasks.h"
#include "protocol/metrics.h"
#include "sweeps/attributes.h"
#include "sweeps/canonical.h"
#include "sweeps/command.h"
#include "sweeps/factors.h"
#include "sweeps/other_sweeps.h"
#include "sweeps/rows.h"
#include "sweeps/sections.h"
#include "sweeps/yaml_reader.h"

namespace abl::sweeps {
namespace {

std::vector<std::int64_t> read_seeds(YamlReader& reader, const Node& node) {
  std::vector<std::int64_t> seeds;
  if (node.kind != Node::Kind::kSequence) {
    const std::int64_t count = reader.whole_number(node, "seeds", 1, kMostTrials).value_or(0);
    for (std::int64_t seed = 0; seed < count; ++seed) seeds.push_back(seed);
    return seeds;
  }
  if (node.items.empty())
    reader.problems().add(node.place, "seeds", "no seeds; expected a list of them, or how many");
  std::set<std::int64_t> seen;
  for (const Node& item : node.items) {
    const auto seed =
        reader.whole_number(item, "seeds", 0, static_cast<std::int64_t>(config::kSeedRange.high));
    if (!seed) continue;
    if (!seen.insert(*seed).second)
      reader.problems().add(item.place, "seeds", fmt::format("seed {} is listed twice", *seed));
    seeds.push_back(*seed);
  }
  return seeds;
}

void check_header(YamlReader& reader, const Node& root, SweepSpec& spec) {
  reader.allow_only(root, "", Part::kSweep);
  Problems& problems = reader.problems();
  if (const Node* version = root.find("ablate"); !version) {
    problems.add(root.place, "ablate",
                 fmt::format("missing; expected {}, the version of the file format", kFormatVersion));
  } else if (version->json() != kFormatVersion) {
    problems.add(
        version->place, "ablate",
        fmt::format("unsupported file format version '{}'; expected {}", version->text, kFormatVersion));
  }
  if (const Node* name = root.find("name")) {
    spec.name = reader.name(*name, "name").value_or("");
  } else {
    problems.add(root.place, "name", "missing; expected a name for the sweep");
  }
}

/// Whether no row is trained, and nothing is known of any row's model: only the paper's values are there.
bool is_printed_alone(const Node& root) {
  const Node* rows = root.find("rows");
  return rows && !rows->items.empty() && std::ranges::all_of(rows->items, [](const Node& row) {
           return row.find("not_trained") && !row.find("set");
         });
}

/// What all rows share, from `base` or `command`.
Settings read_shared(YamlReader& reader, const Node& root, const std::string& folder, SweepSpec& spec) {
  const Node* base = root.find("base");
  const Node* command = root.find("command");
  if (base && command) {
    reader.problems().add(root.entry("command")->place, "command",
                          "base is given too; expected one of base and command");
  }
  if (command) {
    CommandSection section = read_command(reader, *command, folder);
    spec.command = std::move(section.command);
    spec.data = std::move(section.data);
    return std::move(section.base);
  }
  if (!base && is_printed_alone(root)) return {};
  if (!base) {
    reader.problems().add(root.place, "base",
                          "missing; expected base with model, data and recipe, or command");
    return {};
  }
  if (!reader.is_mapping(*base, "base")) return {};
  if (const Node::Entry* seed = base->entry("seed")) {
    reader.problems().add(seed->place, "base.seed", "use the seeds: key beside base");
  }
  return Settings{*base, "base"};
}

std::int64_t trials_of(const std::vector<DraftRow>& drafts, const SweepSpec& spec) {
  const auto trained = std::ranges::count_if(drafts, [](const DraftRow& row) { return !row.not_trained; });
  return trained * static_cast<std::int64_t>(spec.seeds.size());
}

/// The rows that factors make. Where they make none, or more than are looked at, their levels are looked at
/// alone: what is wrong with those must not wait until the factors fit together.
std::vector<DraftRow> read_combinations(YamlReader& reader, const Node& root, const Settings& shared,
                                        const SweepSpec& spec) {
  const std::size_t before = reader.problems().size();
  const FactorPlan plan = read_factors(reader, root);
  std::vector<DraftRow> drafts;
  if (reader.problems().size() == before) drafts = combine(plan, reader.problems());
  const bool resolved = !drafts.empty() && trials_of(drafts, spec) <= kMostTrials;
  if (!resolved && (root.find("base") || root.find("command")))
    check_levels(levels_in_rows(plan), shared, spec.command, reader.problems());
  return drafts;
}

/// Each row with each combination of the factors; without them where they are wrong, or too many.
std::vector<DraftRow> read_product(YamlReader& reader, const Node& root, std::vector<DraftRow> rows) {
  const std::size_t before = reader.problems().size();
  expect_unique_ids(rows, "rows", reader.problems());
  const FactorPlan plan = read_factors(reader, root);
  if (reader.problems().size() != before) return rows;
  const std::vector<DraftRow> combinations = combine(plan, reader.problems());
  const auto product = static_cast<std::int64_t>(rows.size() * combinations.size());
  if (product > kMostTrials) {
    reader.problems().add(root.entry("factors")->place, "factors",
                          fmt::format("{} rows with {} combinations of levels; a sweep has at most {} trials",
                                      rows.size(), combinations.size(), kMostTrials));
    return rows;
  }
  return combinations.empty() ? rows : multiply(rows, combinations, reader.problems());
}

std::vector<DraftRow> read_drafts(YamlReader& reader, const Node& root, const Settings& shared,
                                  const SweepSpec& spec) {
  const Node* rows = root.find("rows");
  const Node* factors = root.find("factors");
  if (const Node::Entry* search = root.entry("search"); search && !rows && !factors)
    return {{.id = "search", .place = search->place}};
  if (!rows && !factors) {
    reader.problems().add(root.place, "rows", "missing; expected rows, factors or search");
    return {};
  }
  for (const char* key : {"zip", "only_if", "exclude"}) {
    if (!factors && root.find(key)) reader.problems().add(root.entry(key)->place, key, "requires factors");
  }
  std::vector<DraftRow> drafts = rows ? read_rows(reader, *rows, spec.table.columns, factors)
                                      : read_combinations(reader, root, shared, spec);
  if (rows && factors) drafts = read_product(reader, root, std::move(drafts));
  expect_groups_together(drafts, reader.problems());
  expect_unique_ids(drafts, rows ? "rows" : "factors", reader.problems());
  const Place place = root.entry(rows ? "rows" : "factors")->place;
  const std::int64_t trials = trials_of(drafts, spec);
  if (trials > kMostTrials) {
    reader.problems().add(place, rows ? "rows" : "factors",
                          fmt::format("{} rows with {} seeds are {} trials; a sweep has at most {}",
                                      drafts.size(), spec.seeds.size(), trials, kMostTrials));
    drafts.clear();
  }
  return drafts;
}

/// `search:` has points in place of rows, and is a table of these.
void begin_search(YamlReader& reader, const Node& root, const Node& section, SweepSpec& spec) {
  for (const char* key : {"rows", "factors", "seeds", "tune", "table", "scale"})
    if (const Node::Entry* entry = root.entry(key))
      reader.problems().add(entry->place, key,
                            std::string_view{key} == "seeds"
                                ? "search is given too; expected search.seeds"
                                : "search is given too, whose points are all there is; expected one of them");
  spec.tune = read_search(reader, section, spec.command.has_value());
  spec.seeds.clear();
  if (!spec.tune) return;
  Column column{.name = "metric",
                .heading = spec.tune->metric,
                .source = spec.tune->metric,
                .better = spec.tune->better};
  if (const auto* quantity = find(protocol::trainer_metrics(), spec.tune->metric); quantity && !spec.command)
    column.unit = quantity->unit;
  spec.table.columns = {std::move(column)};
}

/// Each GPU needs an image of each part of a batch.
void check_gpus(const SweepSpec& spec, const Node& resources, Problems& problems) {
  const int ranks = std::max(spec.gpus, spec.split.most_nodes);
  if (spec.command && (spec.split.any())) {
    problems.add(resources.place, spec.split.most_nodes > 0 ? "resources.nodes" : "resources.gpus",
                 "a command runs on one worker and takes all of its GPUs; expected gpus: a number");
    return;
  }
  if (ranks < 2) return;
  for (const Row& row : spec.rows) {
    if (row.batch == 0 || row.config.empty() || row.not_trained) continue;  // a command's, or wrong
    const auto trial = config::read_trial_or_throw(nlohmann::json::parse(row.config));
    const auto most = config::most_ranks(config::known_batch(trial), trial.recipe.accumulate);
    if (spec.split.most_nodes > 1 && !row.sources.empty()) {
      problems.add(
          resources.place, "resources.nodes",
          fmt::format("row {} takes the weights of another, which lie on one machine; expected one worker",
                      row.id));
      return;
    }
    if (ranks <= most) continue;
    problems.add(resources.place, spec.gpus > 0 ? "resources.gpus" : "resources.nodes",
                 fmt::format("row {}: {} {} cannot share {} images at a time; expected at most {}", row.id,
                             ranks, spec.gpus > 0 ? "GPUs" : "workers", row.batch, most));
    return;
  }
}

/// A source's own seed is one of the sweep, also where a rule of a scale names the source.
void check_seeds_of_sources(const std::vector<Row>& rows, const std::vector<std::int64_t>& seeds,
                            Problems& problems) {
  std::set<std::string> told;  // a rule is for many rows
  for (const Row& row : rows)
    for (const RowSource& source : row.sources)
      if (source.seed && std::ranges::find(seeds, *source.seed) == seeds.end() &&
          told.insert(source.field).second)
        problems.add(source.seed_place, source.field + ".seed",
                     fmt::format("{} is not one of the sweep's seeds; expected {}", *source.seed,
                                 fmt::join(seeds, ", ")));
}

/// The one data set of all rows, but for those from which others start; none where it varies for all
/// to see: by a factor, or with a column that shows it.
std::string data_of(const std::vector<Row>& rows, bool varies, Problems& problems) {
  std::set<int> begun_from;
  for (const Row& row : rows)
    for (const RowSource& source : row.sources) begun_from.insert(source.row);
  std::string data;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    if (row.config.empty() || row.not_trained || begun_from.contains(static_cast<int>(i))) continue;
    if (data.empty()) data = row.data;
    if (row.data != data && varies) return {};
    if (row.data != data) {
      problems.add(
          row.place, dotted("rows", row.id),
          fmt::format(
              "trains on {}, the rows before on {}; a table has one data set, unless a column shows it "
              "(setting: data.name)",
              row.data, data));
      break;
    }
  }
  return data;
}

/// A sweep at a scale is another sweep, by its name too.
std::optional<Scale> read_scale(YamlReader& reader, const Node& root, const Node& section, SweepSpec& spec) {
  if (const Node::Entry* command = root.entry("command")) {
    reader.problems().add(command->place, "command", "a command has no scale; expected base");
    return std::nullopt;
  }
  Scale scale{reader, section};
  if (!spec.name.empty() && !scale.name().empty()) spec.name += "-" + scale.name();
  spec.gpus = 0, spec.split = {};  // a small study runs in any one slot
  if (scale.seeds()) {
    spec.seeds_rule.reset();
    spec.seeds.resize(static_cast<std::size_t>(*scale.seeds()));
    std::iota(spec.seeds.begin(), spec.seeds.end(), 0);
  }
  return scale;
}

/// Behind the sweep's own rows those of other sweeps whose weights they take.
void add_rows_of_others(const std::vector<Row>& others, SweepSpec& spec, Problems& problems) {
  const std::size_t own = spec.rows.size();
  std::map<std::size_t, int> places;  // of another's row, in spec.rows
  const auto place = [&](int source) {
    const auto other = static_cast<std::size_t>(source) - own;
    const auto [known, is_new] = places.try_emplace(other, static_cast<int>(spec.rows.size()));
    if (is_new) spec.rows.push_back(others[other]);
    return known->second;
  };
  for (std::size_t i = 0; i < spec.rows.size(); ++i)  // those that are added, too
    for (std::size_t j = 0; j < spec.rows[i].sources.size(); ++j) {
      const RowSource source = spec.rows[i].sources[j];
      const bool of_other = i >= own;
      if (of_other || source.row >= static_cast<int>(own)) {
        const int found = place(of_other ? source.row + static_cast<int>(own) : source.row);
        spec.rows[i].sources[j].row = found;
      }
      if (of_other && source.seed && std::ranges::find(spec.seeds, *source.seed) == spec.seeds.end())
        problems.add({}, "seeds",
                     fmt::format("row {} takes the weights of seed {}; expected it among seeds",
                                 spec.rows[i].id, *source.seed));
    }
}

/// Probes look into classifiers.
/// Of the task that a row is of; empty: a command's, of which nothing is known, or not trained.
std::optional<std::string> task_kind_of(const Row& row) {
  if (row.config.empty() || row.not_trained || !row.sweep.empty()) return std::nullopt;
  return nlohmann::json::parse(row.config)
      .value(nlohmann::json::json_pointer{"/task/kind"}, std::string{"classify"});
}

/// A column of what no row's task reports would stay empty, whatever is trained.
void check_reported(const SweepSpec& spec, const Node& table, Problems& problems) {
  const Node* columns = table.find("columns");
  for (std::size_t i = 0; columns && i < columns->items.size() && i < spec.table.columns.size(); ++i) {
    const Column& column = spec.table.columns[i];
    const Node* metric = columns->items[i].find("metric");
    if (!metric || column.kind != Column::Kind::kMetric) continue;
    std::optional<std::string> without;
    const bool is_reported = std::ranges::any_of(spec.rows, [&](const Row& row) {
      const auto kind = task_kind_of(row);
      if (!kind || kind == without) return false;
      const auto never = protocol::never_reported(*kind);
      if (std::ranges::find(never, column.source) == never.end()) return true;
      without = kind;
      return false;
    });
    if (is_reported || !without) continue;
    problems.add(metric->place, fmt::format("table.columns.{}.metric", column.name),
                 fmt::format("no row reports '{}'; expected, with task.kind {}, one of val/{}", column.source,
                             *without, fmt::join(config::task_named(*without).metrics, ", val/")));
  }
}

void check_probed(const SweepSpec& spec, const Node& probes, Problems& problems) {
  if (spec.probes.empty() || spec.command) return;
  for (const Row& row : spec.rows) {
    if (row.config.empty() || row.not_trained) continue;
    const auto kind =
        nlohmann::json::parse(row.config).value(nlohmann::json::json_pointer{"/task/kind"}, std::string{});
    if (kind.empty()) continue;
    problems.add(probes.place, "probes",
                 fmt::format("row {} has task.kind {}; probes need a classifier", row.id, kind));
    return;
  }
}

}  // namespace

WrittenSweep read_written(YamlReader& reader, const Node& root, const std::string& folder) {
  WrittenSweep written;
  SweepSpec& spec = written.spec;
  check_header(reader, root, spec);
  written.shared = read_shared(reader, root, folder, spec);
  if (!root.find("search"))
    spec.table = read_table(reader, root.find("table"), root.place, spec.command.has_value(),
                            config::task_named(written.shared.text_at("task.kind").value_or("")));
  if (const Node* table = root.find("table"); table && spec.command && !spec.command->metrics.empty())
    if (const Node* columns = table->find("columns"))
      check_metric_columns(*spec.command, spec.table, *columns, reader.problems());
  const Node* seeds = root.find("seeds");
  if (seeds && seeds->kind == Node::Kind::kMapping) {
    spec.seeds_rule = read_seed_rule(reader, *seeds);
    spec.seeds.resize(spec.seeds_rule ? spec.seeds_rule->max : 1);
    std::iota(spec.seeds.begin(), spec.seeds.end(), 0);
  } else {
    spec.seeds = seeds ? read_seeds(reader, *seeds) : std::vector<std::int64_t>{0};
  }
  if (const Node* tune = root.find("tune")) spec.tune = read_tune(reader, *tune, spec.command.has_value());
  if (const Node* search = root.find("search")) begin_search(reader, root, *search, spec);
  read_resources(reader, root, spec);
  read_retry(reader, root, spec);
  spec.limits = read_limits(reader, root);
  const std::size_t before = reader.problems().size();
  spec.probes = read_probe_list(reader, root);
  const bool all_read = reader.problems().size() == before;  // otherwise columns may mean what is misspelt
  if (const Node* table = root.find("table"); all_read && table && table->kind == Node::Kind::kMapping)
    resolve_probe_columns(spec, *table, reader.problems());
  if (const Node* section = root.find("scale")) written.scale = read_scale(reader, root, *section, spec);
  if (const Node* sources = root.find("sources")) reader.is_mapping(*sources, "sources");
  written.drafts = read_drafts(reader, root, written.shared, spec);
  if (spec.table.pivot) spec.table.pivot->with = zipped_with(root, spec.table.pivot->by);
  return written;
}

Problem too_large(const std::string& file, std::size_t bytes) {
  return {.file = file,
          .place = {},
          .field = {},
          .message = fmt::format("the file has {} bytes; a sweep file has at most {} ({} MiB)",
                                 with_thousands(bytes), with_thousands(kLargestFile), kLargestFile >> 20),
          .nearest = {}};
}

SweepSpec parse_sweep(const std::string& text, const std::string& file, const std::string& folder) {
  if (text.size() > kLargestFile) throw SweepFileError{{too_large(file, text.size())}};
  Problems problems{file};
  const Node root = load_yaml(text, file, problems);
  YamlReader reader{problems};
  if (root.kind == Node::Kind::kNull) {
    problems.add(root.place, "",
                 "the file is empty; expected a sweep: ablate, name, base, and rows, factors or search");
    problems.throw_if_any();
  }
  if (!reader.is_mapping(root, "")) problems.throw_if_any();
  auto [spec, shared, scale, drafts] = read_written(reader, root, folder);
  spec.file = file;
  spec.text = text;
  const Node* table = root.find("table");
  const Node* seeds = root.find("seeds");
  OtherSweeps others{root.find("sources")};
  if (root.find("base") || root.find("command") || is_printed_alone(root)) {
    std::vector<std::vector<std::string>> made_equal;
    spec.rows = resolve_rows(drafts, shared, spec.command, setting_columns(spec.table),
                             scale ? &*scale : nullptr, {others, ""}, made_equal, problems);
    if (scale) {
      scale->check(problems);
      spec.table.scale = scale->name();
      for (Column& column : spec.table.columns)  // how the paper prints the counts of its sizes
        if (column.kind == Column::Kind::kCount) column.digits.reset(), column.cut = false;
      const auto notes = scale->notes(made_equal);
      spec.table.notes.insert(spec.table.notes.begin(), notes.begin(), notes.end());
    }
    check_seeds_of_sources(spec.rows, spec.seeds, problems);
    if (const Node* probes = root.find("probes")) check_probed(spec, *probes, problems);
    const bool varies = (root.find("factors") && root.find("factors")->find("data.name")) ||
                        std::ranges::any_of(spec.table.columns, [](const Column& column) {
                          return column.kind == Column::Kind::kSetting && column.source == "data.name";
                        });
    if (!spec.command) spec.data = data_of(spec.rows, varies, problems);
    set_baselines(spec.table, drafts, table, spec.rows, problems);
    if (!spec.command && drafts.empty()) check_base(shared, problems);
  }
  if (const Node* pivot = table ? table->find("pivot") : nullptr)
    check_pivot(spec.table, spec.rows, *pivot, problems);
  if (table) check_table(spec.table, spec.rows, *table, problems);
  if (table && !spec.command) check_reported(spec, *table, problems);
  if (spec.seeds_rule && !spec.rows.empty()) check_seed_rule(*spec.seeds_rule, *seeds, spec, problems);
  add_rows_of_others(others.rows(), spec, problems);
  if (const Node* resources = root.find("resources")) check_gpus(spec, *resources, problems);
  const Node* tune = root.find("tune") ? root.find("tune") : root.find("search");
  if (tune && spec.tune)
    add_candidates(
        drafts, *tune, shared,
        [&](const std::vector<DraftRow>& rows) {
          std::vector<std::vector<std::string>> made_equal;  // the rows themselves have said it
          return resolve_rows(rows, shared, spec.command, {}, scale ? &*scale : nullptr, {others, ""},
                              made_equal, problems);
        },
        spec, problems);
  problems.throw_if_any();
  spec.canonical = canonical_spec(spec);
  spec.doubts = problems.doubts();
  return spec;
}

}  // namespace abl::sweeps
