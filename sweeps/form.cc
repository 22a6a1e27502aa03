// SPDX-License-Identifier: Apache-2.0
#include "sweeps/form.h"

#include <fmt/format.h>

#include <initializer_list>
#include <optional>
#include <span>
#include <variant>

#include "config/document/trial_document.h"
#include "protocol/checkpoint_files.h"
#include "protocol/failure.h"
#include "protocol/metric_source.h"
#include "protocol/metrics.h"
#include "protocol/probes.h"
#include "sweeps/attributes.h"
#include "sweeps/design.h"

namespace abl::sweeps {
namespace {

using nlohmann::json;

json says(const std::string& sentence, json schema = json::object()) {
  schema["description"] = sentence;
  return schema;
}

json with(json schema, const json& more) {
  schema.update(more);
  return schema;
}

/// Whatever YAML takes a scalar for, it is read as it is written.
json text() { return {{"type", {"string", "number", "boolean"}}}; }
json name() { return with(text(), {{"pattern", "^[A-Za-z0-9._-]{1,100}$"}}); }
json boolean() { return {{"type", "boolean"}}; }
json whole(std::int64_t low, std::int64_t high) {
  return {{"type", "integer"}, {"minimum", low}, {"maximum", high}};
}
json one_of(const std::vector<std::string>& choices) { return {{"enum", choices}}; }
template <Named E>
json one_of() {
  return one_of(names_of<E>());
}
/// Any text; editors offer these.
json preferably(json offered) { return {{"anyOf", {std::move(offered), text()}}}; }
json list_of(json items, int least = 1) {
  return {{"type", "array"}, {"items", std::move(items)}, {"minItems", least}};
}
json mapping_to(json values) { return {{"type", "object"}, {"additionalProperties", std::move(values)}}; }
json defined(std::string_view name) { return {{"$ref", fmt::format("#/definitions/{}", name)}}; }
json part(Part part) { return defined(name_of(part)); }
json either(std::initializer_list<json> schemas) { return {{"anyOf", json(schemas)}}; }
json seed() { return whole(0, static_cast<std::int64_t>(config::kSeedRange.high)); }

/// Exactly one of these keys.
json exactly_one(std::initializer_list<const char*> keys) {
  json all = json::array();
  for (const char* key : keys) all.push_back({{"required", {key}}});
  return {{"oneOf", all}};
}
json one_at_least(std::initializer_list<const char*> keys) {
  json all = json::array();
  for (const char* key : keys) all.push_back({{"required", {key}}});
  return {{"anyOf", all}};
}

/// What an attribute may be, by the type of its member.
template <class Owner>
json schema_of(const Attribute<Owner>& attribute) {
  const auto of = [&]<class V>(V Owner::*) -> json {
    if constexpr (std::is_same_v<V, std::string>) return text();
    if constexpr (std::is_same_v<V, std::vector<std::string>>) return list_of(text(), 0);
    if constexpr (std::is_same_v<V, bool>) return boolean();
    if constexpr (std::is_same_v<V, std::optional<int>>) return whole(0, attribute.high);
    if constexpr (std::is_same_v<V, std::optional<double>>)
      return {{"type", "number"}, {"exclusiveMinimum", 0}};
    if constexpr (std::is_same_v<V, protocol::Compare>) return part(Part::kCompare);
    if constexpr (Named<V>) return one_of<V>();
    if constexpr (std::is_same_v<V, std::optional<protocol::Unit>>)
      return either({one_of<protocol::Unit>(), {{"type", "null"}}});
    return json::object();
  };
  return says(std::string{attribute.says}, std::visit(of, attribute.member));
}

template <class Owner>
std::vector<Key> keys_of(std::span<const Attribute<Owner>> attributes, std::vector<Key> keys,
                         std::vector<Key> behind = {}) {
  for (const Attribute<Owner>& attribute : attributes) keys.push_back({attribute.key, schema_of(attribute)});
  for (Key& key : behind) keys.push_back(std::move(key));
  return keys;
}

/// With the keys that say how points are chosen and judged. `judged`: the trials of the points, in words.
std::vector<Key> with_design(std::vector<Key> keys, std::string_view judged) {
  const json held_out = either({json{{"type", "number"}, {"exclusiveMinimum", 0}}, json{{"type", "object"}}});
  for (Key& key : std::vector<Key>{
           {"metric",
            says("What is best at the best point: a metric of images held out, such as val/loss.",
                 preferably(one_of(names(protocol::trainer_metrics())))),
            true},
           {"better",
            says("Of a command's metric, where its name does not say it.", one_of({"higher", "lower"}))},
           {"method", says("How points are chosen.", with(one_of<Method>(), {{"default", "sobol"}}))},
           {"halving", says("Successive halving: what the points begin with less of.", part(Part::kHalving))},
           {"held_out",
            says(fmt::format("A part of train, or so many images, that {0} are judged on [0.1]; of a "
                             "command: the parameters that its {0} are given for that.",
                             judged),
                 held_out)},
           {"seed", says("Of the design: the same seed gives the same points.", whole(0, 1'000'000'000))}})
    keys.push_back(std::move(key));
  return keys;
}

/// A probe by its name, or a mapping with its settings.
json probe() {
  std::vector<std::string> names;
  json all = json::array();
  for (const auto& declared : protocol::probe_declarations()) {
    names.emplace_back(declared.name);
    json keys{{"name", says(declared.sentence, {{"const", declared.name}})}};
    for (const auto& setting : declared.settings) {
      using Kind = protocol::ProbeSetting::Kind;
      const json number = whole(setting.lowest, setting.highest);
      keys[setting.name] = says(setting.sentence, setting.kind == Kind::kFlag     ? boolean()
                                                  : setting.kind == Kind::kNumber ? number
                                                                                  : list_of(number, 0));
    }
    all.push_back(
        {{"type", "object"}, {"required", {"name"}}, {"properties", keys}, {"additionalProperties", false}});
  }
  all.push_back(one_of(names));
  return {{"anyOf", all}};
}

Form sweep() {
  json without{{"properties", json::object()}};  // the points of a search are all there is
  for (const char* key : {"rows", "factors", "seeds", "tune", "table", "scale"})
    without["properties"][key] = false;
  return {
      {{"ablate", says("Version of the file format.", {{"const", kFormatVersion}}), true},
       {"name", says("Name of the sweep: letters, digits, '.', '_' and '-'.", name()), true},
       {"base", says("What all trials share: model, data and recipe.", defined("base"))},
       {"command", says("A program of your own in place of the trainer.", part(Part::kCommand))},
       {"rows", says("The lines of the table.", list_of(part(Part::kRow)))},
       {"factors",
        says("Dotted keys with their levels; the rows are all combinations, the first varying slowest. With "
             "rows, each row stands with each combination.",
             defined("factors"))},
       {"zip",
        says("Lists of factors that vary together, level by level.", list_of(list_of(defined("key"), 2), 0))},
       {"only_if", says("A factor applies only where others have these levels.",
                        {{"type", "object"},
                         {"propertyNames", defined("key")},
                         {"additionalProperties", defined("conditions")}})},
       {"exclude", says("Combinations of levels that are left out.", list_of(defined("conditions"), 0))},
       {"seeds", says("A list of seeds; how many (3: 0, 1, 2); or until enough is known. Without it, seed 0.",
                      either({whole(1, kMostTrials), with(list_of(seed()), {{"uniqueItems", true}}),
                              part(Part::kSeedRule)}))},
       {"tune", says("For each row the best values of some keys are looked for before its seeds are trained.",
                     part(Part::kTune))},
       {"search",
        says("Points of ranges, in place of rows: the best of them is looked for.", part(Part::kSearch))},
       {"table", says("Baseline, columns and notes. Without it, the last val/top1.", part(Part::kTable))},
       {"probes",
        says("What looks into each trained model; 'ablate probe --list' has them.", list_of(probe(), 0))},
       {"resources", says("What a trial needs of a worker.", part(Part::kResources))},
       {"retry", says("Further attempts after a failure of the trial itself.", part(Part::kRetry))},
       {"limits", says("What a run may not exceed.", part(Part::kLimits))},
       {"scale", says("Rules that make a smaller study of the rows.", part(Part::kScale))},
       {"sources",
        says("Texts of the sweep files whose rows 'from' and 'teacher' name; ablate puts them here.",
             mapping_to(text()))}},
      with(one_at_least({"rows", "factors", "search"}), {{"dependencies", {{"search", without}}}})};
}

Form row() {
  const json value = either({text(), part(Part::kPaperValue)});
  const json by_level{{"type", "object"},
                      {"description", "by level of the factors"},
                      {"not", {{"required", {"text"}}}},
                      {"additionalProperties", value}};
  return {{{"id", says("A short name that no other row has.", name()), true},
           {"label", says("As printed; the id where nothing is said.", text())},
           {"group", says("The heading that it stands under; rows of one group stand together.", text())},
           {"set", says("Dotted or nested keys of the trial, and their values.", defined("settings"))},
           {"not_trained", says("The paper prints it and nothing here trains it.", part(Part::kNotTrained))},
           {"paper", says("The paper's values by column name, as printed: quote them.",
                          mapping_to(either({text(), part(Part::kPaperValue), by_level})))},
           {"from", says("Another row, with whose weights it begins.", part(Part::kSource))},
           {"teacher", says("Another row, from whose model it learns.", part(Part::kSource))}}};
}

Form column() {
  Form form{keys_of(
      column_attributes(),
      {{"name", says("Name of the column, which is also the key of the papers' values.", text()), true},
       {"metric", says("A metric of the runs.", preferably(one_of(names(protocol::trainer_metrics()))))},
       {"probe", says("What a probe finds, PROBE/VALUE: feature-norms/last.", text())},
       {"count", says("Known before training.", one_of(names(protocol::count_modes())))},
       {"setting", says("A dotted key of the row, as text.", preferably(defined("key")))},
       {"expression", says("A number made of other columns: acc - baseline.acc.", text())},
       {"printed", says("Only the paper has it.", {{"const", true}})}})};
  form.rules = exactly_one({"metric", "probe", "count", "setting", "expression", "printed"});
  return form;
}

Form table() {
  std::vector<Key> keys =
      keys_of(table_attributes(), {},
              {{"columns", says("What stands in the table.", list_of(part(Part::kColumn)))},
               {"pivot", says("Rows that differ in one factor alone stand in one line.", part(Part::kPivot))},
               {"show", says("What stands for each column; without it value, n and paper.",
                             with(list_of(one_of<protocol::Shown>()), {{"uniqueItems", true}}))}});
  for (Key& key : keys)
    if (key.name == "baseline")
      key.schema = says(key.schema["description"], either({text(), mapping_to(text())}));
  return {std::move(keys)};
}

Form made(Part which) {
  const json duration{{"type", "string"}, {"pattern", "^0*[1-9][0-9]*[smhdw]$"}};
  switch (which) {
    case Part::kSweep:
      return sweep();
    case Part::kRow:
      return row();
    case Part::kNotTrained:
      return {{{"kind",
                says("cited: the number is of another publication; task: detection, segmentation and such; "
                     "model: one that is not here.",
                     one_of<protocol::NotTrained>()),
                true},
               {"why", says("The reason in a few words.", text()), true}}};
    case Part::kPaperValue:
      return {{{"text", says("The value as printed.", text()), true},
               {"mark", says("How the paper marks it; doubtful: its number is not certain.",
                             one_of<protocol::Mark>())},
               {"why", says("Why it is doubtful.", text())}},
              {{"dependencies", {{"why", {"mark"}}}}}};
    case Part::kSource:
      return {{{"row", says("The id of another row.", text()), true},
               {"sweep", says("The sweep that has the row: a table of a paper, such as msf/table-1, or a "
                              "sweep file's path from this file's folder. Without it this sweep.",
                              text())},
               {"take", says("best: the checkpoint of the best evaluation; last: that of the last step.",
                             with(one_of<protocol::Taken>(), {{"default", "best"}}))},
               {"seed", says("The source's seed, for every seed of this row [the same seed].", seed())}}};
    case Part::kCommand:
      return {{{"argv",
                says("The program and its arguments; no shell reads them. Filled in: {params.NAME}, "
                     "{seed}, {run_dir}, {data}.",
                     list_of({{"type", {"string", "number", "boolean", "null"}}})),
                true},
               {"folder", says("Where it runs; the sweep file's folder where nothing is said. "
                               "\"{run_dir}\": each run's own.",
                               text())},
               {"params", says("What rows and factors may set (params.lr).", {{"type", "object"}})},
               {"version", says("A text; raise it when the program changes.", text())},
               {"reuse", says("A completed trial of equal argv, folder, params, version and seed is not run "
                              "again.",
                              boolean())},
               {"data", says("Logical name of a data set that the worker maps to a folder.", name())},
               {"checkpoint", says("Files that the program writes into the run's folder, from the newest of "
                                   "which it can go on: output/*/last.pth.tar.",
                                   text())},
               {"resume_argv", says("Arguments that come behind argv where a run goes on from a checkpoint: "
                                    "[--resume, \"{checkpoint}\"].",
                                    list_of({{"type", {"string", "number", "boolean", "null"}}}))},
               {"metrics", says("Where the numbers of a program are that prints no JSON lines; a list of "
                                "places, where there are several.",
                                either({part(Part::kMetricSource), list_of(part(Part::kMetricSource))}))}},
              {{"dependencies", {{"reuse", {"version"}}, {"checkpoint", {"resume_argv"}}}}}};
    case Part::kMetricSource:
      return {{{"pattern",
                says("A regular expression (RE2) with named groups for lines of the log, or a list of them: "
                     "\"epoch (?<epoch>\\d+).* acc=(?<acc>[0-9.]+)\".",
                     either({text(), list_of(text())}))},
               {"file", says("A table that the program writes into the run's folder, CSV or JSON Lines: "
                             "output/*/summary.csv.",
                             text())},
               {"tensorboard", says("A folder in the run's folder into which the program writes event files "
                                    "for TensorBoard: runs, or lightning_logs/*.",
                                    text())},
               {"names", says("Renames metrics: the group, column or tag, and its name in the table.",
                              mapping_to(text()))},
               {"step", says("The group or column of the step; 'count': each match or row is one more; "
                             "'last': of a pattern, the step that was found last in the log.",
                             preferably(one_of({"step", "epoch", "count", "last"})))},
               {"split",
                says("Prefix of the metrics that names does not list: val turns acc into val/acc.", text())},
               {"stream", says("Of a pattern: which of the program's outputs is searched.",
                               with(one_of<protocol::MetricSource::Stream>(), {{"default", "both"}}))},
               {"take", says("Of a pattern: which of several matches of one step counts.",
                             with(one_of<protocol::MetricSource::Take>(), {{"default", "last"}}))}},
              exactly_one({"pattern", "file", "tensorboard"})};
    case Part::kTable:
      return table();
    case Part::kColumn:
      return column();
    case Part::kCompare:
      return {{{"test", says("How a difference to the baseline is tested.",
                             with(one_of<protocol::Test>(), {{"default", "welch"}}))},
               {"interval", says("What 95 % intervals are made by.",
                                 with(one_of<protocol::IntervalBy>(), {{"default", "t"}}))},
               {"correction",
                says("For many rows.", with(one_of<protocol::Correction>(), {{"default", "holm"}}))}}};
    case Part::kPivot:
      return {{{"by", says("The dotted key of a factor.", preferably(defined("key"))), true},
               {"columns", says("Names of those that stand once for each level.", list_of(text()))}}};
    case Part::kSeedRule:
      return {{{"min", says("Seeds that each row begins with.", whole(2, kMostSeeds)), true},
               {"max", says("Seeds that a row gets at most.", whole(2, kMostSeeds)), true},
               {"until",
                says("\"ci(COLUMN) < NUMBER\" or \"decided(COLUMN)\".",
                     {{"type", "string"}, {"pattern", R"(^\s*(ci\(.+\)\s*<.+|decided\(.+\)\s*)$)"}}),
                true}}};
    case Part::kTune: {
      Form form{with_design(
          {{"budget", says("Points that each row gets.", whole(1, kMostTrials)), true},
           {"on", says("Seeds of the tuning trials, none of the sweep's own: \"seeds 100-101\", or a list.",
                       either({text(), list_of(seed())}))}},
          "tuning trials")};
      form.rules = {{"patternProperties", {{"^params\\..+", defined("tuned")}}}};
      return form;
    }
    case Part::kSearch:
      return {with_design(
          {{"over",
            says("Dotted keys, each with {min: 1e-4, max: 1e-2, log: true}, or a list of values.",
                 with(mapping_to(false),
                      {{"patternProperties", {{"^params\\..+", defined("tuned")}}}, {"minProperties", 1}})),
            true},
           {"trials", says("Points that are tried.", whole(1, kMostTrials)), true},
           {"seeds", says("Of each point: \"seeds 0-1\", or a list. Without it, seed 0.",
                          either({text(), list_of(seed())}))}},
          "trials")};
    case Part::kRange:
      return {
          {{"min", says("The least value.", {{"type", "number"}}), true},
           {"max", says("The greatest value.", {{"type", "number"}}), true},
           {"log", says("Evenly by ratios in place of differences.", with(boolean(), {{"default", false}}))},
           {"integer", says("Whole numbers alone.", with(boolean(), {{"default", false}}))}}};
    case Part::kHalving:
      return {
          {{"keep", says("The part of the points that goes on.",
                         {{"type", "number"}, {"minimum", 0.1}, {"maximum", 0.9}, {"default", 0.5}})},
           {"first", says("What the points begin with of the key; without it, so that two points or three "
                          "are left with all of it.",
                          {{"type", "number"}, {"exclusiveMinimum", 0}})},
           {"key", says("What is less at first; of a command one of its params.",
                        with(text(), {{"default", "recipe.epochs"}}))}}};
    case Part::kResources: {
      const json value = text();
      return {
          {{"gpus",
            says("GPUs that a trial needs, of one worker where one has enough; 0: any one slot. {min: 8, "
                 "max: 16}: as many as there are, at least min.",
                 with(either({whole(0, kMostGpus), part(Part::kAmount)}), {{"default", 0}}))},
           {"nodes",
            says("Workers that train a trial together, each with as many of its GPUs, or, without gpus, "
                 "with one slot. {min: 1, max: 2}: as many as there are, at least min.",
                 either({whole(1, kMostNodes), part(Part::kAmount)}))},
           {"pack", says("Trials of one GPU or slot may share it.", with(boolean(), {{"default", false}}))},
           {"where", says("Labels of the workers that will do: a value, a list of values, or \"!value\".",
                          mapping_to(either({value, list_of(value)})))}}};
    }
    case Part::kAmount:
      return {
          {{"min", says("At least so many.", whole(1, kMostGpus)), true},
           {"max", says("As many as connected workers have, up to so many.", whole(1, kMostGpus)), true}}};
    case Part::kRetry:
      return {
          {{"max", says("Further attempts.", with(whole(0, kMostAttempts), {{"default", 0}}))},
           {"on",
            says("Other numbers for some kinds of failures: a class, 'exit N', 'signal NAME' or "
                 "'log PATTERN'; a number of attempts, or the class as which it counts.",
                 with(mapping_to(either({whole(0, kMostAttempts), one_of<protocol::FailureClass>()})),
                      {{"propertyNames",
                        {{"pattern",
                          R"(^\s*(resources|data|trial|exit\s+[0-9]+|signal\s+\S+|log\s+.+)\s*$)"}}}}))}}};
    case Part::kLimits:
      return {{{"time", says("Of a run, such as 90s, 10m, 2h or 3d.", duration)},
               {"stall", says("Without a byte of output, such as 10m.", duration)},
               {"log", says("Of a run's log that is kept, such as 64MiB.",
                            {{"type", {"string", "integer"}}, {"pattern", "^[0-9]+([KMG]iB)?$"}})},
               {"nan", says("fail: the first metric value that is not finite ends the run.",
                            with(one_of({"fail", "keep"}), {{"default", "keep"}}))}}};
    case Part::kScale:
      return {{{"name", says("Of the scale; the sweep is then called NAME-SCALE.", name()), true},
               {"from", says("The file that it is of.", text())},
               {"says", says("What the scale is, which the table says.", text()), true},
               {"seeds", says("So many seeds in place of the file's.", whole(1, kMostTrials))},
               {"rules", says("What changes.", list_of(part(Part::kScaleRule))), true}}};
    case Part::kScaleRule:
      return {{{"when", says("Settings that a row has, as the file writes them: a value, a list of values, "
                             "or \"*\".",
                             with(mapping_to(either({text(), list_of(text())})),
                                  {{"propertyNames", defined("trial_key")}}))},
               {"drop", says("Keys that are taken out.",
                             either({defined("trial_key"), list_of(defined("trial_key"))}))},
               {"set", says("Keys and values, as a row's set.", defined("settings"))},
               {"layers", says("Layers that a key names, in proportion.", part(Part::kScaleLayers))},
               {"from", says("The row whose weights they start from at this scale, as its own file has it.",
                             part(Part::kSource))},
               {"teacher", says("The row whose model teaches them at this scale, as its own file has it.",
                                part(Part::kSource))},
               {"cannot", says("Why such rows cannot be had at this scale.", text())},
               {"why", says("The reason of the rule.", text())}},
              one_at_least({"why", "cannot"})};
    case Part::kScaleLayers:
      return {{{"key", says("Such as model.attention.layers.", text()), true},
               {"from", says("How many layers there were.", whole(1, kMostLayers)), true},
               {"to", says("How many there are.", whole(1, kMostLayers)), true}}};
    case Part::kScales:
      return {{{"scales", says("Scales by name.", mapping_to(defined("named_scale"))), true}}};
  }
  return {};
}

}  // namespace

std::vector<std::string_view> Form::names() const {
  std::vector<std::string_view> all;
  for (const Key& key : keys) all.push_back(key.name);
  return all;
}

const Form& form_of(Part part) {
  static const std::vector<Form> kForms = [] {
    std::vector<Form> forms;
    for (const Part each : values_of<Part>()) forms.push_back(made(each));
    return forms;
  }();
  return kForms[static_cast<std::size_t>(part)];
}

}  // namespace abl::sweeps
