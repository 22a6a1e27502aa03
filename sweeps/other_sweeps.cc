// SPDX-License-Identifier: Apache-2.0
#include "sweeps/other_sweeps.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/nearest_name.h"
#include "sweeps/rows.h"
#include "sweeps/sections.h"

namespace abl::sweeps {
namespace {

constexpr const char* kSection = "sources";

bool is_path(const std::string& written) {
  return written.ends_with(".yaml") || written.ends_with(".yml") || written.starts_with('/');
}

/// Indices of a row and of those of its file whose weights it takes, over however many rows.
std::set<std::size_t> with_those_before(const std::vector<DraftRow>& drafts, std::size_t row) {
  std::set<std::size_t> all{row};
  std::vector<std::size_t> open{row};
  while (!open.empty()) {
    const DraftRow& draft = drafts[open.back()];
    open.pop_back();
    for (const DraftSource& source : draft.sources) {
      const auto before = std::ranges::find(drafts, source.row, &DraftRow::id);
      if (!source.sweep.empty() || before == drafts.end()) continue;
      const auto index = static_cast<std::size_t>(before - drafts.begin());
      if (all.insert(index).second) open.push_back(index);
    }
  }
  return all;
}

struct Named {
  std::string sweep, field;  ///< as it is written
  Place place;
  bool by_scale = false;  ///< not by a row
};

/// "sweep" of from and teacher, of rows and of the rules of a scale.
std::vector<Named> named_sweeps(const Node& root) {
  std::vector<Named> named;
  const auto look = [&](const Node* list, bool by_scale) {
    if (!list) return;
    for (const Node& item : list->items) {
      const Node* id = item.find("id");
      for (const char* key : {"from", "teacher"})
        if (const Node* source = item.find(key))
          if (const Node* sweep = source->find("sweep"); sweep && sweep->kind == Node::Kind::kScalar)
            named.push_back({.sweep = sweep->text,
                             .field = dotted(id ? "rows." + id->text : "scale.rules", key) + ".sweep",
                             .place = sweep->place,
                             .by_scale = by_scale});
    }
  };
  look(root.find("rows"), false);
  if (const Node* scale = root.find("scale")) look(scale->find("rules"), true);
  return named;
}

}  // namespace

struct OtherSweeps::File {
  explicit File(const std::string& name) : key{name}, problems{name}, reader{problems} {}
  std::string key;
  Problems problems;
  YamlReader reader;
  Node root;
  WrittenSweep written;

