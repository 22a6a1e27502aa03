// SPDX-License-Identifier: Apache-2.0
#include "access/openssl.h"

#include <arpa/inet.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>

#include <array>
#include <ctime>

namespace abl::access {
namespace {

int refuse_password(char*, int, int, void*) { return -1; }  // instead of a question on the terminal

}  // namespace

Memory memory_of(std::string_view text) {
  return Memory{BIO_new_mem_buf(text.data(), static_cast<int>(text.size()))};
}

std::vector<Certificate> certificates_in(std::string_view pem) {
  const Memory memory = memory_of(pem);
  std::vector<Certificate> all;
  while (X509* const certificate = PEM_read_bio_X509(memory.get(), nullptr, refuse_password, nullptr))
    all.emplace_back(certificate);
  ERR_clear_error();  // the end of the text is one
  return all;
}

std::vector<Key> keys_in(std::string_view pem) {
  const Memory memory = memory_of(pem);
  std::vector<Key> all;
  while (EVP_PKEY* const key = PEM_read_bio_PrivateKey(memory.get(), nullptr, refuse_password, nullptr))
    all.emplace_back(key);
  ERR_clear_error();  // the end of the text is one
  return all;
}

Key key_in(std::string_view pem) {
  auto all = keys_in(pem);
  return all.empty() ? Key{} : std::move(all.front());
}

std::string date_of(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return "an unknown date";
  return fmt::format("{:%Y-%m-%d at %H:%M} UTC", parts);
}

std::vector<std::string> names_of(X509* certificate) {
  std::vector<std::string> names;
  const std::unique_ptr<GENERAL_NAMES, Freed<GENERAL_NAMES_free>> all{
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr))};
  for (int i = 0; all && i < sk_GENERAL_NAME_num(all.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(all.get(), i);
    if (name->type == GEN_DNS)
      names.emplace_back(reinterpret_cast<const char*>(ASN1_STRING_get0_data(name->d.dNSName)),
                         static_cast<std::size_t>(ASN1_STRING_length(name->d.dNSName)));
    if (name->type != GEN_IPADD) continue;
    char text[INET6_ADDRSTRLEN]{};
    const bool v4 = ASN1_STRING_length(name->d.iPAddress) == 4;
    if (v4 || ASN1_STRING_length(name->d.iPAddress) == 16)
      if (::inet_ntop(v4 ? AF_INET : AF_INET6, ASN1_STRING_get0_data(name->d.iPAddress), text, sizeof text))
        names.emplace_back(text);
  }
  return names;
}

std::string common_name(const X509_NAME* name) {
  std::array<char, 256> text{};
  const int size = X509_NAME_get_text_by_NID(const_cast<X509_NAME*>(name), NID_commonName, text.data(),
                                             static_cast<int>(text.size()));
  return size > 0 ? std::string{text.data()} : "somebody without a name";
}

std::string openssl_reason() {
  const unsigned long code = ERR_peek_last_error();
  ERR_clear_error();
  const char* reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  return reason ? reason : "unknown";
}

}  // namespace abl::access
