// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <set>

#include "sweeps/sweep_spec.h"

namespace abl::sweeps {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr const char* kSmall = R"(ablate: 1
name: small
base:
  model: {preset: simple-vit-ti, attention: {kernel: gaussian, probe: inside}}
  data: {name: cifar10}
  recipe: {use: cifar-lite}
rows:
  - {id: n, set: {model.attention.share: QKVVW}}
  - {id: full, label: "MSF, full", paper: {acc: 79.10}}
)";
constexpr const char* kColumns = "table:\n  columns: [{name: acc, metric: val/top1}]\n";
constexpr const char* kCommand = R"(ablate: 1
name: mine
command: {argv: [python3, train.py, ""], params: {lr: 0.1, optimiser: {name: sgd}}, version: 3, reuse: true, data: cifar10}
rows:
  - {id: a}
  - {id: b, set: {params.lr: 0.2, params.optimiser.name: adam}}
seeds: 2
table: {columns: [{name: acc, metric: accuracy, better: higher, take: best}, {name: lr, setting: params.lr}]}
)";

SweepSpec parse(const std::string& text) { return parse_sweep(text, "sweep.yaml"); }

std::string problem_of(const std::string& text) {
  try {
    parse(text);
  } catch (const SweepFileError& error) {
    EXPECT_EQ(error.problems().size(), 1u) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was wrong with\n" << text;
  return {};
}

/// The small sweep, but that its first row sets something else.
std::string first_row_sets(const std::string& settings) {
  std::string text = std::string{kSmall} + kColumns;
  const std::string own = "model.attention.share: QKVVW";
  return text.replace(text.find(own), own.size(), settings);
}

TEST(SweepFileTest, ATeacherIsAModelThatAPlanCountsToo) {
  const SweepSpec spec = parse(
      first_row_sets("recipe.distillation: soft, recipe.teacher: simple-vit-nano, recipe.teacher_weights: w, "
                     "recipe.batch: 100, recipe.accumulate: 4"));
  EXPECT_THAT(spec.rows[0].teacher, HasSubstr(R"("dim":128)"));
  EXPECT_THAT(spec.rows[0].teacher, HasSubstr(R"("image_size":32)"));
  EXPECT_EQ(spec.rows[0].batch, 25) << "the teacher too takes the batch in parts";
  EXPECT_EQ(spec.rows[1].teacher, "");
  EXPECT_EQ(spec.rows[0].model, spec.rows[1].model);
  EXPECT_THAT(models_of(spec), testing::UnorderedElementsAre(spec.rows[0].model, spec.rows[0].teacher));
}

TEST(SweepFileTest, ATeacherThatCannotTakeTheImagesIsAProblemOfItsLine) {
  EXPECT_THAT(
      problem_of(first_row_sets("recipe.distillation: soft, recipe.teacher: vit_tiny_patch16_224, "
                                "recipe.teacher_weights: w, model.patch: 8, data.image_size: 40")),
      testing::AllOf(HasSubstr("sweep.yaml:8:"), HasSubstr("recipe.teacher: vit_tiny_patch16_224: ")));
}

TEST(SweepFileTest, RowsInheritTheBaseAndSetTheirOwn) {
  const SweepSpec spec = parse(std::string{kSmall} + kColumns);
  ASSERT_EQ(spec.rows.size(), 2u);
  EXPECT_EQ(spec.rows[0].id, "n") << "a plain n is a text, not false";
  EXPECT_EQ(spec.rows[0].label, "n");
  EXPECT_THAT(spec.rows[0].config, HasSubstr(R"("share":"QKVVW")"));
  EXPECT_THAT(spec.rows[0].config, testing::Not(HasSubstr("seed")));
  EXPECT_EQ(spec.rows[1].label, "MSF, full");
  EXPECT_EQ(spec.rows[1].paper.at("acc"), "79.10") << "the paper's digits as printed";
  EXPECT_EQ(spec.rows[1].place.line, 9);
  EXPECT_THAT(spec.rows[1].model, HasSubstr(R"("classes":10)"));
  EXPECT_THAT(spec.rows[1].set, IsEmpty());
  EXPECT_EQ(spec.data, "cifar10");
}

TEST(SweepFileTest, WhatIsHardlyMeantIsToldWithItsPlace) {
  EXPECT_THAT(parse(std::string{kSmall} + kColumns).doubts, IsEmpty());
  const SweepSpec spec = parse(first_row_sets("recipe.batch: 60000, recipe.epochs: 1e-7"));
  ASSERT_EQ(spec.doubts.size(), 2u);
  EXPECT_THAT(spec.doubts[0],
              testing::AllOf(HasSubstr("sweep.yaml:8:"), HasSubstr("a batch of 60000 of 50000")));
  EXPECT_THAT(spec.doubts[1],
              HasSubstr("1e-7 epochs of 50000 images in batches of 60000 are less than a step"));
}

TEST(SweepFileTest, WhatCannotBeIsRefused) {
  const std::string small = std::string{kSmall} + kColumns;
  EXPECT_THAT(problem_of(small + "resources: {gpus: 2000}\n"), HasSubstr("resources.gpus: "));
  EXPECT_THAT(problem_of(first_row_sets("recipe.batch: 32") + "resources: {gpus: 64}\n"),
              HasSubstr("row n: 64 GPUs cannot share 32 images at a time"));
  EXPECT_THAT(problem_of(first_row_sets("data.classes: 7")), HasSubstr("7 of cifar10, which has 10"));
}

TEST(SweepFileTest, SlotsMayBeOfSeveralWorkers) {
  const std::string small = std::string{kSmall} + kColumns;
  const auto split_of = [&](const std::string& resources) {
    const SweepSpec spec = parse(small + "resources: {" + resources + "}\n");
    return std::pair{spec.gpus, spec.split};
  };
  using protocol::Split;
  EXPECT_EQ(split_of("gpus: 16"), std::pair(16, Split{}));
  EXPECT_EQ(split_of("gpus: {min: 8, max: 16}"), std::pair(16, Split{.least_gpus = 8}));
  EXPECT_EQ(split_of("gpus: {min: 8, max: 8}"), std::pair(8, Split{}));
  EXPECT_EQ(split_of("gpus: 16, nodes: 2"), std::pair(16, Split{.least_nodes = 2, .most_nodes = 2}));
  EXPECT_EQ(split_of("nodes: {min: 1, max: 3}"), std::pair(0, Split{.least_nodes = 1, .most_nodes = 3}));
  const auto problem = [&](const std::string& resources) {
    return problem_of(small + "resources: {" + resources + "}\n");
  };
  EXPECT_THAT(
      problem("gpus: 16, nodes: 3"),
      testing::AllOf(HasSubstr(":30: resources.nodes: 16 GPUs cannot be divided evenly among 3 workers"),
                     HasSubstr("a multiple of 3")));
  EXPECT_THAT(problem("gpus: {min: 8, max: 4}"), HasSubstr("min 8 is more than max 4"));
  EXPECT_THAT(problem("gpus: {min: 8}"), HasSubstr("max is missing"));
  EXPECT_THAT(problem("gpus: {min: 8, max: 16, most: 3}"), HasSubstr("most"));
  EXPECT_THAT(problem("gpus: {min: 8, max: 16}, nodes: 2"), HasSubstr("resources.nodes: "));
  EXPECT_THAT(problem("nodes: 0"), HasSubstr("resources.nodes: "));
  EXPECT_THAT(problem("nodes: 2, pack: true"), HasSubstr("resources.pack: "));
  EXPECT_THAT(problem_of(first_row_sets("recipe.batch: 4") + "resources: {nodes: 4}\n"),
              HasSubstr("4 workers cannot share 4 images at a time"));
  EXPECT_EQ(parse(small + "resources: {gpus: 2}\n").canonical.find("nodes"), std::string::npos);
  EXPECT_NE(parse(small + "resources: {nodes: 2}\n").canonical, parse(small).canonical);
}

TEST(SweepFileTest, ARowKnowsWhatATrainingStepTakes) {
  const SweepSpec spec = parse(R"(ablate: 1
name: steps
base:
  model: {preset: simple-vit-s}
  data: {name: imagenet-1k}
  recipe: {use: msf-imagenet}
rows:
  - {id: a}
  - {id: b, set: {recipe.batch: 96, recipe.precision: fp32}}
)" + std::string{kColumns});
  EXPECT_EQ(spec.rows[0].batch, 1024);
  EXPECT_EQ(spec.rows[0].precision, config::Precision::kBFloat16);
  EXPECT_EQ(spec.rows[1].batch, 96);
  EXPECT_EQ(spec.rows[1].precision, config::Precision::kFloat32);
  EXPECT_EQ(parse(kCommand).rows[0].batch, 0) << "nobody knows what a command does";
}

TEST(SweepFileTest, ARowKnowsTheWeightsThatItsRecipeNames) {
  const SweepSpec spec = parse(R"(ablate: 1
name: tuning
base:
  model: {preset: xcit_nano_12_p8_224}
  data: {name: imagenet-1k}
  recipe: {use: xcit-imagenet-distill, teacher_weights: regnet}
rows:
  - {id: taught}
  - {id: alone, set: {recipe.distillation: none}}
  - {id: tuned, set: {recipe.start_weights: nano, recipe.teacher_sha256: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa}}
)" + std::string{kColumns});
  using Weights = std::map<std::string, std::string>;
  EXPECT_EQ(spec.rows[0].weights, (Weights{{"regnet", ""}}));
  EXPECT_EQ(spec.rows[1].weights, Weights{}) << "a teacher that does not teach is not needed";
  EXPECT_EQ(spec.rows[2].weights, (Weights{{"nano", ""}, {"regnet", std::string(64, 'a')}}));
}

TEST(SweepFileTest, ARowsPresetGivesItsImageSize) {
  const SweepSpec spec = parse(R"(ablate: 1
name: sizes
base:
  data: {name: imagenet-1k}
  recipe: {use: msf-imagenet}
rows:
  - {id: t, set: {model.preset: swin_tiny_patch4_window7_224}}
  - {id: v2, set: {model.preset: swinv2_tiny_window8_256}}
table: {columns: [{name: acc, metric: val/top1}, {name: size, setting: data.image_size}]}
)");
  EXPECT_THAT(spec.rows[0].config, HasSubstr(R"("image_size":224)"));
  EXPECT_THAT(spec.rows[1].config, HasSubstr(R"("image_size":256)"));
  EXPECT_EQ(spec.rows[1].set.at("data.image_size"), "256");
}

TEST(SweepFileTest, WhatIsNotSaidHasADefault) {
  const SweepSpec spec = parse(std::string{kSmall}.replace(std::string{kSmall}.find(", paper"), 21, ""));
  EXPECT_THAT(spec.seeds, ElementsAre(0));
  EXPECT_EQ(spec.gpus, 0);
  EXPECT_EQ(spec.max_retries, 0);
  ASSERT_EQ(spec.table.columns.size(), 1u);
  EXPECT_EQ(spec.table.columns[0].source, "val/top1");
  EXPECT_EQ(spec.table.columns[0].take, protocol::Take::kLast);
  EXPECT_EQ(spec.table.columns[0].unit, protocol::Unit::kPercent);
  EXPECT_EQ(spec.table.columns[0].better, protocol::Better::kHigher);
}

TEST(SweepFile, AsksForLabelsOfWorkersWhichChangeNoTrial) {
  const std::string small =
      "ablate: 1\nname: small\ncommand: {argv: [\"true\"]}\nrows: [{id: a}]\n"
      "table: {columns: [{name: acc, metric: acc}]}\n";
  const SweepSpec without = parse(small);
  EXPECT_EQ(without.canonical.find("where"), std::string::npos);
  const SweepSpec spec =
      parse(small + "resources: {gpus: 2, where: {gpu: [h100, h200], host: \"!node7\", rack: 4}}\n");
  EXPECT_EQ(spec.gpus, 2);
  EXPECT_EQ(spec.where.at("gpu"), (std::vector<std::string>{"h100", "h200"}));
  EXPECT_EQ(spec.where.at("host"), (std::vector<std::string>{"!node7"}));
  EXPECT_EQ(spec.where.at("rack"), (std::vector<std::string>{"4"}));
  EXPECT_NE(spec.canonical, without.canonical) << "it is another sweep";
  EXPECT_EQ(spec.rows[0].config_hash, without.rows[0].config_hash) << "of the same trials";
  for (const std::string wrong :
       {"{gpu: }", "{host: !node7}", "{gpu: []}", "{gpu: {a: b}}", "{host: \"!\"}"}) {
    try {
      parse(small + "resources: {where: " + wrong + "}\n");
      ADD_FAILURE() << wrong;
    } catch (const SweepFileError& error) {
      EXPECT_THAT(error.what(), HasSubstr("of the label")) << wrong;
    }
  }
}

TEST(SweepFile, PackingIsForTrialsOfOneGpuAndChangesNoTrial) {
  const std::string small =
      "ablate: 1\nname: small\ncommand: {argv: [\"true\"]}\nrows: [{id: a}]\n"
      "table: {columns: [{name: acc, metric: acc}]}\n";
  const SweepSpec without = parse(small), spec = parse(small + "resources: {gpus: 1, pack: true}\n");
  EXPECT_FALSE(without.pack);
  EXPECT_EQ(without.canonical.find("pack"), std::string::npos) << "as it was before";
  EXPECT_TRUE(spec.pack);
  EXPECT_EQ(spec.rows[0].config_hash, without.rows[0].config_hash);
  try {
    parse(small + "resources: {gpus: 2, pack: true}\n");
    ADD_FAILURE();
  } catch (const SweepFileError& error) {
    EXPECT_THAT(error.what(), HasSubstr("trials of 2 GPUs have them for themselves; expected gpus: 1"));
  }
}

TEST(SweepFile, RowsThatTakeAsLongHaveTheSameWork) {
  const SweepSpec spec = parse(R"(
ablate: 1
name: lr
base:
  model: {preset: simple-vit-ti}
  data: {name: imagenet-1k}
  recipe: {use: msf-imagenet}
rows:
  - {id: a}
  - {id: lr, set: {recipe.lr: 0.5, recipe.weight_decay: 0.25}}
  - {id: epochs, set: {recipe.epochs: 7}}
  - {id: batch, set: {recipe.batch: 64}}
  - {id: model, set: {model.preset: simple-vit-s}}
table: {columns: [{name: acc, metric: val/top1}]}
)");
  EXPECT_EQ(spec.rows[0].work_hash, spec.rows[1].work_hash);
  EXPECT_NE(spec.rows[0].config_hash, spec.rows[1].config_hash);
  for (const int row : {2, 3, 4}) EXPECT_NE(spec.rows[0].work_hash, spec.rows[row].work_hash) << row;
  EXPECT_EQ(parse("ablate: 1\nname: small\ncommand: {argv: [\"true\"]}\nrows: [{id: a}]\n"
                  "table: {columns: [{name: acc, metric: acc}]}\n")
                .rows[0]
                .work_hash,
            "");
}

constexpr const char* kOwnProgram =
    "ablate: 1\nname: small\ncommand: {argv: [\"true\"]}\nrows: [{id: a}]\n"
    "table: {columns: [{name: acc, metric: accuracy}]}\n";

TEST(SweepFileTest, RetryHasRulesForKindsOfFailures) {
  const SweepSpec without = parse(std::string{kOwnProgram} + "retry: {max: 3}\n");
  EXPECT_EQ(without.canonical.find("retry_on"), std::string::npos) << "it is the sweep that it was";
  const SweepSpec spec = parse(std::string{kOwnProgram} +
                               "retry: {max: 3, on: {resources: 1, data: 0, \"exit 75\": infrastructure, "
                               "\"signal 11\": 0, \"log NCCL error .*\": infrastructure}}\n");
  EXPECT_EQ(spec.max_retries, 3);
  EXPECT_EQ(protocol::to_text(spec.retry_on),
            R"([["resources",1],["data",0],["exit 75","infrastructure"],["signal SEGV",0],)"
            R"(["log NCCL error .*","infrastructure"]])");
  EXPECT_NE(spec.canonical, without.canonical);
  EXPECT_EQ(spec.rows[0].config_hash, without.rows[0].config_hash) << "of the same trials";
}

TEST(SweepFileTest, ARetryRuleThatMeansNothingIsNamedWithItsPlace) {
  const std::vector<std::pair<std::string, std::string>> wrong{
      {"{resurces: 1}",
       "sweep.yaml:6:14: retry.on.resurces: unknown kind of failure 'resurces'; expected "
       "infrastructure, resources, trial, data, 'exit N' with N from 1 to 255, 'signal NAME' or "
       "'log PATTERN'; did you mean 'resources'?"},
      {"{\"signal SEGF\": 1}", "did you mean 'signal SEGV'?"},
      {"{\"exit 0\": 1}", "unknown kind of failure 'exit 0'"},
      {"{\"log (a\": 1}", "invalid pattern: missing )"},
      {"{\"log \": 1}", "no pattern"},
      {"{resources: infrastrcture}",
       "invalid value 'infrastrcture'; expected a number of further attempts from 0 to 1000, or as "
       "which class it counts: infrastructure, resources, trial or data; did you mean "
       "'infrastructure'?"},
      {"{resources: -1}", "invalid value '-1'"},
      {"{infrastructure: 3}", "fails no trial"},
      {"{trial: infrastructure}", "'trial' cannot count as infrastructure"},
      {"{data: data}", "'data' cannot count as data"},
      {"{\"signal 11\": 1, \"signal SEGV\": 2}", "'signal SEGV' is listed twice"},
      {"3", "retry.on"}};
  for (const auto& [on, message] : wrong)
    EXPECT_THAT(problem_of(std::string{kOwnProgram} + "retry: {on: " + on + "}\n"), HasSubstr(message)) << on;
  EXPECT_THAT(problem_of(std::string{kOwnProgram} + "retry: {onn: {}}\n"), HasSubstr("did you mean 'on'?"));
  std::string many;
  for (int code = 1; code <= 101; ++code) many += "    exit " + std::to_string(code) + ": 1\n";
  EXPECT_THAT(problem_of(std::string{kOwnProgram} + "retry:\n  on:\n" + many),
              HasSubstr("101 kinds of failures; expected at most 100"));
}

TEST(SweepFileTest, ALogHasALimitAndNaNMayFail) {
  const SweepSpec spec = parse(std::string{kOwnProgram} + "limits: {log: 2MiB, nan: fail}\n");
  EXPECT_EQ(spec.limits.log, 2U << 20);
  EXPECT_TRUE(spec.limits.nan_fails);
  EXPECT_FALSE(parse(std::string{kOwnProgram} + "limits: {nan: keep}\n").limits.any());
  for (const char* size : {"2MB", "2 MiB", "0", "1023", "-1MiB", "MiB", "99999999GiB"})
    EXPECT_THAT(problem_of(std::string{kOwnProgram} + "limits: {log: " + size + "}\n"),
                HasSubstr("expected a whole number and KiB, MiB or GiB"))
        << size;
  EXPECT_THAT(problem_of(std::string{kOwnProgram} + "limits: {nan: fial}\n"),
              HasSubstr("did you mean 'fail'?"));
}

TEST(SweepFileTest, LimitsAreDurationsAndASweepWithoutThemIsTheOneThatItWas) {
  const std::string small = std::string{kSmall}.replace(std::string{kSmall}.find(", paper"), 21, "");
  const SweepSpec without = parse(small);
  EXPECT_FALSE(without.limits.any());
  EXPECT_EQ(without.canonical.find("limits"), std::string::npos);
  const SweepSpec spec = parse(small + "limits: {time: 2h, stall: 90s}\n");
  EXPECT_EQ(spec.limits.time, std::chrono::hours{2});
  EXPECT_EQ(spec.limits.stall, std::chrono::seconds{90});
  EXPECT_NE(spec.canonical, without.canonical);
  for (const char* wrong : {"2 hours", "h", "0s", "-1m", "1.5h", "9999999d", "2"}) {
    try {
      parse(small + "limits: {time: " + wrong + "}\n");
      ADD_FAILURE() << wrong << " was taken for a duration";
    } catch (const SweepFileError& error) {
      EXPECT_THAT(error.what(), HasSubstr(fmt::format("limits.time: invalid duration '{}'", wrong)));
    }
  }
}

TEST(SweepFileTest, ColumnsKnowTheirUnits) {
  const SweepSpec spec = parse(std::string{kSmall} + R"(table:
  columns:
    - {name: acc, metric: val/top1, take: best, digits: 1, heading: "top-1"}
    - {name: loss, metric: train/loss}
    - {name: params, count: params.weights}
    - {name: flops, count: flops.msf, unit: G}
    - {name: share, setting: model.attention.share}
    - {name: groups, setting: model.attention.groups}
)");
  const auto& columns = spec.table.columns;
  EXPECT_EQ(columns[0].heading, "top-1");
  EXPECT_EQ(columns[0].digits, 1);
  EXPECT_EQ(columns[1].better, protocol::Better::kLower);
  EXPECT_EQ(columns[1].heading, "loss");
  EXPECT_EQ(columns[2].kind, Column::Kind::kCount);
  EXPECT_EQ(columns[2].unit, protocol::Unit::kMillion);
  EXPECT_TRUE(columns[2].unit_fits) << "or smaller, where all are small";
  EXPECT_EQ(columns[3].unit, protocol::Unit::kBillion);
  EXPECT_FALSE(columns[3].unit_fits) << "as the file says";
  EXPECT_FALSE(columns[0].unit_fits);
  EXPECT_EQ(columns[4].kind, Column::Kind::kSetting);
  EXPECT_EQ(spec.rows[0].set.at("model.attention.share"), "QKVVW");
  EXPECT_EQ(spec.rows[1].set.at("model.attention.share"), "QKVPW")
      << "a setting column shows what the row leaves to the base";
  EXPECT_EQ(spec.rows[1].set.at("model.attention.groups"), "1");
}

TEST(SweepFileTest, ExpressionsPivotsAndWhatIsShownAreInTheCanonicalTextWhereTheyAreSaid) {
  const std::string columns = R"(
  columns:
    - {name: acc, metric: val/top1}
    - {name: top-5, metric: val/top5}
    - {name: twice, expression: "2 * gain", unit: M}
    - {name: gain, expression: acc - paper.'top-5', digits: 3, better: higher}
)";
  const SweepSpec plain = parse(std::string{kSmall} + "table:" + columns);
  ASSERT_EQ(plain.table.columns.size(), 4u);
  EXPECT_EQ(plain.table.columns[3].kind, Column::Kind::kExpression);
  EXPECT_EQ(plain.table.columns[3].source, "acc - paper.'top-5'");
  EXPECT_EQ(plain.table.columns[3].better, protocol::Better::kHigher);
  EXPECT_FALSE(plain.table.columns[2].unit_fits);
  EXPECT_EQ(plain.canonical.find("pivot"), std::string::npos);
  const SweepSpec pivoted =
      parse(std::string{kSmall} + "table:\n  pivot: {by: model.attention.share}\n  show: [value]" + columns);
  ASSERT_TRUE(pivoted.table.pivot);
  EXPECT_THAT(pivoted.table.pivot->columns, ElementsAre("acc", "top-5", "twice", "gain")) << "without a list";
  const auto table = nlohmann::json::parse(pivoted.canonical)["table"];
  EXPECT_EQ(table["pivot"]["by"], "model.attention.share");
  EXPECT_EQ(table["show"], nlohmann::json{"value"});
  EXPECT_EQ(table["columns"][3]["expression"], "acc - paper.'top-5'");
  EXPECT_EQ(pivoted.rows[0].config_hash, plain.rows[0].config_hash);
}

