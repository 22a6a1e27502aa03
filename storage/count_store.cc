// SPDX-License-Identifier: Apache-2.0
#include "storage/count_store.h"

#include "base/sha256.h"

namespace abl::storage {
namespace {

constexpr int kCounterVersion = 7;  ///< raised when the trainer counts differently

}  // namespace

std::optional<std::map<std::string, double>> CountStore::find(const std::string& model_document) const {
  auto& select =
      db_.prepared("SELECT mode, value FROM model_count WHERE model_hash = :hash AND version = :version");
  select.bind(":hash", sha256_hex(model_document)).bind(":version", kCounterVersion);
  std::map<std::string, double> counts;
  while (select.step()) counts[select.text(0)] = select.real(1);
  return counts.empty() ? std::nullopt : std::optional{counts};
}

void CountStore::insert(const std::string& model_document, const std::map<std::string, double>& counts) {
  Transaction transaction{db_, Transaction::kSavepoint};
  const std::string hash = sha256_hex(model_document);
  for (const auto& [mode, value] : counts)
    db_.prepared(
           "INSERT OR REPLACE INTO model_count (model_hash, version, mode, value) VALUES (:hash, :version, "
           ":mode, :value)")
        .bind(":hash", hash)
        .bind(":version", kCounterVersion)
        .bind(":mode", mode)
        .bind(":value", value)
        .run();
  transaction.commit();
}

}  // namespace abl::storage
