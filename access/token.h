// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace abl::access {

/// A secret by which its holder is known: "abl_<12 hexadecimal digits>_<43 letters>", 256 random bits behind
/// a public part by which people speak of it. Who keeps it writes `text()` into a file of his own; everybody
/// else has the digest.
class Token {
 public:
  /// A new one, of the system's randomness.
  static Token make();
  /// Spaces and line ends around it are let go.
  /// Throws: Error{kUnauthenticated} saying what is wrong with it; never with any of it.
  static Token parse(std::string_view text);

  const std::string& id() const { return id_; }      ///< the public part
  const std::string& text() const { return text_; }  ///< the secret: for its holder's file alone
  std::string digest() const;                        ///< SHA-256 of the text, in hexadecimal

 private:
  Token(std::string id, std::string text) : id_{std::move(id)}, text_{std::move(text)} {}
  std::string id_, text_;
};

/// 256 random bits in 43 letters that a cookie, a URL and a file can have.
std::string random_secret();

/// Whether two digests are equal, in a time that says nothing of where they differ.
bool equal_digests(std::string_view one, std::string_view other);

/// Reads the token in a file. `what`: what it is for, in messages.
/// Throws: Error naming the file: kPermissionDenied where others may read it, kNotFound, and as Token::parse.
Token read_token(const std::filesystem::path& file, const std::string& what);
/// Writes a file that its owner alone can read, as a whole or not at all; its folder is made where it is not
/// there.
void write_secret(const std::filesystem::path& file, std::string_view text);
/// Throws: Error{kPermissionDenied} where others than its owner may read or write the file, kNotFound where
/// there is none.
void expect_private(const std::filesystem::path& file, const std::string& what);

}  // namespace abl::access
