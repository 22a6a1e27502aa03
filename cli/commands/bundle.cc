// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/enum_names.h"
#include "base/error.h"
#include "base/file.h"
#include "cli/bundle.h"
#include "cli/command.h"
#include "cli/format.h"
#include "cli/store_report.h"
#include "protocol/trainer_program.h"

namespace abl::cli {
namespace {

namespace fs = std::filesystem;

struct BundleFlags {
  std::string of{name_of(BundleOf::kWorker)}, out, trainer;
  bool without_trainer = false, force = false;
};

void expect_archive_name(const std::string& out) {
  for (const char* ending : {".tar.gz", ".tgz", ".tar"})
    if (out.ends_with(ending)) return;
  throw Error{Code::kInvalidArgument,
              fmt::format("--out {}: expected a name that ends in .tar.gz or .tar", out)};
}

/// The trainer of a bundle; an empty path where none is wanted. The other programs are there as well.
fs::path trainer_to_pack(const BundleFlags& flags, BundleOf of) {
  fs::path trainer;
  if (!flags.without_trainer && of != BundleOf::kCli) {
    trainer = protocol::find_trainer(flags.trainer);
    if (trainer.empty())
      throw Error{Code::kNotFound,
                  fmt::format("{}; or leave it out with --without-trainer", protocol::kNoTrainer)};
  }
  std::vector<fs::path> programs;
  for (const std::string& name : programs_of(of)) programs.push_back(program_folder() / name);
  if (!trainer.empty()) programs.push_back(trainer);
  for (const fs::path& program : programs)
    if (::access(program.c_str(), X_OK) != 0)
      throw Error{Code::kNotFound,
                  fmt::format("{}: there is no such program; build it, or run the ablate of an "
                              "installation that has it",
                              program.string())};
  return trainer;
}

/// What is typed first where it was unpacked.
std::string first_line(const std::string& archive, const Bundle& bundle, BundleOf of) {
  const char* first = of == BundleOf::kWorker ? "ablate-worker --scheduler HOST:PORT …"
                      : of == BundleOf::kCli  ? "ablate login https://HOST:PORT …"
                                              : "ablate up";
  return fmt::format("there:  tar xf {} && {}/bin/{}", archive, bundle.name, first);
}

Run declare_bundle(CLI::App& app, Context& context) {
  auto flags = std::make_shared<BundleFlags>();
  add_choice(
      app, "--of", flags->of, names_of<BundleOf>(),
      "What for: a machine that runs trials, a laptop with the command line alone, or all programs, for a "
      "container image");
  app.add_option("--out", flags->out,
                 "The archive, .tar.gz, or .tar without compression [the bundle's name, in this folder]")
      ->type_name("FILE");
  auto* other = app.add_option("--trainer", flags->trainer,
                               "Take this trainer, built with another PyTorch, say [the one beside ablate]")
                    ->type_name("FILE");
  app.add_flag("--without-trainer", flags->without_trainer,
               "For workers that run commands only: a tenth of the size")
      ->excludes(other);
  app.add_flag("--force", flags->force, "Replace a file that is there");
  add_json(app, context);
  return [&context, flags]() -> int {
    if (!flags->out.empty()) expect_archive_name(flags->out);
    const BundleOf of = value_named<BundleOf>(flags->of).value();
    if (of == BundleOf::kCli && (flags->without_trainer || !flags->trainer.empty()))
      throw Error{Code::kInvalidArgument,
                  "--of cli: has no trainer; expected neither --trainer nor --without-trainer"};
    const fs::path trainer = trainer_to_pack(*flags, of);
    const Bundle bundle = plan_bundle(of, program_folder(), trainer);
    const fs::path out = flags->out.empty() ? fs::path{bundle.name + ".tar.gz"} : fs::path{flags->out};
    expect_place_for(out, program_folder() / programs_of(of).front(), flags->force,
                     (bundle.name + ".tar.gz").c_str());
    constexpr double kMiB = 1 << 20;
    std::optional<Progress> progress;
    const WrittenBundle written = write_bundle(bundle, out, [&](std::uint64_t done, std::uint64_t all) {
      if (!progress) progress.emplace(context.err, "packing", "MiB", static_cast<double>(all) / kMiB);
      progress->update(static_cast<double>(done) / kMiB);
    });
    progress.reset();
    for (const std::string& library : bundle.unlicensed)
      context.note(fmt::format("no licence was found for {}: it comes without one", library));
    const auto libraries = std::ranges::count_if(
        bundle.files, [](const BundledFile& file) { return file.path.starts_with("lib/"); });
    if (context.json) {
      context.out.line(nlohmann::ordered_json{
          {"file", out.string()},
          {"bytes", written.bytes},
          {"sha256", written.sha256},
          {"unpacked_bytes", written.unpacked_bytes},
          {"name", bundle.name},
          {"version", bundle.version},
          {"build", written.build},
          {"trainer", bundle.trainer},
          {"device", bundle.device},
          {"machine", bundle.machine},
          {"glibc", bundle.glibc},
          {"libraries",
           libraries}}.dump());
      return kExitOk;
    }
    context.out.line(fmt::format("{}: {}, {} unpacked, {}, build {}", out.string(),
                                 format_bytes(written.bytes), format_bytes(written.unpacked_bytes),
                                 plural(static_cast<std::uint64_t>(libraries), "shared object"),
                                 written.build));
    context.out.line(
        fmt::format("needs Linux on {} with glibc {} or newer{}", bundle.machine, bundle.glibc,
                    bundle.device.starts_with("cuda") ? ", and NVIDIA's driver for its GPUs" : ""));
    context.out.line(first_line(out.filename().string(), bundle, of));
    return kExitOk;
  };
}

}  // namespace

extern const Command kBundleCommand{
    .place = 175,
    .name = "bundle",
    .summary = "Pack programs and their libraries for machines that have none of them",
    .example =
        "ablate bundle\n"
        "ablate bundle --of cli --out ablate-cli.tar.gz\n"
        "ablate bundle --trainer build-cuda/bin/ablate-trainer --out /srv/ablate-cuda.tar.gz",
    .success = "the archive is there",
    .declare = declare_bundle,
};

}  // namespace abl::cli
