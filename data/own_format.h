// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "data/format_interface.h"
#include "images/image.h"

/// A data set in a format of your own, as one class in a file that the trainer loads: see docs/plugins.md.
///
///   class FooSet : public abl::data::OwnDataSet { … };
///   ABLATE_DATA_FORMAT(abl::data::OwnFormat{
///       .name = "foo", .looked_for = "foo.index",
///       .is_in = [](const auto& root) { return exists(root / "foo.index"); },
///       .open = [](const auto& root) { return std::make_unique<FooSet>(root); }})
namespace abl::data {

/// An image as your format has it: the bytes of a JPEG, PNG or WebP file, or pixels.
using OwnImage = std::variant<std::string, images::Image>;

/// Thread: every function from any number of threads. What it throws is told with the format's name; of an
/// image it makes that image a damaged one.
class OwnDataSet {
 public:
  virtual ~OwnDataSet() = default;
  /// A label is a place in it.
  virtual std::vector<std::string> classes() const = 0;
  virtual std::uint32_t images(bool train) const = 0;
  virtual int label(bool train, std::uint32_t index) const = 0;
  virtual OwnImage image(bool train, std::uint32_t index) const = 0;
  /// For messages.
  virtual std::string name(bool train, std::uint32_t index) const {
    return std::string{train ? "training" : "validation"} + " image " + std::to_string(index);
  }
};

struct OwnFormat {
  std::string name;        ///< letters, digits and '-'; begins the fingerprint of its data sets
  std::string looked_for;  ///< what of a folder shows that it is of this format, for messages
  /// Looks at names of files alone: it is asked of each folder.
  bool (*is_in)(const std::filesystem::path& root) = nullptr;
  std::unique_ptr<OwnDataSet> (*open)(const std::filesystem::path& root) = nullptr;
};

}  // namespace abl::data

/// Once in a file, outside of namespaces. The first name is read before anything of the file is run.
#define ABLATE_DATA_FORMAT(...)                                                    \
  extern "C" {                                                                     \
  [[gnu::visibility("default")]] extern const char ablate_format_interface[];      \
  [[gnu::used]] const char ablate_format_interface[] = ABLATE_FORMAT_INTERFACE;    \
  [[gnu::visibility("default")]] const abl::data::OwnFormat* ablate_data_format(); \
  const abl::data::OwnFormat* ablate_data_format() {                               \
    static const abl::data::OwnFormat kFormat = __VA_ARGS__;                       \
    return &kFormat;                                                               \
  }                                                                                \
  }
