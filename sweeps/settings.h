// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "config/document/trial_document.h"
#include "sweeps/problems.h"
#include "sweeps/yaml_reader.h"

namespace abl::sweeps {

/// Where a key of a document was written.
struct Origin {
  Place place;
  std::string field;    ///< "rows.h.set.model.attention.groups"
  bool in_base = true;  ///< in what all rows share
};

/// One key that a row sets: `set: {model.attention.share: QKKKW}`, or the level of a factor. `value` outlives
/// it.
struct Assignment {
  std::string key;
  const Node* value = nullptr;
  Place place;
  std::string field;
};

/// A document put together from the base of a sweep file and what a row sets, which remembers where each key
/// comes from.
class Settings {
 public:
  Settings() = default;
  /// The mapping under `field` ("base"), all of it.
  Settings(const Node& base, const std::string& field);

  /// Sets a dotted key. A mapping sets each of its keys and leaves the others as they are; anything else
  /// takes the place of what was there.
  void assign(const Assignment& assignment, Problems& problems);

  /// Of a dotted key what was set; it need not be there.
  void take_out(const std::string& key);

  const nlohmann::json& document() const { return document_; }
  /// The value of a dotted key as people read it; nothing where it is absent.
  std::optional<std::string> text_at(const std::string& key) const;
  /// Where `path`, or the nearest key around it, was written. The field is completed by the rest of the path.
  Origin origin(const std::string& path) const;

 private:
  void put(nlohmann::json& at, const std::string& path, const Node& value, const Origin& origin);
  void remember(const std::string& path, const Node& value, const Origin& origin);

  nlohmann::json document_ = nlohmann::json::object();
  std::map<std::string, Origin> origins_;
};

/// The leaves of what is set: {"model.attention": {groups: 2}} -> {"model.attention.groups": "2"}, as people
/// read it.
std::map<std::string, std::string> leaves(const std::vector<Assignment>& assignments);

}  // namespace abl::sweeps
