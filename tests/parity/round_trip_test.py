#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Loads the states that the C++ models have written into the references, strictly, and demands the logits of the ground truth's
state. Both are computed here, for the last bit of a logit belongs to the kernels that a processor's instructions allow.

  round_trip_test.py GROUND_TRUTH STATES [--set small|large]
"""
import argparse
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from environment import prepare


def complaint(case, truth_folder, state_folder):
    import torch
    from safetensors.torch import load_file
    from one_file import without_chance
    file = os.path.join(state_folder, case.name + ".safetensors")
    if not os.path.exists(file):
        return f"no C++ model has written {file}"
    truth = load_file(os.path.join(truth_folder, case.name + ".safetensors"))
    model = without_chance(case.build()).eval()

    def logits_of(state):
        model.load_state_dict(state, strict=True)
        with torch.no_grad():
            return model(truth["input"])

    wanted = logits_of({name.removeprefix("sd."): value for name, value in truth.items() if name.startswith("sd.")})
    try:
        difference = (logits_of(load_file(file)) - wanted).abs().max().item()
    except RuntimeError as error:
        return f"{case.name}: {error}"
    return f"{case.name}: the logits differ by {difference:g}" if difference else None


def main():
    prepare()
    from case import SETS
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("truth", help="folder of the ground truth")
    parser.add_argument("states", help="folder of what the C++ models have written")
    parser.add_argument("--set", choices=SETS, default="small")
    options = parser.parse_args()
    cases = SETS[options.set]()
    complaints = [text for case in cases if (text := complaint(case, options.truth, options.states))]
    print("\n".join(complaints) or f"{len(cases)} states went from C++ to Python and gave the same logits")
    sys.exit(bool(complaints))


if __name__ == "__main__":
    main()
