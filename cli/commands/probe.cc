// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/nearest_name.h"
#include "cli/command.h"
#include "cli/probe_run.h"
#include "cli/run_target.h"
#include "cli/shown.h"
#include "cli/source.h"
#include "cli/words.h"
#include "protocol/command_line.h"
#include "protocol/probe_results.h"
#include "protocol/trainer_program.h"

namespace abl::cli {
namespace {

using ablate::v1::ProbeFound;
using nlohmann::ordered_json;

struct ProbeFlags {
  std::string target;
  std::vector<std::string> probes, settings, plugins;
  bool list = false, again = false, no_store = false;
  ProbeOptions options;
};

void store(Source& source, std::uint32_t run, const std::vector<ProbeFound>& found) {
  for (const ProbeFound& probe : found) {  // one may be as large as a message should be
    ablate::v1::PutProbesRequest request;
    request.set_run(run);
    *request.add_probes() = probe;
    source.put_probes(request);
  }
}

/// As text or JSON, and into the folder that was asked for.
void tell(const Context& context, const ProbeOptions& options, ordered_json head,
          const std::vector<ProbeFound>& found) {
  auto all = ordered_json::array();
  for (const ProbeFound& probe : found) {
    auto result = result_of(probe);
    if (!options.out.empty()) write_found(options.out, result, probe);
    if (context.json)
      all.push_back(protocol::to_json(result));
    else
      context.out.write(shown(protocol::to_text(result), context.out));
  }
  head["probes"] = std::move(all);
  if (context.json) context.out.line(head.dump(-1, ' ', false, ordered_json::error_handler_t::replace));
}

/// What is stored of a run.
int show_stored(const Context& context, Source& source, std::uint32_t run, const ProbeOptions& options) {
  ablate::v1::ProbesRequest request;
  request.set_run(run);
  std::vector<ProbeFound> found;
  const auto stored = source.probes(request);
  for (const auto& probe : stored.probes()) {
    request.set_name(probe.name());
    found.push_back(source.probes(request).probes(0));
  }
  if (found.empty() && !context.json)
    throw Error{Code::kNotFound,
                fmt::format("run {0} has no probe results; run 'ablate probe {0} feature-norms', or see "
                            "'ablate probe --list'",
                            run)};
  tell(context, options, {{"run", run}, {"stored", true}}, found);
  return kExitOk;
}

int probe_one(const Context& context, Source& source, const ProbeFlags& flags) {
  const auto id = run_of(source, flags.target);
  if (flags.options.probes.empty()) return show_stored(context, source, id, flags.options);
  auto options = flags.options;
  options.shows_progress = true;
  const auto run = source.run(id);
  std::vector<ProbeFound> found;
  try {
    found = probe_run(source, run, options);
  } catch (const TrainerFailed& failed) {
    return failed.exit_code();
  }
  const bool has_ended = run.summary().has_ended();
  const bool stores = options.is_of_run() && has_ended && !flags.no_store;
  tell(context, options, {{"run", id}, {"step", found.empty() ? 0 : found[0].step()}, {"stored", stores}},
       found);
  if (stores) store(source, id, found);
  if (!stores && !flags.no_store)
    context.note(has_ended ? "not stored: with --last, --average or --image this is not the run's result"
                           : "not stored: the run has not ended");
  const bool none =
      std::ranges::all_of(found, [](const auto& probe) { return !result_of(probe).missing.empty(); });
  return none ? kExitFailed : kExitOk;
}

/// Of the probes those that a run was not looked into with.
std::vector<protocol::ProbeRequest> lacking(Source& source, std::uint32_t run,
                                            std::vector<protocol::ProbeRequest> probes) {
  ablate::v1::ProbesRequest request;
  request.set_run(run);
  const auto stored = source.probes(request);
  std::erase_if(probes, [&](const auto& probe) {
    return std::ranges::any_of(stored.probes(),
                               [&](const auto& there) { return there.name() == protocol::probe_key(probe); });
  });
  return probes;
}

/// Every completed trial of a sweep, and what came of it.
int probe_sweep(const Context& context, Source& source, const ProbeFlags& flags) {
  if (!flags.options.is_of_run() || flags.no_store || !flags.options.out.empty())
    throw Error{
        Code::kInvalidArgument,
        "--last, --average, --image, --out and --no-store are of one run; expected RUN, or SWEEP/ROW/SEED"};
  const auto sweep = source.sweep(flags.target);
  auto probes = flags.options.probes;
  if (probes.empty()) probes = protocol::read_probes({sweep.probes().begin(), sweep.probes().end()}, {});
  if (probes.empty())
    throw Error{Code::kInvalidArgument,
                fmt::format("the file of sweep {} lists no probes; name them: ablate probe {} "
                            "feature-norms",
                            flags.target, flags.target)};
  std::uint32_t probed = 0, had = 0, failed = 0;
  auto all = ordered_json::array();
  for (const auto& trial : sweep.trials()) {
    if (trial.state() != ablate::v1::TRIAL_STATE_COMPLETED || trial.run() == 0) continue;
    auto options = flags.options;
    options.probes = flags.again ? probes : lacking(source, trial.run(), probes);
    std::string why;
    std::vector<std::string> names;
    for (const auto& probe : options.probes) names.push_back(protocol::probe_key(probe));
    if (!names.empty()) try {
        store(source, trial.run(), probe_run(source, source.run(trial.run()), options));
      } catch (const Error& error) {
        if (error.code() == Code::kUnavailable) throw;  // nothing can be stored
        why = error.what();
      }
    ++(names.empty() ? had : why.empty() ? probed : failed);
    if (context.json)
      all.push_back({{"run", trial.run()},
                     {"row", trial.row()},
                     {"seed", trial.seed()},
                     {"probes", why.empty() ? names : std::vector<std::string>{}},
                     {"why", why}});
    else if (!names.empty())
      context.out.line(shown(fmt::format("{}/{} run {}: {}", trial.row(), trial.seed(), trial.run(),
                                         why.empty() ? fmt::format("{}", fmt::join(names, ", ")) : why),
                             context.out));
  }
  if (context.json)
    context.out.line(ordered_json{
        {"sweep", flags.target},
        {"probed", probed},
        {"had", had},
        {"failed", failed},
        {"runs",
         std::move(all)}}.dump(-1, ' ', false, ordered_json::error_handler_t::replace));
  else
    context.out.line(fmt::format("{} probed{}{}", plural(probed, "run"),
                                 had > 0 ? fmt::format(", {} had all results already", had) : "",
                                 failed > 0 ? fmt::format(", {} failed", failed) : ""));
  return failed > 0 ? kExitFailed : kExitOk;
}

Run declare_probe(CLI::App& app, Context& context) {
  auto flags = std::make_shared<ProbeFlags>();
  auto& options = flags->options;
  app.add_option(
         "RUN", flags->target,
         std::string{kRunTarget} + "; or a sweep, to probe its completed trials that have no result yet")
      ->type_name("");
  app.add_option(
         "PROBE", flags->probes,
         "Which probes; --list shows them [of a run: show what is stored; of a sweep: those of its file]")
      ->type_name("");
  app.add_flag("--list", flags->list, "List the probes, their settings and values");
  app.add_flag("--last", options.last, "Use the weights of the last step instead of the best evaluation's");
  app.add_flag("--average", options.average, "Use the running average (EMA) of the weights");
  app.add_option("--with", flags->settings,
                 "A probe's setting, such as accuracy-by-resolution.sizes=24,32,48; repeatable")
      ->type_name("PROBE.KEY=VALUE")
      ->allow_extra_args(false);
  app.add_option("--image", options.images,
                 "Look at this image instead of those of the evaluation; repeatable")
      ->type_name("FILE")
      ->allow_extra_args(false);
  app.add_option("--out", options.out, "Write what was found here: PROBE.json and pictures (PNG)")
      ->type_name("FOLDER");
  app.add_option("--data-root", options.data_root, "Folder of the data set [as on its worker]")
      ->type_name("FOLDER");
  app.add_option("--plugin", flags->plugins, "File of the model's plugin [as on its worker]")
      ->type_name("NAME=FILE")
      ->allow_extra_args(false);
  app.add_option("--device", options.device, "cpu, cuda or cuda:N [as the run]")->type_name("DEVICE");
  app.add_flag("--again", flags->again, "Of a sweep: also what was probed already");
  app.add_flag("--no-store", flags->no_store, "Only show what is found");
  add_source(app, context);
  return [&context, flags]() -> int {
    if (flags->list) {
      protocol::ProbeCommand command{.list = true, .json = context.json};
      protocol::become_trainer(command.arguments());
    }
    if (flags->target.empty())
      throw Error{Code::kInvalidArgument, "expected a run (a number, or SWEEP/ROW/SEED), a sweep, or --list"};
    flags->options.probes = protocol::read_probes(flags->probes, flags->settings);
    for (const auto& [name, file] : parse_named_paths(kPluginFlag, flags->plugins))
      flags->options.plugins[plugin_key(name)] = file;
    const auto source = open_source(context);
    const bool is_number = flags->target.find_first_not_of("0123456789") == std::string::npos;
    const bool is_run = is_number || flags->target.find('/') != std::string::npos;
    return is_run ? probe_one(context, *source, *flags) : probe_sweep(context, *source, *flags);
  };
}

}  // namespace

extern const Command kProbeCommand{
    .place = 105,
    .name = "probe",
    .summary =
        "Look into the model that a run trained: feature norms, attention maps, accuracy by resolution, …",
    .example =
        "ablate probe 17 feature-norms subspace-similarity\n"
        "ablate probe 17\n"
        "ablate probe msf-sharing\n"
        "ablate probe msf-sharing/r/0 attention --out found --with attention.images=8",
    .declare = declare_probe,
};

}  // namespace abl::cli
