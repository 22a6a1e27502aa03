// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/child_process.h"
#include "base/error.h"
#include "base/file.h"
#include "base/named_path.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/format.h"
#include "cli/plan_text.h"
#include "cli/shown.h"
#include "cli/source.h"
#include "cli/sweep_checks.h"
#include "cli/sweep_verify.h"
#include "cli/watch.h"
#include "config/data/data_sets.h"
#include "planning/validate.h"
#include "views/json.h"

namespace abl::cli {
namespace {

using namespace ablate::v1;
using namespace std::chrono_literals;

struct ReproduceFlags {
  std::string table, scale;
  int seeds = 0;
  bool dry_run = false, verify = false;
  int slots = 0, threads = 0;
  std::vector<std::string> data, weights;
};

/// What a sweep needs of the machine that trains it.
struct Needs {
  std::set<std::string> data;  ///< logical names, but for what the trainer draws
  std::set<std::string> weights;
};

Needs needs_of(const sweeps::SweepSpec& spec) {
  Needs needs;
  const auto need = [&](const std::string& data) {
    const auto* known = config::find_data_set(data);
    if (!data.empty() && (!known || !known->embedded)) needs.data.insert(data);
  };
  if (spec.command) need(spec.data);
  for (const auto& row : spec.rows)
    if (!row.not_trained) need(row.data);
  for (const auto& row : spec.rows)
    for (const auto& [name, sha256] : row.weights) needs.weights.insert(name);
  return needs;
}

/// Where the images of a data set come from, for who has none.
std::string source_of(const std::string& data) {
  static const std::map<std::string, std::string> kSources{
      {"cifar10", "the binary version of www.cs.toronto.edu/~kriz/cifar.html, unpacked"},
      {"cifar100", "the binary version of www.cs.toronto.edu/~kriz/cifar.html, unpacked"},
      {"imagenet-1k", "image-net.org gives ILSVRC 2012 to who registers; a folder for each class"},
      {"stl10", "the binary version of cs.stanford.edu/~acoates/stl10, unpacked"}};
  const auto found = kSources.find(data);
  return found == kSources.end() ? "docs/data.md says which forms there are" : found->second;
}

/// What of it nobody has, with how it is given; empty: all is there.
std::string missing(const Needs& needs, const std::set<std::string>& data,
                    const std::set<std::string>& weights, bool running) {
  std::string flags, from;
  for (const auto& name : needs.data) {
    if (data.contains(name)) continue;
    flags += fmt::format(" --data {}=FOLDER", name);
    from += fmt::format("{}{}", from.empty() ? "" : "; ", source_of(name));
  }
  if (!from.empty()) from = fmt::format(" ({})", from);
  for (const auto& name : needs.weights)
    if (!weights.contains(name)) flags += " " + flag_of_file(name);
  if (flags.empty()) return "";
  return fmt::format("{} what it needs{}: expected{}{}",
                     running ? "no connected worker has" : "this machine was not told where it has", from,
                     flags, running ? " of the worker; after 'ablate down', give it here" : "");
}

/// Whether a scheduler answers where the flags point.
bool answers(const Context& context) {
  try {
    Client client{context};
    client.call(&Workers::Stub::ListWorkers, ListWorkersRequest{}, 5s);
    return true;
  } catch (const Error& error) {
    if (error.code() != Code::kUnavailable) throw;
    return false;
  }
}

std::string missing_at_workers(const Context& context, const Needs& needs) {
  std::set<std::string> data, weights;
  const auto list = open_source(context)->list_workers();
  for (const auto& worker : list.workers()) {
    if (!worker.connected()) continue;
    data.insert(worker.data().begin(), worker.data().end());
    weights.insert(worker.weights().begin(), worker.weights().end());
  }
  return missing(needs, data, weights, true);
}

std::string missing_here(const ReproduceFlags& flags, const Needs& needs) {
  std::set<std::string> data, weights;
  for (const auto& [name, path] : parse_named_paths(kDataFlag, flags.data)) data.insert(name);
  for (const auto& [name, path] : parse_named_paths(kWeightsFlag, flags.weights)) weights.insert(name);
  return missing(needs, data, weights, false);
}

/// As somebody would by hand: `ablate up --detach`.
void start_service(const Context& context, const ReproduceFlags& flags) {
  std::vector<std::string> argv{
      (program_folder() / "ablate").string(), "up", "--detach", "--json", "--home", context.home().string()};
  if (flags.slots > 0) argv.insert(argv.end(), {"--slots", std::to_string(flags.slots)});
  if (flags.threads > 0) argv.insert(argv.end(), {"--threads", std::to_string(flags.threads)});
  for (const auto& data : flags.data) argv.insert(argv.end(), {"--data", data});
  for (const auto& weights : flags.weights) argv.insert(argv.end(), {"--weights", weights});
  try {
    run_program(argv, "", 120s);
  } catch (const Error& error) {
    const auto why = own_words(error, "ablate");
    throw Error{why ? Code::kInvalidArgument : Code::kUnavailable, why ? *why : error.what()};
  }
}

/// How the same command is given again.
std::string again(const ReproduceFlags& flags) {
  std::string text = "ablate reproduce " + flags.table;
  if (!flags.scale.empty()) text += " --scale " + flags.scale;
  if (flags.seeds > 0) text += fmt::format(" --seeds {}", flags.seeds);
  return text;
}

void say_plan(const Context& context, const SweepPlan& sweep) {
  const auto to_run = sweep.trials() - sweep.stored() - sweep.under_way() - sweep.held();
  context.err.line(fmt::format("{}: {} × {}: {}, {} stored, {} under way, {} to run", sweep.sweep(),
                               plural(static_cast<std::uint64_t>(sweep.rows_size()), "row"),
                               seeds_text(sweep.seeds(), sweep.seeds_min()),
                               plural(sweep.trials(), "distinct trial"), sweep.stored(), sweep.under_way(),
                               to_run));
}

int dry_run(const Context& context, const ReproduceFlags& flags, const SweepFile& file, const Needs& needs,
            bool running) {
  const auto sweep = plan(context, file);
  if (context.json)
    context.print_json(sweep);
  else
    context.out.write(plan_text(shown(sweep, context.out), context.out));
  const std::string lacks = running ? missing_at_workers(context, needs) : missing_here(flags, needs);
  if (!lacks.empty()) context.note(lacks);
  context.note(running ? "nothing was submitted" : "nothing was started or submitted");
  return kExitOk;
}

int reproduce(Context& context, const ReproduceFlags& flags) {
  const SweepFile file = read_sweep_file(flags.table, flags.scale, flags.seeds);
  const sweeps::SweepSpec spec = planning::parse(file);
  if (std::ranges::all_of(spec.rows, [](const sweeps::Row& row) { return row.not_trained.has_value(); }))
    throw Error{Code::kInvalidArgument,
                fmt::format("{0}: no row is trained (row {1}: {2}); 'ablate papers {0}' prints its table",
                            flags.table, spec.rows.front().id, spec.rows.front().not_trained_why)};
  const Needs needs = needs_of(spec);
  const bool running = answers(context);
  if (flags.dry_run) return dry_run(context, flags, file, needs, running);

  const std::string lacks = running ? missing_at_workers(context, needs) : missing_here(flags, needs);
  if (!lacks.empty()) throw Error{Code::kInvalidArgument, fmt::format("{}: {}", flags.table, lacks)};
  if (!running && !context.scheduler_flag.empty())
    throw Error{Code::kUnavailable,
                fmt::format("no scheduler answers at {}: without --scheduler, one is started here",
                            context.scheduler())};
  if (!running) start_service(context, flags);
  if (running && (!flags.data.empty() || !flags.weights.empty() || flags.slots > 0 || flags.threads > 0))
    context.note("--slots, --threads, --data and --weights ignored: a scheduler runs already");
  if (const auto up = running_up(context); up && !context.json)
    context.err.line(
        fmt::format("{} the dashboard is at {}", running ? "ablate is up;" : "started ablate;", up->url));

  if (!context.json) say_plan(context, plan(context, file));
  SubmitRequest request;
  *request.mutable_file() = file;
  request.set_owner(user_name());
  const auto response = submit(context, request);
  const auto& sweep = response.sweep();
  for (const auto& note : response.notes()) context.note(note);
  if (sweep.state() == SWEEP_STATE_PAUSED)
    context.note(fmt::format("{0} is paused: 'ablate resume {0}' lets it go on", sweep.name()));
  if (sweep.state() == SWEEP_STATE_CANCELLED || sweep.state() == SWEEP_STATE_HELD)
    context.note(fmt::format("{} has trials that do not run: 'ablate retry {}' queues them again",
                             sweep.name(), sweep.name()));
  const int code = watch(context, sweep.name(),
                         fmt::format("\nstopped watching: trials stay queued and go on in the background\n"
                                     "  go on watching  {}\n  stop them       ablate cancel {}\n",
                                     again(flags), sweep.name()));
  if (context.json) context.out.line(views::to_json(open_source(context)->table(sweep.name())));
  if (!running) {
    if (!context.json)
      context.err.line(
          fmt::format("ablate stays up for the dashboard; 'ablate down' stops it, and 'ablate table {}' "
                      "prints this again",
                      sweep.name()));
  }
  if (code != kExitOk || !flags.verify) return code;
  const auto source = open_source(context);
  return verify_sample(context, *source, Sample{.sweep = sweep.name()});
}

Run declare_reproduce(CLI::App& app, Context& context) {
  auto flags = std::make_shared<ReproduceFlags>();
  app.add_option("TABLE", flags->table, "A table of a paper, such as msf/table-1, or a sweep file")
      ->required()
      ->type_name("");
  add_scale(app, flags->scale);
  app.add_option("--seeds", flags->seeds,
                 "So many seeds for each row [as the table's file or the scale says]")
      ->check(whole_number(1, 1000))
      ->type_name("N");
  app.add_flag("--dry-run", flags->dry_run, "Show the plan and what is missing; start and submit nothing");
  app.add_flag("--verify", flags->verify,
               "At the end train a sample again, and say whether it is the same to the bit");
  app.add_option(
         "--data", flags->data,
         "Where a data set is, such as cifar10=/data/cifar10, for the service that is started; repeatable")
      ->type_name("NAME=FOLDER")
      ->allow_extra_args(false);
  app.add_option("--weights", flags->weights, "Where weights are that its recipe names; repeatable")
      ->type_name("NAME=FILE")
      ->allow_extra_args(false);
  app.add_option("--slots", flags->slots, "Trials at once, of the service that is started [as 'ablate up']")
      ->check(whole_number(1, 1024))
      ->type_name("N");
  app.add_option("--threads", flags->threads, "CPU threads for each of them")
      ->check(whole_number(1, 1024))
      ->type_name("N");
  add_scheduler(app, context);
  return [&context, flags] { return reproduce(context, *flags); };
}

}  // namespace

extern const Command kReproduceCommand{
    .place = 55,
    .name = "reproduce",
    .summary = "From nothing to a paper's table: starts what is needed, trains what is not stored, prints it",
    .example =
        "ablate reproduce msf/table-1 --scale demo\n"
        "ablate reproduce msf/table-1 --scale cifar --data cifar10=/data/cifar10",
    .success = "the table is complete; with --dry-run: the plan is printed",
    .failure = "a trial failed, or a cell is missing; with --verify: a trial is not the same",
    .declare = declare_reproduce,
};

}  // namespace abl::cli
