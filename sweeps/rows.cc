// SPDX-License-Identifier: Apache-2.0
#include "sweeps/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/nearest_name.h"
#include "config/document/doubts.h"
#include "config/document/result_version.h"
#include "config/document/trial_document.h"
#include "config/json.h"
#include "config/recipe/recipes.h"
#include "sweeps/attributes.h"
#include "sweeps/command.h"
#include "sweeps/other_sweeps.h"

namespace abl::sweeps {
namespace {

using nlohmann::json;

std::vector<Assignment> read_set(YamlReader& reader, const Node& set, const std::string& field) {
  std::vector<Assignment> assignments;
  if (!reader.is_mapping(set, field)) return assignments;
  for (const Node::Entry& entry : set.entries) {
    const std::string path = dotted(field, entry.key);
    if (entry.key == "seed") {
      reader.problems().add(entry.place, path,
                            "a row has no seeds of its own; use the seeds: key of the file");
    } else {
      assignments.push_back({entry.key, &entry.value, entry.place, path});
    }
  }
  return assignments;
}

/// "79.79", or {text: "79.79", mark: underline, why: "…"}.
std::optional<PaperValue> read_paper_value(YamlReader& reader, const Node& node, const std::string& field) {
  if (node.kind != Node::Kind::kMapping) {
    const auto text = reader.text(node, field);
    return text ? std::optional{PaperValue{.text = *text}} : std::nullopt;
  }
  reader.allow_only(node, field, Part::kPaperValue);
  PaperValue value;
  if (const Node* text = node.find("text"))
    value.text = reader.text(*text, field + ".text").value_or("");
  else
    reader.problems().add(node.place, field + ".text", "missing; expected the value as printed");
  protocol::PaperMark mark{.mark = protocol::Mark::kDoubtful};
  const Node* marked = node.find("mark");
  const Node* why = node.find("why");
  if (marked) read_attribute(reader, *marked, field + ".mark", 0, mark.mark);
  if (why) mark.why = reader.text(*why, field + ".why").value_or("");
  if (why && !marked) reader.problems().add(why->place, field + ".why", "requires mark: doubtful");
  if (marked) value.mark = mark;
  return value;
}

void read_paper(YamlReader& reader, const Node& paper, const std::string& field,
                const std::vector<Column>& columns, bool factors, DraftRow& draft) {
  if (!reader.is_mapping(paper, field)) return;
  std::vector<std::string> names;
  for (const Column& column : columns) names.push_back(column.name);
  for (const Node::Entry& entry : paper.entries) {
    const std::string path = dotted(field, entry.key);
    if (std::ranges::find(names, entry.key) == names.end()) {
      reader.problems().add(entry.place, path, "the table has no such column; expected " + any_of(names),
                            nearest_name(entry.key, names));
    } else if (factors && entry.value.kind == Node::Kind::kMapping && !entry.value.find("text")) {
      for (const Node::Entry& level : entry.value.entries)
        if (const auto value = read_paper_value(reader, level.value, dotted(path, level.key)))
          draft.paper_of_levels[entry.key][level.key] = {*value, level.place};
    } else if (const auto value = read_paper_value(reader, entry.value, path)) {
      draft.paper[entry.key] = *value;
    }
  }
}

/// {kind: task, why: "detection"}
void read_not_trained(YamlReader& reader, const Node& node, const std::string& field, DraftRow& draft) {
  draft.not_trained = protocol::NotTrained::kModel;
  if (!reader.is_mapping(node, field)) return;
  reader.allow_only(node, field, Part::kNotTrained);
  if (const Node* kind = node.find("kind"))
    read_attribute(reader, *kind, field + ".kind", 0, *draft.not_trained);
  else
    reader.problems().add(node.place, field + ".kind",
                          "missing; expected " + any_of(names_of<protocol::NotTrained>()));
  if (const Node* why = node.find("why"))
    draft.not_trained_why = reader.text(*why, field + ".why").value_or("");
  if (draft.not_trained_why.empty())
    reader.problems().add(node.place, field + ".why", "missing; expected the reason in a few words");
}

/// Problems of resolved documents. One whose cause stands in the base is told once when every row has it;
/// otherwise it names its rows.
class RowProblems {
 public:
  void add(const Origin& origin, const std::string& message, const std::string& nearest,
           const std::string& row) {
    const auto [found, is_new] =
        index_.try_emplace(fmt::format("{}\n{}", origin.field, message), found_.size());
    if (is_new) found_.push_back({origin, message, nearest, {}});
    found_[found->second].rows.push_back(row);
  }

