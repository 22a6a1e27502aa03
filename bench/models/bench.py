#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Forward and backward of each part of models/, against the same part as a PyTorch module in Python: same machine, same PyTorch, same threads,
in turns. Prints the median of seven pairs, with the spread, and ours as a multiple of theirs (above 1: ours is faster).

  bench/models/bench.py [--threads N] [--dtype fp32|bf16] [--device cpu|cuda] [--only WORD] [--seconds S] [--before FOLDER]
                                                                          (ABLATE_BENCH: folder of the built part_server)

On a GPU both sides wait for it before and after each measurement. The Python side is what a user would write today: python_parts.py.
--before: in place of Python, the part_server of another build, in its folder bench/.
"""
import argparse
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "tests" / "parity"), str(HERE.parent)]
import torch
from environment import import_timm
from pairs import PAIRS, compare, conclude, heading
from python_parts import parts
from server import BUILD, Server, built, refuse


class Ours:
    def __init__(self, threads, device, folder=BUILD):
        self.program = built("part_server", folder)
        self.server = Server(self.program, threads, device)

    def names(self):
        return set(subprocess.run([self.program, "list"], check=True, capture_output=True, text=True).stdout.split())

    def __call__(self, part, dtype, repeats):
        return self.server(f"{part} {dtype} {repeats}")


class Theirs:
    def __init__(self, module, shape, device, dtype):
        self.module, self.device, self.dtype = module.to(device), device, dtype
        self.input = torch.randn(shape, device=device, requires_grad=True)

    def __call__(self, repeats):
        self.wait()
        start = time.perf_counter()
        for _ in range(repeats):
            with torch.autocast(self.device, torch.bfloat16, enabled=self.dtype == "bf16"):
                y = self.module(self.input)
            y.sum().backward()
        self.wait()
        return time.perf_counter() - start

    def wait(self):
        if self.device == "cuda":
            torch.cuda.synchronize()


def chosen(all_parts, ours, before, word):
    """The parts that have the word in their name."""
    if before:
        different = ours.names() - before.names()
        all_parts = [name for name in all_parts if name not in different]
        print(*(f"{name} is not in the other build" for name in sorted(different)), sep="\n", end="\n" if different else "")
        return [name for name in all_parts if word in name]
    different = ours.names() ^ all_parts.keys()
    if different:
        refuse(f"only one of python_parts.py and part_server has {', '.join(sorted(different))}: is part_server built of this state?")
    names = [name for name in all_parts if word in name]
    if not names:
        refuse(f"no part has '{word}' in its name; there are {', '.join(all_parts)}")
    return names


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--threads", type=int, default=1)
    arguments.add_argument("--dtype", choices=("fp32", "bf16"), default="fp32")
    arguments.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    arguments.add_argument("--only", default="", metavar="WORD", help="parts with this in their name")
    arguments.add_argument("--seconds", type=float, default=0.5, help="of one measurement")
    arguments.add_argument("--before", type=pathlib.Path, metavar="FOLDER", help="bench/ of another build, in place of Python")
    options = arguments.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        refuse("device cuda, but there is none here")
    torch.set_num_threads(options.threads)
    timm = import_timm()
    timm.layers.set_fused_attn(True)
    ours, all_parts, medians = Ours(options.threads, options.device), parts(timm), {}
    before = options.before and Ours(options.threads, options.device, options.before)
    names = chosen(all_parts, ours, before, options.only)
    print(f"PyTorch {torch.__version__}, {options.device}, {options.threads} threads, {options.dtype}: milliseconds of forward + backward, "
          f"median of {PAIRS} pairs in turns")
    heading("part", *(("before", "now") if before else ()))
    for name in names:
        theirs = (lambda repeats: before(name, options.dtype, repeats)) if before else Theirs(*all_parts[name](), options.device, options.dtype)
        medians[name] = compare(name, theirs, lambda repeats: ours(name, options.dtype, repeats), options.seconds, unit=1e3)
    conclude("part", medians)


main()
