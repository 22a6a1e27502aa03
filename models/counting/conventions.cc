// SPDX-License-Identifier: Apache-2.0
#include "models/counting/conventions.h"

#include <algorithm>
#include <array>
#include <string>

namespace abl::models {
namespace {

bool is_or_contains(const PartCount& part, const std::string& name) {
  return part.name.empty() || part.name == name ||
         (name.starts_with(part.name) && name[part.name.size()] == '.');
}

void add(std::vector<PartCount>& parts, const std::string& name, const Work& more) {
  for (auto& part : parts)
    if (is_or_contains(part, name)) part.work += more;
}

const PartCount* find(const std::vector<PartCount>& parts, const std::string& name) {
  const auto found = std::ranges::find(parts, name, &PartCount::name);
  return found == parts.end() ? nullptr : &*found;
}

void apply_xcit_2021(std::vector<PartCount>& parts) {
  const auto before = parts;
  for (const auto& block : before) {
    if (block.type != "ClassAttentionBlock" || block.output.empty()) continue;
    const auto tokens = block.output.at(1), dim = block.output.at(2);
    add(parts, block.name + ".attn", {.macs = (tokens - 1) * dim * dim - tokens * dim});
    if (const auto* norm = find(before, block.name + ".norm2"))
      add(parts, norm->name, {.layer_norm = dim - norm->work.layer_norm});
  }
}

void apply_mk_head(std::vector<PartCount>& parts) {
  if (parts.front().type != "KeyVit") return;
  const auto* const attention = find(parts, "attn.0");
  const auto* const head = find(parts, "head");
  if (attention && head) add(parts, "head", {.macs = (attention->output.at(1) - 1) * head->work.macs});
}

constexpr std::array kConventions{
    Convention{
        "xcit-2021",
        "Class attention computes the query of every token, its product with the keys is free, and its "
        "second norm acts on the class token alone.",
        "the XCiT release, counted with fvcore of spring 2021 (a batch-normalised element costs 5)",
        /*batch_norm=*/5, &apply_xcit_2021},
    Convention{"mk-head-all-tokens", "The classifier is charged for every token.",
               "the manifold key paper's ViT rows: no other rule gives their digits", /*batch_norm=*/2,
               &apply_mk_head},
};

}  // namespace

std::span<const Convention> conventions() { return kConventions; }

const Convention* find_convention(std::string_view name) {
  const auto found = std::ranges::find(kConventions, name, &Convention::name);
  return found == kConventions.end() ? nullptr : &*found;
}

}  // namespace abl::models
