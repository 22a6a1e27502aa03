# SPDX-License-Identifier: Apache-2.0
"""DALI's side of bench.py, on the CPU: dali_server.py ROOT SIZE WORKERS BATCH INTERPOLATION. It decodes the crop alone, as ours does."""
import sys
import time

import nvidia.dali.fn as fn
import nvidia.dali.types as types
from nvidia.dali import pipeline_def

AHEAD = 2  # batches


@pipeline_def
def views(root, size, interpolation):
    files, labels = fn.readers.file(file_root=f"{root}/train", random_shuffle=True, initial_fill=1024)
    crops = fn.decoders.image_random_crop(files, random_area=[0.08, 1.0], random_aspect_ratio=[3 / 4, 4 / 3], num_attempts=10)
    scaled = fn.resize(crops, resize_x=size, resize_y=size, interp_type=interpolation, antialias=True)
    return fn.flip(scaled, horizontal=fn.random.coin_flip()), labels


def main():
    root, size, workers, batch, interpolation = sys.argv[1], *map(int, sys.argv[2:5]), sys.argv[5]
    kind = {"bilinear": types.INTERP_LINEAR, "bicubic": types.INTERP_CUBIC}[interpolation]
    pipeline = views(root, size, kind, batch_size=batch, num_threads=workers, device_id=None, prefetch_queue_depth=AHEAD)
    pipeline.build()
    for line in sys.stdin:
        for _ in range(AHEAD):  # those that it made while others were timed
            pipeline.run()
        start = time.perf_counter()
        for _ in range(int(line)):
            pipeline.run()
        seconds = time.perf_counter() - start
        time.sleep(0.5)  # until it is as far ahead as it goes: the others have the machine for themselves
        print(seconds, flush=True)


main()
