# SPDX-License-Identifier: Apache-2.0
"""torchvision's side of bench.py: torchvision_server.py ROOT SIZE WORKERS BATCH INTERPOLATION. Reads a number of batches a line, answers with
the seconds that a DataLoader took for them: Pillow decodes, crops, scales; the batches are bytes, as ours are."""
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "parity"))
from environment import import_timm

import_timm()  # before torchvision, whose compiled operators may belong to another build of torch: only its Python is used
import torch
import torchvision.transforms as T
from torch.utils.data import DataLoader, RandomSampler
from torchvision.datasets import ImageFolder


class Some:
    """So many images of the sampler, which a DataLoader with persistent workers asks anew in each round."""

    def __init__(self, images):
        self.images, self.count = images, 0

    def __len__(self):
        return self.count

    def __iter__(self):
        return iter(RandomSampler(self.images, replacement=True, num_samples=self.count))


def main():
    root, size, workers, batch, interpolation = sys.argv[1], *map(int, sys.argv[2:5]), sys.argv[5]
    torch.set_num_threads(1)
    images = ImageFolder(f"{root}/train", T.Compose([
        T.RandomResizedCrop(size, interpolation=T.InterpolationMode(interpolation)), T.RandomHorizontalFlip(), T.PILToTensor()]))
    sampler = Some(images)
    loader = DataLoader(images, batch, sampler=sampler, num_workers=workers, persistent_workers=True, prefetch_factor=2)
    for line in sys.stdin:
        sampler.count = batch * int(line)
        start = time.perf_counter()
        for _ in loader:
            pass
        print(time.perf_counter() - start, flush=True)


main()