TEST(ExpandTest, TheFirstSeedOfEveryRowComesFirst) {
  const SweepSpec spec = parse(std::string{kSmall} + kColumns + "seeds: [7, 3]\n");
  std::vector<std::pair<int, std::int64_t>> order;
  for (const TrialSpec& trial : expand(spec)) order.emplace_back(trial.row, trial.seed);
  EXPECT_THAT(order, ElementsAre(std::pair{0, 7}, std::pair{1, 7}, std::pair{0, 3}, std::pair{1, 3}));
}

TEST(ExpandTest, ATrialIsItsRowWithTheSeed) {
  const SweepSpec spec = parse(std::string{kSmall} + kColumns + "seeds: [7]\n");
  const TrialSpec trial = expand(spec).front();
  EXPECT_EQ(nlohmann::json::parse(trial.config)["seed"], 7);
  auto without = nlohmann::json::parse(trial.config);
  without.erase("seed");
  EXPECT_EQ(without, nlohmann::json::parse(spec.rows[0].config));
  EXPECT_NE(trial.config_hash, spec.rows[0].config_hash);
}

TEST(CommandTest, ACommandIsItsArgvParamsAndVersion) {
  const SweepSpec spec = parse(kCommand);
  ASSERT_TRUE(spec.command);
  EXPECT_THAT(spec.command->argv, ElementsAre("python3", "train.py", ""));
  EXPECT_EQ(spec.command->version, "3");
  EXPECT_TRUE(spec.command->reuse);
  EXPECT_EQ(spec.data, "cifar10");
  EXPECT_EQ(
      spec.rows[0].config,
      R"({"argv":["python3","train.py",""],"params":{"lr":0.1,"optimiser":{"name":"sgd"}},"version":"3"})");
  EXPECT_EQ(
      spec.rows[1].config,
      R"({"argv":["python3","train.py",""],"params":{"lr":0.2,"optimiser":{"name":"adam"}},"version":"3"})");
  EXPECT_EQ(spec.rows[0].set.at("params.lr"), "0.1");
  EXPECT_THAT(spec.rows[0].model, IsEmpty());
  EXPECT_EQ(
      expand(spec).front().config,
      R"({"argv":["python3","train.py",""],"params":{"lr":0.1,"optimiser":{"name":"sgd"}},"seed":0,"version":"3"})");
}

