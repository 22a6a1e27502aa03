// SPDX-License-Identifier: Apache-2.0
#include "webhooks/webhook_file.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "base/file.h"
#include "tests/error_of.h"
#include "tests/temporary_folder.h"

namespace abl::webhooks {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

std::string problem(const std::string& lines) {
  return error_of([&] { read_webhook_file("webhooks:\n  lab:\n" + lines, "webhooks.yaml"); });
}

Url url_of(const std::string& text) {
  return read_webhook_file("webhooks: {lab: {url: \"" + text + "\"}}", "webhooks.yaml").at(0).url;
}

TEST(WebhookFile, ReadsWhoIsToldOfWhat) {
  const TemporaryFolder folder;
  write_file(folder / "lab.url", "https://hooks.example.org/services/T0/B0/secret\n");
  write_file(folder / "key", "0123456789abcdef\n");
  for (const char* name : {"lab.url", "key"})
    std::filesystem::permissions(folder / name, std::filesystem::perms::owner_read);
  const auto webhooks = read_webhook_file(
      "dashboard: https://head:8571/\n"
      "webhooks:\n"
      "  lab: {url_file: lab.url, body: slack, sweeps: [\"msf-*\"]}\n"
      "  nightly: {url: \"http://127.0.0.1:9000/in?x=1\", events: [row-failed], secret_file: key}\n",
      (folder / "webhooks.yaml").string());
  ASSERT_THAT(webhooks, SizeIs(2));
  EXPECT_EQ(webhooks[0].url.host, "hooks.example.org");
  EXPECT_EQ(webhooks[0].url.target, "/services/T0/B0/secret");
  EXPECT_EQ(webhooks[0].url.port, 443);
  EXPECT_EQ(webhooks[0].body, Body::kSlack);
  EXPECT_EQ(webhooks[0].dashboard, "https://head:8571");
  EXPECT_TRUE(webhooks[0].wants(Event::kCellSignificant, "msf-table-1"));
  EXPECT_FALSE(webhooks[0].wants(Event::kCellSignificant, "xcit-table-1"));
  EXPECT_EQ(webhooks[1].url.port, 9000);
  EXPECT_EQ(webhooks[1].url.target, "/in?x=1");
  EXPECT_FALSE(webhooks[1].url.tls);
  EXPECT_EQ(webhooks[1].secret, "0123456789abcdef");
  EXPECT_TRUE(webhooks[1].wants(Event::kRowFailed, "anything"));
  EXPECT_FALSE(webhooks[1].wants(Event::kSweepComplete, "anything"));
}

TEST(WebhookFile, ReadsTheExampleThatIsDelivered) {
  const TemporaryFolder folder;
  std::filesystem::copy_file(ABLATE_SOURCE_DIR "/deploy/webhooks.yaml", folder / "webhooks.yaml");
  write_file(folder / "lab.url", "https://hooks.slack.com/services/T0/B0/x");
  write_file(folder / "nightly.secret", "0123456789abcdef");
  for (const char* name : {"lab.url", "nightly.secret"})
    std::filesystem::permissions(folder / name, std::filesystem::perms::owner_read);
  EXPECT_THAT(read_webhook_file(read_file(folder / "webhooks.yaml"), (folder / "webhooks.yaml").string()),
              SizeIs(2));
}

TEST(WebhookFile, AnAddressIsTakenApart) {
  EXPECT_EQ(url_of("https://host").target, "/");
  EXPECT_EQ(url_of("https://host:8443/a#part").port, 8443);
  EXPECT_EQ(url_of("https://host:8443/a#part").target, "/a");
  EXPECT_EQ(url_of("http://[::1]:80/a").host, "::1");
  EXPECT_EQ(url_of("https://host?x").target, "/?x");
  for (const char* bad :
       {"ftp://host/", "https://", "https://user:word@host/", "https://host:99999/", "https://host:/",
        "https://ho st/", "https://[::1/", "host/path", "https://host/a b"})
    EXPECT_THAT(error_of([&] { url_of(bad); }),
                AllOf(HasSubstr("webhooks.yaml:1:"), HasSubstr("webhooks.lab.url: invalid address")))
        << bad;
}

TEST(WebhookFile, WhatIsWrongIsSaidWithItsPlaceAndWithoutSecrets) {
  EXPECT_THAT(
      problem("    url: http://hooks.example.org/services/T0/secret"),
      AllOf(
          HasSubstr("webhooks.yaml:3:10: webhooks.lab.url: expected https; http goes to this machine alone, "
                    "not to 'hooks.example.org'"),
          Not(HasSubstr("secret"))));
  EXPECT_THAT(problem("    uri: https://x"),
              AllOf(HasSubstr("unknown key; expected url, "), HasSubstr("did you mean 'url'?")));
  EXPECT_THAT(problem("    body: json"), HasSubstr("webhooks.lab.url: missing; expected url or url_file"));
  EXPECT_THAT(problem("    url: https://x\n    events: [row-fail]"), HasSubstr("'row-failed'"));
  EXPECT_THAT(problem("    url: https://x\n    events: []"), HasSubstr("expected at least one event"));
  EXPECT_THAT(problem("    url: https://x\n    secret: short"), HasSubstr("expected 16 characters at least"));
  EXPECT_THAT(problem("    url: https://x\n    url_file: y"), HasSubstr("expected one of url and url_file"));
  EXPECT_THAT(problem("    url_file: https://hooks.example.org/services/T0/word"),
              AllOf(HasSubstr("webhooks.lab.url_file: no such file"), Not(HasSubstr("T0"))));
  EXPECT_THAT(error_of([] { read_webhook_file("webhooks: {lab: https://h.example/T0}", "w.yaml"); }),
              AllOf(HasSubstr("w.yaml:1:"), HasSubstr("expected a mapping, with url or url_file"),
                    Not(HasSubstr("T0"))));
  EXPECT_THAT(problem("    url: http://127.example.org/x"), HasSubstr("expected https"));
  EXPECT_THAT(error_of([] { read_webhook_file("webhooks: {}", "w.yaml"); }),
              HasSubstr("at least one webhook"));
  EXPECT_THAT(error_of([] { read_webhook_file("webhooks: {A b: {url: https://x}}", "w.yaml"); }),
              HasSubstr("invalid name"));
  EXPECT_THAT(error_of([] { read_webhook_file("- x", "w.yaml"); }), Not(IsEmpty()));
}

TEST(WebhookFile, ASecretThatEverybodyCanReadIsRefused) {
  const TemporaryFolder folder;
  write_file(folder / "open.yaml", "webhooks: {lab: {url: https://x, secret: 0123456789abcdef}}");
  std::filesystem::permissions(folder / "open.yaml", static_cast<std::filesystem::perms>(0644));
  EXPECT_THAT(
      error_of([&] { read_webhook_file(read_file(folder / "open.yaml"), (folder / "open.yaml").string()); }),
      HasSubstr("webhooks.lab.secret: others can read or change this file"));
  write_file(folder / "lab.url", "https://hooks.example.org/services/T0/B0/secret\n");
  std::filesystem::permissions(folder / "lab.url", static_cast<std::filesystem::perms>(0644));
  EXPECT_THAT(error_of([&] {
                read_webhook_file("webhooks: {lab: {url_file: lab.url}}",
                                  (folder / "webhooks.yaml").string());
              }),
              AllOf(HasSubstr("chmod 600 it"), Not(HasSubstr("services"))));
}

}  // namespace
}  // namespace abl::webhooks
