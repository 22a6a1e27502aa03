// SPDX-License-Identifier: Apache-2.0
#include "sweeps/yaml_reader.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <sstream>
#include <vector>

#include "base/nearest_name.h"
#include "config/field_table.h"
#include "config/json.h"

namespace abl::sweeps {
namespace {

using nlohmann::json;

constexpr int kMostNodes = 1'000'000;  // aliases can make a short file very long

/// What stands at a place, up to the end of its line.
std::string line_from(std::string_view text, Place place) {
  for (int line = 1; line < place.line; ++line)
    text.remove_prefix(std::min(text.find('\n') + 1, text.size()));
  text = text.substr(0, text.find('\n'));
  return std::string{
      text.substr(std::min<std::size_t>(text.size(), static_cast<std::size_t>(place.column) - 1))};
}

Place place_of(const YAML::Mark& mark) {
  return mark.is_null() ? Place{} : Place{mark.line + 1, mark.column + 1};
}

/// Where the first two documents of a text begin. YAML::LoadAll would make documents without end, until the
/// memory is used up, of a text with a sign where none can stand: the parser does not go beyond it, and the
/// next document begins where the one before did.
class DocumentBegins final : public YAML::EventHandler {
 public:
  static std::vector<Place> of(const std::string& text) {
    std::istringstream stream{text};
    YAML::Parser parser{stream};
    DocumentBegins begins;
    while (begins.places_.size() < 2 && parser.HandleNextDocument(begins)) {
    }
    return begins.places_;
  }

  void OnDocumentStart(const YAML::Mark& mark) override { places_.push_back(place_of(mark)); }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t, const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {
  }
  void OnMapEnd() override {}

 private:
  std::vector<Place> places_;
};

/// Copies yaml-cpp's nodes, which hold duplicate keys and cycles, into plain ones.
class Converter {
 public:
  explicit Converter(Problems& problems) : problems_{problems} {}

  Node convert(const YAML::Node& from, Place around, const std::string& field, int depth = 0) {
    Node node;
    node.place = place_of(from.Mark());
    if (node.place.line == 0) node.place = around;
    if (depth > kDeepestYaml)
      return give_up(node, field, fmt::format("nested too deeply; expected at most {} levels", kDeepestYaml));
    if (++count_ > kMostNodes)
      return give_up(node, field, fmt::format("more than {} values, once aliases are followed", kMostNodes));
    if (from.IsScalar()) {
      node.kind = Node::Kind::kScalar;
      node.text = from.Scalar();
      node.quoted = from.Tag() == "!";
    } else if (from.IsSequence()) {
      node.kind = Node::Kind::kSequence;
      for (const YAML::Node& item : from) {
        if (gave_up_) break;
        const std::string path = dotted(field, std::to_string(node.items.size() + 1));
        node.items.push_back(convert(item, node.place, path, depth + 1));
      }
    } else if (from.IsMap()) {
      node.kind = Node::Kind::kMapping;
      std::map<std::string, int> lines;  // of each key
      for (const auto& pair : from) {
        if (gave_up_) break;
        add_entry(node, pair.first, pair.second, field, depth, lines);
      }
    }
    return node;
  }

  /// What is left of the file would only mislead.
  bool gave_up() const { return gave_up_; }

 private:
  const Node& give_up(const Node& node, const std::string& field, const std::string& message) {
    if (!gave_up_) problems_.add(node.place, field, message);
    gave_up_ = true;
    return node;
  }

  void add_entry(Node& node, const YAML::Node& key, const YAML::Node& value, const std::string& field,
                 int depth, std::map<std::string, int>& lines) {
    const Place place = place_of(key.Mark());
    if (!key.IsScalar()) {
      problems_.add(place, field, "a key must be a text");
      return;
    }
    const std::string path = dotted(field, key.Scalar());
    if (key.Scalar() == "<<" && key.Tag() != "!") {
      problems_.add(place, path, "merge keys do not work here; write out the keys that are meant");
      gave_up_ = true;
      return;
    }
    const auto [first, is_new] = lines.try_emplace(key.Scalar(), place.line);
    if (!is_new) {
      problems_.add(place, path, fmt::format("duplicate key; it is given in line {} already", first->second));
      return;
    }
    node.entries.push_back({key.Scalar(), place, convert(value, place, path, depth + 1)});
  }

