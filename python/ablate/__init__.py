# SPDX-License-Identifier: Apache-2.0
"""What a training script and a notebook need of ablate.

In a script, which stays a script (without ablate it runs all the same, and prints):

    import ablate
    params = ablate.params(lr=0.1, epochs=10)
    for epoch in range(1, params.epochs + 1):
        ...
        ablate.log(epoch, acc=accuracy)

In a notebook:

    ablate.open("results.db").table("my-sweep")

docs/python.md has the rest.
"""
from ._errors import Error
from ._params import Params
from ._script import (checkpoint, data, device, in_trial, log, params, probe, resume, run_dir, saving, seed, should_stop, start,
                      threads)
from ._store import Store, open

__all__ = ["Error", "Params", "Store", "checkpoint", "data", "device", "in_trial", "log", "open", "params", "probe", "resume", "run_dir",
           "saving", "seed", "should_stop", "start", "threads"]
__version__ = "0.1.0"
