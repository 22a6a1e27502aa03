# SPDX-License-Identifier: Apache-2.0
"""One trial on two workers, over Gloo: it learns what it learns on one within float error; the death of either worker, a killed rank, a
restart of the scheduler, a drained worker and a cancelled sweep leave nothing running and lose no work."""
import os
import pathlib
import signal
import sqlite3
import subprocess

from fleet import BIN, Fleet, expect, host_names

SWEEP = """ablate: 1
name: {name}
base:
  model:  {{family: simple-vit, dim: 32, depth: 1, heads: 2, dim_head: 16, patch: 8}}
  data:   {{name: shapes, train_images: 200, val_images: 50}}
  recipe: {{use: demo, epochs: {epochs}, batch: 20, eval_every: {epochs}}}
rows: [{{id: only, set: {{}}}}]
seeds: [{seed}]
resources: {{{resources}}}
table: {{baseline: only, columns: [{{name: loss, metric: val/loss, better: lower}}]}}
"""
ENDLESS = 10_000  # epochs; a step in 500 is reported


class Nodes(Fleet):
    """Workers of the names of their machines, with addresses of their own of the loopback interface."""

    seeds = 0
    apart = False  # each has a runs folder of its own

    def start_at(self, machine, address):
        self.start_on(machine, "--address", address, runs=None if self.apart else self.home / "runs")
        self.until(lambda: any(worker["name"] == machine and worker.get("connected") for worker in self.json("workers")["workers"]),
                   f"{machine} is connected")

    def start_one(self):
        self.start_at("one", "127.0.0.1")

    def start_two(self):
        self.start_at("two", "127.0.0.2")

    def submit(self, name, resources, epochs, seed=None):
        Nodes.seeds += 1
        (self.home / f"{name}.yaml").write_text(
            SWEEP.format(name=name, resources=resources, epochs=epochs, seed=Nodes.seeds if seed is None else seed))
        self.ablate("submit", self.home / f"{name}.yaml")

    def both(self, name):
        """The trial, in the middle of its training on both, with a checkpoint."""
        def found():
            trial = self.running(name, step=5)
            where = trial and self.json("where", trial["run"])
            return where and where["parts"] and where["checkpoints"] and {**trial, "other": where["parts"][0]["worker"]}
        return self.until(found, f"{name} runs on two workers")

    def runs(self, name):
        """Of the sweep's only trial, by attempt."""
        with sqlite3.connect(f"file:{self.store}?mode=ro", uri=True) as store:
            store.row_factory = sqlite3.Row
            return [dict(row) for row in store.execute(
                """SELECT run.*, (SELECT COUNT(*) FROM run_part p WHERE p.run_id = run.id) AS parts FROM run
                   JOIN sweep_trial st ON st.trial_id = run.trial_id JOIN sweep s ON s.id = st.sweep_id WHERE s.name = ? ORDER BY run.id""", (name,))]

    def next_run(self, name, after, parts):
        """Waits for the attempt after those, in the middle of its training."""
        def found():
            runs = self.runs(name)
            return len(runs) > after and runs[-1]["step"] > (runs[-1]["resumed_from_step"] or 0) and runs[-1]
        run = self.until(found, f"{name} goes on as attempt {after + 1}")
        expect(run["parts"] == parts and (run["resumed_from_step"] or 0) > 0,
               f"attempt {after + 1} goes on from its checkpoint, of step {run['resumed_from_step']}, on {parts + 1} worker(s)")
        return run

    def trainers(self):
        """The processes of this fleet's trainers and ranks -> their arguments."""
        found = {}
        for entry in pathlib.Path("/proc").iterdir():
            try:
                argv = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0") if entry.name.isdigit() else []
                alive = argv and ") Z " not in (entry / "stat").read_text()
            except OSError:
                continue
            if alive and argv[0].endswith("ablate-trainer") and any(str(self.home) in each for each in argv):
                found[int(entry.name)] = argv
        return found

    def ranks(self, node):
        return [pid for pid, argv in self.trainers().items() if "--rank" in argv and (str(node) == (argv[argv.index("--node") + 1] if "--node" in argv else "0"))]

    def expect_nothing_runs(self, after):
        self.until(lambda: not self.trainers(), f"no trainer is left after {after}", 120)
        self.until(lambda: all(not slot.get("run") for worker in self.json("workers")["workers"] for slot in worker["slots"]),
                   f"all slots are free after {after}", 120)
        expect(True, f"nothing is left after {after}")


def equal(fleet):
    fleet.submit("pair", "nodes: 2", 3, seed=0)
    fleet.until(lambda: "can take part" in fleet.ablate("show", "pair", "--json").stdout, "it says that it waits for a second worker")
    fleet.start_two()
    fleet.wait_for("pair")
    pair = fleet.runs("pair")
    expect(len(pair) == 1 and pair[0]["parts"] == 1, "one attempt, on two workers")
    two = fleet.json("table", "pair")["rows"][0]["cells"][0]["mean"]
    fleet.expect_nothing_runs("a run that completes")
    # the same trial is not trained twice: another results file would be needed, or the trainer by hand
    run = fleet.home / "alone"
    run.mkdir()
    config = pathlib.Path(pair[0]["directory"]) / "config.json"
    said = subprocess.run([BIN / "ablate-trainer", "train", "--config", config, "--run-dir", run, "--threads", "1"], text=True,
                          capture_output=True, env=fleet.environment, check=True).stdout
    one = [float(line.split('"val/loss":')[1].split(",")[0].split("}")[0]) for line in said.splitlines() if '"val/loss":' in line][-1]
    expect(abs(one - two) < 1e-4, f"two workers learn what one rank does within float error: {one}, {two}")


