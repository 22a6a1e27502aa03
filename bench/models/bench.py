#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Forward and backward of each part of models/, against the same part as a PyTorch module in Python: same machine, same PyTorch, same threads,
in turns. Prints the median of seven pairs, with the spread, and ours as a multiple of theirs (above 1: ours is faster).

  bench/models/bench.py [--threads N] [--dtype fp32|bf16] [--only WORD] [--seconds S]     (ABLATE_BENCH: folder of the built part_server)

The Python side is what a user would write today: `scaled_dot_product_attention` where it serves, timm's modules where timm has them, and
tests/parity/reference_models for what only the papers have.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "tests" / "parity"), str(HERE.parent)]
import torch
from torch import nn
import torch.nn.functional as F
from environment import import_timm
from pairs import PAIRS, compare, conclude, heading
from reference_models.manifold_key import ManifoldKey
from reference_models.msf import SharedAttention
from reference_models.xcit import Codes, NonLinearQKV



class FusedAttention(nn.Module):
    """The original attention of the simple ViT as it is written since fused attention exists."""

    def __init__(self, dim=384, heads=6):
        super().__init__()
        self.heads, self.norm = heads, nn.LayerNorm(dim)
        self.to_qkv, self.to_out = nn.Linear(dim, 3 * dim, bias=False), nn.Linear(dim, dim, bias=False)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.to_qkv(self.norm(x)).reshape(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        return self.to_out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, d))


def parts(timm):
    def msf(share="QKVPW", groups=1, layout="interleaved"):
        probed = share[3] != "-"
        return SharedAttention(384, 6, 64, "gaussian" if probed else "dot", "inside" if probed else "none", share, groups, layout), (8, 196, 384)

    key = lambda kind: (ManifoldKey(384, 197, 8, kind), (4, 197, 384))

    def embedding(hidden, kind, size=0):
        codes = Codes(size) if size else None
        return NonLinearQKV(192, hidden, kind, codes, size), (16, 196, 192)

    class Lpi(nn.Module):
        def __init__(self):
            super().__init__()
            self.lpi = timm.models.xcit.LPI(192)

        def forward(self, x):
            return self.lpi(x, 14, 14)

    window = timm.models.swin_transformer.WindowAttention
    return {
        "attention-original": lambda: (FusedAttention(), (8, 196, 384)),
        "attention-original-groups-2": lambda: msf("QKV-W", 2),
        "attention-msf": msf,
        "attention-msf-qkkkw": lambda: msf("QKKKW"),
        "attention-msf-groups-2": lambda: msf("QKVPW", 2),
        "attention-msf-groups-2-block": lambda: msf("QKVPW", 2, "block"),
        "key-spatialk": lambda: key("spatial"),
        "key-kua": lambda: key("kua"),
        "key-simplek": lambda: key("simple"),
        "key-vanillak": lambda: key("vanilla"),
        "embedding-sne": lambda: embedding(96, "sne"),
        "embedding-p-sne": lambda: embedding(144, "psne"),
        "embedding-f-sne-8": lambda: embedding(192, "fsne", 8),
        "xca": lambda: (timm.models.xcit.XCA(192, num_heads=4, qkv_bias=True), (16, 196, 192)),
        "lpi": lambda: (Lpi(), (16, 196, 192)),
        "class-attention": lambda: (timm.models.cait.ClassAttn(192, num_heads=4, qkv_bias=True), (16, 197, 192)),
        "self-attention": lambda: (timm.models.vision_transformer.Attention(384, num_heads=6, qkv_bias=True), (8, 197, 384)),
        "window-attention": lambda: (window(96, num_heads=3, window_size=7), (8 * 64, 49, 96)),
    }


class Ours:
    def __init__(self, threads):
        program = pathlib.Path(os.environ.get("ABLATE_BENCH", HERE.parents[1] / "build" / "bench")) / "part_server"
        if not program.exists():
            sys.exit(f"bench.py: no {program}: build the target part_server, or set ABLATE_BENCH to its folder")
        self.process = subprocess.Popen([program, str(threads)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __call__(self, part, dtype, repeats):
        self.process.stdin.write(f"{part} {dtype} {repeats}\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())


def theirs(module, x, dtype, repeats):
    start = time.perf_counter()
    for _ in range(repeats):
        with torch.autocast("cpu", torch.bfloat16, enabled=dtype == "bf16"):
            y = module(x)
        y.sum().backward()
    return time.perf_counter() - start


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--threads", type=int, default=1)
    arguments.add_argument("--dtype", choices=("fp32", "bf16"), default="fp32")
    arguments.add_argument("--only", default="")
    arguments.add_argument("--seconds", type=float, default=0.5, help="of one measurement")
    options = arguments.parse_args()
    torch.set_num_threads(options.threads)
    timm = import_timm()
    timm.layers.set_fused_attn(True)
    ours, medians = Ours(options.threads), {}
    print(f"PyTorch {torch.__version__}, {options.threads} threads, {options.dtype}: milliseconds of forward + backward, median of {PAIRS} pairs in turns")
    heading("part")
    for name, make in parts(timm).items():
        if options.only not in name:
            continue
        module, shape = make()
        x = torch.randn(shape, requires_grad=True)
        medians[name] = compare(name, lambda repeats: theirs(module, x, options.dtype, repeats), lambda repeats: ours(name, options.dtype, repeats),
                                options.seconds, unit=1e3)
    conclude("part", medians)


main()
