// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "images/image.h"
#include "models/backbones/classifier.h"
#include "protocol/probes.h"

/// What looks into a trained model. A probe is a function: a subject and settings in, findings out.
namespace abl::probes {

/// A dimension of an array, and what stands at each of its places: {"role", {"query", "key", "value"}}.
struct Axis {
  std::string name;
  std::vector<std::string> places;
};

struct Array {
  std::vector<Axis> axes;
  torch::Tensor values;  ///< as many dimensions as axes; of real numbers
};

/// What a probe found.
struct Findings {
  std::map<std::string, double> values;  ///< what a table's column can take
  std::map<std::string, Array> arrays;
  std::map<std::string, images::Image> pictures;
  std::vector<std::string> notes;  ///< a sentence each: what was left out, and why
};

/// Images as the model sees them.
struct Shown {
  torch::Tensor input;             ///< [B, 3, S, S] float32, normalised, where the model is
  torch::Tensor pixels;            ///< [B, S, S, 3] bytes
  std::vector<std::string> names;  ///< B of them: files, or places in them
};

struct Accuracy {
  double top1 = 0, top5 = 0;  ///< percent
  double loss = 0;            ///< mean cross entropy
  std::int64_t images = 0;
};

/// A trained model, and what can be had of its trial.
struct Subject {
  models::Classifier& model;    ///< in evaluation mode, float32
  std::int64_t image_size = 0;  ///< that it was trained at
  torch::Device device = torch::kCPU;
  /// So many images of the evaluation, spread evenly over it; fewer where there are not so many.
  std::function<Shown(std::int64_t count)> images{};
  /// The same model for images of another size: positions are interpolated.
  /// In evaluation mode, on the same device.
  /// Throws: Error{kInvalidArgument} or c10::ValueError with the reason, where the model does not take it,
  /// and nothing else by these two: the weights fit at the trained size.
  std::function<std::shared_ptr<models::Classifier>(std::int64_t image_size)> at_size{};
  /// Over the whole evaluation, in the recipe's precision: the weights of `model` are rounded to it, as they
  /// were when the run was evaluated.
  std::function<Accuracy(models::Classifier& model, std::int64_t image_size)> accuracy{};
  /// How far the work is, 0 to 1. May throw Error{kCancelled}.
  std::function<void(double part)> progress = [](double) {};
};

/// What a probe is. Gradients are off. It leaves the model as it was.
/// Throws: Error{kFailedPrecondition} with the reason where the model has nothing for it to look at.
using Look = Findings (*)(const Subject& subject, const protocol::ProbeRequest& request);

/// The function of a probe that is declared (protocol/probes.h).
Look look_of(const std::string& name);

/// Runs it. Throws: what it throws.
Findings look(const Subject& subject, const protocol::ProbeRequest& request);

// The probes, a file each.
Findings feature_norms(const Subject& subject, const protocol::ProbeRequest& request);
Findings subspace_similarity(const Subject& subject, const protocol::ProbeRequest& request);
Findings code_norms(const Subject& subject, const protocol::ProbeRequest& request);
Findings attention(const Subject& subject, const protocol::ProbeRequest& request);
Findings class_attention(const Subject& subject, const protocol::ProbeRequest& request);
Findings accuracy_by_resolution(const Subject& subject, const protocol::ProbeRequest& request);
Findings inference_cost(const Subject& subject, const protocol::ProbeRequest& request);

/// "1" … "count": the places of an axis that only counts.
std::vector<std::string> counted(std::int64_t count);

/// Images side by side with what the heads attend to, an image a row: the image, then the map of each head.
/// Every map has colours of its own, from its lowest value, black, to its highest, white.
/// Shape: pixels [B, S, S, 3] bytes, maps [B, heads, rows, columns].
images::Image draw_maps(const torch::Tensor& pixels, const torch::Tensor& maps);

}  // namespace abl::probes
