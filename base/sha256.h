// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

struct evp_md_ctx_st;  // OpenSSL's EVP_MD_CTX

namespace abl {

/// SHA-256 (FIPS 180-4) of what was given to `update`: OpenSSL's, which uses the processor's instructions for
/// it where there are some.
class Sha256 {
 public:
  Sha256();
  Sha256& update(std::string_view bytes);
  /// Lower-case hexadecimal, 64 characters. Ends the digest: use a new object for the next one.
  std::string hex();

 private:
  struct Free {
    void operator()(evp_md_ctx_st* state) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> state_;
};

std::string sha256_hex(std::string_view bytes);
/// Throws: Error when the file cannot be read.
std::string sha256_file(const std::filesystem::path& file);

}  // namespace abl
