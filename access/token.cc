// SPDX-License-Identifier: Apache-2.0
#include "access/token.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <span>

#include "base/error.h"
#include "base/file.h"
#include "base/new_file.h"
#include "base/sha256.h"

namespace abl::access {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "abl_";
constexpr std::string_view kHexadecimal = "0123456789abcdef";
constexpr std::string_view kBase64Url = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr std::size_t kIdBytes = 6, kSecretBytes = 32, kSecretLetters = 43;

void fill(std::span<unsigned char> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::getrandom(bytes.data(), bytes.size(), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw system_error("cannot get random bits", errno);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

std::string base64url(std::span<const unsigned char> bytes) {
  std::string text;
  unsigned buffer = 0;
  int bits = 0;
  for (const unsigned char byte : bytes) {
    buffer = buffer << 8 | byte;
    for (bits += 8; bits >= 6; bits -= 6) text += kBase64Url[buffer >> (bits - 6) & 63];
  }
  if (bits > 0) text += kBase64Url[buffer << (6 - bits) & 63];
  return text;
}

[[noreturn]] void refuse(const char* why) {
  throw Error{Code::kUnauthenticated, fmt::format("this is not a token: {}", why)};
}

}  // namespace

Token Token::make() {
  std::array<unsigned char, kIdBytes> id{};
  fill(id);
  std::string name;
  for (const unsigned char byte : id) name += fmt::format("{:02x}", byte);
  std::string text = fmt::format("{}{}_{}", kPrefix, name, random_secret());
  return {std::move(name), std::move(text)};
}

Token Token::parse(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) refuse("it is empty");
  text = text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
  if (!text.starts_with(kPrefix)) refuse("a token begins with abl_");
  const std::string_view id = text.substr(kPrefix.size(), 2 * kIdBytes);
  if (id.size() != 2 * kIdBytes || id.find_first_not_of(kHexadecimal) != std::string_view::npos)
    refuse("12 hexadecimal digits were expected behind abl_");
  const std::string_view rest = text.substr(kPrefix.size() + 2 * kIdBytes);
  if (!rest.starts_with('_') || rest.size() != 1 + kSecretLetters ||
      rest.find_first_not_of(kBase64Url) != std::string_view::npos)
    refuse("it is not complete, or has something behind it");
  return {std::string{id}, std::string{text}};
}

std::string Token::digest() const { return sha256_hex(text_); }

std::string random_secret() {
  std::array<unsigned char, kSecretBytes> secret{};
  fill(secret);
  return base64url(secret);
}

bool equal_digests(std::string_view one, std::string_view other) {
  return one.size() == other.size() && CRYPTO_memcmp(one.data(), other.data(), one.size()) == 0;
}

void expect_private(const fs::path& file, const std::string& what) {
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0) {
    if (errno == ENOENT)
      throw Error{Code::kNotFound, fmt::format("{} {}: no such file", what, file.string())};
    throw system_error(fmt::format("{} {}", what, file.string()), errno);
  }
  if (S_ISDIR(status.st_mode))
    throw Error{Code::kInvalidArgument, fmt::format("{} {}: is a folder", what, file.string())};
  if ((status.st_mode & 077) != 0)
    throw Error{Code::kPermissionDenied,
                fmt::format("{} {} is open to other users (mode {:04o}): run 'chmod 600 {}'", what,
                            file.string(), status.st_mode & 07777, file.string())};
}

Token read_token(const fs::path& file, const std::string& what) {
  expect_private(file, what);
  try {
    return Token::parse(read_file(file));
  } catch (const Error& error) {
    throw Error{error.code(), fmt::format("{} {}: {}", what, file.string(), error.what())};
  }
}

void write_secret(const fs::path& file, std::string_view text) {
  if (const fs::path folder = fs::absolute(file).parent_path(); !fs::exists(folder)) make_folder(folder);
  NewFile secret{file, {.ending = unfinished_ending(), .mode = 0600}};
  secret.append(text);
  secret.publish();
}

}  // namespace abl::access
