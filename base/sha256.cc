// SPDX-License-Identifier: Apache-2.0
#include "base/sha256.h"

#include <openssl/evp.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace abl {
namespace {

/// OpenSSL fails here only for want of memory, or where its installation is broken.
void expect(int succeeded) {
  if (succeeded != 1) throw Error{Code::kInternal, "SHA-256: OpenSSL cannot compute it"};
}

}  // namespace

void Sha256::Free::operator()(evp_md_ctx_st* state) const { EVP_MD_CTX_free(state); }

Sha256::Sha256() : state_{EVP_MD_CTX_new()} {
  expect(state_ && EVP_DigestInit_ex(state_.get(), EVP_sha256(), nullptr));
}

Sha256& Sha256::update(std::string_view bytes) {
  expect(EVP_DigestUpdate(state_.get(), bytes.data(), bytes.size()));
  return *this;
}

std::string Sha256::hex() {
  std::array<unsigned char, 32> digest;
  expect(EVP_DigestFinal_ex(state_.get(), digest.data(), nullptr));
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * digest.size());
  for (const auto byte : digest) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

std::string sha256_hex(std::string_view bytes) { return Sha256{}.update(bytes).hex(); }

std::string sha256_file(const std::filesystem::path& file) {
  std::ifstream in{file, std::ios::binary};
  if (!in) throw system_error("cannot read " + file.string(), errno);
  Sha256 digest;
  std::vector<char> buffer(1 << 20);
  while (in.read(buffer.data(), static_cast<std::streamsize>(buffer.size())) || in.gcount() > 0)
    digest.update({buffer.data(), static_cast<std::size_t>(in.gcount())});
  if (in.bad()) throw system_error("cannot read " + file.string(), errno);
  return digest.hex();
}

}  // namespace abl
