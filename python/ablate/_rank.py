# SPDX-License-Identifier: Apache-2.0
"""Of the processes that train together, the first speaks."""
import os
import sys


def is_first():
    """Whether this is rank 0, as PyTorch's process group says it, or else the variables of `torchrun` and its like."""
    distributed = sys.modules.get("torch.distributed")
    try:
        if distributed is not None and distributed.is_available() and distributed.is_initialized():
            return distributed.get_rank() == 0
    except AttributeError:  # it is only just being imported
        pass
    if os.environ.get("RANK", "").strip():
        return os.environ["RANK"].strip() == "0"
    return all(os.environ.get(name, "").strip() in ("", "0") for name in ("LOCAL_RANK", "NODE_RANK", "GROUP_RANK"))