  /// The first of its problems, for who names it.
  std::string trouble() const {
    try {
      problems.throw_if_any();
    } catch (const SweepFileError& error) {
      return error.problems().front().text();
    }
    return {};
  }
};

OtherSweeps::OtherSweeps(const Node* sources) {
  if (!sources) return;
  for (const Node::Entry& entry : sources->entries) texts_.emplace(entry.key, &entry.value);
}

OtherSweeps::~OtherSweeps() = default;

OtherSweeps::File* OtherSweeps::file(const std::string& key) {
  if (const auto known = files_.find(key); known != files_.end()) return known->second.get();
  const auto text = texts_.find(key);
  if (text == texts_.end()) return nullptr;
  File& file = *files_.emplace(key, std::make_unique<File>(key)).first->second;
  try {
    file.root = load_yaml(text->second->text, key, file.problems);
    if (file.reader.is_mapping(file.root, "")) file.written = read_written(file.reader, file.root, "");
  } catch (const SweepFileError& error) {  // no YAML
    for (const Problem& problem : error.problems())
      file.problems.add(problem.place, problem.field, problem.message, problem.nearest);
  }
  return &file;
}

/// Adds a row of a file, and those whose weights it takes, to `rows_`.
void OtherSweeps::resolve(File& file, std::size_t row) {
  std::vector<DraftRow> drafts;
  for (const std::size_t index : with_those_before(file.written.drafts, row))
    drafts.push_back(file.written.drafts[index]);
  std::vector<std::vector<std::string>> made_equal;
  std::vector<Row> rows = resolve_rows(drafts, file.written.shared, file.written.spec.command, {},
                                       file.written.scale ? &*file.written.scale : nullptr, {*this, file.key},
                                       made_equal, file.problems);
  if (!file.problems.empty()) return;
  std::vector<std::size_t> places;  // of each in rows_
  std::size_t next = rows_.size();
  for (const Row& one : rows) {
    const auto [known, is_new] = found_.try_emplace({file.key, one.id}, next);
    places.push_back(known->second);
    if (is_new) ++next;
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Row& one = rows[i];
    if (places[i] < rows_.size()) continue;  // of another chain
    for (RowSource& source : one.sources) {
      const auto from = static_cast<std::size_t>(source.row);
      source.row = static_cast<int>(from < rows.size() ? places[from] : from - rows.size());
    }
    one.label = fmt::format("{}: {}", file.key, one.label);
    one.id = fmt::format("{}:{}", file.key, one.id);
    one.sweep = file.key;
    one.paper.clear();
    one.marks.clear();
    one.group = kOfOtherSweeps;
    rows_.push_back(std::move(one));
  }
}

std::optional<std::size_t> OtherSweeps::find(const DraftSource& source, const std::string& in,
                                             Problems& problems) {
  const std::string key = key_of_sweep(in, source.sweep);
  File* const other = file(key);
  if (!other) {
    std::vector<std::string> known;
    for (const auto& [name, text] : texts_) known.push_back(name);
    problems.add(source.sweep_place, source.field + ".sweep",
                 fmt::format("no text of sweep '{}' is here; expected a table of a paper, such as "
                             "msf/table-1, or a sweep file's path from this file's folder, read by 'ablate'",
                             source.sweep),
                 nearest_name(key, known));
    return std::nullopt;
  }
  const auto cannot = [&](const std::string& why) {
    problems.add(source.sweep_place, source.field + ".sweep", why);
    return std::nullopt;
  };
  if (const std::string trouble = other->trouble(); !trouble.empty()) return cannot(trouble);
  const std::pair<std::string, std::string> name{key, source.row};
  if (const auto known = found_.find(name); known != found_.end()) return known->second;
  if (std::ranges::find(begun_, name) != begun_.end()) {
    std::string circle;
    for (auto at = begun_.rbegin(); at != begun_.rend(); ++at) {
      circle += fmt::format("{}:{} ← ", at->first, at->second);
      if (*at == name) break;
    }
    return cannot(
        fmt::format("rows that wait for each other: {}{}:{}; expected a row that does not take this "
                    "one's weights",
                    circle, begun_.back().first, begun_.back().second));
  }
  if (begun_.size() >= kLongestChain)
    return cannot(fmt::format("a chain through more than {} files", kLongestChain));
  if (other->written.spec.command)
    return cannot(
        fmt::format("sweep {} is of a command, which leaves no weights; expected one with base", key));
  for (const char* key_of_tuning : {"tune", "search"})
    if (other->root.find(key_of_tuning))
      return cannot(
          fmt::format("sweep {} has '{}': what its rows train is not known before; expected one "
                      "without it",
                      key, key_of_tuning));
  const auto& drafts = other->written.drafts;
  const auto row = std::ranges::find(drafts, source.row, &DraftRow::id);
  if (row == drafts.end()) {
    std::vector<std::string> ids;
    for (const DraftRow& draft : drafts) ids.push_back(draft.id);
    problems.add(source.row_place, source.field + ".row",
                 fmt::format("sweep {} has no row '{}'", key, source.row), nearest_name(source.row, ids));
    return std::nullopt;
  }
  begun_.push_back(name);
  resolve(*other, static_cast<std::size_t>(row - drafts.begin()));
  begun_.pop_back();
  if (const std::string trouble = other->trouble(); !trouble.empty()) return cannot(trouble);
  return found_.at(name);
}

std::string key_of_sweep(const std::string& in, const std::string& written) {
  if (!is_path(written)) return written;
  return (std::filesystem::path{in}.parent_path() / written).lexically_normal().string();
}

std::string with_sources(const std::string& text, const std::string& file,
                         const std::function<std::string(const std::string& key, bool scaled)>& read) {
  Problems problems{file};
  const Node root = load_yaml(text, file, problems);
  if (root.entry(kSection)) return text;  // they are there already
  std::map<std::string, std::string> texts;
  std::vector<std::pair<std::string, Node>> open;  // file -> what it says
  const auto add = [&](const std::string& key, bool scaled) {
    if (texts.contains(key)) return;
    const std::string& other = texts[key] = read(key, scaled);
    Problems unread{key};
    try {
      open.emplace_back(key, load_yaml(other, key, unread));
    } catch (const SweepFileError&) {  // said when the row is read
    }
  };
  for (const auto& [written, field, place, by_scale] : named_sweeps(root)) {
    try {
      add(key_of_sweep("", written), !by_scale);
    } catch (const Error& error) {
      problems.add(place, field, error.what());
    }
  }
  problems.throw_if_any();
  while (!open.empty()) {
    const auto [key, other] = std::move(open.back());
    open.pop_back();
    for (const auto& [written, field, place, by_scale] : named_sweeps(other)) {
      try {
        add(key_of_sweep(key, written), !by_scale);
      } catch (const Error&) {  // said where a row of it is needed
      }
    }
  }
  if (texts.empty()) return text;
  std::string together = text + (text.ends_with('\n') ? "" : "\n") + kSection + ":\n";
  for (const auto& [key, other] : texts) {
    together += fmt::format("  \"{}\": |2+\n", key);
    for (std::size_t at = 0; at < other.size();) {
      const std::size_t stop = std::min(other.find('\n', at), other.size());
      together += (stop == at ? "" : "    ") + other.substr(at, stop - at) + "\n";
      at = stop + 1;
    }
  }
  Problems unread{file};
  const Node whole = load_yaml(together, file, unread);
  const Node* section = whole.find(kSection);
  if (!section || section->entries.size() != texts.size())
    throw Error{Code::kInvalidArgument,
                fmt::format("{}: no section can stand behind it; expected a key on each line", file)};
  return together;
}

}  // namespace abl::sweeps
