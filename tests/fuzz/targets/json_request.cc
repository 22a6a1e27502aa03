// SPDX-License-Identifier: Apache-2.0
#include "ablate/v1/sweeps.pb.h"
#include "base/error.h"
#include "tests/fuzz/target.h"
#include "views/json.h"

namespace abl::fuzz {
namespace {

/// What is read is what was said: written again, it is the same message.
template <class Message>
void read_as(std::string_view bytes) {
  Message message;
  try {
    views::from_json(bytes, message);
  } catch (const Error& error) {
    require(error.code() == Code::kInvalidArgument, "what is wrong is the text");
    return require_printable(error.what());
  }
  Message again;
  views::from_json(views::to_json(message), again);
  require(views::to_json(again) == views::to_json(message), "a message is read back as it was written");
}

}  // namespace

void read_json_request(std::string_view bytes) {
  read_as<ablate::v1::SubmitRequest>(bytes);
  read_as<ablate::v1::PlanRequest>(bytes);
  read_as<ablate::v1::RetrySweepRequest>(bytes);
}

}  // namespace abl::fuzz
