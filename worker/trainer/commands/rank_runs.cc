// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/commands/rank_runs.h"

#include <fmt/format.h>
#include <torch/cuda.h>

#include <cstdlib>
#include <utility>

#include "base/command_line.h"
#include "base/error.h"
#include "base/file.h"
#include "base/stop_on_signals.h"
#include "protocol/command_line.h"
#include "worker/trainer/commands/commands.h"
#include "worker/trainer/device/failure.h"
#include "worker/trainer/ranks/batch_share.h"
#include "worker/trainer/ranks/rendezvous.h"

namespace abl::commands {

namespace flag = protocol::flag;

namespace {

/// What this program was started with.
std::vector<std::string> own_arguments() {
  std::vector<std::string> argv;
  const std::string text = read_file("/proc/self/cmdline");
  for (std::size_t begin = 0, end; (end = text.find('\0', begin)) != std::string::npos; begin = end + 1)
    argv.push_back(text.substr(begin, end - begin));
  argv.erase(argv.begin());
  return argv;
}

/// Throws: Error where there is no GPU for each rank.
void check_devices(int ranks, const std::string& device) {
  if (device == "cpu") return;
  if (device != "cuda")
    throw Error{Code::kInvalidArgument,
                fmt::format("--device {} is one GPU; with --ranks {} expected cuda, which takes cuda:0 to "
                            "cuda:{}",
                            device, ranks, ranks - 1)};
  const auto there = static_cast<int>(torch::cuda::device_count());
  if (there < ranks)
    throw device::MachineFault{
        Error{Code::kFailedPrecondition,
              fmt::format("--ranks {}: {} GPUs can be used here; expected one for each rank", ranks, there)},
        {.part = protocol::Fault::Part::kDevice}};
}

}  // namespace

void declare_rank_flags(CLI::App& app, RankFlags& flags) {
  app.add_option(
         flag::kRanks, flags.ranks,
         "Number of data-parallel processes: on cuda:0 … cuda:N-1 with --device cuda, otherwise sharing "
         "--threads")
      ->check(whole_number(1, 1024))
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--rank", flags.rank)->group("");
  app.add_option("--rendezvous", flags.rendezvous)->group("");
  // of a run over several machines: what their workers say
  auto& node = flags.node;
  app.add_option(flag::kNodes, node.nodes)->check(whole_number(1, 1024))->group("");
  app.add_option(flag::kNode, node.node)->check(whole_number(0, 1023))->group("");
  app.add_option(flag::kFirstRank, node.first_rank)->check(whole_number(0, 1023))->group("");
  app.add_option(flag::kLocalRanks, node.local_ranks)->check(whole_number(1, 1024))->group("");
  app.add_option(flag::kAddress, node.address)->group("");
  app.add_option(flag::kJoin, node.join)->group("");
  const auto seconds_to = [](std::chrono::milliseconds& to) {
    return [&to](const std::string& text) {
      to = std::chrono::milliseconds{static_cast<std::int64_t>(std::stod(text) * 1000)};
    };
  };
  app.add_option_function<std::string>("--node-patience", seconds_to(node.patience))
      ->check(seconds())
      ->group("");
  app.add_option_function<std::string>("--node-silence", seconds_to(node.silence))
      ->check(seconds())
      ->group("");
}

namespace {

/// The key of a run over several machines.
std::string ranks_key() {
  const char* const key = std::getenv(protocol::kRanksKey);
  return key ? key : "";
}

/// Throws: Error{kInvalidArgument} where the flags of several machines do not go together.
void check_node(const RankFlags& flags) {
  const auto& node = flags.node;
  const auto fail = [](const std::string& what) { throw Error{Code::kInvalidArgument, what}; };
  if (!flags.several_nodes()) return;
  if (node.node >= node.nodes)
    fail(fmt::format("--node {}: expected less than --nodes {}", node.node, node.nodes));
  if (node.first_rank + node.local_ranks > flags.ranks || (node.node == 0) != (node.first_rank == 0))
    fail(fmt::format("--first-rank {} and --local-ranks {} are not machine {}'s of --ranks {}",
                     node.first_rank, node.local_ranks, node.node, flags.ranks));
  if (node.address.empty()) fail("--nodes: expected --address, at which the other machines reach this one");
  if ((node.node == 0) != node.join.empty()) fail("--join: expected of every machine but the first");
  if (ranks_key().empty()) fail(fmt::format("--nodes: expected the run's key in ${}", protocol::kRanksKey));
}

}  // namespace

void take_place(const RankFlags& flags, training::TrainingOptions& options) {
  if (!flags.is_rank()) return;
  check_node(flags);
  if (options.device == "cuda") {
    options.device = fmt::format("cuda:{}", flags.rank - flags.node.first_rank);
    if (flags.several_nodes()) ranks::use_interface_of(flags.node.address);
  }
  options.threads = ranks::thread_share(options.threads, flags.local_ranks());
  if (options.loader_threads > 0)
    options.loader_threads = ranks::thread_share(options.loader_threads, flags.local_ranks());
  options.ranks = std::make_shared<ranks::RankGroup>(
      ranks::RankPlace{.rank = flags.rank,
                       .ranks = flags.ranks,
                       .rendezvous = ranks::parse_rendezvous(flags.rendezvous),
                       .key = flags.several_nodes() ? ranks_key() : "",
                       .address = flags.several_nodes() ? flags.node.address : "",
                       .device = torch::Device{options.device}});
}

ranks::RunEnd run_ranks(int ranks, const std::vector<std::string>& arguments, protocol::Events& events,
                        const ranks::NodePlace& place) {
  // the file that runs: a PATH or a working folder may have changed since it was started
  std::vector<std::string> argv{std::filesystem::read_symlink("/proc/self/exe")};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  const auto command_at = [&](std::string where) {
    return [argv, where = std::move(where)](int rank) {
      auto one = argv;
      one.insert(one.end(), {"--rank", std::to_string(rank), "--rendezvous", where});
      return one;
    };
  };
  try {
    if (place.node > 0) {
      ranks::Nodes nodes{place};
      return ranks::supervise_ranks(ranks, command_at(place.join), events, stop_on_signals(), &nodes);
    }
    if (place.nodes > 1) {
      const ranks::RendezvousServer server{place.address};
      ranks::Nodes nodes{place, server};
      events.rendezvous(server.rendezvous().text());
      return ranks::supervise_ranks(ranks, command_at(server.rendezvous().text()), events, stop_on_signals(),
                                    &nodes);
    }
    const ranks::RendezvousServer server;
    return ranks::supervise_ranks(ranks, command_at(server.rendezvous().text()), events, stop_on_signals());
  } catch (const c10::Error& error) {  // of the store
    return {.end = {.status = protocol::End::Status::kFailed,
                    .reason = error.what_without_backtrace(),
                    .fault = {}},
            .exit_code = kExitFailed};
  }
}

int train_with_ranks(const RankFlags& flags, const std::string& device, protocol::Events& events) {
  try {
    check_node(flags);
    check_devices(flags.local_ranks(), device);
    ranks::NodePlace place = flags.node;
    place.ranks = flags.ranks, place.key = ranks_key();
    const auto [end, code] = run_ranks(flags.local_ranks(), own_arguments(), events, place);
    if (end.fault)
      events.end_by(*end.fault, end.reason);
    else if (end.failure)
      events.end_as(*end.failure, end.reason, end.retryable);
    else
      events.end(end.status, end.reason, end.retryable);
    return code;
  } catch (const Error& error) {
    return device::fail(events, error);
  }
}

namespace {

/// What each rank is started with.
std::vector<std::string> arguments_of(int ranks, const RunFlags& flags,
                                      const training::TrainingOptions& options) {
  std::vector<std::string> arguments{"train"};
  for (auto& argument : flags.arguments()) arguments.push_back(argument);
  arguments.insert(
      arguments.end(),
      {flag::kRunDir, options.run_dir, "--last-step", std::to_string(options.last_step), "--keep-best",
       options.keep_best, "--checkpoint-seconds", fmt::format("{}", options.checkpoint_every.count()),
       flag::kRanks, std::to_string(ranks)});
  if (!options.resume.empty()) arguments.insert(arguments.end(), {flag::kResume, options.resume});
  return arguments;
}

}  // namespace

void check_gpus(const std::filesystem::path& to, const std::string& device, int ranks) {
  if (device == "cpu") return;
  const auto colon = device.find(':');
  if (ranks > 1 && colon != std::string::npos)
    throw Error{
        Code::kInvalidArgument,
        fmt::format("--device {} is one GPU; the run of {} had {} ranks: expected cuda, a GPU for each",
                    device, to.string(), ranks)};
  const int wanted = colon == std::string::npos ? ranks : std::stoi(device.substr(colon + 1)) + 1;
  const auto there = static_cast<int>(torch::cuda::device_count());
  if (there < wanted)
    throw Error{
        Code::kFailedPrecondition,
        fmt::format("--device {}: the run of {} needs {} here, and {} can be used; verify it on a "
                    "machine that has them",
                    device, to.string(), wanted == 1 ? "1 GPU" : fmt::format("{} GPUs", wanted), there)};
}

training::TrainAgain train_as_ranks(int ranks, const RunFlags& flags, const std::atomic<bool>& stop) {
  return [&flags, &stop, ranks](const training::TrainingOptions& options, protocol::Events& events) {
    const auto run = run_ranks(ranks, arguments_of(ranks, flags, options), events);
    if (stop) return false;
    if (run.end.status != protocol::End::Status::kFailed) return true;
    // not the exit code of a rank that was killed: of a verification it says "not bit-identical"
    if (run.end.retryable || run.exit_code == kExitUnavailable)
      throw Error{Code::kUnavailable, fmt::format("{}; nothing was compared: run it again", run.end.reason)};
    if (run.exit_code == kExitUsage)
      throw Error{Code::kFailedPrecondition, fmt::format("{}; nothing was compared", run.end.reason)};
    throw Error{Code::kAborted, run.end.reason};  // a number is not finite this time: something does differ
  };
}

}  // namespace abl::commands
