// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "storage/sweep_store.h"
#include "views/convert.h"
#include "views/read.h"

namespace abl::views {

namespace v1 = ablate::v1;

v1::SweepText sweep_text(storage::Database& db, const std::string& name, std::uint32_t revision) {
  const storage::Transaction snapshot{db, storage::Transaction::kRead};
  const storage::SweepStore store{db};
  const auto sweep = store.get_brief(name);
  const auto stored = store.text_of(sweep, revision);
  if (!stored)
    throw Error{Code::kNotFound,
                fmt::format("sweep {} has no revision {}: {}", name, revision,
                            sweep.revision == 1 ? "it was never extended, and has revision 1 alone"
                                                : fmt::format("it has 1 to {}", sweep.revision))};
  v1::SweepText message;
  message.set_sweep(sweep.name);
  *message.mutable_revision() = to_proto(*stored);
  message.set_text(stored->text);
  return message;
}

extern const Read kSweepTextRead{
    .path = "sweeps/*/text",
    .of = &kSweepOfPath,
    .about = "The sweep's file, as it is or as it was before the sweep was extended",
    .parameters = {{.name = "revision",
                    .about = "The revision, from 1 for the file as submitted; 0: the newest",
                    .number = Range{.otherwise = 0}}},
    .message = v1::SweepText::descriptor,
    .answer =
        [](const Query& query, const Stored& stored) {
          return to_json(sweep_text(stored.db, query.name, query.number("revision")));
        },
};

}  // namespace abl::views