TEST(CommandTest, FactorsVaryParams) {
  const SweepSpec spec = parse(R"(ablate: 1
name: mine
command: {argv: [./train], params: {lr: 0.1}}
factors: {params.lr: [0.1, 0.2]}
table: {columns: [{name: acc, metric: accuracy}]}
)");
  EXPECT_EQ(spec.rows[1].id, "lr=0.2");
  EXPECT_THAT(spec.rows[1].config, HasSubstr(R"("params":{"lr":0.2})"));
}

TEST(CommandTest, ItsColumnsMustBeNamed) {
  EXPECT_THAT(problem_of("ablate: 1\nname: mine\ncommand: {argv: [./train]}\nrows: [{id: a}]\n"),
              HasSubstr("table.columns: missing; expected the metrics that the command emits"));
}

/// A sweep of a command with these arguments and keys.
std::string command_sweep(const std::string& argv, const std::string& more = "") {
  return fmt::format(
      "ablate: 1\nname: mine\ncommand: {{argv: [{}], params: {{lr: 0.1, opt: {{name: sgd}}}}{}}}\n"
      "rows: [{{id: a}}]\ntable: {{columns: [{{name: acc, metric: accuracy}}]}}\n",
      argv, more);
}

TEST(CommandTest, WhatIsFilledInStaysAPlaceInTheDocument) {
  const SweepSpec spec = parse(
      command_sweep(R"(./x, "{params.lr}", "{params.opt.name}", "{seed}", "{run_dir}", "{{x} {y} ${HOME}")"));
  EXPECT_THAT(
      spec.rows[0].config,
      HasSubstr(
          R"("argv":["./x","{params.lr}","{params.opt.name}","{seed}","{run_dir}","{{x} {y} ${HOME}"])"))
      << "no machine's path, and nothing that stands in params or seed already, makes another trial of it";
}

TEST(CommandTest, WhereItsNumbersAreIsPartOfTheTrialAsItsWayToGoOnIs) {
  EXPECT_EQ(parse(command_sweep("./x")).rows[0].config,
            R"({"argv":["./x"],"params":{"lr":0.1,"opt":{"name":"sgd"}},"version":""})")
      << "a file that says neither has the trials that it had";
  const SweepSpec spec = parse(
      command_sweep("./x", R"(, checkpoint: "{run_dir}/out/*.pth", resume_argv: [--resume, "{checkpoint}"],
  metrics: [{pattern: 'e(?<epoch>\d) (?<acc>.*)', names: {acc: accuracy}}, {file: r.csv, step: count}])"));
  EXPECT_EQ(
      spec.rows[0].config,
      R"json({"argv":["./x"],"checkpoint":"out/*.pth","metrics":[{"names":[["acc","accuracy"]],"pattern":["e(?<epoch>\\d) (?<acc>.*)"]},{"file":"r.csv","step":"count"}],"params":{"lr":0.1,"opt":{"name":"sgd"}},"resume_argv":["--resume","{checkpoint}"],"version":""})json");
}

TEST(CommandTest, ACheckpointIsGoneOnFromByFurtherArguments) {
  EXPECT_THAT(problem_of(command_sweep("./x", ", checkpoint: last.pth")),
              HasSubstr("command.checkpoint: needs command.resume_argv"));
  EXPECT_THAT(
      problem_of(command_sweep("./x", ", checkpoint: /tmp/last.pth, resume_argv: [\"{checkpoint}\"]")),
      HasSubstr("command.checkpoint: expected a path in the run's folder"));
  EXPECT_THAT(problem_of(command_sweep("./x", ", resume_argv: []")),
              HasSubstr("command.resume_argv: empty; expected arguments that come behind argv"));
  EXPECT_THAT(problem_of(command_sweep("./x", ", resume_argv: [\"{params.lrr}\"]")),
              HasSubstr("command.resume_argv.1: {params.lrr}: unknown param"));
  EXPECT_THAT(problem_of(command_sweep(R"(./x, "{checkpoint}")")),
              HasSubstr("command.argv.2: {checkpoint}: is filled into command.resume_argv alone"));
  EXPECT_THAT(problem_of(command_sweep("./x", ", resume_argv: [\"{checkpont}\"]")),
              HasSubstr("{checkpont} is filled with nothing; write {checkpoint}"));
}

TEST(CommandTest, PlacesThatNothingFillsAreProblemsOfTheirArgument) {
  EXPECT_THAT(
      problem_of(command_sweep(R"(./x, "--lr={params.lrr}")")),
      HasSubstr(
          "sweep.yaml:3:23: command.argv.2: {params.lrr}: unknown param; expected params.lr, params.opt or "
          "params.opt.name; did you mean 'params.lr'?"));
  EXPECT_THAT(problem_of(command_sweep(R"(./x, "${lr}")")),
              HasSubstr("command.argv.2: ${lr}: no shell reads the arguments; write {params.lr}"));
  EXPECT_THAT(problem_of(command_sweep(R"(./x, "${params.opt.name}")")),
              HasSubstr("write {params.opt.name}"));
  EXPECT_THAT(problem_of(command_sweep(R"(./x, "${seed}")")), HasSubstr("write {seed}"));
  EXPECT_THAT(problem_of(command_sweep(R"(./x, "{data}")")),
              HasSubstr("command.argv.2: {data}: needs command.data, the name of a data set"));
  EXPECT_THAT(problem_of(command_sweep("./x, {params.lr}")),
              HasSubstr("command.argv.2: a mapping to YAML; put it between quotes: \"{params.lr}\""));
  EXPECT_NO_THROW(parse(command_sweep(R"(./x, "{data}")", ", data: cifar10")));
}

TEST(CommandTest, MisspeltPlacesAreProblemsAndOtherBracesAreThePrograms) {
  const auto problem = [](const std::string& argument) {
    return problem_of(command_sweep(fmt::format("./x, '{}'", argument)));
  };
  for (const auto& [written, meant] :
       std::initializer_list<std::pair<std::string, std::string>>{{"{sed}", "{seed}"},
                                                                  {"{seeds}", "{seed}"},
                                                                  {"{Seed}", "{seed}"},
                                                                  {"{ seed }", "{seed}"},
                                                                  {"--out={rundir}/x", "{run_dir}"},
                                                                  {"{param.lr}", "{params.lr}"},
                                                                  {"--lr={lr}", "{params.lr}"},
                                                                  {"{params[lr]}", "{params.lr}"},
                                                                  {R"({"lr": {lr}})", "{params.lr}"},
                                                                  {"{opt.name}", "{params.opt.name}"}})
    EXPECT_THAT(problem(written), testing::AllOf(HasSubstr("command.argv.2: {"), HasSubstr("write " + meant),
                                                 HasSubstr("{{ for a brace of the program's")))
        << written;
  EXPECT_THAT(problem("{ seed }"), HasSubstr("{ seed } is filled with nothing; write {seed}, or {{ for"));
  for (const char* literal : {R"({"seed": 1, "lr": [0.1]})", "{}", "{x}", "{rate}", "{epoch:03d}.pt",
                              "awk {print}", "{{seed}", "{1,2}"})
    EXPECT_NO_THROW(parse(command_sweep(fmt::format("./x, '{}'", literal)))) << literal;
}

/// The small command, but that its rows are these.
std::string command_rows(const std::string& argv, const std::string& rows) {
  std::string text = command_sweep(argv);
  const std::string usual = "{id: a}";
  return text.replace(text.find(usual), usual.size(), rows);
}

TEST(CommandTest, ARowThatTakesAPlaceAwayIsAProblemOfTheRow) {
  const std::string argv = R"(./x, "{params.opt.name}")";
  EXPECT_THAT(problem_of(command_rows(argv, "{id: a}, {id: b, set: {params.opt: 5}}")),
              HasSubstr("sweep.yaml:4:31: rows.b.set.params.opt: leaves no {params.opt.name}, with which "
                        "command.argv.2 is filled"));
  EXPECT_NO_THROW(parse(command_rows(argv, "{id: a, set: {params.opt.name: adam}}")));
  EXPECT_NO_THROW(parse(command_rows(R"(./x, "{params.opt}")", "{id: a, set: {params.opt: 5}}")));
}

TEST(CommandTest, NoArgumentHoldsANul) {
  EXPECT_THAT(problem_of(command_sweep(R"(./x, "a\0b")")),
              HasSubstr("sweep.yaml:3:23: command.argv.2: holds a NUL character"));
  EXPECT_THAT(problem_of(command_rows(R"(./x, "{params.lr}")", R"({id: a, set: {params.lr: "1\0"}})")),
              HasSubstr("rows.a.set.params.lr: holds a NUL character, and command.argv.2 is filled with it"));
  EXPECT_NO_THROW(parse(command_rows("./x", R"({id: a, set: {params.lr: "1\0"}})")));
}

TEST(CommandTest, ItRunsInTheSweepFilesFolderOrInOneThatStartsThere) {
  const auto folder_of = [](const std::string& more, const std::string& file_folder) {
    return parse_sweep(command_sweep("./x", more), "sweep.yaml", file_folder).command->folder;
  };
  EXPECT_EQ(folder_of("", "/home/me/study"), "/home/me/study");
  EXPECT_EQ(folder_of(", folder: src/train/", "/home/me/study"), "/home/me/study/src/train");
  EXPECT_EQ(folder_of(", folder: ..", "/home/me/study"), "/home/me");
  EXPECT_EQ(folder_of(", folder: /opt/train", "/home/me/study"), "/opt/train");
  EXPECT_EQ(folder_of(", folder: '{run_dir}'", "/home/me/study"), "");
  EXPECT_EQ(folder_of("", ""), "");
  EXPECT_THAT(problem_of(command_sweep("./x", ", folder: src")),
              HasSubstr("command.folder: 'src' is relative"));
  EXPECT_THAT(problem_of(command_sweep("./x", ", folder: ~/src")), HasSubstr("'~' is not expanded"));
}

TEST(CommandTest, TheSameArgumentsInAnotherFolderAreAnotherProgram) {
  const auto in = [](const std::string& more) {
    return parse_sweep(command_sweep("./x", more), "sweep.yaml", "/a");
  };
  const SweepSpec here = in(""), same = in(", folder: /a"), other = in(", folder: /b"),
                  own = in(", folder: '{run_dir}'");
  EXPECT_EQ(here.rows[0].config_hash, same.rows[0].config_hash);
  EXPECT_NE(here.rows[0].config_hash, other.rows[0].config_hash);
  EXPECT_THAT(own.rows[0].config, Not(HasSubstr("folder"))) << "as stored before commands had a folder";
  EXPECT_THAT(difference(here.canonical, other.canonical), ElementsAre("folder: /a here, /b in the store"));
  EXPECT_THAT(difference(here.canonical, own.canonical),
              ElementsAre("folder: /a here, {run_dir} in the store"));
}

TEST(PlaceTest, AProblemPointsAtTheKeyThatHasIt) {
  EXPECT_THAT(problem_of(std::string{kSmall} + "  - {id: g, set: {model.attention.groups: 5}}\n" + kColumns),
              HasSubstr("sweep.yaml:10:19: rows.g.set.model.attention.groups: 5 groups do not divide the "
                        "embedding dimension 192"));
  EXPECT_THAT(problem_of(std::string{kSmall} + kColumns + "seed: [1]\n"),
              HasSubstr("sweep.yaml:12:1: seed: unknown key"));
  EXPECT_THAT(problem_of(std::string{kSmall} + kColumns + "seeds: [1]\nseeds: [2]\n"),
              HasSubstr("sweep.yaml:13:1: seeds: duplicate key; it is given in line 12 already"));
}

TEST(PlaceTest, AProblemOfSomeRowsInTheBaseNamesThem) {
  EXPECT_THAT(problem_of(R"(ablate: 1
name: base
base:
  model: {preset: simple-vit-ti, attention: {groups: 3}}
  data: {name: cifar10}
  recipe: {use: cifar-lite}
rows:
  - {id: whole}
  - {id: narrow, set: {model.dim: 64}}
)"),
              HasSubstr("sweep.yaml:4:46: base.model.attention.groups: 3 groups do not divide the embedding "
                        "dimension 64 (in row narrow)"));
}

TEST(HostileFileTest, DeepAndEndlessFilesEndInAMessage) {
  EXPECT_THAT(problem_of(fmt::format("{:[>200}{:]>200}", "", "")), HasSubstr("nested too deeply"));
  for (const char* opening : {"[", "{a: ", "- ", "[{", "? "}) {
    std::string deep;
    for (int i = 0; i < 100'000; ++i) deep += opening;
    EXPECT_THAT(problem_of(deep), HasSubstr("nested too deeply; expected at most 100 levels")) << opening;
  }
  std::string laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i)
    laughs += fmt::format("a{0}: &a{0} [*a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}]\n", i, i - 1);
  EXPECT_THROW(parse(laughs), SweepFileError);
  EXPECT_THAT(problem_of("\xff\xfe"), HasSubstr("the file is not UTF-8 text"));
  EXPECT_THAT(problem_of(std::string{kSmall} + kColumns + "? [a, b]\n: 1\n"),
              HasSubstr("12:3: a key must be a text"));
}

TEST(HostileFileTest, ASignWhereNoneCanStandIsSaidAndDoesNotFillTheMemory) {
  EXPECT_EQ(problem_of(", time: 8h }\n"), "sweep.yaml:1:1: not YAML: unexpected ','");
  EXPECT_EQ(problem_of("\n  }\n"), "sweep.yaml:2:3: not YAML: illegal flow end");
  EXPECT_THAT(problem_of(std::string{kSmall} + kColumns + "---\nb: 1\n"),
              HasSubstr("a second YAML document"));
}

TEST(HostileFileTest, WhatIsSaidIsOneLineThatATerminalOnlyShows) {
  const std::string said = problem_of(std::string{kSmall} + kColumns + "\"na\\nme\\e[31m\": x\n");
  EXPECT_THAT(said, HasSubstr(": na me: unknown key"));
  EXPECT_EQ(said.find('\n'), std::string::npos);
}

TEST(HostileFileTest, AFileThatIsTooLargeIsRefusedUnread) {
  EXPECT_THAT(
      problem_of(std::string((4 << 20) + 1, '\xff')),
      HasSubstr("sweep.yaml: the file has 4,194,305 bytes; a sweep file has at most 4,194,304 (4 MiB)"));
}

TEST(HostileFileTest, AHundredThousandWrongKeysAreTwoHundredProblems) {
  std::string text = std::string{kSmall} + kColumns;
  for (int i = 0; i < 100'000; ++i) text += fmt::format("key{}: 1\n", i);
  try {
    parse(text);
    FAIL() << "nothing was wrong";
  } catch (const SweepFileError& error) {
    EXPECT_EQ(error.problems().size(), 201u);
    EXPECT_EQ(error.problems().back().text(), "sweep.yaml: and 99800 more problems");
  }
}

}  // namespace
}  // namespace abl::sweeps