  /// `say(origin, message, nearest)` for each.
  template <class Say>
  void report(std::size_t row_count, const Say& say) const {
    for (const auto& [origin, message, nearest, rows] : found_) {
      std::string where;
      if (origin.in_base && rows.size() < row_count) {
        where = fmt::format(" (in row {}{})", rows.front(),
                            rows.size() > 1 ? fmt::format(" and {} more", rows.size() - 1) : "");
      }
      say(origin, message + where, nearest);
    }
  }

 private:
  struct Found {
    Origin origin;
    std::string message, nearest;
    std::vector<std::string> rows;
  };
  std::vector<Found> found_;
  std::map<std::string, std::size_t> index_;
};

/// The text of a dotted key in a document with every key.
std::optional<std::string> text_in(const json& document, std::string key) {
  std::ranges::replace(key, '.', '/');
  const json::json_pointer pointer{"/" + key};
  if (!document.contains(pointer)) return {};
  return config::plain_text(document[pointer]);
}

/// The same for rows that take the same time: a step does as much whatever the learning rate, the weight
/// decay or a probability is.
std::string work_hash(json document) {
  if (const auto recipe = document.find("recipe"); recipe != document.end() && recipe->is_object())
    for (auto it = recipe->begin(); it != recipe->end();)
      it = it->is_number_float() && it.key() != "epochs" && it.key() != "eval_every" ? recipe->erase(it)
                                                                                     : std::next(it);
  return config::config_hash(config::canonical_json(document));
}

void resolve_trial(const Settings& settings, const std::vector<std::string>& columns, Row& row,
                   RowProblems& found, RowProblems& doubts) {
  std::vector<config::Problem> problems;
  const config::TrialConfig trial = config::read_trial(settings.document(), problems);
  const bool distils = problems.empty() && trial.recipe.distillation != config::Distillation::kNone;
  if (distils && trial.recipe.teacher != config::kTeacherTrial)
    row.teacher = config::canonical_model_text(config::read_teacher(trial, problems));
  for (const config::Problem& problem : problems)
    found.add(settings.origin(problem.path), problem.message, problem.nearest, row.id);
  if (!problems.empty()) return;
  if (!row.not_trained)
    for (const config::Problem& doubt : config::doubts_of(trial))
      doubts.add(settings.origin(doubt.path), doubt.message, {}, row.id);
  json document = config::canonical_document(trial);
  document.erase("seed");
  row.config = config::canonical_json(document);
  row.config_hash = config::config_hash(row.config);
  row.work_hash = work_hash(document);
  row.result_version = config::result_version(document);
  row.model = config::canonical_model_text(trial);
  row.batch = (trial.recipe.batch + trial.recipe.accumulate - 1) / trial.recipe.accumulate;
  row.more_weights = (trial.recipe.ema > 0 ? 1 : 0) + states_of(trial.recipe.optimiser) -
                     states_of(config::Optimiser::kAdamW);
  row.precision = trial.recipe.precision;
  row.data = trial.data.name;
  row.weights = config::named_files(trial);
  std::erase_if(row.weights, [](const auto& named) { return protocol::names_trial(named.first); });
  if (columns.empty()) return;
  const json full = config::full_document(trial);
  for (const std::string& key : columns) {
    auto text = settings.text_at(key);  // as written: layers, preset
    if (!text) text = text_in(full, key);
    if (text) row.set.try_emplace(key, *text);
  }
}

void resolve_command(const Settings& settings, const Settings& base, const Command& command,
                     const std::vector<std::string>& columns, Row& row, RowProblems& found) {
  for (const config::Problem& problem : unfillable(command, base, settings))
    found.add(settings.origin(problem.path), problem.message, {}, row.id);
  row.config =
      config::canonical_json(command_document(command, settings.document().value("params", json::object())));
  row.config_hash = config::config_hash(row.config);
  for (const std::string& key : columns) {
    if (const auto text = settings.text_at(key)) row.set.try_emplace(key, *text);
  }
}

/// What rows take of each other's weights, while they are resolved in order of that.
class Chains {
 public:
  Chains(const std::vector<DraftRow>& drafts, std::vector<Row>& all, const Elsewhere& elsewhere,
         Problems& problems)
      : all_{all}, elsewhere_{elsewhere}, problems_{problems} {
    for (std::size_t i = 0; i < drafts.size(); ++i) {
      index_.try_emplace(drafts[i].id, static_cast<int>(i));
      rows_.push_back({.id = drafts[i].id, .sources = drafts[i].sources});
    }
    order_ = in_order_of_chains(rows_, problems);
  }
  const std::vector<std::size_t>& order() const { return order_; }