  Problems& problems_;
  int count_ = 0;
  bool gave_up_ = false;
};

std::string shown(const Node& node) {
  switch (node.kind) {
    case Node::Kind::kNull:
      return "nothing";
    case Node::Kind::kSequence:
      return "a list";
    case Node::Kind::kMapping:
      return "a mapping";
    case Node::Kind::kScalar:
      break;
  }
  return fmt::format("'{}'", node.text);
}

json plain_scalar(const std::string& text) {
  if (text == "true") return true;
  if (text == "false") return false;
  if (text == "null" || text == "~" || text.empty()) return nullptr;
  const std::size_t sign = text[0] == '+' || text[0] == '-' ? 1 : 0;
  if (text.find_first_not_of("0123456789.eE+-") != std::string::npos ||
      text.find_first_of("0123456789") == std::string::npos) {
    return text;
  }
  const char* begin = text.data() + (text[0] == '+' ? 1 : 0);
  const char* end = text.data() + text.size();
  if (text.find_first_not_of("0123456789", sign) == std::string::npos) {
    std::int64_t whole = 0;
    const auto [stop, error] = std::from_chars(begin, end, whole);
    if (error == std::errc{} && stop == end && std::abs(whole) < (std::int64_t{1} << 53)) return whole;
  }
  double number = 0;
  const auto [stop, error] = std::from_chars(begin, end, number);
  return error == std::errc{} && stop == end ? json(number) : json(text);
}

}  // namespace

const Node::Entry* Node::entry(std::string_view key) const {
  for (const Entry& entry : entries) {
    if (entry.key == key) return &entry;
  }
  return nullptr;
}

const Node* Node::find(std::string_view key) const {
  const Entry* found = entry(key);
  return found ? &found->value : nullptr;
}

json Node::json() const {
  switch (kind) {
    case Kind::kScalar:
      return quoted ? nlohmann::json(text) : plain_scalar(text);
    case Kind::kSequence: {
      auto list = nlohmann::json::array();
      for (const Node& item : items) list.push_back(item.json());
      return list;
    }
    case Kind::kMapping: {
      auto object = nlohmann::json::object();
      for (const Entry& entry : entries) object[entry.key] = entry.value.json();
      return object;
    }
    case Kind::kNull:
      break;
  }
  return nullptr;
}

Node load_yaml(const std::string& text, const std::string& file, Problems& problems) {
  try {
    config::canonical_json(text);
  } catch (const Error&) {
    throw SweepFileError{{{file, {1, 1}, "", "the file is not UTF-8 text", ""}}};
  }
  try {
    // the parser takes a quote that is never closed for one that is closed at the end, but not beyond a
    // document's end
    const std::string ended = text + (text.ends_with('\n') ? "...\n" : "\n...\n");
    const std::vector<Place> begins = DocumentBegins::of(ended);
    if (begins.size() > 1 && begins[1] == begins[0])
      throw SweepFileError{{syntax_problem(file, text, begins[0],
                                           fmt::format("unexpected '{:.1}'", line_from(text, begins[0])))}};
    const YAML::Node document = YAML::Load(ended);
    if (document.IsNull()) return Node{.place = {1, 1}};
    if (begins.size() > 1) problems.add(begins[1], "", "a second YAML document; expected one in a file");
    Converter converter{problems};
    Node root = converter.convert(document, {1, 1}, "");
    if (converter.gave_up()) problems.throw_if_any();
    return root;
  } catch (const YAML::Exception& error) {
    throw SweepFileError{{syntax_problem(file, text, place_of(error.mark), error.msg)}};
  }
}

bool YamlReader::is_mapping(const Node& node, const std::string& field) {
  if (node.kind == Node::Kind::kMapping) return true;
  problems_.add(node.place, field, "expected a mapping; got " + shown(node));
  return false;
}

bool YamlReader::is_sequence(const Node& node, const std::string& field) {
  if (node.kind == Node::Kind::kSequence) return true;
  problems_.add(node.place, field, "expected a list; got " + shown(node));
  return false;
}

void YamlReader::allow_only(const Node& mapping, const std::string& field, Part part) {
  const auto keys = form_of(part).names();
  allow_only(mapping, field, std::vector<std::string>{keys.begin(), keys.end()});
}

void YamlReader::allow_only(const Node& mapping, const std::string& field,
                            const std::vector<std::string>& keys) {
  for (const Node::Entry& entry : mapping.entries) {
    if (std::ranges::find(keys, entry.key) != keys.end()) continue;
    problems_.add(entry.place, dotted(field, entry.key), "unknown key; expected " + any_of(keys),
                  nearest_name(entry.key, keys));
  }
}

const Node* YamlReader::required(const Node& mapping, const std::string& field, const char* key,
                                 const std::string& expected) {
  const Node* found = mapping.find(key);
  if (!found) problems_.add(mapping.place, dotted(field, key), "missing; expected " + expected);
  return found;
}

std::optional<std::string> YamlReader::text(const Node& node, const std::string& field) {
  if (node.kind == Node::Kind::kScalar && !node.text.empty()) return node.text;
  problems_.add(node.place, field,
                "expected a text; got " + (node.kind == Node::Kind::kScalar ? "nothing" : shown(node)));
  return {};
}

std::optional<std::string> YamlReader::plain_text(const Node& node, const std::string& field) {
  const auto plain = text(node, field);
  const auto is_control = [](char letter) {
    return static_cast<unsigned char>(letter) < ' ' || letter == 127;
  };
  if (plain && std::ranges::any_of(*plain, is_control))
    problems_.add(node.place, field, "a control character in it; expected plain text");
  return plain;
}

std::optional<std::string> YamlReader::name(const Node& node, const std::string& field) {
  const auto name = text(node, field);
  if (!name || (name->size() <= 100 && name->find_first_not_of(config::kNameLetters) == std::string::npos))
    return name;
  problems_.add(
      node.place, field,
      fmt::format("invalid name '{}'; expected at most 100 letters, digits, '.', '_' and '-'", *name));
  return {};
}

std::optional<std::int64_t> YamlReader::whole_number(const Node& node, const std::string& field,
                                                     std::int64_t low, std::int64_t high) {
  const nlohmann::json value = node.json();
  if (value.is_number()) {
    const double number = value.get<double>();
    if (number == std::floor(number) && number >= static_cast<double>(low) &&
        number <= static_cast<double>(high)) {
      return static_cast<std::int64_t>(number);
    }
  }
  problems_.add(node.place, field,
                fmt::format("expected a whole number, {} to {}; got {}", low, high, shown(node)));
  return {};
}

std::optional<bool> YamlReader::boolean(const Node& node, const std::string& field) {
  const nlohmann::json value = node.json();
  if (value.is_boolean()) return value.get<bool>();
  problems_.add(node.place, field, "expected true or false; got " + shown(node));
  return {};
}

std::optional<std::string> YamlReader::choice(const Node& node, const std::string& field,
                                              const std::vector<std::string>& choices) {
  const auto chosen = text(node, field);
  if (!chosen || std::ranges::find(choices, *chosen) != choices.end()) return chosen;
  problems_.add(node.place, field, fmt::format("unknown value '{}'; expected {}", *chosen, any_of(choices)),
                nearest_name(*chosen, choices));
  return {};
}

namespace {

/// A bracket or a quote that is open.
struct Open {
  char sign;
  Place place;
};

std::string_view line_of(std::string_view text, std::size_t at) {
  return text.substr(at, text.find('\n', at) - at);
}

std::size_t indent_of(std::string_view line) { return std::min(line.find_first_not_of(' '), line.size()); }

/// What is open where a text breaks off. Follows it by its signs alone, as far as a message needs: comments,
/// quotes, and texts under `|` and `>` are passed over; in a block, a bracket or quote counts where a value
/// begins.
class OpenSigns {
 public:
  explicit OpenSigns(std::string_view text, Place end) {
    int number = 1;
    for (std::size_t at = 0; at < text.size() && number <= end.line; ++number) {
      const std::string_view line = line_of(text, at);
      at += line.size() + 1;
      if (block_text_ && (indent_of(line) > block_indent_ || line.find_first_not_of(" \r") == line.npos))
        continue;
      block_text_ = false;
      follow(
          number == end.line ? line.substr(0, static_cast<std::size_t>(std::max(0, end.column - 1))) : line,
          number);
    }
  }

