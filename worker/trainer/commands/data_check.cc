// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/data/check.h"

#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "worker/trainer/commands/commands.h"
#include "worker/trainer/commands/data_flags.h"
#include "worker/trainer/data/progress.h"

namespace abl::trainer {
namespace {

using OrderedJson = nlohmann::ordered_json;

std::string as_json(const std::string& root, const DataSet& data, const DataCheck& check) {
  OrderedJson splits = OrderedJson::object(), damaged = OrderedJson::array();
  for (const auto& split : check.splits)
    splits[split.split] = {{"images", split.images},
                           {"classes", split.classes},
                           {"images_per_class", {{"min", split.fewest}, {"max", split.most}}}};
  for (const auto& image : check.damaged)
    damaged.push_back({{"split", image.split}, {"name", image.name}, {"reason", image.reason}});
  const OrderedJson report{{"root", root},
                           {"format", data.format},
                           {"fingerprint", data.fingerprint},
                           {"classes", data.classes},
                           {"splits", splits},
                           {"passed_over", data.passed_over},
                           {"damaged", damaged}};
  return report.dump(-1, ' ', false,
                     OrderedJson::error_handler_t::replace);  // names of files may be no UTF-8
}

std::string first_few(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 10;
  const auto shown = std::vector(names.begin(), names.begin() + std::min(kShown, names.size()));
  return fmt::format("{}{}", fmt::join(shown, ", "), names.size() > kShown ? ", …" : "");
}

std::string as_text(const std::string& root, const DataSet& data, const DataCheck& check) {
  std::string text = fmt::format("{}: {}, {}\nclasses  {}: {}\n", root, data.format, data.fingerprint,
                                 data.classes.size(), first_few(data.classes));
  std::uint64_t images = 0;
  for (const auto& split : check.splits) {
    images += split.images;
    const std::string each = split.fewest == split.most ? fmt::format("{}", split.most)
                                                        : fmt::format("{} to {}", split.fewest, split.most);
    text += fmt::format("{:<8} {} images of {} classes, {} per class\n", split.split, split.images,
                        split.classes, each);
  }
  for (const auto& what : data.passed_over) text += fmt::format("note     {}\n", what);
  for (const auto& image : check.damaged)
    text += fmt::format("damaged  {} {}: {}\n", image.split, image.name, image.reason);
  text += check.damaged.empty()
              ? fmt::format("all {} images can be decoded\n", images)
              : fmt::format("{} of {} images cannot be decoded\n", check.damaged.size(), images);
  return text;
}

}  // namespace

Run declare_data_check(CLI::App& app) {
  auto flags = std::make_shared<DataFlags>();
  flags->declare(app);
  app.footer(
      "Example:\n  ablate-trainer data check --root /data/imagenet --name imagenet-1k\n\n"
      "Exit codes: 0 every image can be decoded; 1 some are damaged; 2 bad input: no such folder, "
      "no known format, a damaged file");
  return [flags]() -> int {
    const DataSet data = flags->open();
    DataCheck check;
    {
      Progress progress{std::uint64_t{data.train->size()} + data.val->size()};
      check =
          check_data(data, flags->threads, stop_on_signals(), [&](auto images) { progress.advance(images); });
    }
    std::cout << (flags->json ? as_json(flags->root, data, check) + "\n" : as_text(flags->root, data, check));
    return check.damaged.empty() ? kExitOk : kExitFailed;
  };
}

}  // namespace abl::trainer
