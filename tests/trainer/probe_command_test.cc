// SPDX-License-Identifier: Apache-2.0
// ablate-trainer probe as a person uses it: what it finds in a model that was trained here, and what it
// refuses.
#include <gmock/gmock.h>

#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/sha256.h"
#include "images/image_file.h"
#include "images/png_write.h"
#include "protocol/probes.h"
#include "tests/images/picture_files.h"
#include "worker/trainer/commands/commands.h"

namespace abl::trainer {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using testing::HasSubstr;

/// Prints to a text; what was refused stands in its place.
std::string said(abl::Run (*declare)(CLI::App&), const std::vector<std::string>& arguments) {
  CLI::App app{"test", "test"};
  const abl::Run execute = declare(app);
  app.parse(std::vector<std::string>{arguments.rbegin(), arguments.rend()});
  testing::internal::CaptureStdout();
  try {
    execute();
  } catch (const Error& error) {
    testing::internal::GetCapturedStdout();
    return error.what();
  }
  return testing::internal::GetCapturedStdout();
}

/// A small model that was trained for a few steps, in a folder as a worker leaves it.
class ProbeCommandTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TemporaryFolder>();
    fs::create_directory(run());
    images::write(run() / "config.json", R"({
      "model": {"family": "vit", "dim": 16, "depth": 2, "heads": 2, "patch": 8},
      "data": {"name": "shapes", "image_size": 32, "classes": 10, "train_images": 60, "val_images": 20},
      "recipe": {"use": "demo", "epochs": 1, "batch": 20}, "seed": 0})");
    said(&commands::declare_train, {"--config", run() / "config.json", "--run-dir", run(), "--json"});
  }
  static void TearDownTestSuite() { folder_.reset(); }
  static fs::path run() { return folder_->path() / "run"; }

  static std::string probe(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"--run", run()});
    return said(&commands::declare_probe, arguments);
  }
  static Json found(std::vector<std::string> arguments) {
    arguments.emplace_back("--json");
    const auto text = probe(arguments);
    EXPECT_TRUE(Json::accept(text)) << text;
    const auto probes = Json::parse(text).at("probes");
    for (const auto& probe : probes)
      for (const auto& [value, number] : probe.at("values").items())
        EXPECT_TRUE(protocol::finds_value(protocol::read_probe(probe.at("probe")), value)) << value;
    return probes;
  }

 private:
  static inline std::unique_ptr<TemporaryFolder> folder_;
};

TEST_F(ProbeCommandTest, SeveralProbesOfARunAreOneAnswer) {
  const auto probes = found({"feature-norms", "subspace-similarity", "--with", "feature-norms.images=7"});
  ASSERT_EQ(probes.size(), 2);
  EXPECT_EQ(probes[0].at("probe"), "feature-norms");
  EXPECT_EQ(probes[0].at("settings").at("images"), 7);
  const auto& norm = probes[0].at("arrays").at("norm");
  EXPECT_EQ(norm.at("axes")[0].at("places"), Json({"embedding", "1", "2"}));
  EXPECT_EQ(norm.at("values").size(), 3);
  EXPECT_EQ(norm.at("values")[2], probes[0].at("values").at("last"));
  EXPECT_GT(probes[1].at("values").at("query-key").get<double>(), 0);
  EXPECT_FALSE(probes[1].at("values").contains("query-probe")) << "this attention has no PROBE";
}

TEST_F(ProbeCommandTest, AtTheTrainedSizeAccuracyIsThatOfTheEvaluation) {
  const auto probes = found({"--weights", run() / "best.safetensors", "accuracy-by-resolution", "--with",
                             "accuracy-by-resolution.sizes=24,32"});
  const auto eval = Json::parse(said(&commands::declare_eval, {"--config", run() / "config.json", "--weights",
                                                               run() / "best.safetensors", "--json"}));
  EXPECT_EQ(probes[0].at("values").at("top1-32"), eval.at("top1"));
  EXPECT_EQ(probes[0].at("values").at("loss-32"), eval.at("loss"));
  EXPECT_NE(probes[0].at("values").at("loss-24"), eval.at("loss"));
}

