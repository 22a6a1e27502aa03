// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sweeps/form.h"
#include "sweeps/problems.h"
#include "sweeps/sweep_spec.h"

namespace abl::sweeps {

/// A part of a YAML file with its place.
struct Node {
  enum class Kind { kNull, kScalar, kSequence, kMapping };
  struct Entry;

  Kind kind = Kind::kNull;
  Place place;
  std::string text;     ///< of a scalar, as written
  bool quoted = false;  ///< a quoted scalar is a text, whatever it looks like
  std::vector<Node> items;
  std::vector<Entry> entries;  ///< in the order of the file; each key once

  /// The value under `key`, or null.
  const Node* find(std::string_view key) const;
  /// The entry of `key`, or null.
  const Entry* entry(std::string_view key) const;
  /// Scalars typed as YAML 1.2's core schema does: 1, 0.5, true, null; everything else is a text.
  nlohmann::json json() const;
};
struct Node::Entry {
  std::string key;
  Place place;
  Node value;
};

/// Parses YAML into nodes. Duplicate keys and keys that are no texts become problems.
/// Throws: SweepFileError at text that is no YAML.
Node load_yaml(const std::string& text, const std::string& file, Problems& problems);

/// Typed reading of nodes; what does not fit becomes a problem at the node's place, and the answer is empty.
class YamlReader {
 public:
  explicit YamlReader(Problems& problems) : problems_{problems} {}

  bool is_mapping(const Node& node, const std::string& field);
  bool is_sequence(const Node& node, const std::string& field);
  /// Keys are declared in sweeps/form.cc, from where editors know them too.
  void allow_only(const Node& mapping, const std::string& field, Part part);
  /// The same of files that no editor knows.
  void allow_only(const Node& mapping, const std::string& field, const std::vector<std::string>& keys);
  /// The value under `key`; null, and a problem with what was expected, where there is none.
  const Node* required(const Node& mapping, const std::string& field, const char* key,
                       const std::string& expected);
  /// A scalar as it is written.
  std::optional<std::string> text(const Node& node, const std::string& field);
  /// One without control characters, which would end a line of a message, a header or a word of another
  /// program.
  std::optional<std::string> plain_text(const Node& node, const std::string& field);
  /// A text that can be part of paths, URLs and shell words.
  std::optional<std::string> name(const Node& node, const std::string& field);
  std::optional<std::int64_t> whole_number(const Node& node, const std::string& field, std::int64_t low,
                                           std::int64_t high);
  std::optional<bool> boolean(const Node& node, const std::string& field);
  std::optional<std::string> choice(const Node& node, const std::string& field,
                                    const std::vector<std::string>& choices);

  Problems& problems() { return problems_; }

 private:
  Problems& problems_;
};

inline constexpr int kDeepestYaml = 100;  ///< levels of lists and mappings in each other

/// What is wrong with a text that the YAML parser refused at `place` with `message`: what people do most
/// often (a tab, a bracket or a quote that is never closed, nesting without end) is named, at the place where
/// it was written.
Problem syntax_problem(const std::string& file, std::string_view text, Place place,
                       const std::string& message);

}  // namespace abl::sweeps
