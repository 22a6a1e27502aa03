// SPDX-License-Identifier: Apache-2.0
#include "sweeps/chains.h"

#include <fmt/format.h>

#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "base/nearest_name.h"
#include "config/document/trial_document.h"
#include "config/json.h"

namespace abl::sweeps {
namespace {

using Role = RowSource::Role;

/// The key of a row that says it.
const char* key_of(Role role) { return role == Role::kStart ? "from" : "teacher"; }

std::optional<DraftSource> read_source(YamlReader& reader, const Node::Entry& entry, Role role,
                                       const std::string& field) {
  DraftSource source{.role = role, .place = entry.place, .field = field};
  if (!reader.is_mapping(entry.value, field)) return std::nullopt;
  reader.allow_only(entry.value, field, Part::kSource);
  if (const Node* take = entry.value.find("take"))
    if (const auto given = reader.choice(*take, field + ".take", names_of<protocol::Taken>()))
      source.take = *value_named<protocol::Taken>(*given);
  if (const Node* seed = entry.value.find("seed")) {
    source.seed =
        reader.whole_number(*seed, field + ".seed", 0, static_cast<std::int64_t>(config::kSeedRange.high));
    source.seed_place = seed->place;
  }
  if (const Node* sweep = entry.value.find("sweep")) {
    source.sweep = reader.text(*sweep, field + ".sweep").value_or("");
    source.sweep_place = sweep->place;
  }
  const Node* row = entry.value.find("row");
  if (!row) {
    reader.problems().add(entry.place, field + ".row", "missing; expected the id of another row");
    return std::nullopt;
  }
  const auto id = reader.text(*row, field + ".row");
  if (!id) return std::nullopt;
  source.row = *id;
  source.row_place = row->place;
  return source;
}

}  // namespace

const char* weights_key(Role role) {
  return role == Role::kStart ? "recipe.start_weights" : "recipe.teacher_weights";
}

std::vector<DraftSource> read_sources(YamlReader& reader, const Node& row, const std::string& field) {
  std::vector<DraftSource> sources;
  for (const Role role : {Role::kStart, Role::kTeacher}) {
    const Node::Entry* entry = row.entry(key_of(role));
    if (!entry) continue;
    if (auto source = read_source(reader, *entry, role, dotted(field, key_of(role))))
      sources.push_back(*std::move(source));
  }
  return sources;
}

std::vector<std::size_t> in_order_of_chains(std::vector<Chained>& rows, Problems& problems) {
  std::map<std::string, std::size_t> index;
  std::vector<std::string> ids;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    index.try_emplace(rows[i].id, i);
    ids.push_back(rows[i].id);
  }
  enum class Seen { kNot, kBegun, kDone };
  std::vector<Seen> seen(rows.size(), Seen::kNot);
  std::vector<std::size_t> order, lengths(rows.size(), 1), path;
  const std::function<void(std::size_t)> visit = [&](std::size_t at) {
    seen[at] = Seen::kBegun;
    path.push_back(at);
    std::erase_if(rows[at].sources, [&](const DraftSource& source) {
      if (!source.sweep.empty()) return false;
      const auto found = index.find(source.row);
      if (found == index.end()) {
        problems.add(source.row_place, source.field + ".row", fmt::format("unknown row '{}'", source.row),
                     nearest_name(source.row, ids));
        return true;
      }
      if (seen[found->second] == Seen::kBegun) {
        std::string circle;
        for (std::size_t i = path.size(); i-- > 0;) {
          circle += rows[path[i]].id + " ← ";
          if (path[i] == found->second) break;
        }
        problems.add(
            source.row_place, source.field + ".row",
            fmt::format(
                "rows that wait for each other: {}; expected a row that does not take this one's weights",
                circle + rows[at].id));
        return true;
      }
      if (path.size() > kLongestChain) {
        problems.add(source.row_place, source.field + ".row",
                     fmt::format("a chain of more than {} rows", kLongestChain));
        return true;
      }
      if (seen[found->second] == Seen::kNot) visit(found->second);
      lengths[at] = std::max(lengths[at], lengths[found->second] + 1);
      if (lengths[at] <= kLongestChain) return false;
      problems.add(source.row_place, source.field + ".row",
                   fmt::format("a chain of more than {} rows", kLongestChain));
      return true;
    });
    path.pop_back();
    seen[at] = Seen::kDone;
    order.push_back(at);
  };
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (seen[i] == Seen::kNot) visit(i);
  return order;
}

std::string why_weights_do_not_fit(const std::string& source_model, const std::string& model) {
  const auto source = nlohmann::json::parse(source_model).at("model");
  const auto own = nlohmann::json::parse(model).at("model");
  for (const char* key :
       {"family", "dim", "depth", "mlp_dim", "mlp_ratio", "stage_depths", "stage_widths", "bottleneck",
        "cardinality", "base_width", "distillation_token", "group_width", "width_factor", "depth_factor"}) {
    const auto text = [&](const nlohmann::json& of) {
      return of.contains(key) ? config::plain_text(of.at(key)) : std::string{"the default"};
    };
    if (text(source) != text(own))
      return fmt::format("model.{} is {} there and {} here", key, text(source), text(own));
  }
  return {};
}

std::string chained_config(const std::string& config, const std::vector<RowSource>& sources,
                           const std::vector<std::string>& hashes, std::int64_t seed) {
  auto document = nlohmann::json::parse(config);
  document["seed"] = seed;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const char* key = weights_key(sources[i].role) + sizeof("recipe.") - 1;
    document["recipe"][key] = protocol::weights_name(sources[i].take, hashes[i]);
  }
  return config::canonical_json(document);
}

}  // namespace abl::sweeps
