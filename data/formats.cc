// SPDX-License-Identifier: Apache-2.0
#include "data/formats.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "data/annotated/formats.h"
#include "data/own_formats.h"

namespace abl::data {
namespace {

namespace fs = std::filesystem;

struct Format {
  const char* looked_for;
  bool (*is_in)(const fs::path& root);
  DataSet (*open)(const config::DataConfig& config, const fs::path& root);
};

template <int kWhich>
bool has(const fs::path& root) {
  constexpr const char* kFirst[] = {"data_batch_1.bin", "train.bin", "train_X.bin"};
  return fs::is_regular_file(root / kFirst[kWhich]);
}

/// In this order: lists lie beside folders that are no classes, and sometimes beside those that are splits.
constexpr std::array kFormats{
    Format{"data_batch_1.bin (CIFAR-10)", has<0>, open_cifar10},
    Format{"train.bin (CIFAR-100)", has<1>, open_cifar100},
    Format{"train_X.bin (STL-10)", has<2>, open_stl10},
    Format{"train2018.json or train2019.json (iNaturalist)", is_inaturalist, open_inaturalist},
    Format{"folders 0 to 999 (ImageNet-V2)", is_numbered_folders, open_numbered_folders},
    Format{"train/CLASS with val/CLASS", has_split_folders, open_image_folder},
    Format{"anno_train.csv with anno_test.csv, or train.txt with val.txt (lists)", is_image_lists,
           open_image_lists},
    Format{"CLASS with .jpg, .jpeg, .png or .webp files", has_class_folders, open_image_folder}};

/// Archives often bring a folder of their own: "; did you mean FOLDER/cifar-10-batches-bin?"
std::string nearest(const fs::path& root) {
  for (const auto& entry : fs::directory_iterator{root}) {
    if (!entry.is_directory()) continue;
    for (const auto& format : kFormats)
      if (format.is_in(entry.path())) return fmt::format("; did you mean {}?", entry.path().string());
  }
  return "";
}

/// Null where the folder holds none of them.
const Format* format_in(const fs::path& root) {
  const auto found = std::ranges::find_if(kFormats, [&](const Format& format) { return format.is_in(root); });
  return found == kFormats.end() ? nullptr : &*found;
}

/// Those of the user's own go before ablate's: they know better what their folders are.
const LoadedFormat* own_format_in(const fs::path& root) {
  const auto& formats = own_formats();
  const auto found =
      std::ranges::find_if(formats, [&](const LoadedFormat& format) { return is_in(format, root); });
  return found == formats.end() ? nullptr : &*found;
}

void expect_folder(const fs::path& root, const std::string& name) {
  if (!fs::is_directory(root))
    throw Error{Code::kNotFound, fmt::format("data{}: no folder or packed file at {}",
                                             name.empty() ? "" : " set '" + name + "'", root.string())};
}

[[noreturn]] void throw_unknown(const fs::path& root) {
  std::string looked_for;
  for (const auto& own : own_formats())
    looked_for +=
        (looked_for.empty() ? "" : ", ") + fmt::format("{} ({})", own.format->looked_for, own.format->name);
  for (const auto& format : kFormats)
    looked_for += (looked_for.empty() ? "" : ", ") + std::string{format.looked_for};
  throw Error{Code::kNotFound, fmt::format("data: {} holds no data set of a known format; looked for {}{}",
                                           root.string(), looked_for, nearest(root))};
}

}  // namespace

std::string recognise(const fs::path& root) {
  if (fs::is_regular_file(root)) {
    expect_pack(root);
    const std::string annotated = annotated_format_in(root);
    return annotated.empty() ? "a packed file" : annotated;
  }
  expect_folder(root, {});
  if (const auto* own = own_format_in(root))
    return fmt::format("{} ({})", own->format->looked_for, own->format->name);
  if (const std::string annotated = annotated_format_in(root); !annotated.empty()) return annotated;
  const Format* format = format_in(root);
  if (!format) throw_unknown(root);
  return format->looked_for;
}

DataSet open_stored(const config::DataConfig& config, const fs::path& root) {
  if (fs::is_regular_file(root)) return open_pack(config, root);
  expect_folder(root, config.name);
  if (const auto* own = own_format_in(root)) return open_own(*own, config, root);
  if (const std::string annotated = annotated_format_in(root);
      !annotated.empty())  // its folders are no classes
    throw Error{Code::kInvalidArgument,
                fmt::format("data: {} holds {}; expected classification images", root.string(), annotated)};
  if (const Format* format = format_in(root)) return format->open(config, root);
  if (fs::is_directory(root / "train")) return open_image_folder(config, root);  // it says what is missing
  throw_unknown(root);
}

}  // namespace abl::data
