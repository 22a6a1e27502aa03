# SPDX-License-Identifier: Apache-2.0
"""One case of ground truth, and the lists of all of them."""
import re
from dataclasses import dataclass
from typing import Callable

import families


@dataclass(frozen=True)
class Case:
    name: str
    source: str      # which code says it
    config: dict     # what the C++ model is built from
    build: Callable  # -> torch.nn.Module
    large: bool = False

    @property
    def family(self):
        return families.of_case(self.name)

    @property
    def size(self):
        return next((self.config[key] for key in ("input_size", "image_size", "img_size", "image") if key in self.config), 64)

    @property
    def features(self):
        return re.compile(self.family.FEATURES)

    @property
    def gradients(self):
        """Of every parameter where it is small."""
        return re.compile(self.family.GRADIENTS if self.large else ".*")


def small_cases():
    found = [Case(*fields) for family in families.MODULES for fields in family.cases()]
    assert len({case.name for case in found}) == len(found), "two cases have one name"
    return found


def large_cases():
    return [Case(*fields, large=True) for family in families.MODULES for fields in family.large_cases()]


SETS = dict(small=small_cases, large=large_cases)
