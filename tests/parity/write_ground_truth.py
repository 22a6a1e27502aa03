#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes numerical ground truth for the C++ models: one safetensors file for each case.

  write_ground_truth.py [--set small|large] [--out DIR] [--only WORD ...] [--list] [--check]

small: every part and every option, in models so small that all files take seconds. large: models of the papers' sizes.
Each file holds
  sd.<name>     the whole state dict
  input         (2, 3, S, S)         logits   (2, classes)
  target, loss  cross entropy of the logits against `target`, mean over the batch
  grad.<name>   gradients of that loss: for every parameter, or for a few of a large model
  feat.<mod>    outputs of parts
  train_logits, train.<buffer>   with batch normalisation: one pass in training mode from the same state, and the running
                statistics after it
and, as metadata key "ablate", a JSON text with the case's configuration and the versions used.

Weights, norms and inputs are random and depend only on the case's name, the tensor's name and SEED, so the files can be made
again at any time; nothing is downloaded. Nothing is written where the same versions of this folder, torch and timm have written.
--check loads every file into a fresh model and demands the same logits.
"""
import argparse
import glob
import hashlib
import importlib.metadata
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from environment import demand, prepare


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", choices=("small", "large"), default="small", help="which cases (default: small)")
    parser.add_argument("--out", default="parity", help="folder to write to")
    parser.add_argument("--only", nargs="*", default=[], help="cases whose name contains one of these")
    parser.add_argument("--list", action="store_true", help="print the cases and end")
    parser.add_argument("--check", action="store_true", help="read the files back into fresh models")
    return parser.parse_args()


def versions():
    return {package: importlib.metadata.version(package) for package in ("torch", "timm")}


def made_from(chosen_set):
    """What the files follow from."""
    code = hashlib.sha256()
    for file in sorted(glob.glob(os.path.join(HERE, "**", "*.py"), recursive=True)):
        with open(file, "rb") as text:
            code.update(text.read())
    return json.dumps(dict(versions(), set=chosen_set, code=code.hexdigest()))


def path_of(out, case):
    return os.path.join(out, case.name + ".safetensors")


def write(case, out):
    from safetensors.torch import save_file
    from one_file import tensors_of
    from random_state import SEED
    meta = dict(case=case.name, source=case.source, config=case.config, seed=SEED, **versions())
    partial = path_of(out, case) + ".tmp"
    save_file(tensors_of(case), partial, {"ablate": json.dumps(meta)})
    os.replace(partial, path_of(out, case))


def check(case, out):
    import torch
    from safetensors.torch import load_file
    from one_file import without_chance
    tensors = load_file(path_of(out, case))
    model = without_chance(case.build()).eval()
    model.load_state_dict({name[3:]: value for name, value in tensors.items() if name.startswith("sd.")})
    with torch.no_grad():
        difference = (model(tensors["input"]) - tensors["logits"]).abs().max().item()
    print(f"{case.name:44s} {'ok' if difference == 0 else f'differs by {difference:g}'}")
    return difference == 0


def main():
    options = arguments()
    demand()
    stamp = os.path.join(options.out, f"made_from_{options.set}.json")
    if not (options.only or options.list or options.check) and os.path.exists(stamp):
        with open(stamp) as text:
            if text.read() == made_from(options.set):
                return print(f"{options.out} is up to date")

    prepare()
    from case import SETS
    chosen = [case for case in SETS[options.set]() if not options.only or any(word in case.name for word in options.only)]
    if options.list:
        return print("\n".join(f"{case.name}\t{case.source}" for case in chosen))
    if options.check:
        return sys.exit(not all([check(case, options.out) for case in chosen]))
    os.makedirs(options.out, exist_ok=True)
    if os.path.exists(stamp):
        os.remove(stamp)
    for case in chosen:
        write(case, options.out)
    if not options.only:
        with open(stamp, "w") as text:
            text.write(made_from(options.set))
    print(f"{len(chosen)} files in {options.out}")


if __name__ == "__main__":
    main()