  /// Looks those up that are rows of other sweeps. False where one is not there: the problem is told.
  ///   `instead`: rows of other sweeps that a scale has in place of the row's own
  bool look_elsewhere(std::size_t row, const std::vector<DraftSource>& instead) {
    auto& sources = rows_[row].sources;
    for (const DraftSource& other : instead) {
      if (other.sweep.empty()) continue;  // that is a problem already
      std::erase_if(sources, [&](const DraftSource& own) { return own.role == other.role; });
      sources.push_back(other);
    }
    return std::erase_if(sources, [&](const DraftSource& source) {
             return !source.sweep.empty() && !index_of(source);
           }) == 0;
  }

  /// A row that takes the weights of one that the scale cannot have cannot be had either.
  bool takes_what_is_not_had(std::size_t place, Row& row) {
    for (const DraftSource& source : rows_[place].sources) {
      const Row& from = row_of(source);
      if (from.not_trained != protocol::NotTrained::kScale) continue;
      row.not_trained = protocol::NotTrained::kScale;
      row.not_trained_why = fmt::format("it takes the weights of row {}, which is not trained: {}", from.id,
                                        from.not_trained_why);
      return true;
    }
    return false;
  }

  void refuse(std::size_t row) {
    for (const DraftSource& source : rows_[row].sources)
      problems_.add(source.place, source.field, "a command takes no weights of other rows; expected base");
  }

  /// Sets the names of the weights, which are made of the sources' configurations: so a row's own covers
  /// all that lies before it.
  void take_weights(std::size_t row, Settings& settings) {
    for (const auto role : {RowSource::Role::kStart, RowSource::Role::kTeacher})
      if (protocol::names_trial(settings.text_at(weights_key(role)).value_or(""))) {
        const Origin origin = settings.origin(weights_key(role));
        problems_.add(
            origin.place, origin.field,
            "such a name stands for a trial's weights; expected another one, or 'from' or 'teacher' of a "
            "row with {row: ID}");
        settings.take_out(weights_key(role));
      }
    if (settings.text_at("recipe.teacher").value_or("") == config::kTeacherTrial) {
      const Origin origin = settings.origin("recipe.teacher");
      problems_.add(origin.place, origin.field, "expected a preset, or teacher: {row: ID} of the row");
    }
    for (const DraftSource& source : rows_[row].sources) {
      const Row& from = row_of(source);
      const char* key = weights_key(source.role);
      if (settings.text_at(key).value_or("") != "")
        problems_.add(source.place, source.field,
                      fmt::format("{} names weights too; expected one of them", key));
      std::string hash = from.config_hash.empty() ? std::string(64, '0') : from.config_hash;
      if (source.seed && !from.config.empty()) {  // of that very trial, and nothing but it
        auto document = json::parse(from.config);
        document["seed"] = *source.seed;
        hash = config::config_hash(config::canonical_json(document));
      }
      set(settings, source, key, protocol::weights_name(source.take, hash));
      if (source.role != RowSource::Role::kTeacher) continue;
      if (const auto other = settings.text_at("recipe.teacher").value_or("");
          !other.empty() && other != config::kTeacherTrial)
        problems_.add(source.place, source.field, "recipe.teacher names a teacher too; expected one of them");
      set(settings, source, "recipe.teacher", config::kTeacherTrial);
    }
  }

