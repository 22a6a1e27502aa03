// SPDX-License-Identifier: Apache-2.0
// ablate-scheduler: queue, leases, results file and dashboard of one fleet.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <malloc.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iostream>

#include "base/command_line.h"
#include "base/duration.h"
#include "base/enum_names.h"
#include "base/error.h"
#include "base/fail_point.h"
#include "base/file.h"
#include "base/log.h"
#include "base/manual_page.h"
#include "base/named_path.h"
#include "base/nearest_name.h"
#include "base/service_manager.h"
#include "launchers/fleet_file.h"
#include "scheduler/depot.h"
#include "scheduler/server.h"
#include "webhooks/webhook_file.h"

namespace {

constexpr auto kFooter = R"(Example:
  ablate-scheduler --store results.db --listen unix:$HOME/.local/state/ablate/run/scheduler.sock --http-port 8080

SIGTERM and Ctrl-C stop it; trainers go on, and a scheduler that is started again on the same store takes them over.

Exit codes: 0 stopped on request, 1 internal error, 2 bad flag or store, 3 a port, a socket or the store is in use or cannot be reached)";

struct Flags {
  std::string store, log_level{name_of(abl::LogLevel::kInfo)}, trainer, fleet;
  std::vector<std::string> plugins;
  bool fleet_dry_run = false;
  std::string webhooks;
  long webhooks_between_ms = 5000;
  int fleet_list_ms = 5000;
  std::vector<std::string> listen;
  std::optional<std::uint16_t> http_port;
  std::string http_listen;
  long heartbeat_ms = 2000, lease_ms = 15000, quarantine_ms = 60000;
  abl::access::TlsFiles tls;
  bool insecure = false;
  int quarantine_after = 5, pack_at_most = 4;
  std::uint64_t depot_limit_mib = 20 << 10, depot_keep_free_mib = 1 << 10, depot_rate_mib = 100;
  std::string depot_every = "10m";
  std::size_t pages_each = 32, connections_each = 256;
};

/// Large pieces of memory, as of a long table that is computed, go back to the system when they are freed: by
/// default the first one that is freed has all later ones taken from heaps, of which each thread has one,
/// where they stay.
void give_memory_back() {
  mallopt(M_MMAP_THRESHOLD, 256 << 10);
  mallopt(M_ARENA_MAX, 4);
}

/// Connections that strangers leave open are not to use up what files need.
void allow_many_files() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  constexpr rlim_t kEnough = 65'536;
  limit.rlim_cur = std::max(limit.rlim_cur, std::min(limit.rlim_max, kEnough));
  setrlimit(RLIMIT_NOFILE, &limit);
}

