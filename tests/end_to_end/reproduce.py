# SPDX-License-Identifier: Apache-2.0
"""From nothing to a paper's table by one command, and again; tables that share rows train them once; Ctrl-C leaves the trials queued."""
import json
import shutil
import signal
import sqlite3
import subprocess

from fleet import BIN, SOURCE, Fleet, expect, say

TINY = """scales:
  tiny:
    says: "200 drawn images, one epoch"
    rules:
      - {why: "no files", drop: data, set: {data: {name: shapes, train_images: 200, val_images: 100}}}
      - {why: "seconds", drop: recipe, set: {recipe: {use: demo, epochs: 1, batch: 50, eval_every: 1}}}
      - why: "one small model"
        drop: model.preset
        set: {model: {family: simple-vit, dim: 32, depth: 1, heads: 1, dim_head: 32, patch: 8}}
  slow:
    says: "a training that somebody interrupts"
    rules:
      - {why: "no files", drop: data, set: {data: {name: shapes, train_images: 2000, val_images: 100}}}
      - {why: "some seconds", drop: recipe, set: {recipe: {use: demo, epochs: 8, batch: 50, eval_every: 1}}}
      - {why: "one small model", drop: model.preset, set: {model: {family: simple-vit, dim: 32, depth: 1, heads: 1, dim_head: 32, patch: 8}}}
"""


def main():
    with Fleet("reproduce") as fleet:
        environment = dict(fleet.environment)
        del environment["ABLATE_SCHEDULER"]
        fleet.environment = environment
        papers = fleet.home / "papers"
        papers.mkdir()
        for table in ("table-1", "table-3", "table-4"):
            shutil.copy(SOURCE / f"sweeps/papers/msf/{table}.yaml", papers)
        (papers / "scales.yaml").write_text(TINY)

        def reproduce(*argv, check=True):
            return fleet.ablate("reproduce", *argv, check=check)

        def runs():
            with sqlite3.connect(f"file:{fleet.store}?mode=ro", uri=True) as store:
                return store.execute("SELECT count(*) FROM run").fetchone()[0], store.execute("SELECT count(*) FROM trial").fetchone()[0]

        plan = reproduce("msf/table-3", "--scale", "cifar", "--dry-run")
        expect("msf-table-3-cifar" in plan.stdout and "--data cifar10=FOLDER" in plan.stderr and "nothing was started" in plan.stderr,
               "a dry run shows the plan and what is missing")
        refused = reproduce("msf/table-3", "--scale", "cifar", check=False)
        expect(refused.returncode == 2 and "--data cifar10=FOLDER" in refused.stderr, "without the images nothing is begun, and it says how they are given")
        refused = reproduce("msf/table-3", "--scale", "cifr", check=False)
        expect(refused.returncode == 2 and "did you mean 'cifar'?" in refused.stderr, "a scale that is not there is answered with the nearest")
        expect(not fleet.store.exists(), "so far nothing was started")

        try:
            done = reproduce(papers / "table-3.yaml", "--scale", "tiny", "--seeds", 1, "--slots", 2, "--threads", 1)
            expect("started ablate" in done.stderr and "3 distinct trials" in done.stderr, "it starts what is needed and says what it will train")
            expect("79.79" in done.stdout and "scale tiny, not the paper's own: 200 drawn images" in done.stdout,
                   "and prints the table with the paper's numbers, and which scale it is of")
            expect(runs() == (3, 3), "a trial each")
            again = json.loads(reproduce(papers / "table-3.yaml", "--scale", "tiny", "--seeds", 1, "--json").stdout.splitlines()[-1])
            expect(again["scale"] == "tiny" and [row["id"] for row in again["rows"]] == ["msf", "residual", "gauss-orig"], "again: the same table")
            expect(runs() == (3, 3), "and nothing was trained")

            for table in ("table-1", "table-4"):
                reproduce(papers / f"{table}.yaml", "--scale", "tiny", "--seeds", 1)
            expect(runs() == (26, 26), "18, 3 and 8 rows of three tables are 26 trials: what they share is trained once")

            command = [str(BIN / "ablate"), "reproduce", str(papers / "table-3.yaml"), "--scale", "slow", "--seeds", "1"]
            watching = subprocess.Popen(command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            fleet.until(lambda: runs()[0] > 26, "a trial runs")
            expect(watching.stdout.readline(), "and is watched")
            watching.send_signal(signal.SIGINT)
            out, err = watching.communicate(timeout=60)
            expect(watching.returncode == 130 and "trials stay queued" in err and "ablate reproduce" in err, "Ctrl-C says how to go on")
            fleet.ablate("down")
            waiting = [trial["state"] for trial in fleet.trials("msf-table-3-slow")]
            expect("TRIAL_STATE_QUEUED" in waiting, "the trials are queued")
            done = reproduce(papers / "table-3.yaml", "--scale", "slow", "--seeds", 1, "--slots", 2, "--threads", 1)
            expect("79.79" in done.stdout, "and the same command goes on with them")
        finally:
            subprocess.run([str(BIN / "ablate"), "down"], env=environment, check=False, capture_output=True)
        say("reproduced")


if __name__ == "__main__":
    main()
