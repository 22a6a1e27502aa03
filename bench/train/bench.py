# SPDX-License-Identifier: Apache-2.0
"""Training steps of ablate-trainer against the same steps in Python: same machine, same PyTorch, same model, batch and threads, in turns.
Prints the median of seven pairs, with the spread, and ours as a multiple of theirs (above 1: ours is faster).

  bench/train/bench.py [--threads N] [--dtype fp32|bf16] [--only WORD] [--seconds S]     (ABLATE_BENCH: folder of the built step_server)
  bench/train/bench.py --against fp32|compile|allocators|optimiser|start|gemm
  bench/train/bench.py --before FOLDER         the step_server of another build, in its folder bench/, in place of Python
  bench/train/bench.py --device cuda --dtype bf16 [--against compile|memory] [--cuda-graph]

The Python side is what a user would write today: timm's model (fused attention) under autocast in bf16, fused AdamW; MSF as
tests/parity/reference_models has it. --against: our own fp32 in place of Python; torch.compile (which asks for python3-dev); other allocators than tcmalloc in our
process; torch::optim::AdamW in C++; the time from the start of the process to the end of the first step; the share of the speed that the
machine reaches in one large product. memory: the peak of a GPU's memory, original attention against MSF's.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import torch

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1] / "tests" / "parity")]

from environment import import_timm  # noqa: E402
from pairs import PAIRS, compare, conclude, heading  # noqa: E402
from server import BUILD, Server, built, trainer  # noqa: E402

ALLOCATORS = {"glibc": "libc.so.6", "jemalloc": "libjemalloc.so.2", "mimalloc": "libmimalloc.so.2"}  # beside tcmalloc, which is linked
MSF = dict(kernel="gaussian", probe="inside", share="QKVPW")


def trial(model, image_size, batch, precision, classes=1000):
    return {"model": model, "data": {"name": "bench", "image_size": image_size, "classes": classes},
            "recipe": {"use": "cifar-lite", "batch": batch, "precision": precision, "label_smoothing": 0, "clip_norm": 0, "drop_path": 0}, "seed": 0}


def msf_in_python():
    from reference_models import SimpleViT
    layer = dict(MSF, groups=1, layout="interleaved", tied_weight_scale=1.0)
    return SimpleViT(image_size=224, patch=16, classes=1000, dim=384, heads=6, dim_head=64, mlp_dim=1536, attention=[layer] * 12)


def models(timm, device):
    """name -> (the model in Python, ours, image size, batch, classes)"""
    def by_name(name):
        return lambda: timm.create_model(name), {"preset": name}

    if device == "cuda":
        return {
            "ViT-S/16, 224": (*by_name("vit_small_patch16_224"), 224, 256, 1000),
            "XCiT-T12/16, 224": (*by_name("xcit_tiny_12_p16_224"), 224, 256, 1000),
            "MSF ViT-S, 224": (msf_in_python, {"preset": "simple-vit-s", "attention": MSF}, 224, 256, 1000),
        }
    small = dict(patch_size=4, img_size=32, embed_dim=96, depth=6, num_heads=3, num_classes=10)
    return {
        "ViT-Ti/16, 224": (*by_name("vit_tiny_patch16_224"), 224, 8, 1000),
        "XCiT-N12/16, 224": (*by_name("xcit_nano_12_p16_224"), 224, 8, 1000),
        "ViT 96×6, patch 4, 32": (lambda: timm.models.vision_transformer.VisionTransformer(**small),
                                  {"family": "vit", "dim": 96, "depth": 6, "heads": 3, "patch": 4}, 32, 64, 10),
        "MSF ViT-S, 224": (msf_in_python, {"preset": "simple-vit-s", "attention": MSF}, 224, 4, 1000),
    }


class Ours:
    def __init__(self, options, preload=None, folder=BUILD):
        how = [options.threads, options.device, *(["graph"] if options.cuda_graph else [])]
        self.server = Server(built("step_server", folder), *how, preload=preload)

    def __call__(self, document, repeats, **more):
        return self.server(json.dumps({"trial": document, "repeats": repeats, **more}))


class Theirs:
    def __init__(self, make, image_size, batch, classes, options):
        torch.manual_seed(0)
        self.device = options.device
        self.model = make().to(self.device).train()
        self.optimiser = torch.optim.AdamW(self.model.parameters(), lr=1e-4, fused=True)
        self.images = torch.randn(batch, 3, image_size, image_size, device=self.device)
        self.labels = torch.randint(classes, (batch,), device=self.device)
        self.lowered, compiled = options.dtype == "bf16", options.against == "compile"
        self.run = torch.compile(self.model) if compiled else self.model

    def __call__(self, repeats):
        start = time.perf_counter()
        for _ in range(repeats):
            with torch.autocast(self.device, torch.bfloat16, enabled=self.lowered):
                loss = torch.nn.functional.cross_entropy(self.run(self.images), self.labels)
            self.optimiser.zero_grad()
            loss.backward()
            self.optimiser.step()
        if self.device == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter() - start


def library(name):
    found = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True).stdout
    return next((line.split("=> ")[1] for line in found.splitlines() if line.split()[:1] == [name]), None)


def compare_steps(options, timm):
    ours, medians = Ours(options), {}
    before = options.before and Ours(options, folder=options.before)
    heading("step", *(("before", "now") if before else ("fp32", options.dtype) if options.against == "fp32" else ()))
    for name, (make, model, image_size, batch, classes) in models(timm, options.device).items():
        if options.only not in name:
            continue
        document = trial(model, image_size, batch, options.dtype, classes)
        exact = trial(model, image_size, batch, "fp32", classes)
        if before:
            theirs = lambda repeats: before(document, repeats)  # noqa: E731
        elif options.against == "fp32":
            theirs = lambda repeats: ours(exact, repeats)  # noqa: E731
        else:
            theirs = Theirs(make, image_size, batch, classes, options)
        medians[f"{name}, batch {batch}"] = compare(f"{name}, batch {batch}", theirs, lambda repeats: ours(document, repeats), options.seconds, unit=1e3)
    conclude("step", medians)


def compare_allocators(options, timm):
    plain, medians = Ours(options), {}
    name, (_, model, image_size, batch, classes) = next((n, m) for n, m in models(timm, options.device).items() if options.only in n)
    document = trial(model, image_size, batch, options.dtype, classes)
    heading(name, left="tcmalloc", right="other")
    for allocator, file in ALLOCATORS.items():
        path = library(file)
        if not path:
            print(f"{allocator:32} not installed here ({file})")
            continue
        other = Ours(options, path)
        medians[allocator] = compare(allocator, lambda repeats: plain(document, repeats), lambda repeats: other(document, repeats), options.seconds, unit=1e3)


def compare_optimisers(options):
    ours = Ours(options)
    document = trial({"preset": "vit_small_patch16_224"}, 224, 8, "fp32")
    heading("AdamW, ViT-S", left="torch::", right="ours")
    compare("optimiser step", lambda repeats: ours(document, repeats, optimiser="torch"), lambda repeats: ours(document, repeats, optimiser="ours"),
            options.seconds, unit=1e3)


def measure_start(options):
    with tempfile.TemporaryDirectory() as folder:
        config = pathlib.Path(folder) / "trial.json"
        config.write_text(json.dumps({"model": {"preset": "simple-vit-nano"}, "data": {"name": "shapes", "train_images": 64},
                                      "recipe": {"use": "demo", "batch": 32, "epochs": 1}, "seed": 0}))
        seconds = []
        for _ in range(PAIRS):
            start = time.perf_counter()
            with subprocess.Popen([trainer(), "train", "--config", config, "--run-dir", folder, "--json", "--threads", str(options.threads)],
                                  stdout=subprocess.PIPE, text=True) as process:
                next(line for line in process.stdout if '"metric"' in line)
                seconds.append(time.perf_counter() - start)
                process.kill()
    print(f"start of the process to the end of the first step: {statistics.median(seconds):.2f} s, {min(seconds):.2f} to {max(seconds):.2f}")


def multiply_adds(model, image_size, classes):
    line = json.dumps({"model": model, "data": {"image_size": image_size, "classes": classes}})
    answer = subprocess.run([trainer(), "describe", "--stdin"], input=line + "\n", capture_output=True, text=True, check=True).stdout
    return json.loads(answer)["counts"]["flops.macs"]


def share_of_peak(options, timm):
    """Forward 2 FLOPs for each multiply-add, backward twice that; the peak is a product of 2048³ in the same type, in turns with the steps."""
    ours = Ours(options)
    a = torch.randn(2048, 2048, dtype=torch.bfloat16 if options.dtype == "bf16" else torch.float32)
    print(f"{'step':32} {'GFLOP/s':>9} {'product':>9} {'share':>7}")
    for name, (_, model, image_size, batch, classes) in models(timm, options.device).items():
        if options.only not in name:
            continue
        document, work = trial(model, image_size, batch, options.dtype, classes), 6 * batch * multiply_adds(model, image_size, classes)
        ours(document, 2), a @ a
        steps, products = [], []
        for _ in range(PAIRS):
            steps.append(work / ours(document, 1) / 1e9)
            start = time.perf_counter()
            a @ a
            products.append(2 * 2048 ** 3 / (time.perf_counter() - start) / 1e9)
        print(f"{name:32} {statistics.median(steps):9.0f} {statistics.median(products):9.0f} {statistics.median(s / p for s, p in zip(steps, products)):7.2f}")


def compare_memory(options):
    peaks = {}
    for name, attention in (("original", {}), ("MSF", MSF)):
        document = trial({"preset": "simple-vit-s", **({"attention": attention} if attention else {})}, 224, 256, options.dtype)
        ours = Ours(options)
        ours(document, 5)  # a graph is recorded in the fourth
        peaks[name] = ours(document, 0, memory=True)
        print(f"ViT-S, batch 256, {name} attention: {peaks[name] / 2**30:.2f} GiB at its peak")
    print(f"MSF takes {peaks['MSF'] / peaks['original']:.3f} times the memory of the original attention")


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--threads", type=int, default=1)
    arguments.add_argument("--dtype", choices=("fp32", "bf16"), default="fp32")
    arguments.add_argument("--against", choices=("python", "fp32", "compile", "allocators", "optimiser", "start", "gemm", "memory"), default="python")
    arguments.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    arguments.add_argument("--cuda-graph", action="store_true", help="our steps as a CUDA graph")
    arguments.add_argument("--only", default="")
    arguments.add_argument("--before", type=pathlib.Path, metavar="FOLDER", help="bench/ of another build, in place of Python")
    arguments.add_argument("--seconds", type=float, default=1.0, help="of one measurement")
    options = arguments.parse_args()
    on_cpu = options.against in ("allocators", "optimiser", "start", "gemm")
    if (options.device == "cuda" and (on_cpu or not torch.cuda.is_available())) or (options.device == "cpu" and options.against == "memory"):
        sys.exit(f"bench.py: --against {options.against} is not measured on --device {options.device}, or there is none here")
    torch.set_num_threads(options.threads)
    timm = import_timm()
    timm.layers.set_fused_attn(True)
    print(f"PyTorch {torch.__version__}, {options.device}, {options.threads} threads, {options.dtype}: milliseconds, median of {PAIRS} pairs in turns")
    {"allocators": lambda: compare_allocators(options, timm), "optimiser": lambda: compare_optimisers(options), "start": lambda: measure_start(options),
     "gemm": lambda: share_of_peak(options, timm), "memory": lambda: compare_memory(options)}.get(options.against, lambda: compare_steps(options, timm))()


main()
