// SPDX-License-Identifier: Apache-2.0
// Weights that a training takes from another: its own checkpoints, as they lie there.
#include <gmock/gmock.h>

#include "base/sha256.h"
#include "config/document/trial_document.h"
#include "protocol/checkpoint_files.h"
#include "tests/trainer/small_training.h"

namespace abl::trainer {
namespace {

using testing::HasSubstr;

/// Keeps what is said of the best checkpoint, too.
class BestRecorder final : public protocol::Events {
 public:
  void start(const Start&) override {}
  void metric(std::int64_t, const std::map<std::string, double>&) override {}
  void log(LogLevel, const std::string& text) override { logs.push_back(text); }
  void checkpoint(std::int64_t, const std::filesystem::path& path, const std::string&) override {
    newest = path;
  }
  void best_checkpoint(std::int64_t step, const std::filesystem::path& path, const std::string& sha256,
                       const std::filesystem::path& best) override {
    newest = path;
    best_step = step, best_path = best, best_sha256 = sha256;
  }
  void end(Status, const std::string&, bool) override {}

  std::vector<std::string> logs;
  std::filesystem::path newest, best_path;
  std::int64_t best_step = 0;
  std::string best_sha256;
  std::atomic<bool> stop = false;
};

class ChainedWeights : public SmallTraining {
 protected:
  ChainedWeights() { EXPECT_TRUE(training::Training(options(), source).run(source.stop)); }

  std::string error_of(const training::TrainingOptions& options) {
    try {
      BestRecorder events;
      training::Training(options, events).run(events.stop);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }
  training::TrainingOptions student(const std::filesystem::path& teacher) {
    training::TrainingOptions options = this->options(1);
    options.trial.model.dim = 32;
    options.trial.recipe.distillation = config::Distillation::kHard;
    options.trial.recipe.teacher = "trial";
    options.trial.recipe.teacher_weights = "best-of-it";
    options.weights["best-of-it"] = teacher;
    return options;
  }

  BestRecorder source;
};

TEST_F(ChainedWeights, TheBestCheckpointIsSaidWithThePlaceInWhichItStays) {
  EXPECT_EQ(source.best_path.filename(), protocol::kBestCheckpoint);
  EXPECT_EQ(sha256_file(source.best_path), source.best_sha256);
  EXPECT_GT(source.best_step, 0);
}

TEST_F(ChainedWeights, AStudentLearnsFromTheModelThatACheckpointSaysItIsOf) {
  BestRecorder events;
  EXPECT_TRUE(training::Training(student(source.best_path), events).run(events.stop));
  EXPECT_EQ(training::read_weights_file(source.best_path).model,
            config::canonical_teacher_text(options().trial));
}

TEST_F(ChainedWeights, ATeacherSeesImagesAsItWasTrainedWithThem) {
  using testing::Contains;
  using testing::Not;
  /// The first loss of a student whose teacher's file says that mean.
  const auto taught_by = [&](const char* file, const std::vector<double>& mean, const char* wanted) {
    auto checkpoint = training::read_checkpoint(source.best_path, "", options().config_hash);
    auto trial = options().trial;
    trial.data.mean = mean;
    checkpoint.model =
        mean.empty() ? config::canonical_model_text(trial) : config::canonical_teacher_text(trial);
    const auto path = folder_.path() / file;
    training::write_checkpoint(path, checkpoint);
    auto learns = student(path);
    learns.trial.recipe.distillation = config::Distillation::kSoft;
    learns.trial.recipe.distillation_share = 1, learns.last_step = 1;
    Recorder said;
    training::Training(learns, said).run(said.stop);
    EXPECT_THAT(said.logs, *wanted ? testing::Matcher<std::vector<std::string>>{Contains(HasSubstr(wanted))}
                                   : Not(Contains(HasSubstr("the teacher"))));
    return said.points["train/loss"].at(1);
  };
  const auto own = options().trial.data.mean;
  const double same = taught_by("same.safetensors", own, "");
  EXPECT_EQ(taught_by("unsaid.safetensors", {}, "as its student does, with mean [0.485, 0.456, 0.406]"), same)
      << "of an older release: as it was";
  EXPECT_NE(taught_by("other.safetensors", {0.1, 0.9, 0.1}, "with mean [0.1, 0.9, 0.1]"), same);
}

TEST_F(ChainedWeights, AFileThatSaysNoModelTeachesNobody) {
  const auto file = folder_.path() / "plain.safetensors";
  models::write_safetensors(file, {.tensors = training::read_weights(source.best_path), .metadata = {}});
  EXPECT_THAT(error_of(student(file)), HasSubstr("has no model description"));
}

TEST_F(ChainedWeights, AModelStartsFromACheckpointOfAnother) {
  training::TrainingOptions options = this->options(1);
  options.trial.recipe.start_weights = "last-of-it";
  options.weights["last-of-it"] = source.newest;
  options.last_step = 1;
  BestRecorder events;
  training::Training(options, events).run(events.stop);
  EXPECT_THAT(events.logs, testing::Contains(testing::AllOf(HasSubstr("starts from the weights last-of-it"),
                                                            testing::Not(HasSubstr("mean")))));
  options.trial.data.mean = {0.5, 0.5, 0.5}, options.run_dir = new_folder();
  BestRecorder other;
  training::Training(options, other).run(other.stop);
  EXPECT_THAT(other.logs, testing::Contains(
                              HasSubstr("they were trained on images with mean [0.485, 0.456, 0.406] and std "
                                        "[0.229, 0.224, 0.225], and this trial has others")));
}

}  // namespace
}  // namespace abl::trainer