  /// After a row was resolved.
  void check(std::size_t place) {
    Row& row = all_[place];
    for (const DraftSource& source : rows_[place].sources) {
      const Row& from = row_of(source);
      if (from.not_trained && from.not_trained != protocol::NotTrained::kScale) {
        problems_.add(source.row_place, source.field + ".row",
                      fmt::format("row {} is not trained; expected one that is", from.id));
        continue;
      }
      if (row.config.empty() || from.config.empty()) continue;  // told already
      row.result_version = std::max(row.result_version, from.result_version);
      row.sources.push_back({.role = source.role,
                             .row = static_cast<int>(*index_of(source)),
                             .take = source.take,
                             .seed = source.seed,
                             .seed_place = source.seed_place,
                             .field = source.field});
      if (const std::string why = source.role == RowSource::Role::kStart
                                      ? why_weights_do_not_fit(from.model, row.model)
                                      : set_teacher(from, row);
          !why.empty())
        problems_.add(source.row_place, source.field + ".row", fmt::format("row {}: {}", from.id, why));
    }
  }

 private:
  /// Those of other sweeps count behind all rows.
  std::optional<std::size_t> index_of(const DraftSource& source) {
    if (source.sweep.empty()) return static_cast<std::size_t>(index_.at(source.row));
    const auto found = elsewhere_.sweeps.find(source, elsewhere_.in, problems_);
    return found ? std::optional{all_.size() + *found} : std::nullopt;
  }

  /// Valid until the next row of another sweep is looked up.
  const Row& row_of(const DraftSource& source) {
    const std::size_t index = *index_of(source);
    return index < all_.size() ? all_[index] : elsewhere_.sweeps.rows()[index - all_.size()];
  }

  void set(Settings& settings, const DraftSource& source, const char* key, const std::string& text) {
    const Node value{.kind = Node::Kind::kScalar, .place = source.place, .text = text, .quoted = true};
    settings.assign({key, &value, source.place, source.field}, problems_);
  }

  /// The model that a row learns from, on its own images. Returns: why it cannot, or empty.
  static std::string set_teacher(const Row& from, Row& row) {
    const auto here = json::parse(row.model).at("data");
    auto teacher = json::parse(from.model);
    if (!json::parse(row.config).contains("/recipe/teacher"_json_pointer))
      return "recipe.distillation is none, so nothing is learned from it; expected hard or soft";
    if (teacher.at("data").at("classes") != here.at("classes"))
      return fmt::format("it has {} classes and this row {}; a teacher answers for the same",
                         teacher.at("data").at("classes").dump(), here.at("classes").dump());
    teacher["data"] = here;
    teacher.erase("recipe");
    try {
      row.teacher = config::canonical_model_text(config::read_model_or_throw(teacher));
    } catch (const Error& error) {
      return fmt::format("its model cannot take this row's images: {}", error.what());
    }
    return {};
  }

