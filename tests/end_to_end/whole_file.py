# SPDX-License-Identifier: Apache-2.0
"""After `ablate down` the results are in one file: a copy of it alone holds them. Deleting it under a scheduler is noticed."""
import os
import shutil
import subprocess
import sys
import tempfile
import pathlib

from fleet import BIN, expect, say

SWEEP = """ablate: 1
name: whole
command: {argv: [sh, -c, 'printf "{\\"event\\":\\"metric\\",\\"step\\":1,\\"values\\":{\\"acc\\":0.5}}\\n"']}
rows: [{id: a, label: a}]
seeds: [0]
table: {columns: [{name: acc, metric: acc}]}
"""


def main():
    home = pathlib.Path(tempfile.mkdtemp(prefix="ablate-whole-"))
    environment = dict(os.environ, ABLATE_HOME=str(home / "home"), NO_COLOR="1")

    def ablate(*argv, check=True):
        done = subprocess.run([str(BIN / "ablate"), *map(str, argv)], env=environment, text=True, capture_output=True,
                              timeout=300, stdin=subprocess.DEVNULL)
        if check and done.returncode != 0:
            raise AssertionError(f"ablate {' '.join(map(str, argv))}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    sweep = home / "whole.yaml"
    sweep.write_text(SWEEP)
    store = home / "home" / "results.db"
    try:
        os.umask(0o022)
        ablate("up", "--detach")
        try:
            ablate("submit", sweep)
            expect(store.stat().st_mode & 0o777 == 0o600, "the store is its owner's alone")
            expect(store.parent.stat().st_mode & 0o777 == 0o700, "the home is its owner's alone")
        finally:
            ablate("down")
        log = pathlib.Path(f"{store}-wal")
        expect(not log.exists() or log.stat().st_size == 0, "no log is left")
        copy = home / "copy.db"
        shutil.copy(store, copy)
        listed = ablate("ls", "--store", copy).stdout
        expect("whole" in listed, "a copy of the file alone holds the sweep")

        ablate("up", "--detach")
        try:
            for file in store.parent.glob("results.db*"):
                file.unlink()
            again = home / "again.yaml"
            again.write_text(SWEEP.replace("name: whole", "name: again"))
            refused = ablate("submit", again, check=False)
            expect(refused.returncode != 0 and "was deleted" in refused.stderr, "nothing is submitted into a deleted file")
            expect("new" not in refused.stdout, "and nothing is said to be new")
            for command in (["ls"], ["show", "whole"], ["table", "whole"], ["workers"]):
                read = ablate(*command)
                expect("can store nothing" in read.stderr and ".rescued-" in read.stderr, f"{command[0]} says that it may be lost")
        finally:
            down = ablate("down", check=False)
        expect(not store.exists(), "no empty file took its place")
        rescued = list(store.parent.glob("results.db.rescued-*"))
        expect(len(rescued) == 1, "what the file held is rescued, once")
        expect(down.returncode == 3 and str(rescued[0]) in down.stderr, "'down' says where")
        expect("whole" in ablate("ls", "--store", rescued[0]).stdout, "the copy holds the sweep")
    finally:
        subprocess.run([str(BIN / "ablate"), "down"], env=environment, capture_output=True, timeout=60)
    shutil.rmtree(home, ignore_errors=True)
    say("done")


if __name__ == "__main__":
    sys.exit(main())
