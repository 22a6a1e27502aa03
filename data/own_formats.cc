// SPDX-License-Identifier: Apache-2.0
#include "data/own_formats.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <sstream>

#include "base/error.h"
#include "base/plugin_library.h"
#include "base/printable.h"
#include "base/sha256.h"
#include "config/field_table.h"
#include "data/order.h"
#include "data/records.h"
#include "data/stored_source.h"
#include "images/image_file.h"

namespace abl::data {
namespace {

namespace fs = std::filesystem;

constexpr PluginKind kKind{
    .interface = ABLATE_FORMAT_INTERFACE, .symbol = "ablate_data_format", .macro = "ABLATE_DATA_FORMAT"};

/// Does `call`, which is the user's code. What it throws is told with the format's name, with `code`: what
/// the system refused says nothing of the data, and has its own.
template <class Call>
auto by_format(const OwnFormat& format, Code code, const Call& call) {
  const auto what = fmt::format("data: the format {}", format.name);
  std::string why = "threw what is no std::exception";
  try {
    return call();
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    why = error.what();
    if (const auto refused = refused_by_system(what, error)) throw Error{*refused};
  } catch (...) {
  }
  throw Error{code, printable_line(fmt::format("{}: {}", what, why))};
}

class OwnSource final : public StoredSource {
 public:
  OwnSource(const config::DataConfig& data, const OwnFormat& format, std::shared_ptr<const OwnDataSet> set,
            bool train, std::vector<std::uint32_t> kept, std::vector<int> labels)
      : StoredSource{data, kept.size()},
        format_{format},
        set_{std::move(set)},
        train_{train},
        kept_{std::move(kept)},
        labels_{std::move(labels)} {}

  std::uint32_t size() const override { return static_cast<std::uint32_t>(kept_.size()); }
  int label(std::uint32_t index) const override { return labels_.at(kept_.at(index)); }
  std::string name(std::uint32_t index) const override {
    return by_format(format_, Code::kInvalidArgument, [&] { return set_->name(train_, kept_.at(index)); });
  }
  images::EncodedImage open(std::uint32_t index) const override {
    auto image = by_format(format_, Code::kDataLoss, [&] { return set_->image(train_, kept_.at(index)); });
    images::EncodedImage encoded;
    if (auto* pixels = std::get_if<images::Image>(&image)) {
      const auto area = static_cast<std::int64_t>(pixels->width) * pixels->height;
      if (pixels->width <= 0 || pixels->height <= 0 || std::cmp_not_equal(3 * area, pixels->pixels.size()))
        throw Error{
            Code::kDataLoss,
            fmt::format("data: the format {} gives an image of {} × {} pixels in {} bytes; expected {}",
                        format_.name, pixels->width, pixels->height, pixels->pixels.size(),
                        std::max<std::int64_t>(0, 3 * area))};
      auto held = std::make_shared<const images::Image>(std::move(*pixels));
      encoded = {.coding = images::EncodedImage::Coding::kPixels,
                 .bytes = {reinterpret_cast<const char*>(held->pixels.data()), held->pixels.size()},
                 .owner = held,
                 .width = held->width,
                 .height = held->height};
    } else {
      encoded = owning(std::move(std::get<std::string>(image)));
    }
    encoded.label = label(index);
    return encoded;
  }

