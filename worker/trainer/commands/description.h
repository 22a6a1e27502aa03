// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <map>
#include <string>
#include <vector>

#include "config/document/trial_document.h"
#include "config/trial_choices.h"
#include "models/backbones/model_options.h"
#include "models/counting/counter.h"
#include "models/counting/memory.h"
#include "models/counting/work.h"

namespace abl::commands {

/// How the memory of a recipe's precision is counted.
models::Precision counted_as(config::Precision precision);

/// The work of one image by the modes of `counts_of` that begin with "flops.", conventions left out.
std::map<std::string, double> flops_of(const models::Work& work);

/// What is known of a model before it is trained, by the names of protocol/counts.h.
/// `parts`: of its network, as `count_parts` gives them.
std::map<std::string, double> counts_of(const config::TrialConfig& trial,
                                        const std::vector<models::PartCount>& parts);
/// The parts of the network that a trial trains, without what its recipe adds.
std::vector<models::PartCount> parts_of(const config::TrialConfig& trial);

/// Counts for many models in one process: a canonical model document a line in, a line out each, in order:
///   {"counts": {"params.all": n, …}} (the names of protocol/counts.h) or {"error": "…"}
/// `change`: what is done to each document first.
void describe_lines(std::istream& in, std::ostream& out,
                    const std::function<void(config::Json&)>& change = {});

/// What each document says, one a line in, a line out each, in order:
///   {"document": {…}, "canonical": {…}} (config::effective_document, canonical_document) or {"error": "…"}
void document_lines(std::istream& in, std::ostream& out,
                    const std::function<void(config::Json&)>& change = {});
config::Json documents_of(const config::TrialConfig& trial);

struct DescribeOptions {
  int depth = 2;           ///< levels of the tree that are shown
  std::int64_t batch = 0;  ///< of the memory prediction; 0: the trial's
  bool json = false;
};

/// One model for people: the tree of its parts with output shapes, parameters and work, then each count, and
/// the memory of a training step; as one object with `json`, then with all parts and parameters.
void describe_model(const config::TrialConfig& trial, const DescribeOptions& options, std::ostream& out);

/// A model's parts as an indented table, a line each, down to `depth` levels. Siblings that are numbered and
/// alike share a line: "blocks.0-11".
std::string part_tree(const std::vector<models::PartCount>& parts, int depth);

}  // namespace abl::commands
