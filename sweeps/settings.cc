// SPDX-License-Identifier: Apache-2.0
#include "sweeps/settings.h"

#include <fmt/format.h>

#include "config/json.h"

namespace abl::sweeps {
namespace {

std::vector<std::string> split(const std::string& key) {
  std::vector<std::string> parts(1);
  for (const char letter : key) {
    if (letter == '.') {
      parts.emplace_back();
    } else {
      parts.back() += letter;
    }
  }
  return parts;
}

void add_leaves(std::map<std::string, std::string>& leaves, const std::string& key, const Node& value) {
  if (value.kind != Node::Kind::kMapping || value.entries.empty()) {
    leaves[key] = value.kind == Node::Kind::kScalar ? value.text : config::plain_text(value.json());
  }
  for (const Node::Entry& entry : value.entries) add_leaves(leaves, dotted(key, entry.key), entry.value);
}

}  // namespace

Settings::Settings(const Node& base, const std::string& field) {
  put(document_, "", base, {base.place, field, true});
}

void Settings::put(nlohmann::json& at, const std::string& path, const Node& value, const Origin& origin) {
  if (value.kind == Node::Kind::kMapping && at.is_object()) {
    origins_.try_emplace(path, origin);
    for (const Node::Entry& entry : value.entries) {
      if (!at.contains(entry.key) && entry.value.kind == Node::Kind::kMapping)
        at[entry.key] = nlohmann::json::object();
      put(at[entry.key], dotted(path, entry.key), entry.value,
          {entry.place, dotted(origin.field, entry.key), origin.in_base});
    }
    return;
  }
  at = value.json();
  remember(path, value, origin);
}

void Settings::remember(const std::string& path, const Node& value, const Origin& origin) {
  origins_[path] = origin;
  for (const Node::Entry& entry : value.entries) {
    remember(dotted(path, entry.key), entry.value,
             {entry.place, dotted(origin.field, entry.key), origin.in_base});
  }
  for (std::size_t i = 0; i < value.items.size(); ++i) {
    const std::string index = std::to_string(i + 1);  // as config's problems count
    remember(dotted(path, index), value.items[i],
             {value.items[i].place, dotted(origin.field, index), origin.in_base});
  }
}

void Settings::assign(const Assignment& assignment, Problems& problems) {
  const std::vector<std::string> parts = split(assignment.key);
  const Origin origin{assignment.place, assignment.field, false};
  nlohmann::json* at = &document_;
  std::string path;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (at->is_null()) *at = nlohmann::json::object();
    if (!at->is_object()) {
      problems.add(assignment.place, assignment.field,
                   fmt::format("cannot set a key of {}: not a mapping", path));
      return;
    }
    path = dotted(path, parts[i]);
    if (i + 1 < parts.size()) origins_.try_emplace(path, origin);
    at = &(*at)[parts[i]];
  }
  if (at->is_null() && assignment.value->kind == Node::Kind::kMapping) *at = nlohmann::json::object();
  put(*at, path, *assignment.value, origin);
}

void Settings::take_out(const std::string& key) {
  nlohmann::json* at = &document_;
  const std::vector<std::string> parts = split(key);
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
    if (!at->is_object() || !at->contains(parts[i])) return;
    at = &(*at)[parts[i]];
  }
  if (at->is_object()) at->erase(parts.back());
}

std::optional<std::string> Settings::text_at(const std::string& key) const {
  const nlohmann::json* at = &document_;
  for (const std::string& part : split(key)) {
    if (!at->is_object() || !at->contains(part)) return {};
    at = &(*at)[part];
  }
  return config::plain_text(*at);
}

Origin Settings::origin(const std::string& path) const {
  std::string around = path;
  while (true) {
    if (const auto found = origins_.find(around); found != origins_.end()) {
      Origin origin = found->second;
      std::string rest = path.substr(around.size());
      if (!rest.empty()) origin.field = dotted(origin.field, rest[0] == '.' ? rest.substr(1) : rest);
      return origin;
    }
    if (around.empty()) return {{}, path, true};
    const std::size_t dot = around.rfind('.');
    around = dot == std::string::npos ? "" : around.substr(0, dot);
  }
}

std::map<std::string, std::string> leaves(const std::vector<Assignment>& assignments) {
  std::map<std::string, std::string> all;
  for (const Assignment& assignment : assignments) add_leaves(all, assignment.key, *assignment.value);
  return all;
}

}  // namespace abl::sweeps
