# SPDX-License-Identifier: Apache-2.0
"""torchvision with its compiled operators (roi_align, nms). PyPI's wheel of it is built for CUDA and does not load beside a PyTorch of
processors alone, though what it has for processors needs nothing of CUDA: there, libraries of the names that it misses stand in, whose
functions do nothing."""
import ctypes
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from importlib.util import find_spec


def import_torchvision():
    import torch
    library = pathlib.Path(find_spec("torchvision").submodule_search_locations[0]) / "_C.so"
    if torch.version.cuda is None and library.exists():
        load_stand_ins(str(library))
    import torchvision
    try:
        torchvision.extension._assert_has_ops()
    except RuntimeError as error:
        sys.exit(f"torchvision's operators do not load beside torch {torch.__version__}: {error}")
    return torchvision


def load_stand_ins(library):
    needed = re.findall(r"NEEDED.*\[(.*cuda.*)\]", printed("readelf", "-d", library))
    symbols = re.findall(r"U (\S*cuda\S*)", printed("nm", "-D", "--undefined-only", library))
    with tempfile.TemporaryDirectory() as folder:
        for name in needed:
            # a symbol that has a version is of the library of that name; all others may be of any
            versions = {version for _, _, version in (symbol.partition("@") for symbol in symbols) if version == name}
            own = [symbol.partition("@")[0] for symbol in symbols if symbol.partition("@")[2] == (name if versions else "")]
            build(name, own if versions or name == "libc10_cuda.so" else [], versions, folder)
            ctypes.CDLL(os.path.join(folder, name))


def build(name, symbols, versions, folder):
    source, script, out = (os.path.join(folder, file) for file in ("empty.c", "versions.map", name))
    with open(source, "w") as text:
        text.writelines(f'long f{i}(void) __asm__("{symbol}");\nlong f{i}(void) {{ return 0; }}\n' for i, symbol in enumerate(symbols))
    with open(script, "w") as text:
        text.writelines(f"{version} {{ global: *; }};\n" for version in versions)
    link = [f"-Wl,-soname,{name}", *([f"-Wl,--version-script={script}"] if versions else [])]
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", out, source, *link], check=True)


def printed(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
