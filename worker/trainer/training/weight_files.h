// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "config/trial_config.h"
#include "models/backbones/classifier.h"
#include "models/weights/weights.h"
#include "worker/trainer/tasks/teacher.h"

namespace abl::training {

/// models::load_weights, of a file that a person named. Throws: Error{kInvalidArgument}, one line that begins
/// with `what` and says how many tensors do not fit and which the first are.
models::LoadedWeights fit_weights(torch::nn::Module& model, const models::State& state,
                                  const std::string& what, const models::WeightsOptions& options = {});

/// Where the weights lie that recipes name: as data, they have a name in the trial and a place on each
/// machine.
using WeightFiles = std::map<std::string, std::filesystem::path>;

/// Name -> SHA-256 of the weights that a recipe names.
using WeightDigests = std::map<std::string, std::string>;

/// Of their files, for the record of the run.
/// Throws: Error{kNotFound} for a name without a file, Error{kFailedPrecondition} for a file that is not the
/// one that the recipe wants.
WeightDigests weight_digests(const config::RecipeConfig& recipe, const WeightFiles& files);

/// Starts the model from the weights that the trial's recipe names: another head, image size, window or patch
/// is fitted. Nothing where it names none. Returns: what did not come from the file as it was, and in which
/// other normalisation the weights were trained, for the log.
/// Throws: Error{kNotFound, kInvalidArgument, kDataLoss} naming the file.
std::string start_from_weights(torch::nn::Module& model, const config::TrialConfig& trial,
                               const WeightFiles& files);

/// The teacher on `device`. Throws: Error{kNotFound, kInvalidArgument, kDataLoss} naming the file.
tasks::Teacher load_teacher(const config::TrialConfig& trial, const WeightFiles& files, torch::Device device);

}  // namespace abl::training
