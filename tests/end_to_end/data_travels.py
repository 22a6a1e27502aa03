# SPDX-License-Identifier: Apache-2.0
"""Machines that share no folder: a trial whose machine is killed, or is sent away, goes on elsewhere from the checkpoint that came to
the scheduler's depot, to the bit; an upload outlives the scheduler; a damaged copy is used by nobody; weights that another row begins
with are there as well."""
import json
import shutil

from fleet import Fleet, expect, host_names, say

SWEEP = """ablate: 1
name: NAME
base:
  model:  {family: simple-vit, dim: DIM, depth: DEPTH, heads: 2, dim_head: 16, patch: 4}
  data:   {name: shapes, train_images: 1000, val_images: 50}
  recipe: {use: demo, epochs: EPOCHS, batch: 10, eval_every: 5}
rows: [{id: only, set: {}}]
seeds: [0]
table: {baseline: only, columns: [{name: acc, metric: val/top1}]}
"""

CHAIN = """ablate: 1
name: chain
base:
  model:  {family: simple-vit, dim: 16, depth: 1, heads: 1, dim_head: 16, patch: 8}
  data:   {name: shapes, train_images: 200, val_images: 50}
  recipe: {use: demo, epochs: 2, batch: 20, eval_every: 1}
rows:
  - {id: pre, set: {recipe.epochs: 20}}
  - {id: fine, set: {recipe.lr: 1e-4}, from: {row: pre, take: last}}
seeds: [0]
table: {baseline: fine, columns: [{name: acc, metric: val/top1}]}
"""


def submit(fleet, name, dim=32, depth=2, epochs=20):
    text = SWEEP.replace("NAME", name).replace("DIM", str(dim)).replace("DEPTH", str(depth)).replace("EPOCHS", str(epochs))
    (fleet.home / f"{name}.yaml").write_text(text)
    fleet.ablate("submit", fleet.home / f"{name}.yaml")


def in_depot(fleet, whole=True):
    """The depot's files of trials."""
    return [file for file in fleet.home.glob("results.db.depot/trial-*/*") if (file.suffix != ".part") == whole]


def undisturbed():
    """The value that a training ends with that nobody disturbs, and every step's point on the way."""
    with Fleet("undisturbed") as fleet:
        fleet.start_scheduler()
        fleet.start_on("alone")
        submit(fleet, "travels")
        fleet.wait_for("travels")
        return points(fleet)


def points(fleet):
    lines = fleet.ablate("export", "travels").stdout.splitlines()
    header = lines[0].split(",")
    keys = [header.index(name) for name in ("metric", "step", "value")]
    rows = [[line.split(",")[key] for key in keys] for line in lines[1:]]
    return sorted(row for row in rows if row[0].startswith(("train/loss", "val/")))


def killed_and_sent_away(expected):
    with Fleet("travels") as fleet:
        fleet.start_scheduler("--depot-every", "1s")
        fleet.start_on("one")
        submit(fleet, "travels")
        fleet.until(lambda: in_depot(fleet) and fleet.running("travels"), "a checkpoint is in the depot while the trial runs")
        fleet.lose("one")
        fleet.start_on("two")
        second = fleet.until(lambda: fleet.running("travels", worker="two"), "another machine goes on")
        expect(second["attempt"] == 2, "as its second attempt")
        log = fleet.until(lambda: (text := fleet.ablate("logs", second["run"]).stdout) and "resumes from step" in text and text,
                          "it says from where")
        expect("is on one" in log and "fetched from the scheduler's depot" in log, f"from the depot:\n{log[:600]}")
        for file in in_depot(fleet):
            expect((file.stat().st_mode & 0o077, file.parent.parent.stat().st_mode & 0o777) == (0, 0o700), "only its owner reads the depot")

        # sent away: it brings what it writes at its end before anybody else is told to go on
        fleet.stop("two")
        shutil.rmtree(fleet.home / "two")
        fleet.start_on("three")
        fleet.wait_for("travels")
        log = fleet.ablate("logs", fleet.trials("travels")[0]["run"]).stdout
        expect("fetched from the scheduler's depot" in log and "cannot be used" not in log, f"from the newest:\n{log[:600]}")
        expect(points(fleet) == expected, "it ends as one that nobody disturbed, point for point, to the bit")
        expect(not list(fleet.home.glob("three/runs/*/*/fetched*")), "and keeps no copy of what it fetched")
        say(f"{len(expected)} points are equal")


