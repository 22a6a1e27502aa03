# SPDX-License-Identifier: Apache-2.0
"""One case of ground truth, and the lists of all of them."""
import importlib
import os
import re
from dataclasses import dataclass
from typing import Callable

import cases_large
from covers import covers_of, family_of

HERE = os.path.dirname(os.path.abspath(__file__))
FAMILIES = ("msf", "vit", "swin", "xcit", "cnn")

# What is observed inside a model, by family.
SWIN = r"patch_embed|layers\.\d+(\.blocks\.\d+(\.attn)?|\.downsample\.(norm|reduction))?|norm"
FEATURES = {
    "msf": r"(attn|ff)\.\d+",
    "keyvit": r"attn\.\d+(\.key)?|ff\.\d+|norm",
    "vit": r"patch_embed|blocks\.\d+|norm",
    "swin": SWIN,
    "swinv2": SWIN,
    "xcit": r"patch_embed\.proj|blocks\.\d+(\.attn(\.qkv)?|\.local_mp|\.mlp)?|cls_attn_blocks\.\d+(\.attn|\.mlp)?|norm",
    "resn": r"maxpool|bn1|layer\d(\.\d+(\.(conv|bn)\d)?)?",
    "efficientnet": r"bn[12]|conv_head|blocks\.\d+(\.\d+)?",
    "regnety": r"stem(\.bn)?|s\d(\.b\d+(\.conv\d)?)?",
}


@dataclass(frozen=True)
class Case:
    name: str
    source: str      # which code says it
    config: dict     # what the C++ model is built from
    build: Callable  # -> torch.nn.Module
    large: bool = False

    @property
    def covers(self):
        """The C++ parts and options that it proves."""
        return covers_of(self.name, self.config)

    @property
    def size(self):
        return next((self.config[key] for key in ("input_size", "image_size", "img_size", "image") if key in self.config), 64)

    @property
    def features(self):
        return re.compile(FEATURES[family_of(self.name)])

    @property
    def gradients(self):
        """Of every parameter where it is small."""
        if not self.large:
            return re.compile(".*")
        return re.compile(cases_large.GRADIENTS[family_of(self.name)])


def gather(module):
    if not os.path.exists(os.path.join(HERE, module + ".py")):
        return []
    return importlib.import_module(module).cases()


def small_cases():
    found = [Case(*fields) for family in FAMILIES for module in ("cases_", "extra_") for fields in gather(module + family)]
    assert len({case.name for case in found}) == len(found), "two cases have one name"
    return found


def large_cases():
    return [Case(*fields, large=True) for fields in cases_large.cases()]


SETS = dict(small=small_cases, large=large_cases)
