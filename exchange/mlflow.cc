// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "exchange/readers.h"
#include "protocol/number.h"

namespace abl::exchange {
namespace {

namespace fs = std::filesystem;
using protocol::plain_number;

/// A run that is not deleted, as its store names it.
struct StoredRun {
  std::string id, name, experiment;
};

/// Runs of one name are seeds of one row: by their parameter `seed`, where each has another, otherwise in the
/// order in which they come. What has one name in several experiments is not one thing: such rows have the
/// experiment's name before their own.
class Places {
 public:
  Places(const Mapping& mapping, const std::vector<StoredRun>& runs)
      : seed_key_{mapping.seed.empty() ? "seed" : mapping.seed} {
    std::map<std::string, std::string> first;  // name -> its first experiment
    for (const StoredRun& run : runs)
      if (first.try_emplace(run.name, run.experiment).first->second != run.experiment)
        ambiguous_.insert(run.name);
  }
  RunKey place(const StoredRun& run, const std::map<std::string, std::string>& settings) {
    RunKey key{.row =
                   ambiguous_.contains(run.name) ? fmt::format("{}/{}", run.experiment, run.name) : run.name};
    auto& [taken, next] = seeds_[key.row];
    if (const auto said = settings.find(seed_key_); said != settings.end()) {
      std::int64_t seed = 0;
      const auto [end, error] =
          std::from_chars(said->second.data(), said->second.data() + said->second.size(), seed);
      if (error == std::errc{} && end == said->second.data() + said->second.size() &&
          taken.insert(seed).second) {
        key.seed = seed;
        return key;
      }
    }
    while (!taken.insert(next).second) ++next;
    key.seed = next;
    return key;
  }
  bool is_seed(const std::string& key) const { return key == seed_key_; }

 private:
  struct Seeds {
    std::set<std::int64_t> taken;
    std::int64_t next = 0;  ///< no smaller one is free
  };
  std::string seed_key_;
  std::set<std::string> ambiguous_;
  std::map<std::string, Seeds> seeds_;
};

/// Says the values of one metric of a run, in the order of their time. Where none of several has a step,
/// which MLflow stores as step 0, each is one step.
class MetricValues {
 public:
  MetricValues(RunKey key, std::string metric, bool has_steps, Sink& sink)
      : key_{std::move(key)}, metric_{std::move(metric)}, has_steps_{has_steps}, sink_{sink} {}
  void say(std::uint32_t step, double value, std::int64_t time_ms) {
    sink_.point(key_, metric_, has_steps_ ? step : count_++, value, time_ms);
  }
  const std::string& metric() const { return metric_; }

