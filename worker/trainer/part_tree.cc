// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/part_tree.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace abl::trainer {
namespace {

using models::PartCount;

int level(const PartCount& part) {
  return part.name.empty() ? 0 : 1 + static_cast<int>(std::ranges::count(part.name, '.'));
}

/// "blocks.11" -> {"blocks", "11"}
std::pair<std::string, std::string> split(const std::string& name) {
  const auto dot = name.rfind('.');
  if (dot == std::string::npos) return {"", name};
  return {name.substr(0, dot), name.substr(dot + 1)};
}

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

bool alike(const PartCount& a, const PartCount& b) {
  const auto [owner_a, last_a] = split(a.name);
  const auto [owner_b, last_b] = split(b.name);
  return owner_a == owner_b && is_number(last_a) && is_number(last_b) && a.type == b.type &&
         a.output == b.output && a.params_all == b.params_all && a.work == b.work;
}

bool inside(const PartCount& part, const PartCount& owner) { return part.name.starts_with(owner.name + "."); }

/// Where the parts that follow `first` and what lies inside it begin.
std::size_t after(const std::vector<PartCount>& parts, std::size_t first) {
  auto next = first + 1;
  while (next < parts.size() && inside(parts[next], parts[first])) ++next;
  return next;
}

std::string amount(std::int64_t count) {
  if (count == 0) return "";
  if (count < 100'000) return fmt::format("{}", count);
  return count < 1'000'000'000 ? fmt::format("{:.2f} M", static_cast<double>(count) / 1e6)
                               : fmt::format("{:.2f} G", static_cast<double>(count) / 1e9);
}

std::string line(const PartCount& part, const std::string& name) {
  auto shape = part.output;
  if (!shape.empty()) shape.erase(shape.begin());  // one image
  const auto indented = std::string(static_cast<std::size_t>(2 * std::max(0, level(part) - 1)), ' ') + name;
  return fmt::format("{:<28} {:<24} {:>18} {:>10} {:>10}\n", indented, part.type,
                     shape.empty() ? "" : fmt::format("[{}]", fmt::join(shape, ", ")),
                     amount(part.params_all), amount(part.work.macs));
}

/// The parts from `begin` to `end`, which are all that one part contains.
void add_inside(const std::vector<PartCount>& parts, std::size_t begin, std::size_t end, int depth,
                std::string& text) {
  for (auto first = begin; first < end;) {
    if (level(parts[first]) > depth) return;
    auto last = first, next = after(parts, first);
    while (next < end && alike(parts[first], parts[next])) {
      last = next;
      next = after(parts, next);
    }
    const auto name = split(parts[first].name).second;
    text += line(parts[first], last == first ? name : name + "-" + split(parts[last].name).second);
    add_inside(parts, first + 1, after(parts, first), depth, text);
    first = next;
  }
}

}  // namespace

std::string part_tree(const std::vector<PartCount>& parts, int depth) {
  auto text = fmt::format("{:<28} {:<24} {:>18} {:>10} {:>10}\n", "part", "type", "output", "params", "MACs");
  text += line(parts.front(), "(model)");
  add_inside(parts, 1, parts.size(), depth, text);
  return text;
}

}  // namespace abl::trainer
