// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sweeps/chains.h"
#include "sweeps/settings.h"
#include "sweeps/sweep_spec.h"
#include "sweeps/yaml_reader.h"

namespace abl::sweeps {

/// The section `scale:` of a sweep file: rules that make a smaller study of the same rows. Each rule says for
/// which settings it holds, what takes their place, and why.
class Scale {
 public:
  /// `section` outlives it.
  Scale(YamlReader& reader, const Node& section);

  const std::string& name() const { return name_; }
  /// How many seeds a row has at this scale, where it says so.
  const std::optional<int>& seeds() const { return seeds_; }

  /// Rows of other sweeps whose weights a row takes at this scale in place of its own.
  std::vector<DraftSource> sources(const Settings& settings) const;

  /// Changes what a row runs. Which rules hold is asked of what the row is without any of them; of two that
  /// set the same key the later one counts.
  /// Returns why there is no such row at this scale, if that is so.
  std::optional<std::string> apply(Settings& settings, Problems& problems);

  /// After every row: a rule that holds for no row and a scale that changes nothing are problems. Of a scale
  /// that several tables share (`from`), a rule may be for another table.
  void check(Problems& problems) const;

  /// What the table says below it: what the scale is, and which rows are one model at it.
  ///   `same`: rows that differ in the file and are the same trials here
  std::vector<std::string> notes(const std::vector<std::vector<std::string>>& same) const;

 private:
  struct Condition {
    std::string key;
    std::vector<std::string> values;
  };
  struct Layers {
    std::string key;
    int from = 0, to = 0;
  };
  struct Rule {
    Place place;
    std::string field;
    std::vector<Condition> when;
    std::vector<std::string> drop;
    std::vector<Assignment> set;
    std::optional<Layers> layers;
    std::vector<DraftSource> sources;  ///< of each role one, or none
    std::string cannot;                ///< why rows that meet it cannot be had at this scale; empty: they can
    bool held = false;                 ///< for some row
  };
  static bool holds(const Rule& rule, const Settings& settings);

  Rule read_rule(YamlReader& reader, const Node& node, const std::string& field) const;
  /// Whether the layers were there; what cannot be said in fewer is `cannot`.
  static bool place_layers(const Layers& layers, const Rule& rule, Settings& settings, Problems& problems,
                           std::optional<std::string>& cannot);

  Place place_;
  std::string name_, says_, from_;
  std::optional<int> seeds_;
  std::vector<Rule> rules_;
  bool applied_ = false;  ///< to any row
};

/// What rows of the file were before a scale, and are with it.
struct ScaledRow {
  std::string id, config_hash;
  nlohmann::json written;  ///< its document without the scale
};

/// Rows that run the same at the scale and do not without it, in groups.
std::vector<std::vector<std::string>> made_equal(const std::vector<ScaledRow>& rows);

/// "cifar" of the scales in `scales_text` as a section behind a sweep file's text: what is submitted and
/// stored says itself what it ran. Lines of the file keep their numbers.
///   `file`, `scales_file`: named in errors · `own_seeds`: without those of the scale
/// Throws: SweepFileError where the scales are wrong, Error{kNotFound} with the nearest name for a scale that
///         is not among them, Error{kInvalidArgument} where the file has a section of its own.
std::string with_scale(const std::string& text, const std::string& file, const std::string& scales_text,
                       const std::string& scales_file, const std::string& scale, bool own_seeds = false);

/// The names of the scales in `scales_text`, in its order. Throws: SweepFileError.
std::vector<std::string> scale_names(const std::string& scales_text, const std::string& scales_file);

/// A sweep file's text with so many seeds, 0 and on, in place of those that it has. Lines keep their numbers.
/// Throws: SweepFileError; Error{kInvalidArgument} where they are no single line.
std::string with_seeds(const std::string& text, const std::string& file, int seeds);

}  // namespace abl::sweeps