 private:
  const RunKey key_;
  const std::string metric_;
  const bool has_steps_;
  Sink& sink_;
  std::uint32_t count_ = 0;
};

/// By its status, in words or as MLflow's files number them. One that says none may be of an old store.
bool has_finished(std::string_view status) { return status.empty() || status == "FINISHED" || status == "3"; }

std::vector<std::string> notes_of(std::size_t deleted, std::size_t unfinished, std::size_t without_steps) {
  std::vector<std::string> notes;
  if (deleted > 0) notes.push_back(fmt::format("skipped {} deleted run{}", deleted, deleted == 1 ? "" : "s"));
  if (unfinished > 0)
    notes.push_back(fmt::format("skipped {} run{} that failed or had not finished", unfinished,
                                unfinished == 1 ? "" : "s"));
  if (without_steps > 0)
    notes.push_back(fmt::format("{} metric{} logged without a step: the values are numbered in order",
                                without_steps, without_steps == 1 ? " was" : "s were"));
  return notes;
}

std::string json_of(const std::string& text) {
  const auto parsed = nlohmann::json::parse(text, nullptr, false);
  if (parsed.is_number() || parsed.is_boolean()) return text;
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::uint32_t step_of(std::int64_t step, const std::string& place) {
  if (step < 0 || step > std::numeric_limits<std::uint32_t>::max())
    throw Error{Code::kInvalidArgument, fmt::format("{}: step {}; expected 0 to {}", place, step,
                                                    std::numeric_limits<std::uint32_t>::max())};
  return static_cast<std::uint32_t>(step);
}

bool is_wanted(const Mapping& mapping, const std::string& metric) {
  return mapping.metrics.empty() || std::ranges::find(mapping.metrics, metric) != mapping.metrics.end();
}

std::string read_text(const fs::path& file) {
  std::ifstream in{file, std::ios::binary};
  std::string text;
  if (in) std::getline(in, text, '\0');
  constexpr std::size_t kMost = 10'000;
  if (text.size() > kMost) text.resize(kMost);
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text;
}

/// A value of MLflow's `meta.yaml`, which is a line for each.
std::string value_in(const std::string& meta, const std::string& key) {
  const std::string begin = key + ":";
  for (std::size_t at = 0; at < meta.size();) {
    const auto end = std::min(meta.find('\n', at), meta.size());
    std::string_view line{meta.data() + at, end - at};
    at = end + 1;
    if (!line.starts_with(begin)) continue;
    line.remove_prefix(begin.size());
    while (!line.empty() && (line.front() == ' ' || line.front() == '\'' || line.front() == '"'))
      line.remove_prefix(1);
    while (!line.empty() && (line.back() == '\r' || line.back() == '\'' || line.back() == '"'))
      line.remove_suffix(1);
    return std::string{line};
  }
  return {};
}

/// Files of a folder, also in folders below it, by their path there.
std::map<std::string, fs::path> files_in(const fs::path& folder) {
  std::map<std::string, fs::path> files;
  std::error_code failed;
  for (const auto& entry : fs::recursive_directory_iterator(folder, failed))
    if (entry.is_regular_file(failed))
      files[entry.path().lexically_relative(folder).generic_string()] = entry.path();
  return files;
}

struct Written {
  double time = 0, value = 0;
  std::uint32_t step = 0;
};
/// "1700000000123 0.25 10" a line: time, value, step.
void each_value(const fs::path& file, const std::function<void(const Written&)>& take) {
  std::ifstream in{file};
  if (!in) throw system_error("cannot read " + file.string(), errno);
  std::string line;
  for (std::size_t number = 1; std::getline(in, line); ++number) {
    if (line.empty()) continue;
    const auto first = line.find(' ');
    const auto second = first == std::string::npos ? first : line.find(' ', first + 1);
    const std::string place = fmt::format("{}:{}:1", file.string(), number);
    const auto time = plain_number(std::string_view{line}.substr(0, first));
    const auto value =
        first == std::string::npos ? std::nullopt : plain_number(line.substr(first + 1, second - first - 1));
    const auto step =
        second == std::string::npos ? std::optional{0.0} : plain_number(line.substr(second + 1));
    if (!time || !value || !step || !std::isfinite(*step) || std::abs(*step) > 9e15)
      throw Error{Code::kInvalidArgument,
                  fmt::format("{}: expected TIME VALUE STEP, got '{}'", place, line.substr(0, 60))};
    take({.time = *time, .value = *value, .step = step_of(static_cast<std::int64_t>(*step), place)});
  }
}

/// Returns: whether its values had steps.
bool read_metric(const fs::path& file, const RunKey& key, const std::string& metric, Sink& sink) {
  std::size_t count = 0;
  bool has_steps = false;
  each_value(file, [&](const Written& written) { ++count, has_steps |= written.step != 0; });
  has_steps |= count == 1;
  MetricValues values{key, metric, has_steps, sink};
  each_value(file, [&](const Written& written) {
    const bool has_time = std::isfinite(written.time) && std::abs(written.time) < 9e15;
    values.say(written.step, written.value, has_time ? std::llround(written.time) : 0);
  });
  return has_steps;
}

std::vector<std::string> read_folder(const fs::path& root, const Mapping& mapping, Sink& sink) {
  struct Run : StoredRun {
    fs::path folder;
    std::int64_t start = 0;
  };
  std::vector<Run> runs;
  std::size_t deleted = 0, unfinished = 0, without_steps = 0;
  const auto consider = [&](const fs::path& folder, const std::string& experiment) {
    std::error_code failed;
    if (!fs::is_directory(folder / "metrics", failed)) return;
    const std::string meta = read_text(folder / "meta.yaml");
    if (value_in(meta, "lifecycle_stage") == "deleted" || value_in(meta, "lifecycle_stage") == "3") {
      ++deleted;
      return;
    }
    if (!has_finished(value_in(meta, "status"))) {
      ++unfinished;
      return;
    }
    Run run;
    run.folder = folder, run.id = folder.filename().string(), run.experiment = experiment;
    run.name = read_text(folder / "tags" / "mlflow.runName");
    if (run.name.empty()) run.name = value_in(meta, "run_name");
    if (run.name.empty()) run.name = run.id;
    if (const auto start = plain_number(value_in(meta, "start_time"))) run.start = std::llround(*start);
    runs.push_back(std::move(run));
  };
  const auto name_of_experiment = [](const fs::path& folder) {
    const std::string name = value_in(read_text(folder / "meta.yaml"), "name");
    return name.empty() ? folder.filename().string() : name;
  };
  std::error_code failed;
  consider(root, "");
  for (const auto& entry : fs::directory_iterator(root, failed)) {
    if (!entry.is_directory(failed) || entry.path().filename() == ".trash") continue;
    consider(entry.path(), "");
    const std::string experiment = name_of_experiment(entry.path());
    std::error_code below;
    for (const auto& run : fs::directory_iterator(entry.path(), below))
      if (run.is_directory(below)) consider(run.path(), experiment);
  }
  std::ranges::sort(
      runs, [](const Run& a, const Run& b) { return std::tie(a.start, a.id) < std::tie(b.start, b.id); });
  Places places{mapping, {runs.begin(), runs.end()}};
  for (const Run& run : runs) {
    std::map<std::string, std::string> settings;
    for (const auto& [name, file] : files_in(run.folder / "params")) settings[name] = read_text(file);
    const RunKey key = places.place(run, settings);
    for (const auto& [name, value] : settings)
      if (!places.is_seed(name)) sink.setting(key, name, json_of(value));
    for (const auto& [name, file] : files_in(run.folder / "metrics"))
      if (is_wanted(mapping, name)) without_steps += !read_metric(file, key, name, sink);
  }
  return notes_of(deleted, unfinished, without_steps);
}

// MLflow's SQLite file

struct Close {
  void operator()(sqlite3* db) const { sqlite3_close_v2(db); }
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};

class Store {
 public:
  explicit Store(const fs::path& file) : file_{file.string()} {
    sqlite3* raw = nullptr;
    const int opened = sqlite3_open_v2(file.c_str(), &raw, SQLITE_OPEN_READONLY, nullptr);
    db_.reset(raw);
    if (opened != SQLITE_OK) fail();
  }
  using Statement = std::unique_ptr<sqlite3_stmt, Close>;
  Statement prepare(const char* sql) const {
    sqlite3_stmt* raw = nullptr;
    if (sqlite3_prepare_v2(db_.get(), sql, -1, &raw, nullptr) != SQLITE_OK) fail();
    return Statement{raw};
  }
  bool step(const Statement& statement) const {
    const int result = sqlite3_step(statement.get());
    if (result != SQLITE_ROW && result != SQLITE_DONE) fail();
    return result == SQLITE_ROW;
  }

 private:
  [[noreturn]] void fail() const {
    throw Error{Code::kInvalidArgument, fmt::format("{}: not a store of MLflow that can be read: {}", file_,
                                                    db_ ? sqlite3_errmsg(db_.get()) : "no memory")};
  }
  const std::string file_;
  std::unique_ptr<sqlite3, Close> db_;
};

std::string text(const Store::Statement& line, int column) {
  const auto* const bytes = sqlite3_column_text(line.get(), column);
  return bytes ? std::string{reinterpret_cast<const char*>(bytes)} : std::string{};
}

std::vector<std::string> read_store(const fs::path& file, const Mapping& mapping, Sink& sink) {
  const Store store{file};
  const auto stored = store.prepare(R"sql(
      SELECT r.run_uuid, COALESCE(NULLIF(r.name, ''), (SELECT value FROM tags t WHERE t.run_uuid = r.run_uuid AND
             t.key = 'mlflow.runName'), r.run_uuid), r.lifecycle_stage, COALESCE(e.name, r.experiment_id), r.status
      FROM runs r LEFT JOIN experiments e ON e.experiment_id = r.experiment_id ORDER BY r.start_time, r.run_uuid)sql");
  std::vector<StoredRun> runs;
  std::size_t deleted = 0, unfinished = 0, without_steps = 0;
  while (store.step(stored))
    if (text(stored, 2) == "deleted")
      ++deleted;
    else if (!has_finished(text(stored, 4)))
      ++unfinished;
    else
      runs.push_back({.id = text(stored, 0), .name = text(stored, 1), .experiment = text(stored, 3)});
  const auto params = store.prepare("SELECT key, value FROM params WHERE run_uuid = ?1 ORDER BY key");
  const auto metrics = store.prepare(R"sql(
      SELECT key, value, is_nan, step, timestamp, COUNT(*) OVER of_key = 1 OR MAX(ABS(step)) OVER of_key > 0
      FROM metrics WHERE run_uuid = ?1 WINDOW of_key AS (PARTITION BY key) ORDER BY key, step, timestamp, rowid)sql");
  Places places{mapping, runs};
  for (const StoredRun& run : runs) {
    const auto of_run = [&](const Store::Statement& statement) {
      sqlite3_reset(statement.get());
      sqlite3_bind_text(statement.get(), 1, run.id.c_str(), -1, SQLITE_TRANSIENT);
    };
    std::map<std::string, std::string> settings;
    for (of_run(params); store.step(params);) settings[text(params, 0)] = text(params, 1);
    const RunKey key = places.place(run, settings);
    for (const auto& [name, value] : settings)
      if (!places.is_seed(name)) sink.setting(key, name, json_of(value));
    std::optional<MetricValues> values;
    for (of_run(metrics); store.step(metrics);) {
      const std::string name = text(metrics, 0);
      if (!is_wanted(mapping, name)) continue;
      if (!values || values->metric() != name) {
        const bool has_steps = sqlite3_column_int(metrics.get(), 5) != 0;
        without_steps += !has_steps;
        values.emplace(key, name, has_steps, sink);
      }
      values->say(
          step_of(sqlite3_column_int64(metrics.get(), 3),
                  fmt::format("{}: run {}, metric {}", file.string(), run.id, name)),
          sqlite3_column_int(metrics.get(), 2) != 0 ? std::nan("") : sqlite3_column_double(metrics.get(), 1),
          sqlite3_column_int64(metrics.get(), 4));
    }
  }
  return notes_of(deleted, unfinished, without_steps);
}

}  // namespace

std::vector<std::string> read_mlflow(const fs::path& path, const Mapping& mapping, Sink& sink) {
  std::error_code failed;
  return fs::is_directory(path, failed) ? read_folder(path, mapping, sink) : read_store(path, mapping, sink);
}

}  // namespace abl::exchange