TEST_F(ProbeCommandTest, WritesPicturesThatAreWhatItSays) {
  const auto out = run() / "found" / "here";
  const auto probes = found({"attention", "--with", "attention.images=2", "--out", out});
  const auto& picture = probes[0].at("pictures").at(0);
  EXPECT_EQ(picture.at("file"), (out / "attention(images=2)-maps.png").string());
  const auto bytes = read_file(out / "attention(images=2)-maps.png");
  EXPECT_EQ(picture.at("sha256"), sha256_hex(bytes));
  EXPECT_EQ(picture.at("bytes"), bytes.size());
  const auto image = images::image_in(bytes);
  EXPECT_EQ(image.width, picture.at("width"));
  EXPECT_EQ(image.height, picture.at("height"));
  EXPECT_EQ(Json::parse(read_file(out / "attention(images=2).json")), probes[0]);
}

TEST_F(ProbeCommandTest, LooksAtAPhotographInPlaceOfTheEvaluation) {
  const auto photograph = run() / "photo.JPEG";  // a PNG, whatever its name says
  images::Image image = images::black(48, 40);
  for (std::size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = static_cast<std::uint8_t>(i * 37);
  images::write(photograph, images::encode_png(image));
  const auto probes = found({"attention", "--image", photograph});
  EXPECT_EQ(probes[0].at("arrays").at("map").at("axes")[0].at("places"), Json({"photo.JPEG"}));
  EXPECT_THAT(probe({"attention", "--image", run() / "gone.png"}), HasSubstr("gone.png"));
}

TEST_F(ProbeCommandTest, IsReadByPeopleToo) {
  const auto text = probe({"feature-norms", "attention"});
  EXPECT_THAT(text, HasSubstr("norm by layer"));
  EXPECT_THAT(text, HasSubstr("map: 4 × image, 2 × head, 4 × row, 4 × column (--json or --out)"));
  EXPECT_THAT(text, HasSubstr("(--out FOLDER)"));
  const auto list = said(&commands::declare_probe, {"--list"});
  EXPECT_THAT(list, HasSubstr("class-attention"));
  EXPECT_THAT(list, HasSubstr("values: top1-SIZE, top5-SIZE, loss-SIZE"));
  EXPECT_EQ(Json::parse(said(&commands::declare_probe, {"--list", "--json"})).size(), 7);
}

TEST_F(ProbeCommandTest, SaysInALineWhatItCannotDo) {
  EXPECT_THAT(probe({"atention"}), HasSubstr("did you mean 'attention'?"));
  EXPECT_THAT(probe({}), HasSubstr("expected the name of a probe; --list shows them"));
  EXPECT_THAT(probe({"attention", "attention"}), HasSubstr("named twice"));
  EXPECT_THAT(probe({"attention", "--with", "feature-norms.images=3"}),
              HasSubstr("of a probe that is named"));
  EXPECT_THAT(probe({"attention", "--with", "attention.images=0"}), HasSubstr("a whole number from 1 to 16"));
  EXPECT_THAT(probe({"code-norms"}), HasSubstr("the model has no codes"));
  EXPECT_THAT(probe({"feature-norms", "--set", "model.dim=24"}), HasSubstr("does not fit the model"));
  EXPECT_THAT(said(&commands::declare_probe, {"feature-norms"}), HasSubstr("expected --run FOLDER"));
  EXPECT_THAT(said(&commands::declare_probe, {"feature-norms", "--run", run() / "found-nothing"}),
              HasSubstr("No such file or directory"));
  const auto empty = run() / "empty";
  fs::create_directory(empty);
  EXPECT_THAT(said(&commands::declare_probe, {"feature-norms", "--run", empty}),
              HasSubstr("no checkpoint in this folder"));
}

TEST_F(ProbeCommandTest, AFileThatIsCutShortIsNamed) {
  const auto whole = read_file(run() / "best.safetensors");
  const auto cut = run() / "cut.safetensors";
  images::write(cut, whole.substr(0, whole.size() / 2));
  EXPECT_THAT(probe({"feature-norms", "--weights", cut}), HasSubstr("cut.safetensors"));
}

}  // namespace
}  // namespace abl::trainer
