// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

#include <filesystem>
#include <string>

namespace abl::config {

using Json = nlohmann::json;

/// One thing wrong with a document; the reader of the file adds line and column.
///   {"model.attention.groups", "5 groups do not divide the embedding dimension 384"}
struct Problem {
  std::string path;     ///< dotted; the entries of a list count from 1
  std::string message;  ///< what is wrong, and what was expected
  std::string nearest;  ///< nearest valid spelling, or empty
};

/// JSON as in RFC 8785: sorted keys, no blanks, numbers in their shortest form (100.0 is 100). Keys must be
/// ASCII, where the order of bytes is the order that the RFC asks for.
/// Throws: Error{kInvalidArgument} at a number that is not finite or text that is not UTF-8.
std::string canonical_json(const nlohmann::json& value);

/// A number as RFC 8785 (ECMAScript) writes it: "100", "0.001", "1e-7".
std::string canonical_number(double value);

/// A value as people read it in a message or a table: texts without quotes, the rest canonical.
std::string plain_text(const nlohmann::json& value);

/// The document in `file`.
/// Throws: Error{kInvalidArgument} "FILE:line:column: …" where it is no JSON, and for a key that an object
/// holds twice and more than kDeepestJson levels; Error naming the file when it cannot be read.
Json read_json(const std::filesystem::path& file);

}  // namespace abl::config
