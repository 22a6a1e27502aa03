// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace abl::config {

/// A kind of backbone: what its models have in common beside their sizes.
struct Family {
  std::string_view name;
  std::string_view sentence;
};

std::span<const Family> families();
std::vector<std::string> family_names();

/// Whether what is of meaning for the families `listed` (none: for all) is so for `family`. Of a family that
/// is not known (empty) everything is.
bool is_for(const std::vector<std::string>& listed, const std::string& family);

/// "simple-vit, swin and swin-v2".
std::string all_of(const std::vector<std::string>& names);

}  // namespace abl::config
