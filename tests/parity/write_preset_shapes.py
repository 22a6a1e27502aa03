#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/counting/timm_presets.tsv: of each of our presets that timm has by the same name, what timm's model is made of.

  write_preset_shapes.py TRAINER
  write_preset_shapes.py --show NAME   what one line stands for: every tensor with its shape, every parameter with its layer

  name  tensors  elements  shapes   SHA-256 of the lines "NAME D0,D1,…", sorted, of the state: parameters and running statistics
  name  layers             order    SHA-256 of the lines "NAME LAYER", sorted, of the parameters: timm's groups for a learning rate
                                    that decays layer by layer
"""
import argparse
import hashlib
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from environment import demand, import_timm

FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "counting", "timm_presets.tsv")
HEADER = """# SPDX-License-Identifier: Apache-2.0
# Written by tests/parity/write_preset_shapes.py with timm {version}.
# name	tensors	elements	shapes	layers	order
"""


def build(timm, name):
    import torch
    with torch.device("meta"):
        return timm.create_model(name, pretrained=False, num_classes=1000)  # some have another head, or none


def shapes(model):
    return sorted(f"{name} {','.join(map(str, tensor.shape))}" for name, tensor in model.state_dict().items())


def layers(model):
    from timm.models import group_parameters
    groups = group_parameters(model, model.group_matcher(coarse=False), reverse=True)
    return {name: groups[name] for name, _ in model.named_parameters()}


def order(model):
    return sorted(f"{name} {layer}" for name, layer in layers(model).items())


def digest(lines):
    return hashlib.sha256("".join(line + "\n" for line in lines).encode()).hexdigest()


def line_of(name, model):
    state = model.state_dict().values()
    fields = (name, len(state), sum(tensor.numel() for tensor in state), digest(shapes(model)), 1 + max(layers(model).values()),
              digest(order(model)))
    return "\t".join(map(str, fields)) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trainer", nargs="?", help="the program ablate-trainer")
    parser.add_argument("--show", metavar="NAME", help="print what a line stands for, and write nothing")
    options = parser.parse_args()
    demand()
    timm = import_timm()
    if options.show:
        model = build(timm, options.show)
        print("\n".join(shapes(model) + order(model)))
        return
    if not options.trainer:
        parser.error("the trainer is missing")
    known = set(timm.list_models())
    presets = json.loads(subprocess.run([options.trainer, "presets", "--json"], capture_output=True, text=True, check=True).stdout)
    names = [preset["name"] for preset in presets if preset["name"] in known]
    with open(FILE, "w") as out:
        out.write(HEADER.format(version=timm.__version__))
        out.writelines(line_of(name, build(timm, name)) for name in names)
    print(f"{FILE}: {len(names)} of {len(presets)} presets")


if __name__ == "__main__":
    main()
