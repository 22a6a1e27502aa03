#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails when a part or a choice of models/ has no case of ground truth, or a case no test.

  covered_test.py TRAINER STATES

What there is to cover is read from the headers (headers.py). What a case covers follows from the parts of its C++ model, which its
file in STATES names, and from what the trainer says that the case's trial comes to (covers.py).
"""
import argparse
import glob
import json
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
sys.path.insert(0, HERE)
from environment import demand, import_timm

# What no case can prove, and why, beside what the families say.
EXCEPTIONS = {
    "FanOut::kAll": "says how weights start, which ground truth replaces",
    "FanOut::kOfGroup": "says how weights start, which ground truth replaces",
    "RunningMean": "of self-distillation: tests/dino",
    "KeyChoice.gamma": "says how weights start, which ground truth replaces",
    "KeyChoice.gamma_cb": "says how weights start, which ground truth replaces",
    "DropPathRule::kLinear": "acts in training, and ground truth is of evaluation",
    "DropPathRule::kConstant": "acts in training, and ground truth is of evaluation",
    "DropPathOptions.rate": "acts in training, and ground truth is of evaluation",
    "DropPathOptions.rule": "acts in training, and ground truth is of evaluation",
}
# Fields of the options of many structs.
FIELD_EXCEPTIONS = {
    r"\w+Options\.(drop_path|drop_rate)": "acts in training, and ground truth is of evaluation: drop_path_test.cc",
    r"\w+Options\.dropout|DropoutOptions\.\w+": "acts in training, and ground truth is of evaluation: dropout_test.cc",
    r"\w+Options\.checkpoint_blocks": "changes no number: recompute_test.cc",
    r"ResNet\w*Options\.frozen_norms": "of detectors: tests/dense",
    r"\w+Options\.has_head": "without it there are no logits: tests/segmentation and tests/dense compare its maps",
    r"FeatureChoice\.\w+": "says which features of an image: tests/dino, vit_test.cc and xcit_test.cc",
    r"\w+Options\.(eta|zero_init_last)": "says how weights start, which ground truth replaces",
    r"VitOptions\.plugin|PluggedModel(Options\.\w+)?": "the code is its user's: tests/plugins",
    r"WeightsOptions\.\w+": "says what a loaded state may lack: weights_test.cc",
}


def exceptions(named):
    import families
    fields = {name for name in named for pattern in FIELD_EXCEPTIONS if re.fullmatch(pattern, name)}
    return EXCEPTIONS.keys() | fields | {name for name, why in families.all_have("EXCEPTIONS")}


def tests():
    """The text of all tests, with what stands for a case's name there."""
    files = glob.glob(os.path.join(ROOT, "tests", "models", "*.cc"))
    text = "".join(open(file, encoding="utf-8").read() for file in files)
    return set(re.findall(r'"([\w-]+)"', text))


def parts_in(folder, case):
    """Of the C++ model that has written the case's state."""
    from safetensors import safe_open
    with safe_open(os.path.join(folder, case.name + ".safetensors"), "pt") as opened:
        return json.loads(opened.metadata()["parts"])


def trials_of(cases, trainer):
    """By case what its trial comes to; none of those that no trial can ask for (configuration_test.py)."""
    from as_configuration import trial_document
    documents = {}
    for case in cases:
        try:
            documents[case.name] = trial_document(case, case.config, trainer)
        except LookupError:
            pass
    return dict(zip(documents, trainer.documents(documents.values()), strict=True))


def covered_by(cases, trainer, states, headers):
    from covers import covers_of
    trials = trials_of(cases, trainer)
    return {name for case in cases for name in covers_of(case, parts_in(states, case), trials.get(case.name), headers)}


def main():
    demand()
    import_timm()
    from case import large_cases, small_cases
    from headers import Headers
    from trainer import Trainer
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trainer", help="the program ablate-trainer")
    parser.add_argument("states", help="folder of what the C++ models have written")
    options = parser.parse_args()
    small, headers = small_cases(), Headers()
    named, covered = headers.names(), covered_by(small, Trainer(options.trainer), options.states, headers)
    words, excepted = tests(), exceptions(named)
    complaints = [f"{name} is in models/, but in no small case" for name in sorted(named - covered - excepted)]
    complaints += [f"{name} is covered by a case, but not in models/" for name in sorted(covered - named)]
    complaints += [f"{name} is an exception, but not in models/" for name in sorted(excepted - named)]
    complaints += [f"{pattern} excepts nothing" for pattern in FIELD_EXCEPTIONS
                   if not any(re.fullmatch(pattern, name) for name in named)]
    complaints += [f"{name} is an exception, but covered by a case" for name in sorted(excepted & covered)]
    complaints += [f"{case.name} is compared by no test in tests/models" for case in [*small, *large_cases()]
                   if not {case.name, case.name.removeprefix("ref_msf_")} & words]
    print("\n".join(complaints) or f"{len(named)} parts and choices are covered by {len(small)} cases or excepted")
    sys.exit(bool(complaints))


if __name__ == "__main__":
    main()