 private:
  const OwnFormat& format_;
  const std::shared_ptr<const OwnDataSet> set_;
  const bool train_;
  const std::vector<std::uint32_t> kept_;  ///< places of the images that are used in the split
  const std::vector<int> labels_;          ///< of all of the split
};

std::vector<int> labels_of(const OwnFormat& format, const OwnDataSet& set, bool train, int classes) {
  std::vector<int> labels(by_format(format, Code::kInvalidArgument, [&] { return set.images(train); }));
  for (std::uint32_t i = 0; i < labels.size(); ++i) {
    labels[i] = by_format(format, Code::kInvalidArgument, [&] { return set.label(train, i); });
    if (labels[i] < 0 || labels[i] >= classes)
      throw Error{Code::kInvalidArgument,
                  fmt::format("data: format {}: invalid label of {}; expected 0 to {}, got {}", format.name,
                              by_format(format, Code::kInvalidArgument, [&] { return set.name(train, i); }),
                              classes - 1, labels[i])};
  }
  return labels;
}

/// Names and sizes of all files below, in order; links are followed, as a format may.
std::string listing(const fs::path& root) {
  std::vector<std::string> files;
  constexpr auto kThroughLinks = fs::directory_options::follow_directory_symlink;
  for (const auto& entry : fs::recursive_directory_iterator{root, kThroughLinks})
    if (entry.is_regular_file())
      files.push_back(
          fmt::format("{}\n{}\n", entry.path().lexically_relative(root).generic_string(), entry.file_size()));
  std::ranges::sort(files);
  return std::accumulate(files.begin(), files.end(), std::string{});
}

std::shared_ptr<const ImageSource> source_of(const config::DataConfig& config, const OwnFormat& format,
                                             const std::shared_ptr<const OwnDataSet>& set, bool train,
                                             std::vector<int> labels) {
  std::vector<std::uint32_t> kept(labels.size());
  std::iota(kept.begin(), kept.end(), 0);
  keep_some(kept, train ? config.train_images : config.val_images, train ? "train_images" : "val_images");
  return std::make_shared<OwnSource>(config, format, set, train, std::move(kept), std::move(labels));
}

std::vector<LoadedFormat> load_all(const char* files) {
  std::vector<LoadedFormat> formats;
  std::istringstream list{files ? files : ""};
  for (std::string file; std::getline(list, file, ':');) {
    if (file.empty()) continue;
    const auto library = load_plugin_library(kKind, "data format", file, {});
    const OwnFormat* format = nullptr;
    try {
      format = reinterpret_cast<const OwnFormat* (*)()>(library.function)();
    } catch (const std::exception& error) {
      throw Error{Code::kInvalidArgument,
                  printable_line(fmt::format("data format {}: {}", file, error.what()))};
    }
    const bool is_name =
        !format->name.empty() && format->name.find_first_not_of(config::kNameLetters) == std::string::npos;
    const bool is_new = std::ranges::none_of(
        formats, [&](const LoadedFormat& other) { return other.format->name == format->name; });
    if (!is_name || !is_new || !format->is_in || !format->open)
      throw Error{Code::kInvalidArgument,
                  printable_line(fmt::format("data format {}: the name '{}' {}", file, format->name,
                                             !is_name ? "is not of letters, digits, '.', '_' and '-'"
                                             : is_new ? "comes without is_in or open"
                                                      : "is that of another format too"))};
    formats.push_back({format, library.sha256});
  }
  return formats;
}

}  // namespace

const std::vector<LoadedFormat>& own_formats() {
  static const std::vector<LoadedFormat> kFormats = load_all(std::getenv(kFormatsVariable));
  return kFormats;
}

bool is_in(const LoadedFormat& loaded, const fs::path& root) {
  return by_format(*loaded.format, Code::kInvalidArgument, [&] { return loaded.format->is_in(root); });
}

DataSet open_own(const LoadedFormat& loaded, const config::DataConfig& config, const fs::path& root) {
  const OwnFormat& format = *loaded.format;
  const std::shared_ptr<const OwnDataSet> set =
      by_format(format, Code::kInvalidArgument, [&] { return format.open(root); });
  if (!set)
    throw Error{Code::kInvalidArgument,
                fmt::format("data: the format {} opens nothing in {}", format.name, root.string())};
  DataSet opened{.format = fmt::format("{} (a format of your own)", format.name)};
  opened.classes = by_format(format, Code::kInvalidArgument, [&] { return set->classes(); });
  const int classes = static_cast<int>(opened.classes.size());
  if (classes == 0)
    throw Error{Code::kInvalidArgument, fmt::format("data: the format {} names no classes", format.name)};
  check_classes(config, root, opened.format, classes);
  auto train = labels_of(format, *set, true, classes), val = labels_of(format, *set, false, classes);
  opened.fingerprint = fmt::format(
      "{}:{}", format.name,
      sha256_hex(fmt::format("{}\n{}\n{}\n{}\n{}", loaded.sha256, listing(root),
                             fmt::join(opened.classes, "\n"), fmt::join(train, " "), fmt::join(val, " "))));
  opened.train = source_of(config, format, set, true, std::move(train));
  opened.val = source_of(config, format, set, false, std::move(val));
  return opened;
}

}  // namespace abl::data
