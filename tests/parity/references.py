# SPDX-License-Identifier: Apache-2.0
"""Writes references, one safetensors file for each case, unless the same code and versions have written them."""
import argparse
import hashlib
import importlib.metadata
import json
import os
import pathlib

from environment import demand, prepare


def made_from(code):
    digest = hashlib.sha256()
    for file in sorted([pathlib.Path(__file__), *code]):
        digest.update(file.read_bytes())
    versions = {name: importlib.metadata.version(name) for name in ("torch", "timm")}
    return json.dumps(dict(code=digest.hexdigest(), **versions))


def write(name, config, tensors, out):
    from safetensors.torch import save_file
    tensors = {key: value.detach().contiguous() for key, value in tensors.items()}
    assert all(value.isfinite().all() for value in tensors.values() if value.is_floating_point()), f"{name}: not finite"
    save_file(tensors, out / f"{name}.tmp", {"config": json.dumps(config)})
    os.replace(out / f"{name}.tmp", out / f"{name}.safetensors")


def write_references(description, code, cases):
    """`code`: files that what is written depends on. `cases`: gives (name, config, what makes its tensors)."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder to write to")
    out = parser.parse_args().out
    demand()
    stamp, source = out / "made_from.json", made_from(code)
    if stamp.exists() and stamp.read_text() == source:
        return print(f"{out} is up to date")
    prepare()
    out.mkdir(parents=True, exist_ok=True)
    stamp.unlink(missing_ok=True)
    count = 0
    for name, config, tensors in cases():
        write(name, config, tensors(), out)
        count += 1
    stamp.write_text(source)
    print(f"{count} files in {out}")
