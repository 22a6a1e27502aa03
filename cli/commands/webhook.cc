// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/nearest_name.h"
#include "cli/command.h"
#include "webhooks/post.h"
#include "webhooks/webhook_file.h"

namespace abl::cli {
namespace {

using webhooks::Webhook;

std::vector<Webhook> chosen(std::vector<Webhook> all, const std::string& name) {
  if (name.empty()) return all;
  std::vector<std::string> names;
  for (const Webhook& webhook : all) names.push_back(webhook.name);
  std::erase_if(all, [&](const Webhook& webhook) { return webhook.name != name; });
  if (!all.empty()) return all;
  const std::string nearest = nearest_name(name, names);
  throw Error{Code::kInvalidArgument,
              fmt::format("unknown webhook '{}'{}", name,
                          nearest.empty() ? "" : fmt::format(": did you mean '{}'?", nearest))};
}

int test(Context& context, const std::string& file, const std::string& name) {
  auto results = nlohmann::json::array();
  std::vector<std::string> untaken;
  for (const Webhook& webhook : chosen(webhooks::read_webhook_file(read_file(file), file), name)) {
    const webhooks::Posted posted = webhooks::post(webhook, webhooks::test_message(webhook, {}));
    if (!posted.taken()) untaken.push_back(webhook.name);
    if (context.json)
      results.push_back({{"webhook", webhook.name},
                         {"host", webhook.url.host},
                         {"taken", posted.taken()},
                         {"status", posted.status},
                         {"why", posted.why}});
    else
      context.out.line(
          fmt::format("{}  {} ({})", webhook.name, posted.taken() ? "taken" : "not taken", posted.why));
  }
  if (context.json) context.out.line(results.dump());
  return untaken.empty() ? kExitOk : kExitUnavailable;
}

Run declare_webhook(CLI::App& app, Context& context) {
  struct Flags {
    std::string what, file, name;
  };
  auto flags = std::make_shared<Flags>();
  add_choice(app, "what", flags->what, {"test"}, "Post a test to each webhook of a file, from this machine")
      ->required();
  app.add_option("file", flags->file, "The webhook file (docs/webhooks.md)")->type_name("FILE")->required();
  app.add_option("name", flags->name, "This webhook alone")->type_name("NAME");
  add_json(app, context);
  return [&context, flags]() -> int { return test(context, flags->file, flags->name); };
}

}  // namespace

extern const Command kWebhookCommand{
    .place = 177,
    .name = "webhook",
    .summary = "Post a test to the webhooks that a scheduler tells what happens",
    .example = "ablate webhook test webhooks.yaml\nablate webhook test webhooks.yaml lab",
    .success = "every webhook took it",
    .declare = &declare_webhook,
};

}  // namespace abl::cli