  const std::vector<Open>& open() const { return open_; }
  /// Where the brackets were first nested too deeply, if they were.
  const std::optional<Place>& too_deep() const { return too_deep_; }

 private:
  void follow(std::string_view line, int number) {
    bool value_begins = true;
    for (std::size_t i = 0; i < line.size(); ++i) {
      const char sign = line[i];
      const Place place{number, static_cast<int>(i) + 1};
      const bool after_space = i == 0 || line[i - 1] == ' ' || line[i - 1] == '\t';
      if (const char quote = open_.empty() ? ' ' : open_.back().sign; quote == '"' || quote == '\'') {
        if (sign == '\\' && quote == '"') {
          ++i;
        } else if (sign == quote && quote == '\'' && i + 1 < line.size() && line[i + 1] == '\'') {
          ++i;
        } else if (sign == quote) {
          open_.pop_back();
        }
        continue;
      }
      if (sign == '#' && after_space) return;
      if (sign == ' ' || sign == '\t') continue;
      const bool in_flow = !open_.empty();
      const bool space_follows = i + 1 == line.size() || line[i + 1] == ' ';
      if ((sign == '|' || sign == '>') && value_begins && !in_flow) {
        block_text_ = true;
        block_indent_ = indent_of(line);
        return;
      }
      if ((sign == '[' || sign == '{') && (value_begins || in_flow)) {
        open_.push_back({sign, place});
        if (!too_deep_ && open_.size() > kDeepestYaml) too_deep_ = place;
      }
      if ((sign == '"' || sign == '\'') && value_begins) open_.push_back({sign, place});
      if ((sign == ']' || sign == '}') && in_flow) open_.pop_back();
      value_begins = sign == '[' || sign == '{' || (sign == ',' && in_flow) ||
                     ((sign == ':' || (sign == '-' && value_begins) || sign == '?') && space_follows) ||
                     ((sign == '&' || sign == '!' || sign == '*') && value_begins);
      if (sign == '&' || sign == '!')  // of a name that may stand before a value
        while (value_begins && i + 1 < line.size() && line[i + 1] != ' ') ++i;
    }
  }

