// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/data/photograph.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <fstream>

#include "base/error.h"
#include "base/file.h"
#include "worker/trainer/data/image_file.h"
#include "worker/trainer/data/stored_source.h"

namespace abl::trainer {
namespace {

class Photograph final : public ImageSource {
 public:
  explicit Photograph(const std::filesystem::path& file) : name_{file.string()}, bytes_{read_file(file)} {}

  std::uint32_t size() const override { return 1; }
  int label(std::uint32_t) const override { return 0; }
  std::string name(std::uint32_t) const override { return name_; }
  EncodedImage open(std::uint32_t) const override { return image_in(bytes_); }
  std::optional<RegionView> view(std::uint32_t index, const ChooseRegion& choose) const override {
    try {
      return decode_region(open(index), choose);
    } catch (const Error& error) {
      throw Error{error.code(), fmt::format("{}: {}", name_, error.what())};
    }
  }

 private:
  const std::string name_, bytes_;
};

}  // namespace

bool is_photograph(const std::filesystem::path& file) {
  std::ifstream in{file, std::ios::binary};
  if (!in) throw system_error("cannot read " + file.string(), errno);
  std::array<char, 12> first{};
  in.read(first.data(), first.size());
  return coding_of({first.data(), static_cast<std::size_t>(in.gcount())}).has_value();
}

std::shared_ptr<const ImageSource> open_photograph(const std::filesystem::path& file) {
  return std::make_shared<Photograph>(file);
}

}  // namespace abl::trainer
