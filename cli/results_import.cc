// SPDX-License-Identifier: Apache-2.0
#include "cli/results_import.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <google/protobuf/util/json_util.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "ablate/v1/tables.pb.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/nearest_name.h"
#include "base/stop_on_signals.h"
#include "protocol/metrics.h"

namespace abl::cli {
namespace {

using exchange::RunKey;

constexpr std::size_t kMostRuns = 100'000;       // as many trials as a sweep has
constexpr std::size_t kMostMetrics = 10'000;     // of all runs together
constexpr std::size_t kMostSettings = 2'000;     // of a run
constexpr std::size_t kPointsTogether = 50'000;  // in memory, before they are stored
constexpr std::size_t kColumnsUnlessSaid = 12;

std::uint64_t mixed(std::uint64_t value) {
  value ^= value >> 30, value *= 0xbf58476d1ce4e5b9ULL;
  value ^= value >> 27, value *= 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

/// A digest of points that does not depend on their order.
class Content {
 public:
  void add(std::uint64_t metric, std::uint32_t step, double value) {
    std::uint64_t bits = 0;
    const double number = std::isnan(value) ? std::nan("") : value == 0 ? 0.0 : value;
    std::memcpy(&bits, &number, sizeof bits);
    const std::uint64_t one = mixed(metric ^ mixed(step ^ mixed(bits)));
    sum_ += one;
    other_ += mixed(one + 0x9e3779b97f4a7c15ULL);
    ++count_;
  }
  std::uint64_t count() const { return count_; }
  std::string text() const { return fmt::format("{:016x}{:016x}-{}", sum_, other_, count_); }

 private:
  std::uint64_t sum_ = 0, other_ = 0, count_ = 0;
};

std::uint64_t hash_of(const std::string& metric) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : metric) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return mixed(hash);
}

/// Throws: Error{kCancelled} after Ctrl-C; what is not committed is taken back.
void expect_no_stop() {
  static const std::atomic<bool>& stopped = stop_on_signals();
  if (stopped) throw Error{Code::kCancelled, "interrupted: nothing was imported"};
}

/// The first reading: which runs there are, and what they are.
class Survey final : public exchange::Sink {
 public:
  struct Run {
    Content content;
    std::map<std::string, std::string> settings;
  };
  explicit Survey(std::string file) : file_{std::move(file)} {}

  void point(const RunKey& key, const std::string& metric, std::uint32_t step, double value,
             std::int64_t) override {
    expect_no_stop();
    const auto [known, is_new] = metrics_.try_emplace(metric, 0);
    if (is_new) {
      if (metrics_.size() > kMostMetrics)
        throw Error{
            Code::kInvalidArgument,
            fmt::format("{}: more than {} metrics; --metric NAME takes some of them", file_, kMostMetrics)};
      known->second = hash_of(metric);
    }
    of(key).content.add(known->second, step, value);
  }
  void setting(const RunKey& key, const std::string& name, const std::string& json) override {
    auto& settings = of(key).settings;
    if (settings.size() < kMostSettings) settings.emplace(name, json);
  }
  /// In the order in which they came.
  const std::vector<RunKey>& order() const { return order_; }
  const Run& run(const RunKey& key) const { return runs_.at(key); }
  std::vector<std::string> metrics() const {
    std::vector<std::string> names;
    for (const auto& [name, hash] : metrics_) names.push_back(name);
    return names;
  }

 private:
  Run& of(const RunKey& key) {
    if (last_ && last_->first == key) return *last_->second;
    const auto [known, is_new] = runs_.try_emplace(key);
    if (is_new) {
      if (runs_.size() > kMostRuns)
        throw Error{
            Code::kInvalidArgument,
            fmt::format("{}: more than {} runs; expected a column of rows, one of seeds and one of steps: "
                        "--row, --seed, --step",
                        file_, kMostRuns)};
      order_.push_back(key);
    }
    last_.emplace(key, &known->second);
    return known->second;
  }
  const std::string file_;
  std::map<std::string, std::uint64_t> metrics_;
  std::map<RunKey, Run> runs_;
  std::vector<RunKey> order_;
  std::optional<std::pair<RunKey, Run*>> last_;
};

/// The second: puts points into runs.
class Writer final : public exchange::Sink {
 public:
  Writer(storage::ResultsImport& to, std::map<RunKey, storage::RunId> runs, std::int64_t now_ms,
         std::function<void(std::uint64_t)> progress)
      : to_{to}, runs_{std::move(runs)}, now_ms_{now_ms}, progress_{std::move(progress)} {}