  std::vector<Chained> rows_;
  std::map<std::string, int> index_;
  std::vector<std::size_t> order_;
  std::vector<Row>& all_;
  const Elsewhere& elsewhere_;
  Problems& problems_;
};

/// What the row sets is then what it is set to. False for one that cannot be had: it runs nothing, and
/// nothing of it can be counted.
bool to_scale(Scale& scale, Settings& settings, Row& row, Problems& problems) {
  if (const auto cannot = scale.apply(settings, problems)) {
    if (!row.not_trained) {  // what the file says of it is said first
      row.not_trained = protocol::NotTrained::kScale;
      row.not_trained_why = *cannot;
    }
    return false;
  }
  for (auto& [key, text] : std::exchange(row.set, {}))
    if (const auto now = settings.text_at(key)) row.set.emplace(key, *now);
  return true;
}

/// What is wrong with a row's trial in what stands in `field`, or below it.
std::vector<Problem> problems_at(const std::string& field, const Settings& base, const DraftRow& row) {
  Settings own = base;
  Problems not_set{""};  // a key below what is no mapping: an error of another factor
  for (const Assignment& assignment : row.set) own.assign(assignment, not_set);
  std::vector<config::Problem> found;
  config::read_trial(own.document(), found);
  std::vector<Problem> problems;
  for (const config::Problem& problem : found) {
    const Origin origin = own.origin(problem.path);
    if (origin.field != field && !origin.field.starts_with(field + ".")) continue;
    problems.push_back({.file = {},
                        .place = origin.place,
                        .field = origin.field,
                        .message = problem.message,
                        .nearest = problem.nearest});
  }
  return problems;
}

}  // namespace

std::vector<DraftRow> read_rows(YamlReader& reader, const Node& rows, const std::vector<Column>& columns,
                                bool factors) {
  std::vector<DraftRow> drafts;
  if (!reader.is_sequence(rows, "rows")) return drafts;
  if (rows.items.empty()) reader.problems().add(rows.place, "rows", "no rows; expected at least one");
  for (std::size_t i = 0; i < rows.items.size(); ++i) {
    const Node& item = rows.items[i];
    std::string field = fmt::format("rows.{}", i + 1);
    if (!reader.is_mapping(item, field)) continue;
    DraftRow draft{.place = item.place};
    if (const Node* id = item.find("id")) {
      if (const auto text = reader.name(*id, field + ".id")) {
        draft.id = *text;
        draft.place = id->place;
        field = dotted("rows", draft.id);
      }
    } else {
      reader.problems().add(item.place, field + ".id",
                            "missing; expected a short name that no other row has");
    }
    reader.allow_only(item, field, Part::kRow);
    draft.sources = read_sources(reader, item, field);
    draft.label = draft.id;
    if (const Node* label = item.find("label"))
      draft.label = reader.text(*label, field + ".label").value_or(draft.id);
    if (const Node* group = item.find("group"))
      draft.group = reader.text(*group, field + ".group").value_or("");
    const Node* set = item.find("set");
    if (set) draft.set = read_set(reader, *set, field + ".set");
    draft.has_set = set != nullptr;
    if (const Node* not_trained = item.find("not_trained"))
      read_not_trained(reader, *not_trained, field + ".not_trained", draft);
    if (draft.not_trained && !draft.sources.empty())
      reader.problems().add(draft.place, field, "a row that is not trained takes no weights of other rows");
    if (const Node* paper = item.find("paper"))
      read_paper(reader, *paper, field + ".paper", columns, factors, draft);
    drafts.push_back(std::move(draft));
  }
  return drafts;
}

void expect_groups_together(const std::vector<DraftRow>& rows, Problems& problems) {
  std::map<std::string, Place> ended;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::string& group = rows[i].group;
    if (const auto before = ended.find(group); !group.empty() && before != ended.end())
      problems.add(
          rows[i].place, dotted("rows", rows[i].id) + ".group",
          fmt::format("rows of one group stand together; '{}' ends in line {}", group, before->second.line));
    if (i + 1 < rows.size() && rows[i + 1].group != group) ended.emplace(group, rows[i].place);
  }
}

std::vector<DraftRow> multiply(const std::vector<DraftRow>& rows, const std::vector<DraftRow>& combinations,
                               Problems& problems) {
  std::vector<DraftRow> product;
  std::set<std::string> ids;
  std::vector<std::string> levels;
  for (const DraftRow& row : rows) ids.insert(row.id);
  for (const DraftRow& combination : combinations) levels.push_back(combination.levels);
  for (const DraftRow& row : rows) {
    for (const auto& [column, values] : row.paper_of_levels)
      for (const auto& [level, value] : values)
        if (std::ranges::find(levels, level) == levels.end())
          problems.add(value.place, dotted("rows", row.id) + ".paper." + column,
                       fmt::format("unknown level '{}'; expected {}", level, any_of(levels)),
                       nearest_name(level, levels));
    for (const DraftRow& combination : combinations) {
      DraftRow one = row;
      one.written = row.id;
      one.suffix = "," + combination.id;
      one.id += one.suffix;
      one.label += ", " + combination.label;
      one.levels = combination.levels;
      one.set.insert(one.set.end(), combination.set.begin(), combination.set.end());
      for (DraftSource& source : one.sources)
        if (source.sweep.empty() && ids.contains(source.row)) source.row += one.suffix;
      for (const auto& [column, values] : row.paper_of_levels)
        if (const auto value = values.find(combination.levels); value != values.end())
          one.paper[column] = value->second.value;
      one.paper_of_levels.clear();
      product.push_back(std::move(one));
    }
  }
  return product;
}

void expect_unique_ids(const std::vector<DraftRow>& rows, const std::string& field, Problems& problems) {
  std::map<std::string, Place> first;
  for (const DraftRow& row : rows) {
    if (row.id.empty()) continue;
    const auto [found, is_new] = first.try_emplace(row.id, row.place);
    if (is_new) continue;
    problems.add(row.place, field,
                 fmt::format("duplicate row id '{}'; line {} has it already", row.id, found->second.line));
  }
}

