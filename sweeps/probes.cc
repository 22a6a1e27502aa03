// SPDX-License-Identifier: Apache-2.0
// `probes:` of a sweep file: what looks into each trained model, and the columns that take what it finds.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/nearest_name.h"
#include "protocol/probe_results.h"
#include "sweeps/sections.h"

namespace abl::sweeps {

std::vector<protocol::ProbeRequest> read_probe_list(YamlReader& reader, const Node& root) {
  std::vector<protocol::ProbeRequest> probes;
  const Node* section = root.find("probes");
  if (!section) return probes;
  Problems& problems = reader.problems();
  for (const char* key : {"command", "search"})
    if (const Node::Entry* other = root.entry("probes"); root.find(key)) {
      problems.add(
          other->place, "probes",
          std::string_view{key} == "command"
              ? "probes cannot be combined with command, which sends probe events itself; expected no probes"
              : "probes cannot be combined with search; expected no probes");
      return probes;
    }
  if (!reader.is_sequence(*section, "probes")) return probes;
  for (std::size_t i = 0; i < section->items.size(); ++i) try {
      auto probe = protocol::read_probe(section->items[i].json());
      const std::string key = protocol::probe_key(probe);
      if (std::ranges::find(probes, key, protocol::probe_key) != probes.end())
        problems.add(section->items[i].place, "probes", fmt::format("probe '{}' is listed twice", key));
      else
        probes.push_back(std::move(probe));
    } catch (const Error& error) {
      problems.add(section->items[i].place, fmt::format("probes.{}", i + 1), error.what());
    }
  return probes;
}

std::string read_probe_source(YamlReader& reader, const Node& node, const std::string& field) {
  const std::string written = reader.text(node, field).value_or("");
  const auto slash = written.find('/');
  if (node.kind == Node::Kind::kScalar &&
      (slash == 0 || slash == std::string::npos || slash + 1 == written.size() ||
       written.find('/', slash + 1) != std::string::npos))
    reader.problems().add(
        node.place, field,
        fmt::format("invalid '{}'; expected PROBE/VALUE, such as feature-norms/last", written));
  return std::string{protocol::kProbeMetrics} + written;
}

namespace {

/// The probe that a column means: by name and settings, "attention(images=8)", or by the name alone where the
/// file lists one of it.
const protocol::ProbeRequest* probe_meant(const std::vector<protocol::ProbeRequest>& probes,
                                          const std::string& name) {
  if (const auto found = std::ranges::find(probes, name, protocol::probe_key); found != probes.end())
    return &*found;
  const auto found = std::ranges::find(probes, name, &protocol::ProbeRequest::name);
  return found == probes.end() || std::ranges::count(probes, name, &protocol::ProbeRequest::name) > 1
             ? nullptr
             : &*found;
}

}  // namespace

void resolve_probe_columns(SweepSpec& spec, const Node& table, Problems& problems) {
  const Node* columns = table.find("columns");
  if (!columns || spec.command) return;
  std::vector<std::string> asked;
  for (const auto& probe : spec.probes) asked.push_back(protocol::probe_key(probe));
  for (std::size_t i = 0; i < columns->items.size() && i < spec.table.columns.size(); ++i) {
    const Node* written = columns->items[i].find("probe");
    if (!written) continue;
    Column& column = spec.table.columns[i];
    const std::string name{protocol::probe_of_metric(column.source)};
    const std::string value{protocol::value_of_metric(column.source)};
    if (name.empty() || value.empty()) continue;  // said where it was read
    const std::string field = fmt::format("table.columns.{}.probe", column.name);
    const auto* const probe = probe_meant(spec.probes, name);
    if (!probe) {
      problems.add(written->place, field,
                   asked.empty()
                       ? fmt::format("the file lists no probes; expected probes: [{}] beside table", name)
                       : fmt::format("probes does not list '{}'; expected {}", name, any_of(asked)),
                   nearest_name(name, asked));
      continue;
    }
    if (const auto known = protocol::value_names(*probe); !protocol::finds_value(*probe, value))
      problems.add(written->place, field,
                   fmt::format("probe {} has no value '{}'; expected {}", probe->name, value, any_of(known)),
                   nearest_name(value, known));
    column.source = protocol::probe_metric(protocol::probe_key(*probe), value);
  }
}

}  // namespace abl::sweeps
