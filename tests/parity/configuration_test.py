#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Has the trainer build every small case from the document of a trial, and demands the logits of the ground truth.

  configuration_test.py TRAINER GROUND_TRUTH

The tests in tests/models fill the options of the models themselves. This one goes the way of a user: what a case says becomes
the keys of a trial, and worker/trainer/tasks/backbones makes the options of them. A key that is not passed on, or passed on as
something else, gives a model that the case's state does not fit, or other logits.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from environment import prepare

TOLERANCE = 1e-5  # of the largest logit
PROCESSES = 2


def configuration_in(file):
    from safetensors import safe_open
    with safe_open(file, "pt") as opened:
        return json.loads(opened.metadata()["ablate"])["config"]


def infer(program, document, state, images):
    """The logits, or what the trainer complains of."""
    from safetensors.torch import load_file, save_file
    with tempfile.TemporaryDirectory() as folder:
        trial, weights, output = (os.path.join(folder, name) for name in ("trial.json", "state.safetensors", "output.safetensors"))
        with open(trial, "w") as text:
            json.dump(document, text)
        save_file(state, weights)
        done = subprocess.run([program, "infer", "--config", trial, "--weights", weights, "--input", images, "--output", output],
                              env=dict(os.environ, OMP_NUM_THREADS="1"), capture_output=True, text=True)
        if done.returncode:
            return None, " ".join(done.stderr.split()) or f"the trainer ended with {done.returncode}"
        return load_file(output)["logits"], None


def complaint(case, trainer, truth_folder, without_trial):
    from safetensors.torch import load_file
    from as_configuration import trial_document
    file = os.path.join(truth_folder, case.name + ".safetensors")
    try:
        document = trial_document(case, configuration_in(file), trainer)
    except LookupError as error:
        return None if case.name in without_trial else f"{case.name} becomes no trial: {error}"
    if case.name in without_trial:
        return f"{case.name} is an exception, but becomes a trial"
    truth = load_file(file)
    state = {name[3:]: value for name, value in truth.items() if name.startswith("sd.")}
    logits, error = infer(trainer.program, document, state, images=file)
    if error:
        return f"{case.name}: {error}"
    difference = ((logits - truth["logits"]).abs().max() / truth["logits"].abs().max()).item()
    return None if difference <= TOLERANCE else f"{case.name}: the logits differ by {difference:g} of the largest"


def main():
    prepare()
    import families
    from case import small_cases
    from trainer import Trainer
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trainer", help="the program ablate-trainer")
    parser.add_argument("truth", help="folder of the ground truth")
    options = parser.parse_args()
    cases, trainer = small_cases(), Trainer(options.trainer)
    without_trial = dict(families.all_have("WITHOUT_TRIAL"))
    gone = sorted(without_trial.keys() - {case.name for case in cases})
    with ThreadPoolExecutor(PROCESSES) as pool:
        found = list(pool.map(lambda case: complaint(case, trainer, options.truth, without_trial), cases))
    complaints = [f"{name} is an exception, but no case" for name in gone] + [text for text in found if text]
    print("\n".join(complaints) or f"{len(cases) - len(without_trial)} models built from a trial's document gave the same logits, "
                                   f"{len(without_trial)} have no keys")
    sys.exit(bool(complaints))


if __name__ == "__main__":
    main()
