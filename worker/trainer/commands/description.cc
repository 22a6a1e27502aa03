// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/commands/description.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <istream>
#include <ostream>

#include "base/error.h"
#include "base/json_depth.h"
#include "base/utf8.h"
#include "config/document/trial_document.h"
#include "config/recipe/recipes.h"
#include "models/counting/conventions.h"
#include "models/counting/dense_heads.h"
#include "models/counting/memory.h"
#include "models/counting/parameters.h"
#include "models/weights/state.h"
#include "protocol/counts.h"
#include "worker/trainer/tasks/model_factory.h"
#include "worker/trainer/tasks/new_task.h"

namespace abl::commands {
namespace {

using Counts = std::map<std::string, double>;

void add_conventions(const std::vector<models::PartCount>& parts, Counts& counts) {
  for (const auto& convention : models::conventions()) {
    auto changed = parts;
    convention.apply(changed);
    counts.emplace(fmt::format("flops.fvcore({})@{}", convention.batch_norm, convention.name),
                   flops_fvcore(changed.front().work, convention.batch_norm));
  }
}

/// Of few images the optimiser's moment is the peak, of many the start of the backward pass: that one is a
/// line.
void add_line(std::string_view memory, std::string_view precision,
              const std::function<std::int64_t(std::int64_t batch)>& peak, Counts& counts) {
  constexpr std::int64_t kMany = 4096;
  const auto many = static_cast<double>(peak(kMany));
  const auto image = (static_cast<double>(peak(2 * kMany)) - many) / kMany;
  counts.emplace(protocol::per_image(memory, precision), image);
  counts.emplace(protocol::beside_images(memory, precision), many - kMany * image);
}

void add_step_memory(const models::Network& network, int image_size, Counts& counts) {
  const auto step = [&](std::int64_t batch, models::Precision precision) {
    return models::predict_step_memory(network,
                                       {.batch = batch, .image_size = image_size, .precision = precision});
  };
  const auto state = [&](models::Precision precision) {
    const auto memory = step(1, precision);
    return static_cast<double>(memory.parameters + memory.gradients + memory.optimiser);
  };
  counts.emplace(protocol::kMemoryState, state(models::Precision::kFloat));
  counts.emplace(protocol::kMemoryStateBf16, state(models::Precision::kBFloat16));
  for (const auto precision : values_of<config::Precision>())
    add_line(
        protocol::kStepMemory, name_of(precision),
        [&](std::int64_t batch) { return step(batch, counted_as(precision)).peak; }, counts);
}

void add_forward_memory(const models::Network& network, int image_size, Counts& counts) {
  const auto forward = [&](std::int64_t batch, models::Precision precision) {
    return models::predict_forward_memory(network,
                                          {.batch = batch, .image_size = image_size, .precision = precision});
  };
  counts.emplace(protocol::kMemoryWeights,
                 static_cast<double>(forward(1, models::Precision::kFloat).weights));
  for (const auto precision : values_of<config::Precision>())
    add_line(
        protocol::kForwardMemory, name_of(precision),
        [&](std::int64_t batch) { return forward(batch, counted_as(precision)).peak; }, counts);
}

}  // namespace

models::Precision counted_as(config::Precision precision) {
  switch (precision) {
    case config::Precision::kBFloat16:
      return models::Precision::kBFloat16;
    case config::Precision::kFloat16:
      return models::Precision::kAutocast;
    case config::Precision::kFloat32:
      break;
  }
  return models::Precision::kFloat;
}

Counts flops_of(const models::Work& work) {
  return {{std::string{protocol::kFlopsMacs}, static_cast<double>(work.macs)},
          {std::string{protocol::kFlopsMsf}, flops_msf(work)},
          {std::string{protocol::kFlopsCnn}, flops_cnn(work)},
          {std::string{protocol::kFlopsFvcore2}, flops_fvcore(work, 2)},
          {std::string{protocol::kFlopsFvcore5}, flops_fvcore(work, 5)}};
}

std::vector<models::PartCount> parts_of(const config::TrialConfig& trial) {
  auto plain = trial;
  plain.recipe = {};
  return models::count_parts(tasks::network_of(plain), trial.data.image_size);
}

Counts counts_of(const config::TrialConfig& trial, const std::vector<models::PartCount>& parts) {
  const auto& whole = parts.front();
  auto counts = flops_of(whole.work);
  counts.emplace(protocol::kParamsAll, static_cast<double>(whole.params_all));
  counts.emplace(protocol::kParamsWeights, static_cast<double>(whole.params_weights));
  for (const auto& [mode, params] : models::head_counts(tasks::training_options(trial), parts))
    counts.emplace(mode, static_cast<double>(params));
  add_conventions(parts, counts);
  const auto network = tasks::network_of(trial);
  auto plain = trial;
  plain.recipe = {};
  counts.emplace(protocol::kFlopsStep,
                 static_cast<double>(models::count_step(tasks::network_of(plain), trial.data.image_size)));
  add_step_memory(network, trial.data.image_size, counts);
  add_forward_memory(network, trial.data.image_size, counts);
  return counts;
}

namespace {

using config::Json;

/// Of a training step as the recipe takes it.
struct RecipeMemory {
  std::int64_t batch = 0, images = 0;  ///< of a step, and of one pass where the batch is cut
  std::string precision, optimiser;
  models::StepMemory step;
  std::int64_t average = 0;       ///< the running average's weights, bytes
  models::ForwardMemory teacher;  ///< nothing without one
  std::int64_t checkpoint = 0;    ///< the copy of the state that is written beside the training
  std::int64_t beside() const { return average + teacher.weights; }
  std::int64_t peak() const { return peak_with_teacher(step, teacher) + average; }
};

std::int64_t bytes_of(const models::Network& network) {
  std::int64_t bytes = 0;
  for (const auto& [name, tensor] : models::state_of(*network.build(torch::kMeta)))
    bytes += static_cast<std::int64_t>(tensor.nbytes());
  return bytes;
}

std::string_view title_of(config::Optimiser optimiser) {
  switch (optimiser) {
    case config::Optimiser::kAdamW:
      return "AdamW";
    case config::Optimiser::kSgd:
      return "SGD";
  }
  return {};
}

RecipeMemory memory_of(const config::TrialConfig& trial, std::int64_t batch) {
  const auto& recipe = trial.recipe;
  const auto network = tasks::network_of(trial);
  RecipeMemory memory{.batch = batch,
                      .images = (batch + recipe.accumulate - 1) / recipe.accumulate,
                      .precision = std::string{name_of(recipe.precision)},
                      .optimiser = std::string{title_of(recipe.optimiser)}};
  memory.step = models::predict_step_memory(network, {.batch = memory.images,
                                                      .image_size = trial.data.image_size,
                                                      .precision = counted_as(recipe.precision),
                                                      .optimiser_states = states_of(recipe.optimiser)});
  const auto state = bytes_of(network);
  if (recipe.ema > 0) memory.average = state;
  memory.checkpoint = state + memory.step.optimiser + memory.average;
  if (recipe.distillation == config::Distillation::kNone) return memory;
  if (recipe.teacher == config::kTeacherTrial) return memory;  // which its weights say
  const auto teacher = tasks::teacher_options(trial);
  memory.teacher =
      models::predict_forward_memory([&](torch::Device device) { return models::build(teacher, device); },
                                     {.batch = memory.images,
                                      .image_size = models::image_size(teacher),
                                      .precision = counted_as(recipe.precision)});
  return memory;
}

/// What went wrong, without LibTorch's backtrace and the JSON library's number.
std::string reason(const std::exception& error) {
  if (const auto* torch_error = dynamic_cast<const c10::Error*>(&error))
    return torch_error->what_without_backtrace();
  const std::string text = error.what();
  if (dynamic_cast<const Json::exception*>(&error)) return text.substr(text.find("] ") + 2);
  return text;
}

Json parse(const std::string& line) {
  if (is_nested_too_deep(line))
    throw Error{Code::kInvalidArgument, fmt::format("nested more than {} levels deep", kDeepestJson)};
  if (valid_utf8(line) != line) throw Error{Code::kInvalidArgument, "the line is not UTF-8"};
  return Json::parse(line);
}

Json parts_json(const std::vector<models::PartCount>& parts) {
  Json list = Json::array();
  for (const auto& part : parts) {
    Json entry(flops_of(part.work));
    entry.update({{"name", part.name},
                  {"type", part.type},
                  {"output", part.output},
                  {"params.all", part.params_all},
                  {"params.weights", part.params_weights},
                  {"flops.macs", part.work.macs}});  // as what it is, a whole number
    list.push_back(std::move(entry));
  }
  return list;
}

Json parameters_json(const torch::nn::Module& model) {
  Json list = Json::array();
  for (const auto& entry : models::list_parameters(model))
    list.push_back({{"name", entry.name},
                    {"shape", entry.shape},
                    {"elements", entry.elements},
                    {"weight", entry.is_weight}});
  return list;
}

Json memory_json(const RecipeMemory& memory) {
  return {{"batch", memory.batch},
          {"images", memory.images},
          {"precision", memory.precision},
          {"parameters", memory.step.parameters},
          {"gradients", memory.step.gradients},
          {"optimiser", memory.step.optimiser},
          {"activations", memory.step.activations},
          {"beside", memory.beside()},
          {"checkpoint", memory.checkpoint},
          {"peak", memory.peak()}};
}

/// In millions or, of the work of a model that is not tiny, in thousands of millions.
std::string count_line(const std::string& mode, double count) {
  const bool is_large = !mode.starts_with("params.") && count >= 1e8;
  return fmt::format("{:<32} {:>10.2f} {}\n", mode, count / (is_large ? 1e9 : 1e6), is_large ? 'G' : 'M');
}

/// Beside the plain count, where it is another number.
std::string convention_line(const models::Convention& convention,
                            const std::map<std::string, double>& counts) {
  const auto plain = fmt::format("flops.fvcore({})", convention.batch_norm);
  const auto mode = fmt::format("{}@{}", plain, convention.name);
  if (counts.at(mode) == counts.at(plain)) return {};
  auto line = count_line(mode, counts.at(mode));
  line.pop_back();
  return fmt::format("{}   {} Source: {}.\n", line, convention.meaning, convention.source);
}

std::string memory_text(const RecipeMemory& memory) {
  const bool is_large = memory.peak() >= 1 << 30;
  const auto shown = [unit = is_large ? 1 << 30 : 1 << 20](std::int64_t bytes) {
    return fmt::format("{:.2f}", static_cast<double>(bytes) / unit);
  };
  auto text = fmt::format(
      "training step of {} images in {}{}: {} {} at its peak\n  parameters {}, gradients {}, {} {}, "
      "activations for the backward pass {}",
      memory.batch, memory.precision,
      memory.images < memory.batch ? fmt::format(", {} at once", memory.images) : "", shown(memory.peak()),
      is_large ? "GiB" : "MiB", shown(memory.step.parameters), shown(memory.step.gradients), memory.optimiser,
      shown(memory.step.optimiser), shown(memory.step.activations));
  if (memory.beside() > 0) text += fmt::format(", running average and teacher {}", shown(memory.beside()));
  const auto passing = memory.peak() - memory.step.parameters - memory.step.gradients -
                       memory.step.optimiser - memory.step.activations - memory.beside();
  if (passing > 0) text += fmt::format(", what comes and goes {}", shown(passing));
  return text + fmt::format(
                    "\n  as on the CPU, without the program and its libraries; a checkpoint's copy takes {} "
                    "more of the host's memory, at most twice\n",
                    shown(memory.checkpoint));
}

/// Counts are whole numbers, where they are: 21813504, not 21813504.0.
Json counts_json(const std::map<std::string, double>& counts) {
  Json document = Json::object();
  for (const auto& [mode, count] : counts)
    if (std::trunc(count) == count && std::abs(count) < 0x1p53)
      document[mode] = static_cast<std::int64_t>(count);
    else
      document[mode] = count;
  return document;
}

/// An answer a line to each document of a line.
void answer_lines(std::istream& in, std::ostream& out, const std::function<void(Json&)>& change,
                  const std::function<Json(const Json&)>& answer_to) {
  for (std::string line; out && std::getline(in, line);) {
    if (line.empty()) continue;
    Json answer;
    try {
      auto document = parse(line);
      if (change) change(document);
      answer = answer_to(document);
    } catch (const std::exception& error) {
      answer = {{"error", reason(error)}};
    }
    out << answer.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n' << std::flush;
  }
}

}  // namespace

void describe_lines(std::istream& in, std::ostream& out, const std::function<void(Json&)>& change) {
  answer_lines(in, out, change, [](const Json& document) -> Json {
    const auto trial = config::read_model_or_throw(document);
    return {{"counts", counts_json(counts_of(trial, parts_of(trial)))}};
  });
}

Json documents_of(const config::TrialConfig& trial) {
  return {{"document", config::effective_document(trial)}, {"canonical", config::canonical_document(trial)}};
}

void document_lines(std::istream& in, std::ostream& out, const std::function<void(Json&)>& change) {
  answer_lines(in, out, change,
               [](const Json& document) { return documents_of(config::read_trial_or_throw(document)); });
}

void describe_model(const config::TrialConfig& trial, const DescribeOptions& wanted, std::ostream& out) {
  const auto parts = parts_of(trial);
  const auto counts = counts_of(trial, parts);
  const auto memory = memory_of(trial, wanted.batch > 0 ? wanted.batch : trial.recipe.batch);
  if (wanted.json) {
    const Json document{{"counts", counts_json(counts)},
                        {"memory", memory_json(memory)},
                        {"parts", parts_json(parts)},
                        {"parameters", parameters_json(*tasks::network_of(trial).build(torch::kMeta))}};
    out << document.dump(2) << '\n';
    return;
  }
  out << part_tree(parts, wanted.depth) << '\n';
  for (const auto& [mode, count] : counts)
    if (!mode.starts_with("memory.") && mode.find('@') == std::string::npos) out << count_line(mode, count);
  for (const auto& convention : models::conventions()) out << convention_line(convention, counts);
  out << '\n' << memory_text(memory);
}

namespace {

using models::PartCount;

int level(const PartCount& part) {
  return part.name.empty() ? 0 : 1 + static_cast<int>(std::ranges::count(part.name, '.'));
}

/// "blocks.11" -> {"blocks", "11"}
std::pair<std::string, std::string> split(const std::string& name) {
  const auto dot = name.rfind('.');
  if (dot == std::string::npos) return {"", name};
  return {name.substr(0, dot), name.substr(dot + 1)};
}

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

bool alike(const PartCount& a, const PartCount& b) {
  const auto [owner_a, last_a] = split(a.name);
  const auto [owner_b, last_b] = split(b.name);
  return owner_a == owner_b && is_number(last_a) && is_number(last_b) && a.type == b.type &&
         a.output == b.output && a.params_all == b.params_all && a.work == b.work;
}

bool inside(const PartCount& part, const PartCount& owner) { return part.name.starts_with(owner.name + "."); }

/// Where the parts that follow `first` and what lies inside it begin.
std::size_t after(const std::vector<PartCount>& parts, std::size_t first) {
  auto next = first + 1;
  while (next < parts.size() && inside(parts[next], parts[first])) ++next;
  return next;
}

std::string amount(std::int64_t count) {
  if (count == 0) return "";
  if (count < 100'000) return fmt::format("{}", count);
  return count < 1'000'000'000 ? fmt::format("{:.2f} M", static_cast<double>(count) / 1e6)
                               : fmt::format("{:.2f} G", static_cast<double>(count) / 1e9);
}

std::string line(const PartCount& part, const std::string& name) {
  auto shape = part.output;
  if (!shape.empty()) shape.erase(shape.begin());  // one image
  const auto indented = std::string(static_cast<std::size_t>(2 * std::max(0, level(part) - 1)), ' ') + name;
  return fmt::format("{:<28} {:<24} {:>18} {:>10} {:>10}\n", indented, part.type,
                     shape.empty() ? "" : fmt::format("[{}]", fmt::join(shape, ", ")),
                     amount(part.params_all), amount(part.work.macs));
}

/// The parts from `begin` to `end`, which are all that one part contains.
void add_inside(const std::vector<PartCount>& parts, std::size_t begin, std::size_t end, int depth,
                std::string& text) {
  for (auto first = begin; first < end;) {
    if (level(parts[first]) > depth) return;
    auto last = first, next = after(parts, first);
    while (next < end && alike(parts[first], parts[next])) {
      last = next;
      next = after(parts, next);
    }
    const auto name = split(parts[first].name).second;
    text += line(parts[first], last == first ? name : name + "-" + split(parts[last].name).second);
    add_inside(parts, first + 1, after(parts, first), depth, text);
    first = next;
  }
}

}  // namespace

std::string part_tree(const std::vector<PartCount>& parts, int depth) {
  auto text = fmt::format("{:<28} {:<24} {:>18} {:>10} {:>10}\n", "part", "type", "output", "params", "MACs");
  text += line(parts.front(), "(model)");
  add_inside(parts, 1, parts.size(), depth, text);
  return text;
}

}  // namespace abl::commands
