// SPDX-License-Identifier: Apache-2.0
// A dashboard to try things on, without scheduler and workers: dashboard_fixture STORE [PORT
// [--watch|--sign-in]]. Says where it is on stdout and then does what each line of stdin tells it: `advance
// STEPS`, `fail`, `submit NAME`, `diverge NAME`, `incomplete NAME`, `long NAME` (5,000 rows), `lengthen NAME`
// (its labels and metric names), `print RUN` (colours and a bar to its log), `chatter RUN` (40,000 lines),
// `grow RUN POINTS`, `crowd NAME ROWS`, `factors NAME`, `hostile NAME` (its labels), `extend NAME`, `probe
// RUN`, `sample RUN FROM SECONDS`, `revoke`; ends with stdin. With --sign-in it is served with TLS, and the
// token "abl_vera" lets vera in until `revoke`, with two open pages. Its heartbeat is quick, so that a test
// need not wait for a slow one.
#include <fmt/format.h>

#include <atomic>
#include <cstdio>
#include <iostream>
#include <sstream>

#include "access/tls.h"
#include "access/token.h"
#include "base/error.h"
#include "storage/metric_store.h"
#include "tests/web/demo_store.h"
#include "web/server/server.h"

namespace {

/// Knows vera, until she is revoked.
class Door final : public abl::web::Doorkeeper {
 public:
  Holder recognise(std::string_view token) override {
    if (token != "abl_vera") throw abl::Error{abl::Code::kUnauthenticated, "this token is not known here"};
    if (revoked) throw abl::Error{abl::Code::kUnauthenticated, "this token is revoked"};
    return {.token = "3f2a90c1d4e5", .name = "vera", .role = "viewer", .expires = {}};
  }
  std::string why_over(const std::string&) const override { return revoked ? "this token is revoked" : ""; }
  void note(const Holder&, const std::string&, const std::string&, const std::string&) override {}
  std::atomic<bool> revoked = false;
};

std::shared_ptr<abl::access::ServerCertificate> certificate_in(const std::filesystem::path& folder) {
  const abl::Time now = abl::SystemClock{}.now();
  const auto made = abl::access::make_certificates({"localhost"}, now);
  const abl::access::TlsFiles files{.certificate = folder / "server.crt", .key = folder / "server.key"};
  abl::access::write_secret(files.certificate, made.certificate);
  abl::access::write_secret(files.key, made.key);
  return std::make_shared<abl::access::ServerCertificate>(files, now);
}

int serve(const std::vector<std::string>& arguments) {
  const std::filesystem::path store = arguments.at(0);
  abl::web::DemoStore demo{store};
  const bool watch = arguments.size() > 2 && arguments[2] == "--watch";
  const bool sign_in = arguments.size() > 2 && arguments[2] == "--sign-in";
  Door door;
  abl::web::Server server{
      {.store = store,
       .port = static_cast<std::uint16_t>(arguments.size() > 1 ? std::stoi(arguments[1]) : 0),
       .watch_store = watch,
       .heartbeat = std::chrono::milliseconds{300},
       .certificate = sign_in ? certificate_in(store.parent_path()) : nullptr,
       .doorkeeper = sign_in ? &door : nullptr,
       .limits = {.event_streams_of_one = sign_in ? 2U : 32U}}};
  const auto publish = [&](const std::string& sweep, std::uint32_t run) {
    if (!watch) server.publish({sweep, run});
  };
  fmt::print("{}\n", server.url());
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words{line};
    std::string verb, argument;
    words >> verb >> argument;
    if (verb == "advance")
      for (const auto run : demo.advance(static_cast<std::uint32_t>(std::stoul(argument))))
        publish(demo.kSweep, run);
    if (verb == "fail") {
      const auto run = demo.running().at(0);
      demo.fail(run, "killed by signal 9");
      publish(demo.kSweep, run);
    }
    if (verb == "submit") {
      demo.submit_waiting(argument);
      publish(argument, 0);
    }
    if (verb == "diverge") {
      demo.submit_diverged(argument);
      publish(argument, 0);
    }
    if (verb == "incomplete") {
      demo.submit_incomplete(argument);
      publish(argument, 0);
    }
    if (verb == "long") {
      demo.submit_long(argument, 5000);
      publish(argument, 0);
    }
    if (verb == "lengthen") {
      demo.lengthen(argument);
      publish(argument, 0);
    }
    if (verb == "extend") {
      demo.extend(argument);
      publish(argument, 0);
    }
    if (verb == "crowd") {
      int rows = 0;
      words >> rows;
      demo.submit_crowd(argument, rows);
      publish(argument, 0);
    }
    if (verb == "factors") {
      demo.submit_factors(argument);
      publish(argument, 0);
    }
    if (verb == "hostile") {
      demo.submit_diverged(argument);
      demo.make_hostile(argument);
      publish(argument, 0);
    }
    if (verb == "grow") {
      std::uint32_t points = 0;
      words >> points;
      const auto run = static_cast<abl::storage::RunId>(std::stoul(argument));
      demo.grow(run, points);
      publish(demo.kSweep, run);
    }
    if (verb == "probe") {
      const auto run = static_cast<abl::storage::RunId>(std::stoul(argument));
      demo.look_into(run);
      publish(demo.kSweep, run);
    }
    if (verb == "sample") {
      std::uint32_t from = 0, seconds = 0;
      words >> from >> seconds;
      const auto run = static_cast<abl::storage::RunId>(std::stoul(argument));
      demo.sample(run, from, seconds);
      publish(demo.kSweep, run);
    }
    if (verb == "revoke") {
      door.revoked = true;
      server.look_who_is_there();
    }
    if (verb == "chatter") {
      const auto run = static_cast<abl::storage::RunId>(std::stoul(argument));
      std::string text;
      for (int i = 0; i < 40'000; ++i) text += fmt::format("{:06} all is as it was a line ago\n", i);
      abl::storage::MetricStore{demo.db()}.append_log(run, text);
      publish(demo.kSweep, run);
    }
    if (verb == "print") {
      const auto run = static_cast<abl::storage::RunId>(std::stoul(argument));
      abl::storage::MetricStore{demo.db()}.append_log(run,
                                                      "\x1b[1;31mred\x1b[0m alert\n 10%\r 60%\rall of it\n");
      publish("", run);
    }
    fmt::print("done {}\n", verb);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return serve({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    fmt::print(stderr, "dashboard_fixture: {}\n", error.what());
    return 1;
  }
}
