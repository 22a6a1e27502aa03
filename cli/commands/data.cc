// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "base/child_process.h"
#include "base/error.h"
#include "base/pieces.h"
#include "base/plugin_library.h"
#include "base/sha256.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/format.h"
#include "cli/scratch.h"
#include "cli/shown.h"
#include "printing/grid.h"
#include "protocol/command_line.h"
#include "protocol/trainer_program.h"

namespace abl::cli {

namespace flag = protocol::flag;

namespace {

namespace fs = std::filesystem;
using namespace ablate::v1;
using namespace std::chrono_literals;

constexpr auto kPacking = std::chrono::hours{12};  // of a data set, which a person waits for
constexpr auto kSchedulerPatience = 2min;          // with a scheduler that does not answer
constexpr seconds kPiece{120};

double in_mib(std::uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

std::string fingerprint_text(const std::string& fingerprint) {
  constexpr std::size_t kShown = 24;
  if (fingerprint.empty()) return "–";
  return fingerprint.size() > kShown ? fingerprint.substr(0, kShown) + "…" : fingerprint;
}

/// What a worker has, as against what results under the name are of.
std::string standing(const DataName& name, const DataOnWorker& worker) {
  if (!worker.connected()) return "not connected";
  if (!worker.fingerprint().empty() && !name.fingerprint().empty() &&
      worker.fingerprint() != name.fingerprint())
    return fmt::format("another version: {}", worker.fingerprint());
  if (!worker.trouble().empty()) return worker.trouble();
  if (worker.fingerprint().empty()) return worker.place().empty() ? "drawn by the trainer" : "not read yet";
  return name.fingerprint().empty() ? fingerprint_text(worker.fingerprint()) : "the same";
}

std::string data_text(const ListDataResponse& list, const Terminal& terminal) {
  if (list.names().empty()) return "no data sets: workers name theirs with --data NAME=FOLDER\n";
  const Time now = SystemClock{}.now();
  printing::Grid grid{{{"name"},
                       {"results are of"},
                       {"since"},
                       {"results", true},
                       {"waiting", true},
                       {"worker"},
                       {"has"},
                       {"where"}}};
  for (const DataName& name : list.names()) {
    std::string results = fmt::format("{}", name.trials());
    if (name.other_trials() > 0) results += fmt::format(" + {} of another", name.other_trials());
    std::vector<std::string> begin{name.name(), fingerprint_text(name.fingerprint()),
                                   name.has_pinned() ? format_age(name.pinned(), now) : "–", results,
                                   fmt::format("{}", name.waiting())};
    const auto add = [&](const std::string& worker, const std::string& has, const std::string& where) {
      auto cells = begin;
      cells.insert(cells.end(), {worker, has, where});
      grid.add(std::move(cells));
      begin.assign(begin.size(), "");
    };
    for (const DataOnWorker& worker : name.workers())
      add(worker.worker(), standing(name, worker), worker.place());
    if (name.has_pushed())
      add("any other",
          fmt::format("pushed by {}, {:.1f} MiB", name.pushed().by(), in_mib(name.pushed().bytes())),
          "the scheduler's depot");
    if (name.workers().empty() && !name.has_pushed()) add("none", "", "");
  }
  std::string text = grid.text(&terminal);
  if (list.depot_limit() > 0)
    text +=
        fmt::format("depot: {:.1f} of {:.1f} MiB\n", in_mib(list.depot_bytes()), in_mib(list.depot_limit()));
  return text;
}

nlohmann::json fingerprint_by_trainer(const protocol::DataCommand& command) {
  const fs::path trainer = protocol::find_trainer();
  if (trainer.empty()) throw Error{Code::kNotFound, protocol::kNoTrainer};
  try {
    const std::string said = run_program(protocol::with_program(trainer, command.arguments()), "", kPacking);
    const auto report = nlohmann::json::parse(said);
    static_cast<void>(report.at("fingerprint").get<std::string>());
    return report;
  } catch (const nlohmann::json::exception&) {
    throw Error{Code::kFailedPrecondition,
                trainer.string() + " does not say fingerprints: it is of an older release"};
  } catch (const Error& error) {
    if (const auto why = own_words(error, "ablate-trainer")) throw Error{error.code(), *why};
    throw;
  }
}

Error too_large(const std::string& path, std::uint64_t bytes, std::uint64_t limit_mib) {
  return Error{
      Code::kInvalidArgument,
      fmt::format("{} has {:.1f} MiB, more than --limit-mib {}: pack it with --bound, raise the limit, or "
                  "put it on each machine and start workers with --data NAME=PATH",
                  path, in_mib(bytes), limit_mib)};
}

/// Of a folder's files, as far as it matters.
std::uint64_t bytes_below(const fs::path& folder, std::uint64_t enough) {
  std::uint64_t bytes = 0;
  for (const auto& entry : fs::recursive_directory_iterator{folder}) {
    if (entry.is_regular_file()) bytes += entry.file_size();
    if (bytes > enough) break;
  }
  return bytes;
}

int list_data(Context& context) {
  Client client{context};
  const auto list = client.call(&Depot::Stub::ListData, ListDataRequest{});
  if (context.json)
    context.print_json(list);
  else
    context.out.write(data_text(shown(list, context.out), context.out));
  return kExitOk;
}

/// Packs a folder where it is one, and brings the file to the scheduler's depot under this name.
int push_data(Context& context, const std::string& name, const std::string& path, std::uint64_t limit_mib) {
  if (!fs::exists(path)) throw Error{Code::kInvalidArgument, fmt::format("{}: no such folder or file", path)};
  const std::uint64_t limit = limit_mib << 20;
  Client client{context};
  const auto list = client.call(&Depot::Stub::ListData, ListDataRequest{});  // before the long work
  if (list.depot_limit() == 0)
    throw Error{Code::kFailedPrecondition,
                "this scheduler has no depot (ablate-scheduler --depot-limit-mib): start workers with --data "
                "NAME=PATH instead"};
  Scratch scratch;
  fs::path file = fs::absolute(path);
  std::string fingerprint;
  if (fs::is_directory(file)) {
    if (const auto bytes = bytes_below(file, 2 * limit); bytes > 2 * limit)
      throw too_large(path, bytes, limit_mib);
    const fs::path packed = scratch.path() / "pushed.abldata";
    context.note(fmt::format("packing {}", path));
    fingerprint = fingerprint_by_trainer({.what = "pack", .root = file, .output = packed, .json = true})
                      .at("fingerprint")
                      .get<std::string>();
    file = packed;
  } else {
    if (fs::file_size(file) > limit) throw too_large(path, fs::file_size(file), limit_mib);
    fingerprint = fingerprint_by_trainer({.what = "format", .root = file, .open = true, .json = true})
                      .at("fingerprint")
                      .get<std::string>();
  }
  const std::uint64_t bytes = fs::file_size(file);
  if (bytes > limit) throw too_large(path, bytes, limit_mib);
  const std::string sha256 = sha256_file(file);
  auto heard = std::chrono::steady_clock::now();
  const bool arrived = send_in_pieces(
      file, bytes,
      [&](std::uint64_t offset, std::string_view piece) {
        PutPieceRequest request;
        request.mutable_blob()->set_sha256(sha256);
        request.mutable_blob()->set_bytes(bytes);
        request.set_offset(offset);
        request.set_piece(piece.data(), piece.size());
        const auto answer = client.call(&Depot::Stub::PutData, request, kPiece);
        heard = std::chrono::steady_clock::now();
        return PieceTaken{.have = answer.have(), .whole = answer.whole()};
      },
      [&](std::chrono::milliseconds wait) {
        std::this_thread::sleep_for(wait);
        return std::chrono::steady_clock::now() - heard < kSchedulerPatience;
      });
  if (!arrived)
    throw Error{Code::kUnavailable, "the scheduler did not answer for two minutes: push again to go on"};
  PushDataRequest request;
  request.set_name(name);
  request.set_sha256(sha256);
  request.set_bytes(bytes);
  request.set_fingerprint(fingerprint);
  const auto pushed = client.call(&Depot::Stub::PushData, request);
  if (context.json)
    context.print_json(pushed);
  else
    context.out.line(
        fmt::format("data set '{}' is at the scheduler ({:.1f} MiB, {}): workers without it fetch "
                    "it for trials that need it",
                    name, in_mib(bytes), fingerprint));
  return kExitOk;
}

/// To a fingerprint, or to what a worker has.
int repin_data(Context& context, const std::string& name, const std::string& fingerprint,
               const std::string& from_worker, bool yes) {
  if (fingerprint.empty() == from_worker.empty())
    throw Error{
        Code::kInvalidArgument,
        "data repin: expected a fingerprint, or --from WORKER for what that worker has: ablate data repin "
        "NAME FINGERPRINT"};
  Client client{context};
  RepinDataRequest request;
  request.set_name(name);
  request.set_fingerprint(fingerprint);
  request.set_from_worker(from_worker);
  request.set_dry_run(true);
  auto response = client.call(&Depot::Stub::RepinData, request);
  if (response.before() == response.fingerprint()) {
    if (context.json)
      context.print_json(response);
    else
      context.out.line(fmt::format("results of data '{}' are of {} already", name, response.fingerprint()));
    return kExitOk;
  }
  context.confirm(
      fmt::format(
          "{} of data '{}' {} of {} and will keep that content; {} and later ones will be of {}. Tables "
          "that hold both compare results of different data. Pin it anew?",
          plural(response.trials(), "result"), shown(name, context.err),
          response.trials() == 1 ? "is" : "are", shown(response.before(), context.err),
          plural(response.waiting(), "waiting trial"), shown(response.fingerprint(), context.err)),
      yes);
  request.set_dry_run(false);
  request.set_from_worker("");
  request.set_fingerprint(response.fingerprint());  // what was agreed to
  response = client.call(&Depot::Stub::RepinData, request);
  if (context.json)
    context.print_json(response);
  else
    context.out.line(fmt::format("data '{}' stand for {} from now on; {} made with {} keep{} it", name,
                                 response.fingerprint(), plural(response.trials(), "result"),
                                 response.before(), response.trials() == 1 ? "s" : ""));
  return kExitOk;
}

int remove_data(Context& context, const std::string& name, bool yes) {
  Client client{context};
  context.confirm(
      fmt::format("Remove the data set '{}' from the scheduler's depot? Workers that have fetched it "
                  "keep their copies; trials that need it wait for a worker that has it.",
                  shown(name, context.err)),
      yes);
  RemoveDataRequest request;
  request.set_name(name);
  const auto removed = client.call(&Depot::Stub::RemoveData, request);
  if (context.json)
    context.print_json(removed);
  else
    context.out.line(fmt::format("data '{}' are not in the depot any more", name));
  return kExitOk;
}

struct DataFlags {
  protocol::DataCommand trainer;
  std::vector<std::string> formats;
  std::string data, value, from;  // of the commands that ask the scheduler
  std::uint64_t limit_mib = 2048;
  bool yes = false;
};

/// `check` and `pack`, which the trainer does.
[[noreturn]] void ask_trainer(DataFlags& flags, bool json) {
  protocol::DataCommand& command = flags.trainer;
  const bool pack = command.what == "pack";
  if (command.root.empty())
    throw Error{Code::kInvalidArgument,
                fmt::format("data {}: --root is missing; expected the data set's folder", command.what)};
  if (pack && command.output.empty())
    throw Error{Code::kInvalidArgument,
                "data pack: name the file that is to be written with --output FILE.abldata"};
  if (!pack && (!command.output.empty() || !command.bound.empty() || command.raw || command.verbatim))
    throw Error{Code::kInvalidArgument,
                "data check takes no --output, --bound, --raw or --verbatim: 'data pack' does"};
  command.json = json;
  add_formats(flags.formats);
  protocol::become_trainer(command.arguments());
}

int ask_scheduler(Context& context, const DataFlags& flags) {
  const std::string& what = flags.trainer.what;
  if (what == "ls") return list_data(context);
  if (flags.data.empty())
    throw Error{Code::kInvalidArgument,
                fmt::format("data {0}: which? Expected: ablate data {0} NAME{1}", what,
                            what == "push"    ? " PATH"
                            : what == "repin" ? " FINGERPRINT"
                                              : "")};
  if (what == "rm") return remove_data(context, flags.data, flags.yes);
  if (what == "repin") return repin_data(context, flags.data, flags.value, flags.from, flags.yes);
  if (flags.value.empty())
    throw Error{Code::kInvalidArgument,
                "data push: what? Expected a folder or a packed file: ablate data push NAME PATH"};
  return push_data(context, flags.data, flags.value, flags.limit_mib);
}

Run declare_data(CLI::App& app, Context& context) {
  auto flags = std::make_shared<DataFlags>();
  protocol::DataCommand& command = flags->trainer;
  add_choice(app, "WHAT", command.what, {"check", "pack", "ls", "push", "repin", "rm"},
             "Decode every image; write them into one file; list what workers have; bring a small set to the "
             "scheduler; have a name stand for another content; remove a set that was pushed",
             {{"list", "ls"}, {"upload", "push"}, {"pin", "repin"}, {"remove", "rm"}})
      ->required();
  app.add_option("NAME", flags->data, "push, repin, rm: the data set's name in sweep files")->type_name("");
  app.add_option("VALUE", flags->value, "push: its folder or packed file; repin: the fingerprint")
      ->type_name("");
  app.add_option(flag::kRoot, command.root, "check, pack: folder of the data set, or a packed file")
      ->type_name("FOLDER");
  app.add_option(flag::kName, command.name,
                 "check, pack: expected data set, such as imagenet-1k: checks the number of classes")
      ->type_name("NAME");
  app.add_option(flag::kOutput, command.output, "pack: the packed file, FILE.abldata")->type_name("FILE");
  auto* bound =
      app.add_option(flag::kBound, command.bound, "pack: shrink images whose shorter side exceeds PIXELS")
          ->type_name("PIXELS")
          ->check(whole_number(1, 32'768));
  auto* raw = app.add_flag(flag::kRaw, command.raw, "pack: store decoded pixels instead of image files");
  app.add_flag(flag::kVerbatim, command.verbatim,
               "pack: keep files byte for byte, without restart markers for decoding crops")
      ->excludes(bound)
      ->excludes(raw);
  app.add_option(flag::kThreads, command.threads, "check, pack: decoder threads [one per core]")
      ->type_name("N")
      ->check(whole_number(1, 1024));
  app.add_option("--format", flags->formats,
                 "check, pack: a data format of your own (docs/plugins.md); repeatable")
      ->type_name("FILE")
      ->allow_extra_args(false);
  app.add_option("--limit-mib", flags->limit_mib, "push: refuse a packed file of more than N MiB")
      ->type_name("N")
      ->check(whole_number(1, 1 << 30))
      ->capture_default_str();
  app.add_option(flag::kFrom, flags->from, "repin: to what this worker has, in place of a fingerprint")
      ->type_name("WORKER");
  app.add_flag("--yes", flags->yes, "repin, rm: do not ask");
  add_scheduler(app, context);
  return [&context, flags]() -> int {
    const std::string& what = flags->trainer.what;
    if (what == "check" || what == "pack") ask_trainer(*flags, context.json);
    return ask_scheduler(context, *flags);
  };
}

}  // namespace

extern const Command kDataCommand{
    .place = 190,
    .name = "data",
    .summary = "Check and pack data sets, see which workers have them, bring small ones to the fleet",
    .example =
        "ablate data check --root /data/imagenet --name imagenet-1k\n"
        "ablate data pack --root /data/imagenet --output /data/imagenet.abldata --bound 512\n"
        "ablate data ls\n"
        "ablate data push my-set ./my-set\n"
        "ablate data repin cifar10 --from gpu-3",
    .success = "every image can be decoded; the packed file is there; what was asked is done",
    .failure = "an image is damaged",
    .declare = declare_data,
};

}  // namespace abl::cli
