// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/last_words.h"

#include <utility>

#include "base/error.h"
#include "base/log.h"

namespace abl::agent {
using ablate::v1::RunBatch;
using ablate::v1::RunEnded;

RunBatch last_batch(RunEnded::Status status, const std::string& reason) {
  RunBatch batch;
  batch.mutable_ended()->set_status(status);
  batch.mutable_ended()->set_reason(reason);
  batch.mutable_ended()->set_retryable(true);
  return batch;
}

void append_last(RunSpool& spool, RunBatch last) {
  try {
    spool.append(last);
  } catch (const Error& error) {
    log_warning("{}; the end of the run is kept in memory", error.what());
    spool.append_in_memory(std::move(last));
  }
}

}  // namespace abl::agent