  std::vector<Open> open_;
  std::optional<Place> too_deep_;
  bool block_text_ = false;
  std::size_t block_indent_ = 0;
};

}  // namespace

Problem syntax_problem(const std::string& file, std::string_view text, Place place,
                       const std::string& message) {
  const auto wrong = [&](Place at, const std::string& what) {
    return Problem{.file = file, .place = at, .field = {}, .message = "not YAML: " + what, .nearest = {}};
  };
  std::size_t at = 0;
  for (int line = 1; line < place.line && at < text.size(); ++line) at += line_of(text, at).size() + 1;
  const std::string_view line = at < text.size() ? line_of(text, at) : std::string_view{};
  const std::string_view indent = line.substr(0, std::min(line.find_first_not_of(" \t"), line.size()));
  if (const auto tab = indent.find('\t'); tab != std::string_view::npos)
    return wrong({place.line, static_cast<int>(tab) + 1}, "a tab in the indentation; expected spaces");

  const OpenSigns signs{text, place};
  const auto& open = signs.open();
  if (message == "bad file")  // what the parser says of nesting beyond its own limit
    return wrong(signs.too_deep().value_or(place),
                 fmt::format("nested too deeply; expected at most {} levels", kDeepestYaml));
  if (open.empty()) return wrong(place, message);
  const auto [sign, opened] = open.back();
  const std::size_t column = static_cast<std::size_t>(std::max(1, place.column)) - 1;
  if (const char closing = column < line.size() ? line[column] : ' ';
      message == "illegal flow end" && (closing == ']' || closing == '}'))
    return wrong(place,
                 fmt::format("'{}' where the '{}' of line {} is to be closed", closing, sign, opened.line));
  return wrong(opened, fmt::format("'{}' is not closed", sign));
}

}  // namespace abl::sweeps