  void point(const RunKey& key, const std::string& metric, std::uint32_t step, double value,
             std::int64_t time_ms) override {
    expect_no_stop();
    const auto run = runs_.find(key);
    if (run == runs_.end()) return;
    contents_[key].add(hash_of(metric), step, value);
    storage::Series& series = pending_[run->second][metric];
    series.steps.push_back(step);
    series.values.push_back(value);
    series.times_ms.push_back(time_ms == 0 ? now_ms_ : time_ms);
    if (++count_ >= kPointsTogether) flush();
  }
  void setting(const RunKey&, const std::string&, const std::string&) override {}
  void flush() {
    for (auto& [run, metrics] : pending_) {
      std::vector<storage::Series> all;
      for (auto& [name, series] : metrics) {
        series.name = name;
        all.push_back(std::move(series));
      }
      to_.append(run, all);
    }
    pending_.clear();
    points_ += std::exchange(count_, 0);
    progress_(points_);
  }
  const std::map<RunKey, storage::RunId>& runs() const { return runs_; }
  const Content& content(const RunKey& key) { return contents_[key]; }

 private:
  storage::ResultsImport& to_;
  const std::map<RunKey, storage::RunId> runs_;
  const std::int64_t now_ms_;
  const std::function<void(std::uint64_t)> progress_;
  std::map<storage::RunId, std::map<std::string, storage::Series>> pending_;
  std::map<RunKey, Content> contents_;
  std::uint64_t count_ = 0, points_ = 0;
};

/// A name that sweeps and columns may have.
std::string as_name(const std::string& text) {
  std::string name;
  for (const char c : text)
    name += std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.' ? c : '-';
  while (!name.empty() && (name.front() == '-' || name.front() == '.')) name.erase(0, 1);
  return name.empty() ? "imported" : name.substr(0, 100);
}

/// Of a table that nobody has described: a column for each metric that tells of the model.
std::vector<storage::Column> columns_of(const std::vector<std::string>& metrics) {
  std::vector<storage::Column> columns;
  std::set<std::string> names;
  for (const bool is_validation : {true, false})
    for (const auto& metric : metrics) {
      const bool is_val = metric.find("val") != std::string::npos || metric.find("test") != std::string::npos;
      if (is_val != is_validation || protocol::tells_of_the_machine(metric) ||
          columns.size() >= kColumnsUnlessSaid)
        continue;
      std::string name;
      for (const char c : metric) name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
      while (!names.insert(name).second) name += "_";
      columns.push_back({.name = name,
                         .heading = metric,
                         .source = metric,
                         .unit = protocol::unit_by_name(metric),
                         .better = protocol::better_by_name(metric),
                         .digits = std::nullopt});
    }
  return columns;
}

ablate::v1::Table read_table_file(const std::filesystem::path& file) {
  ablate::v1::Table table;
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  const auto status = google::protobuf::util::JsonStringToMessage(read_file(file), &table, options);
  if (!status.ok() || table.columns().empty())
    throw Error{
        Code::kInvalidArgument,
        fmt::format("{}:1:1: not a table; expected what 'ablate table SWEEP --json' prints", file.string())};
  if (table.pivoted())
    throw Error{
        Code::kInvalidArgument,
        fmt::format("{}:1:1: a pivoted table; expected the long form: 'ablate table SWEEP --long --json'",
                    file.string())};
  return table;
}

template <class E>
E word_named(const std::string& word, E usual) {
  return value_named<E>(word).value_or(usual);
}

std::vector<storage::Column> columns_of(const ablate::v1::Table& table) {
  using V = ablate::v1::Column;
  std::vector<storage::Column> columns;
  for (const V& column : table.columns()) {
    storage::Column to{
        .name = column.name(),
        .heading = column.heading(),
        .source = column.source(),
        .take = word_named(column.take(), protocol::Take::kLast),
        .unit = value_named<protocol::Unit>(column.unit()),
        .better = word_named(column.better(), protocol::Better::kNone),
        .digits = column.has_digits() ? std::optional{static_cast<int>(column.digits())} : std::nullopt,
        .cut = column.cut()};
    to.kind = column.kind() == V::KIND_COUNT        ? protocol::ColumnKind::kCount
              : column.kind() == V::KIND_SETTING    ? protocol::ColumnKind::kSetting
              : column.kind() == V::KIND_EXPRESSION ? protocol::ColumnKind::kExpression
              : column.kind() == V::KIND_PRINTED    ? protocol::ColumnKind::kPrinted
                                                    : protocol::ColumnKind::kMetric;
    columns.push_back(std::move(to));
  }
  return columns;
}

/// What a table says of one of its rows.
void take_row(const ablate::v1::Table& table, const std::string& id, storage::ImportedRow& row) {
  const auto found = std::ranges::find(table.rows(), id, [](const auto& each) { return each.id(); });
  if (found == table.rows().end()) return;
  row.label = found->label();
  row.group = found->group();
  if (found->baseline() != table.baseline()) row.baseline = found->baseline();
  nlohmann::json set = nlohmann::json::object();
  for (int i = 0; i < std::min(found->cells_size(), table.columns_size()); ++i) {
    const auto& cell = found->cells(i);
    const auto& column = table.columns(i);
    if (!cell.paper().empty()) row.paper[column.name()] = cell.paper();
    if (column.kind() == ablate::v1::Column::KIND_COUNT && cell.has_mean())
      row.counts[column.source()] = cell.mean();
    if (column.kind() == ablate::v1::Column::KIND_SETTING && cell.text() != "–")
      set[column.source()] = cell.text();
  }
  row.set_json = set.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// As the canonical text of a sweep has its table.
std::string table_json_of(const ablate::v1::Table& table) {
  nlohmann::json json{{"columns", nlohmann::json::array()}};
  for (const auto& column : table.columns()) {
    nlohmann::json of{{"name", column.name()}};
    if (column.has_see()) of["see"] = column.see();
    json["columns"].push_back(std::move(of));
  }
  if (!table.title().empty()) json["title"] = table.title();
  if (table.has_compare())
    json["compare"] = {{"test", table.compare().test()},
                       {"interval", table.compare().interval()},
                       {"correction", table.compare().correction()}};
  for (const auto& word : table.show()) json["show"].push_back(word);
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string settings_json(const std::map<std::string, std::string>& settings) {
  nlohmann::json json = nlohmann::json::object();
  for (const auto& [key, value] : settings) json[key] = nlohmann::json::parse(value, nullptr, false);
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string importing_host() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

/// Of a file or folder, also of "folder/".
std::string own_name(const std::filesystem::path& file) {
  return (file.has_filename() ? file : file.parent_path()).filename().string();
}

/// Which runs of one sweep are new.
struct Plan {
  storage::ImportedSweep sweep;
  std::set<RunKey> wanted;
  ImportedFile report;
};

Plan plan_of(storage::Database* db, const std::string& name, const std::vector<RunKey>& keys,
             const Survey& survey, const std::optional<ablate::v1::Table>& table,
             const std::filesystem::path& file, const ImportOptions& options) {
  Plan plan{.sweep = {.name = name, .origin = options.origin.empty() ? own_name(file) : options.origin}};
  plan.report.sweep = name;
  const auto known = db ? storage::stored_rows(*db, name) : std::nullopt;
  plan.report.is_new_sweep = !known;
  std::map<std::string, std::size_t> places;
  for (const RunKey& key : keys) {
    const std::string id = options.prefix + key.row;
    const std::string content = survey.run(key).content.text();
    if (known)
      if (const auto row = known->find(id); row != known->end()) {
        if (row->second.is_trained)
          throw Error{
              Code::kFailedPrecondition,
              fmt::format("row {} of sweep {} is trained here: imported values would mix with its own; "
                          "--prefix TEXT gives the imported rows other names",
                          id, name)};
        if (const auto seed = row->second.contents.find(key.seed); seed != row->second.contents.end()) {
          if (seed->second != content)
            throw Error{
                Code::kFailedPrecondition,
                fmt::format(
                    "row {}, seed {} of sweep {} was imported before with other points; --prefix TEXT "
                    "gives these rows other names, or 'ablate rm {}' removes what is there",
                    id, key.seed, name, name)};
          ++plan.report.unchanged;
          continue;
        }
      }
    const auto [place, is_new] = places.try_emplace(id, plan.sweep.rows.size());
    if (is_new) {
      plan.sweep.rows.push_back({.id = id});
      if (table) take_row(*table, key.row, plan.sweep.rows.back());
      plan.report.rows += !known || !known->contains(id);
    }
    plan.sweep.rows[place->second].runs.push_back(
        {.seed = key.seed, .settings_json = settings_json(survey.run(key).settings), .content = content});
    plan.wanted.insert(key);
    ++plan.report.runs;
    plan.report.points += survey.run(key).content.count();
  }
  if (table) {
    plan.sweep.columns = columns_of(*table);
    plan.sweep.baseline = table->baseline().empty() ? "" : options.prefix + table->baseline();
    plan.sweep.paper_heading = table->paper_heading();
    plan.sweep.table_json = table_json_of(*table);
    // in the table's order, as its rows are
    std::map<std::string, int> order;
    for (const auto& row : table->rows())
      order.emplace(options.prefix + row.id(), static_cast<int>(order.size()));
    std::ranges::stable_sort(plan.sweep.rows, {}, [&](const storage::ImportedRow& row) {
      const auto place = order.find(row.id);
      return place == order.end() ? static_cast<int>(order.size()) : place->second;
    });
    std::map<std::int64_t, std::size_t> seeds;
    for (const auto& row : table->rows())
      for (const auto& cell : row.cells())
        for (const auto& run : cell.runs()) seeds.emplace(run.seed(), seeds.size());
    for (storage::ImportedRow& row : plan.sweep.rows)
      std::ranges::stable_sort(row.runs, {}, [&](const storage::ImportedRun& run) {
        const auto place = seeds.find(run.seed);
        return place == seeds.end() ? seeds.size() : place->second;
      });
  } else {
    plan.sweep.columns = columns_of(survey.metrics());
  }
  return plan;
}

/// What a file would bring.
struct Brought {
  exchange::Format format{};
  Survey survey;
  std::vector<Plan> plans;  ///< for each sweep
};

Brought look_through(storage::Database* db, const std::filesystem::path& file, const ImportOptions& options) {
  const auto format = options.format.value_or(exchange::format_of(file));
  Brought brought{.format = format, .survey = Survey{file.string()}, .plans = {}};
  Survey& survey = brought.survey;
  const auto notes = exchange::read_results(file, format, options.mapping, survey);
  if (survey.order().empty())
    throw Error{
        Code::kInvalidArgument,
        fmt::format("{}:1:1: no metric values; expected columns of numbers, or columns 'metric' and 'value'",
                    file.string())};
  std::optional<ablate::v1::Table> table;
  if (!options.table.empty()) table = read_table_file(options.table);
  std::map<std::string, std::vector<RunKey>> sweeps;
  const std::string otherwise = as_name(file.has_filename() ? file.stem().string() : own_name(file));
  for (const RunKey& key : survey.order()) {
    if (survey.run(key).content.count() == 0) continue;  // settings alone
    sweeps[!options.sweep.empty() ? options.sweep : key.sweep.empty() ? otherwise : key.sweep].push_back(key);
  }
  if (sweeps.empty())
    throw Error{
        Code::kInvalidArgument,
        options.mapping.metrics.empty()
            ? fmt::format("{}:1:1: not a table of results: no number of a metric in it", file.string())
            : fmt::format("{}: no value of {}", file.string(), fmt::join(options.mapping.metrics, " or "))};
  if (table && sweeps.size() > 1)
    throw Error{Code::kInvalidArgument,
                fmt::format("--table is of one sweep, and {} has {}; --sweep NAME puts all into one",
                            file.string(), sweeps.size())};
  for (const auto& [name, keys] : sweeps) {
    std::set<std::pair<std::string, std::int64_t>> places;
    for (const RunKey& key : keys)
      if (!places.emplace(key.row, key.seed).second)
        throw Error{Code::kInvalidArgument,
                    fmt::format("row {}, seed {} is in several sweeps of {}: --sweep {} would mix them",
                                key.row, key.seed, file.string(), name)};
    brought.plans.push_back(plan_of(db, name, keys, survey, table, file, options));
    brought.plans.back().report.file = file.string();
    brought.plans.back().report.format = name_of(format);
  }
  brought.plans.front().report.notes = notes;
  return brought;
}

std::vector<ImportedFile> reports_of(std::vector<Plan> plans) {
  std::vector<ImportedFile> reports;
  for (Plan& plan : plans) reports.push_back(std::move(plan.report));
  return reports;
}

}  // namespace

std::vector<ImportedFile> would_import(storage::Database* db, const std::filesystem::path& file,
                                       const ImportOptions& options) {
  return reports_of(look_through(db, file, options).plans);
}

std::vector<ImportedFile> import_results(storage::Database& db, const std::filesystem::path& file,
                                         const ImportOptions& options) {
  Brought brought = look_through(&db, file, options);
  const bool any = std::ranges::any_of(brought.plans, [](const Plan& plan) { return !plan.wanted.empty(); });
  if (!any) return reports_of(std::move(brought.plans));
  const Time now = SystemClock{}.now();
  storage::ResultsImport import{db, importing_host(), now};
  std::map<RunKey, storage::RunId> runs;
  std::uint64_t points = 0;
  for (const Plan& plan : brought.plans) {
    if (plan.wanted.empty()) continue;
    import.add(plan.sweep);
    for (const RunKey& key : plan.wanted)
      runs.emplace(key, import.run(plan.sweep.name, options.prefix + key.row, key.seed));
    points += plan.report.points;
  }
  Writer writer{import, std::move(runs), now.time_since_epoch().count(), [&](std::uint64_t done) {
                  if (options.progress) options.progress(done, points);
                }};
  exchange::read_results(file, brought.format, options.mapping, writer);
  writer.flush();
  for (const auto& [key, run] : writer.runs())
    if (writer.content(key).text() != brought.survey.run(key).content.text())
      throw Error{Code::kAborted,
                  fmt::format("{} changed during the import; nothing was imported", file.string())};
  import.finish();
  return reports_of(std::move(brought.plans));
}

}  // namespace abl::cli
