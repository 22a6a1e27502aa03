// SPDX-License-Identifier: Apache-2.0
#include "tests/web/demo_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <tuple>

#include "base/sha256.h"
#include "images/png_write.h"
#include "storage/count_store.h"
#include "storage/metric_store.h"
#include "storage/probe_store.h"
#include "storage/resource_store.h"
#include "storage/sweep_store.h"
#include "storage/trial_store.h"
#include "storage/worker_store.h"

namespace abl::web {
namespace {

using namespace std::chrono_literals;
using storage::RunId;
constexpr Milliseconds kStep = 130ms;

struct Row {
  const char *id, *label, *kernel, *probe, *share, *paper_top1, *paper_params;
  double params, top1;  ///< `top1`: where its made-up accuracy ends
};
constexpr Row kRows[] = {
    {"orig", "Transformer", "dot", "none", "QKV-W", "78.55", "21.91", 2'241'024, 86.9},
    {"a", "MSF, Simplest", "gaussian", "inside", "QQQQQ", "61.13", "16.60", 1'650'432, 72.4},
    {"b", "MSF, 2-matrices", "gaussian", "inside", "QKKQQ", "77.16", "18.37", 1'797'888, 81.8},
    {"f", "MSF, 2-matrices", "gaussian", "inside", "QKKKQ", "77.84", "18.37", 1'797'888, 83.0},
    {"h", "MSF, 3-matrices", "gaussian", "inside", "QKKKW", "78.82", "20.14", 1'945'344, 85.2},
    {"o", "MSF, 4-matrices", "gaussian", "inside", "QKVPP", "79.52", "21.91", 2'092'800, 87.3},
    {"r", "MSF, Full", "gaussian", "inside", "QKVPW", "79.79", "23.68", 2'240'256, 87.9},
};

std::string config_of(const Row& row, int seed) {
  return fmt::format(
      R"({{"data":{{"image_size":32,"name":"shapes"}},"model":{{"attention":{{"kernel":"{}","probe":"{}","share":"{}"}},)"
      R"("depth":4,"dim":96,"heads":3,"patch":4,"preset":"simple-vit-ti"}},"recipe":{{"batch":128,"epochs":12,)"
      R"("label_smoothing":0.1,"lr":0.001,"warmup_epochs":1,"weight_decay":0.05}},"seed":{}}})",
      row.kernel, row.probe, row.share, seed);
}

std::string model_of(const Row& row) { return fmt::format(R"({{"share":"{}"}})", row.share); }

/// Rises from chance to its end, with a noise that depends on the run and the step alone.
double accuracy(const Row& row, std::int64_t seed, std::uint32_t step, bool validation) {
  std::mt19937 random{static_cast<unsigned>(step * 31 + seed * 7919 + row.params + (validation ? 1 : 0))};
  const double noise = std::normal_distribution<double>{0, validation ? 0.5 : 2.2}(random);
  const double share = 1 - std::exp(-4.2 * step / DemoStore::kSteps);
  const double end = row.top1 + (seed == 0 ? 0.22 : -0.31) + (validation ? 0 : 2.5);
  return 10 + (end - 10) * share / (1 - std::exp(-4.2)) + noise * (1 - 0.8 * share);
}

double loss(double top1) { return 2.45 * std::pow(1 - top1 / 104, 0.8) + 0.18; }

void add_point(storage::Series& series, std::uint32_t step, double value, Time time) {
  series.steps.push_back(step);
  series.values.push_back(value);
  series.times_ms.push_back(time.time_since_epoch().count());
}

const Row& row_of(const std::string& config) {
  for (const Row& row : kRows)
    if (config.find(fmt::format("\"{}\"", row.share)) != std::string::npos) return row;
  throw Error{Code::kInternal, "no row has this configuration: " + config};
}

storage::Column top1_column() {
  return {.name = "acc",
          .heading = "top-1",
          .kind = storage::Column::Kind::kMetric,
          .source = "val/top1",
          .take = protocol::Take::kLast,
          .unit = protocol::Unit::kPercent,
          .better = protocol::Better::kHigher,
          .digits = 2};
}

storage::Column params_column() {
  return {.name = "params",
          .heading = "params",
          .kind = storage::Column::Kind::kCount,
          .source = "params.weights",
          .unit = protocol::Unit::kMillion,
          .better = protocol::Better::kLower,
          .digits = 2};
}

nlohmann::json axis(const char* name, std::vector<std::string> places) {
  return {{"name", name}, {"places", std::move(places)}};
}

std::vector<std::string> counted(int places) {
  std::vector<std::string> names;
  for (int i = 1; i <= places; ++i) names.push_back(std::to_string(i));
  return names;
}

/// Grows with the layer.
nlohmann::json feature_norms(RunId run) {
  std::vector<double> norms;
  for (int layer = 0; layer <= 4; ++layer) norms.push_back(5.5 + 1.25 * layer + 0.25 * run);
  return {{"probe", "feature-norms"},
          {"settings", {{"images", 64}}},
          {"values", {{"embedding", norms.front()}, {"largest", norms.back()}, {"last", norms.back()}}},
          {"arrays",
           {{"norm",
             {{"axes", nlohmann::json::array({axis("layer", {"embedding", "1", "2", "3", "4"})})},
              {"values", norms}}}}}};
}

/// Of probe and weight there is none.
nlohmann::json similarities() {
  constexpr int kLayers = 4, kHeads = 3, kRoles = 5;
  const auto between = [](int x, int y, double more) -> nlohmann::json {
    if (x == y) return 1;
    if (x + y == 7) return "NaN";
    return 0.15 + 0.12 * std::abs(x - y) + more;
  };
  auto mean = nlohmann::json::array(), all = nlohmann::json::array();
  for (int layer = 0; layer < kLayers; ++layer)
    for (int head = 0; head < kHeads; ++head)
      for (int x = 0; x < kRoles; ++x)
        for (int y = 0; y < kRoles; ++y) {
          if (layer == 0 && head == 0) mean.push_back(between(x, y, 0.1));
          all.push_back(between(x, y, 0.05 * layer + 0.01 * head));
        }
  const std::vector<std::string> roles{"query", "key", "value", "probe", "weight"};
  const auto of = axis("role", roles), with = axis("other role", roles);
  return {{"probe", "subspace-similarity"},
          {"settings", nlohmann::json::object()},
          {"values", {{"query-key", 0.37}, {"query-value", 0.49}, {"key-value", 0.37}}},
          {"arrays",
           {{"mean", {{"axes", {of, with}}, {"values", mean}}},
            {"similarity",
             {{"axes", {axis("layer", counted(kLayers)), axis("head", counted(kHeads)), of, with}},
              {"values", all}}}}},
          {"notes", nlohmann::json::array({"layer 1 has no matrix for probe"})}};
}

constexpr int kMapSide = 16, kMapHeads = 3, kMapImages = 2;

/// What a head attends to: a spot that lies elsewhere for each head and image.
double attention_at(int image, int head, int row, int column) {
  return std::exp(-(std::pow(column - 4 * head - 3, 2) + std::pow(row - 5 - 3 * image, 2)) / 12) / 40;
}

nlohmann::json attention(RunId run) {
  std::vector<double> map;
  for (int image = 0; image < kMapImages; ++image)
    for (int head = 0; head < kMapHeads; ++head)
      for (int row = 0; row < kMapSide; ++row)
        for (int column = 0; column < kMapSide; ++column)
          map.push_back(attention_at(image, head, row, column));
  return {{"probe", "attention"},
          {"settings", {{"images", kMapImages}}},
          {"values", {{"entropy", 1.83 - 0.01 * run}}},
          {"arrays",
           {{"map",
             {{"axes",
               {axis("image", {"0", "500"}), axis("head", counted(kMapHeads)), axis("row", counted(kMapSide)),
                axis("column", counted(kMapSide))}},
              {"values", map}}}}},
          {"notes", nlohmann::json::array({"layer 4"})}};
}

/// A row for each image: a grey one, then the map of each head.
storage::StoredPicture attention_picture() {
  auto drawn = images::black(kMapSide * (1 + kMapHeads), kMapSide * kMapImages);
  for (int y = 0; y < drawn.height; ++y)
    for (int x = 0; x < drawn.width; ++x) {
      const int head = x / kMapSide - 1;
      const double share = head < 0 ? 0.5 : 40 * attention_at(y / kMapSide, head, y % kMapSide, x % kMapSide);
      std::fill_n(drawn.row(y) + 3 * x, 3, static_cast<std::uint8_t>(255 * share));
    }
  storage::StoredPicture picture{.name = "maps",
                                 .sha256 = {},
                                 .width = static_cast<std::uint32_t>(drawn.width),
                                 .height = static_cast<std::uint32_t>(drawn.height),
                                 .png = images::encode_png(drawn)};
  picture.sha256 = sha256_hex(picture.png);
  return picture;
}

}  // namespace

DemoStore::DemoStore(const std::filesystem::path& file)
    : db_{file, storage::Database::Mode::kWrite}, now_{SystemClock{}.now() - 17min} {
  storage::WorkerStore workers{db_};
  workers.upsert({.name = "anvil-1",
                  .host = "anvil",
                  .instance = "1",
                  .version = "0.1.0",
                  .slots_json = R"([{"index":0,"device":"cpu","name":"1 thread","threads":1}])",
                  .data_json = R"(["shapes","cifar10"])",
                  .result_version = 1,
                  .connected = true,
                  .last_heartbeat = now_});
  workers.upsert({.name = "bench-2",
                  .host = "bench",
                  .instance = "2",
                  .version = "0.1.0",
                  .slots_json = R"([{"index":0,"device":"cuda:0","name":"NVIDIA H200","threads":8}])",
                  .data_json = R"(["shapes"])",
                  .result_version = 1,
                  .connected = true,
                  .last_heartbeat = now_});
  workers.upsert({.name = "cellar-3",
                  .host = "cellar",
                  .instance = "3",
                  .version = "0.1.0",
                  .slots_json = R"([{"index":0,"device":"cpu","name":"4 threads","threads":4}])",
                  .data_json = R"(["shapes"])",
                  .result_version = 1,
                  .connected = false,
                  .last_heartbeat = now_ - 7min});
  submit("groups", 3, 1);
  for (int i = 0; i < 3; ++i) {
    const RunId run = start("anvil-1");
    train(run, 0, kSteps / 4);
    if (i == 1)
      fail(run, "exit code 1: data.name: the folder has no class folders");
    else {
      train(run, kSteps / 4, kSteps);
      complete(run);
    }
  }
  submit(kSweep, 7, 2);
  for (int i = 0; i < 10; ++i) {
    const RunId run = start(i % 2 == 0 ? "anvil-1" : "bench-2");
    train(run, 0, kSteps);
    complete(run);
  }
  // the next one loses its worker half-way, and goes on elsewhere from its checkpoint
  const RunId lost = start("cellar-3");
  train(lost, 0, 300);
  storage::TrialStore trials{db_};
  trials.add_checkpoint({.run = lost,
                         .step = 300,
                         .host = "cellar",
                         .path = "/runs/7/1/step-300.ckpt",
                         .sha256 = sha256_hex("checkpoint")});
  trials.end(lost, {.state = storage::RunState::kLost, .reason = "worker cellar-3 was not heard for 30 s"},
             now_);
  const RunId resumed = start("anvil-1", 300);
  train(resumed, 300, 430);
  const RunId other = start("bench-2");
  train(other, 0, 180);
  workers.heartbeat("anvil-1", now_);
  workers.heartbeat("bench-2", now_);
  explain_waiting();
}

void DemoStore::submit(const std::string& name, int rows, int seeds, int priority) {
  storage::NewSweep sweep{.name = name,
                          .file = "sweeps/" + name + ".yaml",
                          .canonical = "{}",
                          .canonical_hash = sha256_hex(name)};
  sweep.baseline = "orig";
  sweep.priority = priority;
  sweep.paper_heading = "paper: ImageNet, 100 epochs";
  sweep.text = fmt::format(
      "ablate: 1\nname: {}\nbase:\n  model: {{preset: simple-vit-ti}}\n  data: {{name: shapes}}\nrows:\n",
      name);
  sweep.columns = {top1_column(),
                   {.name = "loss",
                    .heading = "loss",
                    .kind = storage::Column::Kind::kMetric,
                    .source = "val/loss",
                    .take = protocol::Take::kLast,
                    .better = protocol::Better::kLower,
                    .digits = 3},
                   params_column(),
                   {.name = "share",
                    .heading = "sharing",
                    .kind = storage::Column::Kind::kSetting,
                    .source = "model.attention.share",
                    .better = protocol::Better::kNone,
                    .digits = 0}};
  std::vector<storage::NewTrial> trials;
  for (int seed = 0; seed < seeds; ++seed) sweep.seeds.push_back(seed);
  for (int i = 0; i < rows; ++i) {
    const Row& row = kRows[i];
    sweep.text += fmt::format(
        "  - {{id: {}, label: \"{}\", set: {{model.attention.share: {}}}, paper: {{acc: \"{}\", params: "
        "\"{}\"}}}}\n",
        row.id, row.label, row.share, row.paper_top1, row.paper_params);
    sweep.rows.push_back({.id = row.id,
                          .label = row.label,
                          .set_json = fmt::format(R"({{"model.attention.share":"{}"}})", row.share),
                          .config_hash = sha256_hex(name + row.id),
                          .model = model_of(row),
                          .paper = {{"acc", row.paper_top1}, {"params", row.paper_params}}});
    storage::CountStore{db_}.insert(model_of(row), {{"params.weights", row.params}});
    for (int seed = 0; seed < seeds; ++seed)
      trials.push_back({.row = i,
                        .seed_index = seed,
                        .seed = seed,
                        .config = config_of(row, seed),
                        .config_hash = sha256_hex(name + row.id + std::to_string(seed)),
                        .result_version = 1,
                        .data = "shapes"});
  }
  sweep.text += "seeds: " + std::string{seeds == 2 ? "[0, 1]" : "[0]"} + "\n";
  storage::SweepStore{db_}.insert(sweep, trials, now_);
}

std::vector<RunId> DemoStore::submit_diverged(const std::string& name) {
  constexpr int kRowCount = 2, kSeeds = 3;
  submit(name, kRowCount, kSeeds, 1);  // before what waits
  std::vector<RunId> runs(kRowCount * kSeeds);
  for (int seed = 0; seed < kSeeds; ++seed)
    for (int row = 0; row < kRowCount; ++row) {
      const RunId run = start("anvil-1");
      runs.at(static_cast<std::size_t>(row * kSeeds + seed)) = run;
      storage::Series series{.name = "val/loss"};
      for (std::uint32_t step = 10; step <= kSteps; step += 10) {
        now_ += kStep;
        const bool lost = row == 0 ? seed == 2 && step >= 300 : seed == 1 && step >= 200 && step < 300;
        add_point(series, step, lost ? std::nan("") : 1 + row + 0.01 * seed + 100.0 / (step + 50), now_);
      }
      storage::MetricStore{db_}.append(run, {series});
      complete(run);
    }
  return runs;
}

void DemoStore::submit_incomplete(const std::string& name) {
  submit(name, 1, 3, 1);  // before what waits
  for (int seed = 0; seed < 3; ++seed) {
    const RunId run = start("anvil-1");
    storage::Series top1{.name = "val/top1"}, loss{.name = "val/loss"};
    add_point(top1, kSteps, 70 + seed, now_);
    add_point(loss, kSteps, 1, now_);
    storage::MetricStore{db_}.append(run, seed == 2 ? std::vector{loss} : std::vector{top1, loss});
    if (seed == 2) storage::MetricStore{db_}.add_refused(run, 3, "{val/top1: 72}");
    complete(run);
  }
}

void DemoStore::submit_crowd(const std::string& name, int rows) {
  storage::NewSweep sweep{.name = name,
                          .file = name + ".yaml",
                          .text = "name: " + name + "\n",
                          .canonical = "{}",
                          .canonical_hash = sha256_hex(name),
                          .baseline = "row-1",
                          .seeds = {0},
                          .priority = 1};  // before what waits
  sweep.columns = {{.name = "loss",
                    .heading = "loss",
                    .kind = storage::Column::Kind::kMetric,
                    .source = "val/loss",
                    .take = protocol::Take::kLast,
                    .better = protocol::Better::kLower}};
  std::vector<storage::NewTrial> trials;
  for (int i = 0; i < rows; ++i) {
    const std::string id = fmt::format("row-{}", i);
    sweep.rows.push_back({.id = id,
                          .label = fmt::format("number {}", i),
                          .set_json = "{}",
                          .config_hash = sha256_hex(name + id)});
    trials.push_back({.row = i,
                      .config = config_of(kRows[0], 0),
                      .config_hash = sha256_hex(name + id + "0"),
                      .result_version = 1,
                      .data = "shapes"});
  }
  storage::SweepStore{db_}.insert(sweep, trials, now_);
  for (int i = 0; i < rows; ++i) {
    const RunId run = start("anvil-1");
    storage::Series series{.name = "val/loss"};
    for (std::uint32_t step = 10; step <= kSteps; step += 10)
      add_point(series, step, 1 + 0.01 * i + 100.0 / (step + 50), now_ + step * 1s);
    storage::MetricStore{db_}.append(run, {series});
    complete(run);
  }
}

void DemoStore::submit_factors(const std::string& name) {
  storage::NewSweep sweep{.name = name,
                          .file = name + ".yaml",
                          .text = "name: " + name + "\n",
                          .canonical = "{}",
                          .canonical_hash = sha256_hex(name),
                          .baseline = "kernel=dot,groups=1",
                          .seeds = {0, 1},
                          .priority = 1};  // before what waits
  sweep.columns = {top1_column()};
  std::vector<storage::NewTrial> trials;
  for (const char* kernel : {"dot", "gaussian"})
    for (const int groups : {1, 2, 4}) {
      if (kernel == std::string{"gaussian"} && groups == 4) continue;  // a combination that there is not
      const std::string id = fmt::format("kernel={},groups={}", kernel, groups);
      sweep.rows.push_back(
          {.id = id,
           .label = id,
           .set_json = fmt::format(R"({{"model.attention.kernel":"{}","model.attention.groups":{}}})", kernel,
                                   groups),
           .config_hash = sha256_hex(name + id)});
    }
  for (int seed = 0; seed < 2; ++seed)
    for (int row = 0; row < static_cast<int>(sweep.rows.size()); ++row)
      trials.push_back({.row = row,
                        .seed_index = seed,
                        .seed = seed,
                        .config = config_of(kRows[0], seed),
                        .config_hash = sha256_hex(fmt::format("{} {} {}", name, row, seed)),
                        .result_version = 1,
                        .data = "shapes"});
  storage::SweepStore{db_}.insert(sweep, trials, now_);
  for (std::size_t i = 0; i < trials.size(); ++i) {
    const RunId run = start("anvil-1");
    storage::Series top1{.name = "val/top1"};
    add_point(top1, kSteps, 60 + 4 * trials[i].row + 0.1 * static_cast<double>(trials[i].seed), now_);
    storage::MetricStore{db_}.append(run, {top1});
    complete(run);
  }
}

void DemoStore::make_hostile(const std::string& name) {
  const auto sweep = storage::SweepStore{db_}.get(name).id;
  db_.execute(
      fmt::format("UPDATE sweep_row SET label = '<img src=x onerror=alert(1)> \u202e{}' WHERE sweep_id = {}",
                  std::string(4000, 'w'), sweep));
}

void DemoStore::grow(RunId run, std::uint32_t points) {
  constexpr const char* kName = "long";
  const auto extents = storage::MetricStore{db_}.extents(run, {kName});
  const std::uint32_t first = extents.empty() ? 0 : extents.at(0).steps.to + 1;
  storage::Series series{.name = kName};
  for (std::uint32_t step = first; step < first + points; ++step)
    add_point(series, step, step == 70'000 ? -1 : step == 80'000 ? std::nan("") : step, now_);
  storage::MetricStore{db_}.append(run, {series});
}

void DemoStore::submit_long(const std::string& name, int rows) {
  constexpr int kOfAGroup = 1000, kTrained = 3;
  storage::NewSweep sweep{.name = name,
                          .file = "sweeps/" + name + ".yaml",
                          .canonical = "{}",
                          .canonical_hash = sha256_hex(name)};
  sweep.baseline = "r0000";
  sweep.priority = 2;  // before all else
  sweep.seeds = {0};
  sweep.columns = {top1_column(), params_column()};
  storage::Transaction whole{db_, storage::Transaction::kImmediate};
  std::vector<storage::NewTrial> trials;
  for (int i = 0; i < rows; ++i) {
    const std::string id = fmt::format("r{:04}", i), model = fmt::format(R"({{"row":{}}})", i);
    storage::CountStore{db_}.insert(model, {{"params.weights", 1e6 + 1e4 * ((i * 7919) % rows)}});
    sweep.rows.push_back({.id = id,
                          .label = fmt::format("Variant {} of the model", i),
                          .set_json = "{}",
                          .config_hash = sha256_hex(name + id),
                          .model = model,
                          .paper = {},
                          .group = fmt::format("Group {}", i / kOfAGroup)});
    trials.push_back({.row = i,
                      .seed_index = 0,
                      .seed = 0,
                      .config = config_of(kRows[1], i),
                      .config_hash = sha256_hex(name + id + "0"),
                      .result_version = 1,
                      .data = "shapes"});
  }
  storage::SweepStore{db_}.insert(sweep, trials, now_);
  for (int i = 0; i < kTrained; ++i) {
    const RunId run = start("anvil-1");
    storage::Series top1{.name = "val/top1"};
    add_point(top1, kSteps, 70 + i, now_);
    storage::MetricStore{db_}.append(run, {top1});
    complete(run);
  }
  whole.commit();
}

void DemoStore::lengthen(const std::string& name) {
  const auto sweep = storage::SweepStore{db_}.get(name).id;
  db_.execute(fmt::format("UPDATE sweep_row SET label = label || ' ' || '{}' WHERE sweep_id = {}",
                          std::string(300, 'x'), sweep));
  db_.execute(fmt::format("UPDATE sweep_column SET heading = heading || '{}' WHERE sweep_id = {}",
                          std::string(80, 'y'), sweep));
}

void DemoStore::sample(storage::RunId run, std::uint32_t from, std::uint32_t seconds) {
  constexpr std::int64_t kMiB = 1 << 20;
  std::vector<storage::ResourceSample> samples;
  for (std::uint32_t at = from + 2; at <= from + seconds; at += 2) {
    storage::ResourceSample sample{.at_ms = at * 1000ULL,
                                   .over_ms = 2000,
                                   .cpu_cores = 3 + std::sin(at / 20.0),
                                   .memory_bytes = 1024 * kMiB + at * kMiB,
                                   .read_bytes_per_s = at < 60 ? 40.0 * kMiB : 0,
                                   .written_bytes_per_s = at % 60 == 0 ? 100.0 * kMiB : 0,
                                   .free_bytes = 200 * 1024 * kMiB};
    if (run % 2 == 0) sample.gpu = 0.8, sample.gpu_memory_bytes = 20 * 1024 * kMiB;
    if (at <= 60) sample.data_wait_ms = 500, sample.data_of_ms = 2000;
    samples.push_back(sample);
  }
  storage::ResourceStore{db_}.add(run, samples);
}

void DemoStore::extend(const std::string& name) {
  const auto sweep = storage::SweepStore{db_}.get(name);
  std::string second = sweep.text, third;
  second.replace(second.find("label: \""), 8, "label: \"other ");
  third = second;
  for (int i = 0; i < 10'000; ++i) third += fmt::format("# comment {}\n", i);
  third += "# the last";
  int revision = 0;
  for (const auto& [author, text, changes] :
       {std::tuple{"local", sweep.text, "[]"}, std::tuple{"ann", second, R"(["row orig: its label"])"},
        std::tuple{"bob", third,
                   R"(["row a: new", "row b: new", "row c: new", "row d: new", "row e: new"])"}}) {
    ++revision;
    db_.prepared(
           R"sql(INSERT INTO sweep_revision (sweep_id, revision, time_ms, author, file, text, canonical, changes,
                                                   new_trials, former_trials)
                       VALUES (:sweep, :revision, :time, :author, :file, :text, '{}', :changes, :new, 0))sql")
        .bind(":sweep", sweep.id)
        .bind(":revision", revision)
        .bind(":time", now_)
        .bind(":author", author)
        .bind(":file", sweep.file)
        .bind(":text", text)
        .bind(":changes", changes)
        .bind(":new", 4 * (revision - 1))
        .run();
  }
  db_.prepared("UPDATE sweep SET revision = 3, text = :text WHERE id = :sweep")
      .bind(":text", third)
      .bind(":sweep", sweep.id)
      .run();
}

void DemoStore::submit_waiting(const std::string& name) { submit(name, 2, 1); }

/// By priority, seed, then row; those of active sweeps.
std::vector<storage::TrialId> DemoStore::queued() {
  return db_
      .prepared(R"sql(SELECT t.id FROM trial t JOIN sweep_trial st ON st.trial_id = t.id AND st.withdrawn = 0
                      JOIN sweep s ON s.id = st.sweep_id AND s.state = 'active' WHERE t.state = 'queued'
                      GROUP BY t.id ORDER BY MAX(s.priority) DESC, MIN((st.seed_index << 44) + (s.id << 22) + st.row), t.id)sql")
      .all([](const storage::Statement& row) { return static_cast<storage::TrialId>(row.integer(0)); });
}

RunId DemoStore::start(const std::string& worker, std::uint32_t resumed_from_step) {
  storage::TrialStore trials{db_};
  const auto trial = trials.get(queued().at(0));
  const auto lease =
      trials.lease(trial.id, worker, worker.substr(0, worker.find('-')), now_, now_ + 24h, {0}).value();
  storage::TrialStore::Started started{
      .total_steps = kSteps,
      .data_fingerprint = sha256_hex("shapes"),
      .directory = fmt::format("/var/lib/ablate/runs/{}/{}", trial.id, lease.attempt),
      .environment_json =
          R"({"cpu":"AVX512","device":"cpu","threads":1,"torch":"2.13.0","trainer":"0.1.0"})"};
  if (resumed_from_step > 0) {
    started.resumed_from_step = resumed_from_step;
    started.resumed_from_run = trial.run.value_or(0);
  }
  trials.start(lease.run, started, now_);
  storage::MetricStore{db_}.append_log(
      lease.run,
      fmt::format(
          "data: 4000 images for training, 1000 for evaluation, 10 classes\nmodel: {} on cpu, 1 thread\n{}",
          row_of(trial.config).label,
          resumed_from_step ? fmt::format("resumed at step {}\n", resumed_from_step) : ""));
  return lease.run;
}

void DemoStore::train(RunId run, std::uint32_t from, std::uint32_t to) {
  const auto trial = storage::TrialStore{db_}.get(storage::TrialStore{db_}.run(run).trial);
  const Row& row = row_of(trial.config);
  std::map<std::string, storage::Series> series;
  std::string log;
  for (std::uint32_t step = from + 1; step <= to; ++step) {
    now_ += kStep;
    const auto point = [&](const char* name, double value) { add_point(series[name], step, value, now_); };
    if (step % 5 == 0) {
      const double top1 = accuracy(row, trial.seed, step, false);
      point("train/loss", loss(top1));
      point("train/top1", top1);
      point("lr",
            step < 50 ? 1e-3 * step / 50 : 5e-4 * (1 + std::cos(3.14159265 * (step - 50) / (kSteps - 50))));
      point("images_per_s", 128 / 0.13 + (step % 7));
    }
    if (step % 50 == 0) {
      const double top1 = accuracy(row, trial.seed, step, true);
      point("val/top1", top1);
      point("val/top5", 100 - (100 - top1) * 0.2);
      point("val/loss", loss(top1));
      log += fmt::format("epoch {:2}: step {:4}, val/top1 {:.2f}, val/loss {:.4f}\n", step / 50, step, top1,
                         loss(top1));
    }
  }
  std::vector<storage::Series> blocks;
  for (auto& [name, points] : series) {
    points.name = name;
    blocks.push_back(std::move(points));
  }
  storage::MetricStore{db_}.append(run, blocks);
  storage::MetricStore{db_}.append_log(run, log);
}

void DemoStore::complete(RunId run) {
  const auto record = storage::TrialStore{db_}.run(run);
  storage::TrialStore{db_}.add_checkpoint({.run = run,
                                           .step = kSteps,
                                           .host = record.host,
                                           .path = record.directory + "/step-600.ckpt",
                                           .sha256 = sha256_hex(record.directory)});
  storage::TrialStore{db_}.end(run, {.state = storage::RunState::kCompleted, .exit_code = 0}, now_);
}

std::vector<RunId> DemoStore::running() {
  std::vector<RunId> runs;
  for (const char* worker : {"anvil-1", "bench-2"})
    for (const RunId run : storage::TrialStore{db_}.under_way_on(worker)) runs.push_back(run);
  return runs;
}

std::vector<RunId> DemoStore::advance(std::uint32_t steps) {
  storage::Transaction transaction{db_, storage::Transaction::kImmediate};
  std::vector<RunId> changed = running();
  for (const RunId run : std::vector{changed}) {
    const auto record = storage::TrialStore{db_}.run(run);
    const std::uint32_t to = std::min(kSteps, record.step + steps);
    train(run, record.step, to);
    if (to < kSteps) continue;
    complete(run);
    if (!queued().empty()) changed.push_back(start(record.worker));
  }
  explain_waiting();
  transaction.commit();
  return changed;
}

void DemoStore::fail(RunId run, const std::string& reason) {
  storage::MetricStore{db_}.append_log(run, "error: " + reason + "\n");
  storage::TrialStore{db_}.end(
      run, {.state = storage::RunState::kFailed, .reason = reason, .exit_code = 1, .retryable = false}, now_);
}

void DemoStore::look_into(RunId run) {
  const nlohmann::json no_codes{{"probe", "code-norms"}, {"missing", "code-norms: the model has no codes"}};
  for (const auto& found : {feature_norms(run), similarities(), attention(run), no_codes})
    storage::ProbeStore{db_}.put(run, protocol::read_probe_result_text(found.dump()), kSteps,
                                 found["probe"] == "attention" ? std::vector{attention_picture()}
                                                               : std::vector<storage::StoredPicture>{},
                                 now_);
}

void DemoStore::explain_waiting() { db_.execute("UPDATE shape SET waiting = 'both slots are busy'"); }

}  // namespace abl::web
