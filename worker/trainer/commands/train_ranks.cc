// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/commands/train_ranks.h"

#include <fmt/format.h>

#include "base/command_line.h"
#include "base/error.h"
#include "base/file.h"
#include "worker/trainer/commands/commands.h"
#include "worker/trainer/failure.h"
#include "worker/trainer/ranks/rendezvous.h"
#include "worker/trainer/ranks/thread_share.h"

namespace abl::trainer {
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
    throw MachineFault{
        Error{Code::kFailedPrecondition,
              fmt::format("--ranks {}: {} GPUs can be used here; expected one for each rank", ranks, there)},
        {.part = "device"}};
}

}  // namespace

void declare_rank_flags(CLI::App& app, RankFlags& flags) {
  app.add_option("--ranks", flags.ranks,
                 "Processes that train together, on cuda:0 … cuda:N-1 with --device cuda, or on the CPU, "
                 "where they share --threads")
      ->check(whole_number(1, 1024))
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--rank", flags.rank)->group("");
  app.add_option("--rendezvous", flags.rendezvous)->group("");
}

void take_place(const RankFlags& flags, TrainingOptions& options) {
  if (!flags.is_rank()) return;
  if (options.device == "cuda") options.device = fmt::format("cuda:{}", flags.rank);
  options.threads = thread_share(options.threads, flags.ranks);
  if (options.loader_threads > 0) options.loader_threads = thread_share(options.loader_threads, flags.ranks);
  options.ranks = std::make_shared<RankGroup>(RankPlace{.rank = flags.rank,
                                                        .ranks = flags.ranks,
                                                        .rendezvous = parse_rendezvous(flags.rendezvous),
                                                        .device = torch::Device{options.device}});
}

RunEnd run_ranks(int ranks, const std::vector<std::string>& arguments, Events& events) {
  // the file that runs: a PATH or a working folder may have changed since it was started
  std::vector<std::string> argv{std::filesystem::read_symlink("/proc/self/exe")};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  try {
    const RendezvousServer server;
    const auto command = [&](int rank) {
      auto one = argv;
      one.insert(one.end(), {"--rank", std::to_string(rank), "--rendezvous", server.rendezvous().text()});
      return one;
    };
    return supervise_ranks(ranks, command, events, stop_on_signals());
  } catch (const c10::Error& error) {  // of the store
    return {.end = {.status = "failed", .reason = error.what_without_backtrace(), .fault = {}},
            .exit_code = kExitFailed};
  }
}

int train_with_ranks(const RankFlags& flags, const std::string& device, Events& events) {
  try {
    check_devices(flags.ranks, device);
    const auto [end, code] = run_ranks(flags.ranks, own_arguments(), events);
    if (end.fault)
      events.end_by(*end.fault, end.reason);
    else
      events.end(end.status, end.reason, end.retryable);
    return code;
  } catch (const Error& error) {
    return fail(events, error);
  }
}

}  // namespace abl::trainer
