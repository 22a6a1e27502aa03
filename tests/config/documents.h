// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "config/document/trial_document.h"
#include "config/model/model_section.h"

namespace abl::config {

/// A trial of the MSF paper.
inline Json document() {
  return Json::parse(R"({
    "model": {"preset": "simple-vit-s", "attention": {"kernel": "gaussian", "probe": "inside"}},
    "data": {"name": "imagenet-1k"},
    "recipe": {"use": "msf-imagenet", "epochs": 100},
    "seed": 1})");
}

/// The same with another model.
inline Json document_of(const Json& model) {
  Json changed = document();
  changed["model"] = model;
  return changed;
}

/// "path: message (nearest)" for each problem.
inline std::vector<std::string> texts(const std::vector<Problem>& problems) {
  std::vector<std::string> all;
  for (const Problem& problem : problems) {
    all.push_back(problem.path + ": " + problem.message +
                  (problem.nearest.empty() ? "" : " (" + problem.nearest + ")"));
  }
  return all;
}

inline std::vector<std::string> problems_of(const Json& document) {
  std::vector<Problem> problems;
  read_trial(document, problems);
  return texts(problems);
}

/// The problems of a trial with this model.
inline std::vector<std::string> problems_of_model(const char* model) {
  return problems_of(document_of(Json::parse(model)));
}

/// The one problem that it must have.
inline std::string only_problem(const char* model) {
  const auto problems = problems_of_model(model);
  EXPECT_EQ(problems.size(), 1u) << model << testing::PrintToString(problems);
  return problems.empty() ? "" : problems.front();
}

/// A model that must be right.
inline ModelConfig model_from(const char* model) {
  std::vector<Problem> problems;
  ModelConfig read = read_model(Json::parse(model), problems);
  EXPECT_THAT(texts(problems), testing::IsEmpty()) << model;
  return read;
}

/// The canonical text of a model that must be right.
inline std::string canonical_model_of(const char* model) { return canonical_model(model_from(model)).dump(); }

}  // namespace abl::config