std::vector<Row> resolve_rows(const std::vector<DraftRow>& drafts, const Settings& base,
                              const std::optional<Command>& command, const std::vector<std::string>& settings,
                              Scale* scale, const Elsewhere& elsewhere,
                              std::vector<std::vector<std::string>>& made_equal, Problems& problems) {
  std::vector<Row> rows(drafts.size());
  std::vector<ScaledRow> scaled(scale ? drafts.size() : 0);
  RowProblems found, doubts;
  Chains chains{drafts, rows, elsewhere, problems};
  for (const std::size_t place : chains.order()) {
    const DraftRow& draft = drafts[place];
    Row& row = rows[place];
    row = {.id = draft.id,
           .label = draft.label,
           .set = leaves(draft.set),
           .group = draft.group,
           .not_trained = draft.not_trained,
           .not_trained_why = draft.not_trained_why,
           .place = draft.place};
    for (const auto& [column, value] : draft.paper) {
      row.paper[column] = value.text;
      if (value.mark) row.marks[column] = *value.mark;
    }
    if (draft.not_trained && !draft.has_set) continue;  // nothing is known of its model
    Settings own = base;
    for (const Assignment& assignment : draft.set) {
      if (!command || expect_param(base, assignment, problems)) own.assign(assignment, problems);
    }
    const auto tune = [&] {
      for (const Assignment& assignment : draft.tuned)
        if (!command || expect_param(base, assignment, problems)) own.assign(assignment, problems);
      for (const auto& [key, text] : leaves(draft.tuned)) row.set.insert_or_assign(key, text);
    };
    if (command) {
      tune();
      chains.refuse(place);
      resolve_command(own, base, *command, settings, row, found);
    } else {
      if (scale) scaled[place] = {.id = row.id, .written = own.document()};
      const bool may_start = scale && !row.not_trained;
      if (!chains.look_elsewhere(place, may_start ? scale->sources(own) : std::vector<DraftSource>{}))
        continue;
      if (scale && chains.takes_what_is_not_had(place, row)) continue;
      if (scale && !to_scale(*scale, own, row, problems)) continue;
      tune();
      chains.take_weights(place, own);
      resolve_trial(own, settings, row, found, doubts);
      if (row.not_trained) row.config_hash.clear(), row.work_hash.clear();  // nothing of it is run
      if (scale) scaled[place].config_hash = row.config_hash;
      chains.check(place);
    }
  }
  const std::string where = scale ? fmt::format(", at scale {}", scale->name()) : "";
  found.report(drafts.size(),
               [&](const Origin& origin, const std::string& message, const std::string& nearest) {
                 problems.add(origin.place, origin.field, message + where, nearest);
               });
  if (scale) made_equal = sweeps::made_equal(scaled);
  doubts.report(drafts.size(), [&](const Origin& origin, const std::string& message, const std::string&) {
    problems.doubt(origin.place, origin.field, message);
  });
  return rows;
}

void check_levels(const std::vector<LevelInRows>& levels, const Settings& base,
                  const std::optional<Command>& command, Problems& problems) {
  std::set<std::string> told;  // what is wrong with a key all of its levels have
  for (const auto& [field, first, last] : levels) {
    if (command) {
      for (const Assignment& assignment : first.set) expect_param(base, assignment, problems);
      continue;
    }
    const auto others = problems_at(field, base, last);
    for (const Problem& problem : problems_at(field, base, first))
      if (std::ranges::any_of(others, [&](const Problem& other) { return other.text() == problem.text(); }) &&
          told.insert(problem.field + problem.message).second)
        problems.add(problem.place, problem.field, problem.message, problem.nearest);
  }
}

void check_base(const Settings& base, Problems& problems) {
  std::vector<config::Problem> found;
  config::read_trial(base.document(), found);
  for (const config::Problem& problem : found) {
    if (!base.text_at(problem.path)) continue;  // what is missing may come from the rows
    const Origin origin = base.origin(problem.path);
    problems.add(origin.place, origin.field, problem.message, problem.nearest);
  }
}

}  // namespace abl::sweeps
