// SPDX-License-Identifier: Apache-2.0
#include "cli/probe_run.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/child_process.h"
#include "base/error.h"
#include "base/file.h"
#include "base/sha256.h"
#include "cli/scratch.h"
#include "cli/sweep_verify.h"
#include "protocol/command_line.h"
#include "protocol/probe_results.h"
#include "protocol/trainer_program.h"

namespace abl::cli {
namespace {

namespace fs = std::filesystem;
using ablate::v1::Checkpoint;
using ablate::v1::ProbeFound;
using ablate::v1::RunDetail;
using nlohmann::json;

struct Weights {
  std::string file, sha256;
  std::uint32_t step = 0;
  std::uint32_t run = 0;  ///< that wrote them
  bool is_best = false;
};

/// Of a run's own checkpoints those that are here: of its best evaluation, under either of its names, or of
/// its last step.
std::optional<Weights> weights_here(const RunDetail& run, bool last) {
  std::optional<Weights> found;
  std::error_code ignored;
  for (const auto& checkpoint : run.checkpoints()) {
    const bool best = !last && !checkpoint.best().empty();
    const std::string& file =
        best && fs::is_regular_file(checkpoint.best(), ignored) ? checkpoint.best() : checkpoint.path();
    if (!fs::is_regular_file(file, ignored)) continue;
    if (found && (found->is_best > best || (found->is_best == best && found->step > checkpoint.step())))
      continue;
    found = {file, checkpoint.sha256(), checkpoint.step(), run.summary().id(), best};
  }
  return found;
}

bool kept_a_best(const RunDetail& run) {
  return std::ranges::any_of(run.checkpoints(),
                             [](const auto& checkpoint) { return !checkpoint.best().empty(); });
}

/// The best evaluation of a run that went on from another may be of that one.
/// Throws: Error{kNotFound} where they are not here.
Weights chosen_weights(Source& source, const RunDetail& run, bool last) {
  auto found = weights_here(run, last);
  bool is_elsewhere = !last && kept_a_best(run) && !(found && found->is_best);
  if (!last && !kept_a_best(run) && run.summary().has_resumed_from_step())
    for (int i = run.attempts_size() - 1; i >= 0; --i) {
      if (run.attempts(i).id() >= run.summary().id()) continue;
      const RunDetail earlier = source.run(run.attempts(i).id());
      if (!kept_a_best(earlier)) continue;
      auto best = weights_here(earlier, false);
      is_elsewhere = !best || !best->is_best || best->step > run.summary().resumed_from_step();
      if (!is_elsewhere) found = std::move(best);
      break;
    }
  if (found && is_elsewhere)
    throw Error{Code::kNotFound,
                fmt::format("the weights of run {}'s best evaluation are not on this machine; "
                            "--last uses those of its last step",
                            run.summary().id())};
  if (!found)
    throw Error{Code::kNotFound, fmt::format("run {} has no checkpoint on this machine: it ran on {} in {}",
                                             run.summary().id(), run.summary().host(), run.directory())};
  if (!found->sha256.empty() && sha256_file(found->file) != found->sha256)
    throw Error{Code::kDataLoss,
                fmt::format("{} is not what run {} wrote: its SHA-256 is another", found->file, found->run)};
  return *std::move(found);
}

/// The trainer's standard output. Its standard error is ours where progress is shown.
std::string output_of(const std::vector<std::string>& argv, bool shows_progress) {
  constexpr std::chrono::hours kNoLimit{24 * 365};
  if (!shows_progress) try {
      return run_program(argv, "", kNoLimit);
    } catch (const Error& error) {
      throw TrainerFailed{own_words(error, "ablate-trainer").value_or(error.what()), 1};
    }
  const int out = ::memfd_create("found", MFD_CLOEXEC);
  if (out < 0) throw system_error("cannot create a file in memory", errno);
  std::string said;
  try {
    ChildProcess trainer{{.argv = argv, .stdout_fd = out}};
    const ChildExit exit = trainer.wait();
    if (!exit.ok()) throw TrainerFailed{"", exit.signal != 0 ? 128 + exit.signal : exit.code};
    said = read_file(fmt::format("/proc/self/fd/{}", out));
  } catch (...) {
    ::close(out);
    throw;
  }
  ::close(out);
  return said;
}

ProbeFound message_of(const json& told, std::uint32_t step) {
  protocol::ProbeResult found = protocol::read_probe_result(told);
  ProbeFound message;
  message.set_name(protocol::probe_key(found.request));
  message.set_step(step);
  auto pictures = protocol::take_pictures(found, [](const std::string& file, std::size_t most) {
    std::string png = read_file(file);
    if (png.size() > most)
      throw Error{Code::kInvalidArgument, fmt::format("it has {} bytes; the limit is {}", png.size(), most)};
    return png;
  });
  for (std::size_t i = 0; i < pictures.size(); ++i) {
    const protocol::ProbePicture& picture = found.pictures[i];
    auto& kept = *message.add_pictures();
    kept.set_name(picture.name);
    kept.set_width(static_cast<std::uint32_t>(picture.width));
    kept.set_height(static_cast<std::uint32_t>(picture.height));
    kept.set_sha256(picture.sha256);
    kept.set_png(std::move(pictures[i]));
  }
  protocol::bound(found);
  message.set_found_json(protocol::to_json(found).dump(-1, ' ', false, json::error_handler_t::replace));
  return message;
}

}  // namespace

std::vector<ProbeFound> probe_run(Source& source, const RunDetail& run, const ProbeOptions& options) {
  if (json::parse(run.config_json()).contains("argv"))
    throw Error{Code::kFailedPrecondition,
                fmt::format("run {} ran a custom command: only runs of ablate-trainer can be probed",
                            run.summary().id())};
  const auto trainer = protocol::find_trainer();
  if (trainer.empty()) throw Error{Code::kNotFound, protocol::kNoTrainer};
  const Weights weights = chosen_weights(source, run, options.last);
  protocol::VerifyCommand as_it_did;
  compute_on_data_as(run, options.data_root, as_it_did);
  const Scratch scratch;
  const fs::path config = scratch.path() / "config.json";
  write_file(config, run.config_json());
  protocol::ProbeCommand command{.config = config, .checkpoint = weights.file};
  command.files = options.plugins.empty() ? plugins_of(run) : options.plugins;
  for (const auto& probe : options.probes) command.probes.push_back(protocol::to_text(probe));
  command.images = options.images;
  command.out = options.out.empty() ? scratch.path().string() : options.out;
  command.threads = as_it_did.threads;
  command.device = options.device.empty() ? as_it_did.device : options.device;
  command.data_root = as_it_did.data_root;
  command.data_fingerprint = run.data_fingerprint();
  command.average = options.average;
  command.json = true;
  const json said =
      json::parse(output_of(protocol::with_program(trainer, command.arguments()), options.shows_progress),
                  nullptr, false);
  const auto probes = said.is_object() ? said.find("probes") : said.end();
  if (!said.is_object() || probes == said.end() || !probes->is_array())
    throw Error{Code::kInternal, fmt::format("{} does not say what it found", trainer.string())};
  std::vector<ProbeFound> found;
  for (const json& told : *probes) found.push_back(message_of(told, weights.step));
  return found;
}

protocol::ProbeResult result_of(const ProbeFound& found) {
  auto result = protocol::read_probe_result_text(found.found_json());
  if (protocol::probe_key(result.request) != found.name())
    throw Error{Code::kDataLoss, fmt::format("what is stored as probe {} is of another", found.name())};
  result.pictures.clear();
  for (const auto& picture : found.pictures()) {
    protocol::expect_probe_name(picture.name(), "pictures.name");  // it becomes part of a file's
    result.pictures.push_back({.name = picture.name(),
                               .file = {},
                               .sha256 = picture.sha256(),
                               .bytes = picture.png().size(),
                               .width = static_cast<int>(picture.width()),
                               .height = static_cast<int>(picture.height())});
  }
  return result;
}

void write_found(const std::string& folder, protocol::ProbeResult& result, const ProbeFound& found) {
  make_folder(folder);
  for (std::size_t i = 0; i < result.pictures.size(); ++i) {
    const fs::path file = fs::path{folder} / fmt::format("{}-{}.png", found.name(), result.pictures[i].name);
    write_file_atomically(file, found.pictures(static_cast<int>(i)).png());
    result.pictures[i].file = file.string();
  }
  write_file_atomically(fs::path{folder} / (found.name() + ".json"), protocol::to_json(result).dump() + "\n");
}

}  // namespace abl::cli
