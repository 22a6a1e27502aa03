// SPDX-License-Identifier: Apache-2.0
#include "storage/provenance_store.h"

#include <fmt/format.h>
#include <google/protobuf/util/json_util.h>

#include "base/utf8.h"
#include "storage/sweep_store.h"
#include "views/convert.h"
#include "views/read.h"

namespace abl::views {
namespace {

namespace v1 = ablate::v1;

v1::Provenance message_of(const storage::ProvenanceRecord& record) {
  v1::Provenance message;
  google::protobuf::util::JsonParseOptions lenient;
  lenient.ignore_unknown_fields = true;  // of a newer program
  if (const auto read = google::protobuf::util::JsonStringToMessage(record.facts_json, &message, lenient);
      !read.ok())
    message.set_git_missing("what is stored of it cannot be read: " + valid_utf8(read.ToString()));
  if (!record.diff.empty()) message.mutable_git()->set_diff(valid_utf8(record.diff));
  message.set_packages(valid_utf8(record.packages));
  *message.mutable_time() = to_proto(record.time);
  return message;
}

}  // namespace

std::optional<storage::ProvenanceRecord> provenance_record(const v1::Provenance& message) {
  constexpr std::size_t kMostBytes = 4 << 20;
  const std::size_t bytes = message.ByteSizeLong();
  if (bytes == 0) return std::nullopt;  // its submitter says nothing
  if (bytes > kMostBytes)
    throw Error{Code::kInvalidArgument,
                fmt::format("provenance: {} bytes, at most {} are kept; submit with --no-provenance", bytes,
                            kMostBytes)};
  v1::Provenance facts = message;
  storage::ProvenanceRecord record{.diff = message.git().diff(), .packages = message.packages()};
  facts.clear_time();
  facts.clear_packages();
  if (facts.has_git()) facts.mutable_git()->clear_diff();
  record.facts_json = to_json(facts);
  return record;
}

v1::ProvenanceResponse provenance(storage::Database& db, const std::string& sweep) {
  const storage::Transaction snapshot{db, storage::Transaction::kRead};
  v1::ProvenanceResponse message;
  for (const auto& record : storage::ProvenanceStore{db}.of(storage::SweepStore{db}.get_brief(sweep).id))
    *message.add_provenance() = message_of(record);
  return message;
}

extern const Read kProvenanceRead{
    .path = "sweeps/*/provenance",
    .of = &kSweepOfPath,
    .about = "What the sweep was submitted from: git commit and diff of its folder, packages",
    .message = v1::ProvenanceResponse::descriptor,
    .answer = [](const Query& query,
                 const Stored& stored) { return to_json(provenance(stored.db, query.name)); },
};

}  // namespace abl::views
