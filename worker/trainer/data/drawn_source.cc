// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/data/drawn_source.h"

#include <fmt/format.h>

#include <array>

#include "base/error.h"
#include "worker/trainer/data/embedded_images.h"
#include "worker/trainer/data/stored_source.h"

namespace abl::trainer {
namespace {

constexpr std::size_t kBytes = kEmbeddedSize * kEmbeddedSize * 3;
constexpr int kTrainImages = 40'000, kValImages = 2'000;  // where the config says "all"

class DrawnSource final : public StoredSource {
 public:
  DrawnSource(const config::DataConfig& config, Split split, int count)
      : StoredSource{config, static_cast<std::size_t>(count)},
        pixels_(static_cast<std::size_t>(count)),
        labels_(static_cast<std::size_t>(count)) {
    for (std::size_t i = 0; i < pixels_.size(); ++i) labels_[i] = draw_embedded_image(split, i, pixels_[i]);
  }
  std::uint32_t size() const override { return static_cast<std::uint32_t>(pixels_.size()); }
  int label(std::uint32_t index) const override { return labels_.at(index); }
  std::string name(std::uint32_t index) const override { return fmt::format("drawn image {}", index); }
  EncodedImage open(std::uint32_t index) const override {
    const auto& pixels = pixels_.at(index);
    return {.coding = EncodedImage::Coding::kPixels,
            .bytes = {reinterpret_cast<const char*>(pixels.data()), pixels.size()},
            .width = kEmbeddedSize,
            .height = kEmbeddedSize,
            .label = labels_[index]};
  }

 private:
  std::vector<std::array<std::uint8_t, kBytes>> pixels_;
  std::vector<int> labels_;
};

}  // namespace

DataSet open_drawn(const config::DataConfig& config) {
  if (config.image_size != kEmbeddedSize || config.classes != kEmbeddedClasses)
    throw Error{
        Code::kInvalidArgument,
        fmt::format(
            "data: the embedded images are {0}×{0} with {1} classes; the trial asks for {2}×{2} with {3}",
            kEmbeddedSize, kEmbeddedClasses, config.image_size, config.classes)};
  DataSet data;
  data.train = std::make_shared<DrawnSource>(config, Split::kTrain,
                                             config.train_images > 0 ? config.train_images : kTrainImages);
  data.val = std::make_shared<DrawnSource>(config, Split::kVal,
                                           config.val_images > 0 ? config.val_images : kValImages);
  data.fingerprint = kEmbeddedFingerprint;
  data.classes.assign(kEmbeddedClassNames.begin(), kEmbeddedClassNames.end());
  data.format = "drawn images";
  return data;
}

}  // namespace abl::trainer
