// SPDX-License-Identifier: Apache-2.0
// Lies about what it has, as the file `lie` of the folder says.
#include <cerrno>
#include <fstream>
#include <stdexcept>
#include <system_error>

#include "data/own_format.h"

namespace {

namespace fs = std::filesystem;

class BadSet : public abl::data::OwnDataSet {
 public:
  explicit BadSet(const fs::path& root) {
    std::ifstream{root / "lie"} >> lie_;
    if (lie_ == "throws") throw std::runtime_error{"nothing\nhere"};
  }
  std::vector<std::string> classes() const override { return {"a", "b"}; }
  std::uint32_t images(bool) const override { return 4; }
  int label(bool, std::uint32_t index) const override {
    return lie_ == "label" ? 2 : static_cast<int>(index % 2);
  }
  abl::data::OwnImage image(bool, std::uint32_t) const override {
    if (lie_ == "number") throw 42;
    if (lie_ == "away") throw std::system_error{ESTALE, std::generic_category(), "shard 3"};
    if (lie_ == "file") return std::string{"no image"};
    return abl::images::Image{
        .width = 8, .height = 8, .pixels = std::vector<std::uint8_t>(lie_ == "short" ? 3 : 192)};
  }

 private:
  std::string lie_;
};

}  // namespace

ABLATE_DATA_FORMAT(abl::data::OwnFormat{
    .name = "bad",
    .looked_for = "lie",
    .is_in = [](const fs::path& root) { return fs::exists(root / "lie"); },
    .open = [](const fs::path& root) -> std::unique_ptr<abl::data::OwnDataSet> {
      return std::make_unique<BadSet>(root);
    }})
