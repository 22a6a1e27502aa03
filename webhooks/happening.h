// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

#include "base/clock.h"
#include "webhooks/webhook_file.h"

namespace abl::webhooks {

/// Something that others are told of.
struct Happening {
  Event event = Event::kSweepComplete;
  std::string sweep, owner;
  std::string text;  ///< for people: a line or a few
  std::string page;  ///< of the dashboard, with all that matters: "/sweeps/msf-sharing"
  Time time{};
  nlohmann::ordered_json details;  ///< what `text` says, for programs
  std::string id;  ///< the same whenever it is told, also after a restart: receivers can drop what they have
};

/// What is posted.
struct Message {
  std::string event, id, body;
};

/// `dashboard`: begins links, "http://127.0.0.1:8571"; empty: there is none.
Message message_of(const Happening& happening, const Webhook& webhook, std::string_view dashboard);
/// For who sets a webhook up: nothing has happened.
Message test_message(const Webhook& webhook, std::string_view dashboard);

}  // namespace abl::webhooks