void add_flags(CLI::App& app, Flags& flags) {
  const auto home = abl::home_folder();
  flags.store = (home / "results.db").string();
  flags.listen = {"unix:" + (home / "run" / "scheduler.sock").string()};
  app.add_option("--store", flags.store, "Results file; created if missing")->capture_default_str();
  app.add_option("--listen", flags.listen,
                 "Listen address: unix:/path or 127.0.0.1:port; with TLS also 0.0.0.0:port; repeatable")
      ->capture_default_str();
  app.add_option(
         "--tls-certificate", flags.tls.certificate,
         "Serve TLS with this certificate (PEM, with its chain), and ask for tokens, on every address but "
         "unix:; read again when it changes")
      ->type_name("FILE");
  app.add_option("--tls-key", flags.tls.key, "Its key, which nobody else may read")->type_name("FILE");
  app.add_option(
         "--client-ca", flags.tls.client_authorities,
         "Ask every client over TLS, worker or person, for a certificate that this authority (PEM) has "
         "signed, beside its token; ca.crt of 'ablate init-fleet' does, and --client there makes them")
      ->type_name("FILE");
  app.add_flag(
      "--insecure", flags.insecure,
      "Listen beyond this machine without TLS and tokens: whoever reaches the port does as they like");
  app.add_option("--http-port", flags.http_port,
                 "Serve the dashboard on this port of 127.0.0.1 (0: any free port) [no dashboard]")
      ->check(abl::whole_number(0, 65535))
      ->type_name("N");
  app.add_option(
         "--http-listen", flags.http_listen,
         "Serve it where other machines reach it, with TLS: 0.0.0.0:8571; people sign in with a token")
      ->type_name("ADDRESS");
  app.add_option("--pages-each", flags.pages_each,
                 "Open pages of the dashboard that one token may have, or, without TLS, one address")
      ->check(abl::whole_number(1, 1024))
      ->type_name("N")
      ->capture_default_str();
  app.add_option(
         "--connections-each", flags.connections_each,
         "Connections over gRPC that one address may have, beyond which it loses those that say least")
      ->check(abl::whole_number(1, 16384))
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--heartbeat-ms", flags.heartbeat_ms, "Heartbeat interval of workers")
      ->capture_default_str();
  app.add_option("--lease-ms", flags.lease_ms, "Requeue a worker's runs after this long without a heartbeat")
      ->capture_default_str();
  app.add_option("--quarantine-after", flags.quarantine_after,
                 "Failures in a row, of different trials that fail nowhere else, after which a worker gets "
                 "one trial at a "
                 "time; 0: never")
      ->check(abl::whole_number(0, 1000))
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--quarantine-ms", flags.quarantine_ms,
                 "It gets that one after so long; after twice as long when that fails too, up to an hour")
      ->check(abl::whole_number(1, 3600000))
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--pack-at-most", flags.pack_at_most,
                 "Trials that share a GPU, of sweeps with resources.pack; 1: none do")
      ->check(abl::whole_number(1, 64))
      ->type_name("N")
      ->capture_default_str();
  app.add_option(
         "--depot-limit-mib", flags.depot_limit_mib,
         "Keep checkpoints of running trials, and data sets that were pushed, in FILE.depot beside the "
         "results file, for machines that lack them: at most N MiB; 0: none")
      ->check(abl::whole_number(0, 1 << 30))
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--depot-keep-free-mib", flags.depot_keep_free_mib,
                 "Leave N MiB of its disk free, which the results file needs too")
      ->check(abl::whole_number(0, 1 << 30))
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--depot-rate-mib", flags.depot_rate_mib,
                 "Take and give N MiB a second at most, over all workers; 0: no bound")
      ->check(abl::whole_number(0, 1 << 20))
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--depot-every", flags.depot_every,
                 "Workers bring a run's newest checkpoint at most this often, and when the run is stopped")
      ->type_name("DURATION")
      ->capture_default_str();
  app.add_option("--trainer", flags.trainer,
                 "Trainer for parameter counts [$ABLATE_TRAINER, or ablate-trainer beside this program]");
  app.add_option(abl::kPluginFlag.flag, flags.plugins,
                 "Location of a plugin that models name, to count them by; repeatable. Its code runs here")
      ->type_name("NAME=FILE")
      ->allow_extra_args(false);
  app.add_option("--fleet", flags.fleet, "Start and end workers as this file says (docs/fleet.md)")
      ->type_name("FILE");
  app.add_flag("--fleet-dry-run", flags.fleet_dry_run,
               "Print what would be started and ended without doing it");
  app.add_option("--fleet-list-ms", flags.fleet_list_ms)  // hidden: how often launchers are asked, for tests
      ->check(abl::whole_number(100, 600'000))
      ->group("");
  app.add_option("--webhooks", flags.webhooks,
                 "Post what happens (a sweep is complete, a row failed, a cell is significant) to where this "
                 "file says (docs/webhooks.md)")
      ->type_name("FILE");
  app.add_option("--webhooks-between-ms", flags.webhooks_between_ms)  // hidden: for tests
      ->check(abl::whole_number(1, 600'000))
      ->group("");
  app.add_option("--log-level", flags.log_level, abl::any_of(abl::names_of<abl::LogLevel>()))
      ->check(CLI::IsMember(abl::names_of<abl::LogLevel>()))
      ->capture_default_str();
  abl::add_log_format(app);
}

int serve(const Flags& flags) {
  // Blocked before any thread starts, so that every thread inherits it and only the wait below takes them.
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTERM);
  sigaddset(&stop, SIGINT);
  pthread_sigmask(SIG_BLOCK, &stop, nullptr);

  ::signal(SIGPIPE, SIG_IGN);  // who reads our output may go
  give_memory_back();
  allow_many_files();

  abl::set_log_level(abl::value_named<abl::LogLevel>(flags.log_level).value());
  abl::scheduler::ServerOptions options;
  options.scheduler.store = flags.store;
  options.scheduler.trainer = flags.trainer;
  options.scheduler.plugins = abl::parse_named_paths(abl::kPluginFlag, flags.plugins);
  abl::expect_there(abl::kPluginFlag, options.scheduler.plugins);
  options.scheduler.policy.heartbeat = abl::Milliseconds{flags.heartbeat_ms};
  options.scheduler.policy.quarantine.after = flags.quarantine_after;
  options.scheduler.policy.quarantine.first = abl::Milliseconds{flags.quarantine_ms};
  options.scheduler.policy.pack_at_most = flags.pack_at_most;
  options.scheduler.policy.ttl = abl::Milliseconds{flags.lease_ms};
  const auto every = abl::parse_duration(flags.depot_every);
  if (!every || *every < std::chrono::seconds{1} || *every > std::chrono::hours{24 * 7})
    throw abl::Error{abl::Code::kInvalidArgument,
                     fmt::format("--depot-every: invalid duration '{}'; expected 1s to 7d, such as 10m",
                                 flags.depot_every)};
  options.scheduler.depot = {.folder = {},
                             .limit = flags.depot_limit_mib << 20,
                             .keep_free = flags.depot_keep_free_mib << 20,
                             .rate = flags.depot_rate_mib << 20,
                             .every = std::chrono::duration_cast<abl::Milliseconds>(*every)};
  if (!flags.fleet.empty())
    options.scheduler.fleet = abl::scheduler::FleetOptions{
        .config = abl::launchers::read_fleet_file(abl::read_file(flags.fleet), flags.fleet),
        .dry_run = flags.fleet_dry_run,
        .tls = flags.tls.given(),
        .list_every = abl::Milliseconds{flags.fleet_list_ms}};
  else if (flags.fleet_dry_run)
    throw abl::Error{abl::Code::kInvalidArgument, "--fleet-dry-run belongs to --fleet FILE"};
  if (options.scheduler.fleet) abl::scheduler::check(*options.scheduler.fleet);
  if (!flags.webhooks.empty())
    options.webhooks = abl::webhooks::read_webhook_file(abl::read_file(flags.webhooks), flags.webhooks);
  options.webhooks_between = abl::Milliseconds{flags.webhooks_between_ms};
  options.listen = flags.listen;
  options.tls = flags.tls;
  options.insecure = flags.insecure;
  options.http_port = flags.http_port;
  options.http_listen = flags.http_listen;
  options.pages_each = flags.pages_each;
  options.connections_each = flags.connections_each;
  const abl::scheduler::SchedulerServer server{options};

  const std::string ready =
      fmt::format("ablate-scheduler {} is ready: store {}, listens on {}{}", ABLATE_VERSION, flags.store,
                  fmt::join(server.addresses(), ", "),
                  server.dashboard().empty() ? "" : ", dashboard at " + server.dashboard());
  if (abl::log_format() == abl::LogFormat::kJson) {
    abl::log_info({{"store", flags.store}, {"dashboard", server.dashboard()}}, "{}", ready);
  } else {
    std::puts(ready.c_str());  // nobody need read it
    std::fflush(stdout);
  }
  try {
    abl::tell_service_manager_ready();
  } catch (
      const abl::Error& error) {  // one that was started by hand from a service's shell serves all the same
    abl::log_warning("{}", error.what());
  }
  int signal = 0;
  sigwait(&stop, &signal);
  abl::log_info("{}: the scheduler stops", signal == SIGINT ? "SIGINT" : "SIGTERM");
  return abl::kExitOk;
}

}  // namespace

int main(int argc, char** argv) {
  ::setenv("GRPC_VERBOSITY", "NONE", 0);  // strangers who knock do not fill the log
  CLI::App app{"Queues sweeps, leases trials to workers and stores results.", "ablate-scheduler"};
  app.footer(kFooter);
  app.set_version_flag("--version", ABLATE_VERSION);
  abl::add_manual_flag(app);
  try {
    abl::read_fail_points();
    Flags flags;
    add_flags(app, flags);
    abl::check_spelling(app, argc, argv);
    app.parse(argc, argv);
    return serve(flags);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    std::cerr << "ablate-scheduler: " << abl::complaint(app, error) << '\n';
    return abl::kExitUsage;
  } catch (const abl::Error& error) {
    std::cerr << "ablate-scheduler: " << error.what() << '\n';
    return abl::exit_code(error.code());
  } catch (const std::exception& error) {
    std::cerr << "ablate-scheduler: " << error.what() << '\n';
    return abl::kExitFailed;
  }
}
