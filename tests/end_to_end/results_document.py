# SPDX-License-Identifier: Apache-2.0
"""docs/results.md says of CIFAR-10 what docs/results/cifar.abl holds: its tables with their statistics, and how many of the trainings are done.
With --write the document is put right, where there is a new archive."""
import os
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

SOURCE = Path(os.environ.get("ABLATE_SOURCE", Path(__file__).resolve().parents[2]))
ABLATE = Path(os.environ.get("ABLATE_BIN", SOURCE / "build/bin")) / "ablate"
DOCUMENT, ARCHIVE = SOURCE / "docs/results.md", SOURCE / "docs/results/cifar.abl"
DONE = re.compile(r"(?<=<!-- trainings that are done -->\n)(?:.|\n)*?(?=\n\n)")
ASKED = (("MSF Table 1, 18 rows, three seeds", "msf-table-1-cifar"), ("MSF Table 4, three seeds, the original among its rows", "msf-table-4-cifar"))
EXTREMES = (("MSF Table 2, extremes, two seeds", "msf-table-2-ends-cifar"), ("MSF Table C, extremes, two seeds", "msf-supplement-table-C-ends-cifar"),
            ("Manifold key Table 2, 4 and 8 charts, two seeds", "manifold-key-table-2-extremes-cifar"), ("SNE Table 2, code sizes 8 and 64, two seeds", "sne-table-2-ends-cifar"),
            ("XCiT Table 4, with and without XCA, two seeds", "xcit-table-4-ends-cifar"))


def trials_done():
    """The lines of the document that count trials: completed and asked for, of each sweep in the archive."""
    lines = ["| what was asked for | completed | of |", "| --- | ---: | ---: |"]
    with sqlite3.connect(f"file:{ARCHIVE}?mode=ro&immutable=1", uri=True) as store:
        for text, sweep in ASKED + EXTREMES:
            done, all_of_it = store.execute(
                "SELECT COALESCE(SUM(t.state = 'completed'), 0), COUNT(*) FROM sweep s JOIN sweep_trial st ON st.sweep_id = s.id"
                " JOIN trial t ON t.id = st.trial_id WHERE s.name = ?", (sweep,)).fetchone()
            lines.append(f"| {text} | {done} | {all_of_it} |")
    return "\n".join(lines)


def main():
    write = "--write" in sys.argv[1:]
    text = DOCUMENT.read_text()
    if not DONE.search(text):
        sys.exit(f"{DOCUMENT}: no line '<!-- trainings that are done -->' before a table")
    if write:
        DOCUMENT.write_text(DONE.sub(trials_done(), text))
    elif DONE.search(text)[0] != trials_done():
        sys.exit(f"{DOCUMENT}: counts of trainings differ from the archive's; expected\n{trials_done()}")
    checked = subprocess.run([ABLATE, "table", "--check", DOCUMENT] + ["--write"] * write, capture_output=True, text=True)
    print(checked.stdout + checked.stderr, end="")
    if ARCHIVE.stat().st_size > 2 << 20:
        sys.exit(f"{ARCHIVE}: {ARCHIVE.stat().st_size} bytes; expected at most 2 MiB")
    sys.exit(checked.returncode)


if __name__ == "__main__":
    main()
