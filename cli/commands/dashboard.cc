// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/new_file.h"
#include "cli/command.h"
#include "cli/port.h"
#include "cli/stop_signals.h"
#include "storage/up_to_date.h"
#include "web/server/server.h"

namespace abl::cli {
namespace {

Run declare_dashboard(CLI::App& app, Context& context) {
  auto port = std::make_shared<std::uint16_t>(0);
  app.add_option("--store", context.store_flag, "Results file to show [that of 'ablate up']")
      ->type_name("FILE");
  app.add_option("--port", *port, fmt::format("Port on 127.0.0.1 [{}, or a free one]", kDefaultPort))
      ->check(whole_number(1, 65535))
      ->type_name("N");
  add_log_format(app);
  add_home(app, context);
  add_json(app, context);
  return [&context, port]() -> int {
    const auto say = [&](const std::string& url, const std::string& store) {
      if (context.json)
        context.out.line(nlohmann::ordered_json{{"url", url}, {"store", store}}.dump());
      else
        context.out.line(fmt::format("dashboard of {}: {}", store, url));
    };
    const auto up = running_up(context);
    if (up && context.store_flag.empty() && *port == 0) {  // it is served already, and live
      say(up->url, up->store);
      return kExitOk;
    }
    const std::filesystem::path store = context.store();
    if (!std::filesystem::exists(store))
      throw Error{Code::kNotFound,
                  context.store_flag.empty()
                      ? fmt::format("no results file {}: pass --store FILE", store.string())
                      : fmt::format("--store {}: no such file; expected a results file", context.store_flag)};
    const storage::UpToDate current{
        // an older file is shown from a copy that is brought up to date
        store, std::filesystem::temp_directory_path() / ("ablate" + unfinished_ending())};
    StopSignals signals;  // before the server's threads, which must not take them
    web::Server server{{.store = current.file(),
                        .port = choose_port(*port ? std::optional{*port} : std::nullopt),
                        .watch_store = true,
                        .version = ABLATE_VERSION}};
    say(server.url(), store.string());
    if (!context.json) context.out.line("read-only; stop it with Ctrl-C");
    signals.wait();
    return kExitOk;
  };
}

}  // namespace

extern const Command kDashboardCommand{
    .place = 180,
    .name = "dashboard",
    .summary = "Serve a results file's dashboard, read-only",
    .example = "ablate dashboard --store results.db --port 8080",
    .success = "stopped by Ctrl-C, or it is served already",
    .declare = declare_dashboard,
};

}  // namespace abl::cli