def deaths(fleet):
    """Each way in which a part of it may die, one after the other."""
    fleet.submit("mortal", "nodes: {min: 1, max: 2}", ENDLESS)
    trial = fleet.both("mortal")

    first, second = trial["worker"], trial["other"]
    fleet.kill(second)
    fleet.next_run("mortal", 1, parts=0)
    lost = fleet.runs("mortal")[0]
    expect(lost["state"] == "lost" and lost["worker"] == first, f"a dead part: the run is lost, not failed ({lost['reason']})")
    fleet.start_one() if second == "one" else fleet.start_two()

    # on one it stays where it is; the sweep that follows has both again
    fleet.ablate("cancel", "mortal")
    fleet.expect_nothing_runs("a cancelled sweep")


def lost_leader(fleet):
    """The machine with the checkpoints is gone: the other one fetches the newest from the depot."""
    fleet.submit("leader", "nodes: {min: 1, max: 2}", ENDLESS)
    trial = fleet.both("leader")
    fleet.until(lambda: [file for file in fleet.home.glob("results.db.depot/trial-*/*") if file.suffix != ".part"], "a checkpoint is in the depot")
    fleet.lose(trial["worker"])
    run = fleet.next_run("leader", 1, parts=0)
    expect(run["worker"] == trial["other"], "the leader's worker is dead: the other one goes on")
    expect("fetched from the scheduler's depot" in fleet.ablate("logs", run["id"]).stdout, "from what came to the depot")
    fleet.ablate("cancel", "leader")
    fleet.expect_nothing_runs("another")


def others(fleet):
    fleet.submit("ranks", "nodes: 2", ENDLESS)
    fleet.both("ranks")
    for rank in fleet.ranks(1):
        os.kill(rank, signal.SIGKILL)
    fleet.until(lambda: fleet.runs("ranks")[0]["state"] == "failed", "the run of a killed rank has failed")
    reason = fleet.runs("ranks")[0]["reason"]
    expect("rank 1 of 2: killed by SIGKILL" in reason, f"a killed rank of the part is the run's failure: {reason}")
    fleet.expect_nothing_runs("a killed rank")
    fleet.ablate("retry", "ranks")
    fleet.next_run("ranks", 1, parts=1)

    run = fleet.runs("ranks")[-1]
    fleet.kill("scheduler")
    fleet.start_scheduler()
    fleet.until(lambda: (now := fleet.runs("ranks")[-1])["id"] == run["id"] and now["state"] == "running" and now["step"] > run["step"] + 20,
                "the run goes on after a restart of the scheduler")
    expect(len(fleet.ranks(0)) == 1 and len(fleet.ranks(1)) == 1, "on both workers")
    where = fleet.ablate("where", run["id"]).stdout
    expect("together with" in where, f"where it is:\n{where}")

    # a worker that is told to stop stops all of it, with a checkpoint
    part = fleet.json("where", run["id"])["parts"][0]["worker"]
    fleet.stop(part)
    fleet.until(lambda: fleet.runs("ranks")[-1]["state"] == "lost", "the run ends where one of its workers stops")
    stopped = fleet.runs("ranks")[-1]
    newest = max(each["step"] for each in fleet.json("where", stopped["id"])["checkpoints"])
    expect(newest >= stopped["step"], f"with a checkpoint at its end (step {newest} of {stopped['step']}): {stopped['reason']}")
    fleet.start_one() if part == "one" else fleet.start_two()
    attempts = len(fleet.runs("ranks"))
    fleet.until(lambda: len(fleet.runs("ranks")) > attempts or fleet.runs("ranks")[-1]["parts"] == 1 and fleet.runs("ranks")[-1]["state"] == "running",
                "it goes on when that is back")
    fleet.both("ranks")

    # while the scheduler is away a part's death ends the run at both
    fleet.kill("scheduler")
    for pid, argv in fleet.trainers().items():
        if "--rank" not in argv and "--join" in argv:
            os.kill(pid, signal.SIGKILL)
    fleet.until(lambda: not fleet.trainers(), "both ends are gone without a scheduler", 60)
    fleet.start_scheduler()
    fleet.both("ranks")
    fleet.ablate("cancel", "ranks")
    fleet.expect_nothing_runs("a run whose part died while the scheduler was away")


def main():
    host_names()
    with Nodes("two-nodes") as fleet:
        fleet.start_scheduler()
        fleet.start_one()
        equal(fleet)
        deaths(fleet)
        others(fleet)
    with Nodes("two-nodes-apart") as fleet:
        fleet.apart = True
        fleet.start_scheduler("--depot-every", "1s")
        fleet.start_one()
        fleet.start_two()
        lost_leader(fleet)


if __name__ == "__main__":
    main()