def upload_outlives_the_scheduler():
    """A large checkpoint on a slow way, which is there before the next one is written: the newest alone is brought."""
    with Fleet("slow") as fleet:
        options = ("--depot-every", "1s", "--depot-rate-mib", "4")
        fleet.environment["ABLATE_CHECKPOINT_SECONDS"] = "20"
        fleet.start_scheduler(*options)
        fleet.start_on("one")
        submit(fleet, "slow", dim=192, depth=6, epochs=40)
        part = fleet.until(lambda: (files := in_depot(fleet, whole=False)) and files[0].stat().st_size > 1 << 20 and files[0],
                           "an upload is under way")
        fleet.kill("scheduler")
        begun = part.stat()
        fleet.start_scheduler(*options)
        name = part.name.removesuffix(".part")
        fleet.until(lambda: any(file.name == name for file in in_depot(fleet)), "it is gone on with after the scheduler's restart")
        whole = (part.parent / name).stat()
        expect(whole.st_ino == begun.st_ino and whole.st_size > begun.st_size, f"in the same file, from {begun.st_size} bytes on")

        # a copy that was damaged on its disk: who fetches it begins again, and says so
        fleet.lose("one")
        for file in in_depot(fleet):
            with open(file, "r+b") as damaged:
                damaged.seek(1000)
                damaged.write(b"damage")
        fleet.start_on("two")
        second = fleet.until(lambda: fleet.running("slow", worker="two"), "another machine runs it")
        log = fleet.ablate("logs", second["run"]).stdout
        expect("its copy at the scheduler cannot be used" in log and "restarting from the beginning" in log, f"it begins again:\n{log[:600]}")
        expect("is damaged on its disk and is dropped" in (fleet.home / "scheduler.log").read_text(), "and the damaged copy is gone")
        fleet.ablate("cancel", "slow")


def weights_of_a_machine_that_is_gone():
    """A row that begins with the weights of another, whose machine does not come back."""
    with Fleet("weights") as fleet:
        fleet.start_scheduler("--depot-every", "1h")  # what others wait for is brought at once
        fleet.start_on("one")
        (fleet.home / "chain.yaml").write_text(CHAIN)
        fleet.ablate("submit", fleet.home / "chain.yaml")
        rows = lambda: {trial["row"]: trial for trial in fleet.trials("chain")}
        fleet.until(lambda: fleet.running("chain"), "its source is trained")
        fleet.ablate("workers", "drain", "one")  # which takes nothing after it
        fleet.until(lambda: rows()["pre"]["state"] == "TRIAL_STATE_COMPLETED" and in_depot(fleet), "its weights are in the depot")
        fleet.lose("one")
        fleet.start_on("two")
        fleet.wait_for("chain")
        fine = rows()["fine"]
        expect((fine["state"], fine["worker"]) == ("TRIAL_STATE_COMPLETED", "two"), f"another machine trains the row that takes them: {fine}")
        log = fleet.ablate("logs", fine["run"]).stdout
        expect("were fetched from the scheduler's depot" in log, f"with weights from the depot:\n{log[:600]}")
        (record,) = fleet.home.glob(f"two/runs/{fine['id']}/{fine['attempt']}/launch.json")
        (taken,) = json.loads(record.read_text())["weights"].values()
        expect(taken == str(record.parent / "sources/1.safetensors"), "which stay with the run, so that it can be verified")


def main():
    host_names()
    killed_and_sent_away(undisturbed())
    upload_outlives_the_scheduler()
    weights_of_a_machine_that_is_gone()


if __name__ == "__main__":
    main()
