// SPDX-License-Identifier: Apache-2.0
#include "config/shape_rules.h"

#include <fmt/format.h>

namespace abl::config {
namespace {

constexpr std::size_t kProbe = 3, kWeight = 4;  // places in AttentionConfig::share

/// Whether another role uses the matrix of this one.
bool is_shared(const std::string& share, std::size_t role) {
  return share.find(share[role]) != role || share.find(share[role], role + 1) != std::string::npos;
}

}  // namespace

void check_attention(const AttentionConfig& attention, const ModelConfig& model, const std::string& path,
                     std::vector<Problem>& problems) {
  if (attention.kernel == "none") return;
  const auto complain = [&](const char* key, const std::string& message) {
    problems.push_back({path + key, message, {}});
  };
  const std::string& share = attention.share;
  const bool has_probe = attention.probe != "none";
  if (has_probe && share[kProbe] == '-') {
    complain(
        ".share",
        fmt::format("{} has no PROBE but probe is {}; put a letter in the fourth place, or set probe to none",
                    share, attention.probe));
  } else if (!has_probe && share[kProbe] != '-') {
    complain(
        ".share",
        fmt::format("{} has a PROBE but probe is none; put - in the fourth place, or set probe to inside",
                    share));
  } else if (attention.probe == "outside" && is_shared(share, kProbe)) {
    complain(".share",
             fmt::format("{} shares the PROBE, which is a matrix of its own where probe is outside", share));
  }

  const int groups = attention.groups, dim = model.dim, inner = model.heads * model.dim_head;
  if (dim > 0 && dim % groups != 0) {
    complain(".groups", fmt::format("{} groups do not divide the embedding dimension {}", groups, dim));
  } else if (inner % groups != 0) {
    complain(".groups", fmt::format("{} groups do not divide the width of all heads, {} × {}", groups,
                                    model.heads, model.dim_head));
  }
  if (groups > 1 && is_shared(share, kWeight)) {
    complain(".groups",
             fmt::format("{} groups with WEIGHT shared ({}) have no meaning; WEIGHT is never grouped", groups,
                         share));
  }
}

void check_sizes(const ModelConfig& model, const DataConfig& data, std::vector<Problem>& problems) {
  if (model.dim % 4 != 0) {
    problems.push_back(
        {"model.dim",
         fmt::format("{} is not a multiple of 4, which sine and cosine positions need", model.dim),
         {}});
  }
  if (model.patch > 0 && data.image_size % model.patch != 0) {
    problems.push_back(
        {"model.patch",
         fmt::format("patches of {} do not divide the image size {}", model.patch, data.image_size),
         {}});
  }
}

}  // namespace abl::config
