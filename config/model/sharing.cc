// SPDX-License-Identifier: Apache-2.0
#include "config/model/sharing.h"

#include <fmt/format.h>

#include <string_view>

#include "models/choices/attention.h"

namespace abl::config {
namespace {

constexpr std::string_view kRoles = "QKVPW";

bool has_form(const std::string& share) {
  if (share.size() != kRoles.size()) return false;
  for (std::size_t role = 0; role < share.size(); ++role) {
    const bool is_letter = share[role] >= 'A' && share[role] <= 'Z';
    if (!is_letter && !(share[role] == '-' && role == models::kProbe)) return false;
  }
  return true;
}

}  // namespace

std::string share_error(const std::string& share) {
  if (has_form(share)) return {};
  return fmt::format(
      "invalid sharing '{}'; expected five capital letters for QUERY, KEY, VALUE, PROBE and WEIGHT, such as "
      "QKKKW, with - in the fourth place where there is no PROBE",
      share);
}

std::string canonical_share(const std::string& share) {
  std::string letters = share;
  for (std::size_t role = 0; role < letters.size(); ++role) {
    if (share[role] != '-') letters[role] = kRoles[share.find(share[role])];
  }
  return letters;
}

bool is_shared(const std::string& share, std::size_t role) {
  return share.find(share[role]) != role || share.find(share[role], role + 1) != std::string::npos;
}

}  // namespace abl::config
