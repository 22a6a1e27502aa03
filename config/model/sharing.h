// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace abl::config {

/// What is wrong with a text that should name the matrix of each role; empty where nothing is.
std::string share_error(const std::string& share);

/// Letters in order of first use: each matrix bears the letter of the first of Q, K, V, P, W that uses it
/// ("AABBC" -> "QQVVW").
std::string canonical_share(const std::string& share);

/// Whether another role (models::Role) uses the matrix of this one.
bool is_shared(const std::string& share, std::size_t role);

}  // namespace abl::config
