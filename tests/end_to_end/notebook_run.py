# SPDX-License-Identifier: Apache-2.0
"""notebook_run.py NOTEBOOK [--write]: executes it in its folder, and says which of its outputs are others than those that it has. With
--write it gets them."""
import os
import pathlib
import re
import sys

import nbformat
from nbclient import NotebookClient

FOR_PEOPLE = ("text/plain", "text/html")


def shown(output):
    """What of an output is the same on every machine: pictures differ in their fonts."""
    data = output.get("data", {})
    text = [output.get("text", "")] + [data.get(kind, "") for kind in FOR_PEOPLE] + [kind for kind in data if kind.startswith("image/")]
    return re.sub(r"<style.*?</style>", "", "".join("".join(each) for each in text), flags=re.DOTALL)


def main():
    file, write = pathlib.Path(sys.argv[1]).absolute(), "--write" in sys.argv[2:]
    os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"
    kept = nbformat.read(file, as_version=4)
    run = nbformat.reads(nbformat.writes(kept), as_version=4)
    NotebookClient(run, kernel_name="python3", timeout=300, startup_timeout=300, resources={"metadata": {"path": str(file.parent)}}).execute()
    different = 0
    for number, (before, after) in enumerate(zip(kept.cells, run.cells)):
        after.metadata.pop("execution", None)
        if before.cell_type != "code":
            continue
        was, now = ["".join(map(shown, cell.outputs)) for cell in (before, after)]
        if was != now:
            different += 1
            print(f"{file.name}: cell {number}: it has\n{was}\nand now\n{now}")
    if write:
        nbformat.write(run, file)
    pictures = sum(kind.startswith("image/") for cell in run.cells for output in cell.get("outputs", []) for kind in output.get("data", {}))
    print(f"{file.name}: {len(run.cells)} cells, {pictures} pictures, {different} outputs are others than before")
    sys.exit(different > 0 and not write)


main()
