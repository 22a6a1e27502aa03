// SPDX-License-Identifier: Apache-2.0
#include "data/commands/annotated_commands.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <iostream>

#include "base/error.h"
#include "base/stop_on_signals.h"
#include "data/annotated/check.h"
#include "data/annotated/formats.h"
#include "data/annotated/pack.h"
#include "data/progress.h"

namespace abl::data {
namespace {

using OrderedReport =
    nlohmann::ordered_json;  // names of files may be no UTF-8: what is dumped replaces those bytes
using Names = std::vector<std::string>;

struct Opened {
  AnnotatedSet set;
  Names problems;
};

Opened open_and_note(const std::string& root) {
  Opened opened;
  opened.set = open_annotated(config::DataConfig{.name = root}, root,
                              [&](const std::string& problem) { opened.problems.push_back(problem); });
  return opened;
}

std::uint64_t pictures_of(const AnnotatedSet& set) {
  return std::uint64_t{set.train->size()} + set.val->size();
}

OrderedReport by_name(const Names& names, const std::vector<std::uint64_t>& counts) {
  OrderedReport object = OrderedReport::object();
  for (std::size_t i = 0; i < names.size(); ++i) object[names[i]] = counts[i];
  return object;
}

std::string as_json(const std::string& root, const Opened& opened, const AnnotatedCheck& check) {
  OrderedReport splits = OrderedReport::object();
  for (const auto& split : check.splits) {
    OrderedReport of{{"images", split.images}};
    if (!opened.set.categories.empty()) {
      of["images_without_instances"] = split.without;
      of["instances"] = by_name(opened.set.categories, split.instances);
      of["crowds"] = split.crowds;
    }
    if (!opened.set.labels.empty()) {
      of["pixels"] = by_name(opened.set.labels, split.pixels);
      of["pixels_without_label"] = split.ignored;
    }
    splits[split.split] = std::move(of);
  }
  const OrderedReport report{{"root", root},
                             {"format", opened.set.format},
                             {"fingerprint", opened.set.fingerprint},
                             {"categories", opened.set.categories},
                             {"labels", opened.set.labels},
                             {"splits", splits},
                             {"passed_over", opened.set.passed_over},
                             {"problems", opened.problems},
                             {"damaged", check.damaged}};
  return report.dump(-1, ' ', false, OrderedReport::error_handler_t::replace);
}

std::string first_names(const Names& names) {
  constexpr std::size_t kShown = 10;
  const Names shown{names.begin(),
                    names.begin() + static_cast<std::ptrdiff_t>(std::min(kShown, names.size()))};
  return fmt::format("{}{}", fmt::join(shown, ", "), names.size() > kShown ? ", …" : "");
}

std::string in_words(const AnnotatedSet& set, const AnnotatedCheck::OfSplit& split) {
  std::string text = fmt::format("{:<8} {} images", split.split, split.images);
  if (!set.categories.empty()) {
    std::uint64_t all = 0;
    for (const auto count : split.instances) all += count;
    text += fmt::format(
        "; {} instances, {} to {} per category, {} of them crowds; images without instances: {}", all,
        std::ranges::min(split.instances), std::ranges::max(split.instances), split.crowds, split.without);
  }
  if (!set.labels.empty()) {
    std::uint64_t all = split.ignored;
    for (const auto count : split.pixels) all += count;
    text += fmt::format(
        "; {:.1f} % of pixels have a label, of {} of {} classes",
        all == 0 ? 0.0 : 100 - 100.0 * static_cast<double>(split.ignored) / static_cast<double>(all),
        split.pixels.size() - static_cast<std::size_t>(std::ranges::count(split.pixels, 0u)),
        split.pixels.size());
  }
  return text + "\n";
}

std::string as_text(const std::string& root, const Opened& opened, const AnnotatedCheck& check) {
  const auto& set = opened.set;
  std::string text = fmt::format("{}: {}, {}\n", root, set.format, set.fingerprint);
  for (const auto& [what, names] : {std::pair{"things", &set.categories}, std::pair{"pixels", &set.labels}})
    if (!names->empty())
      text += fmt::format("{:<8} classes ({}): {}\n", what, names->size(), first_names(*names));
  for (const auto& split : check.splits) text += in_words(set, split);
  for (const auto& what : set.passed_over) text += fmt::format("note     {}\n", what);
  for (const auto& problem : opened.problems) text += fmt::format("problem  {}\n", problem);
  for (const auto& what : check.damaged) text += fmt::format("damaged  {}\n", what);
  const auto problems = opened.problems.size() + check.damaged.size();
  return text + (problems == 0
                     ? fmt::format("all {} images and their annotations are valid\n", pictures_of(set))
                     : fmt::format("{} problem{}\n", problems, problems == 1 ? "" : "s"));
}

}  // namespace

int check_annotations(const std::string& root, int threads, bool json) {
  const Opened opened = open_and_note(root);
  AnnotatedCheck check;
  {
    Progress progress{pictures_of(opened.set)};
    check = check_annotated(opened.set, threads, stop_on_signals(),
                            [&](auto pictures) { progress.advance(pictures); });
  }
  std::cout << (json ? as_json(root, opened, check) + "\n" : as_text(root, opened, check));
  return opened.problems.empty() && check.damaged.empty() ? kExitOk : kExitFailed;
}

int pack_annotations(const std::string& root, PackOptions options, bool json) {
  Opened opened = open_and_note(root);
  if (const auto problems = opened.problems.size(); problems > 0)
    opened.set.passed_over.push_back(fmt::format("{} invalid annotation{}, the first: {}", problems,
                                                 problems == 1 ? "" : "s", opened.problems.front()));
  for (const auto& what : opened.set.passed_over)
    std::cerr << fmt::format("warning: {} ('data check' lists every one)\n", what);
  options.stop = &stop_on_signals();
  PackResult result;
  {
    Progress progress{pictures_of(opened.set)};
    options.progress = [&](auto pictures) { progress.advance(pictures); };
    result = pack_annotated(opened.set, options);
  }
  const std::string file = options.output.string();
  if (json) {
    const OrderedReport report{{"file", file},
                               {"made", result.made},
                               {"bytes", result.bytes},
                               {"train", result.train},
                               {"val", result.val},
                               {"fingerprint", result.fingerprint},
                               {"passed_over", opened.set.passed_over}};
    std::cout << report.dump(-1, ' ', false, OrderedReport::error_handler_t::replace) << '\n';
  } else {
    std::cout << fmt::format("{}: {}, {} + {} annotated images, {:.1f} MiB, {}\n", file,
                             result.made ? "written" : "there already, made of the same images", result.train,
                             result.val, static_cast<double>(result.bytes) / (1 << 20), result.fingerprint);
  }
  return kExitOk;
}

}  // namespace abl::data
