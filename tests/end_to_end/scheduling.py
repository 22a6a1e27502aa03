# SPDX-License-Identifier: Apache-2.0
"""Who runs when, and what of many failures follows, each once through the real programs: fair share, reservation, labels, preemption, drain;
quarantine, the breaker, the first few of a thousand. Programs wait for files that the test makes: nothing is a matter of time."""
import contextlib
import os

from fleet import BIN, Fleet, expect, say

PROGRAM = """
import json, os, pathlib, sys, time
home, sweep, i, groups, seed = pathlib.Path(sys.argv[1]), *sys.argv[2:]
print(json.dumps({"event": "start", "total_steps": 1}), flush=True)
while not any((home / name).exists() for name in (f"go-{sweep}", f"go-{sweep}-{i}-{seed}")):
    time.sleep(0.02)
if os.environ.get("BROKEN_HOST") or groups == "8" or (home / f"fail-{sweep}").exists():
    print(json.dumps({"event": "end", "status": "failed", "reason": "5 groups do not divide 384"}), flush=True)
    sys.exit(1)
print(json.dumps({"event": "metric", "step": 1, "values": {"acc": int(i)}}), flush=True)
print(json.dumps({"event": "end", "status": "completed"}), flush=True)
"""

SWEEP = """
ablate: 1
name: {name}
command: {{argv: [python3, "{home}/program.py", "{home}", {name}, "{{params.i}}", "{{params.groups}}", "{{seed}}"], params: {{i: 0, groups: 1}}, version: "1"}}
{rows}
seeds: {seeds}
{more}
table: {{columns: [{{name: acc, metric: acc}}]}}
"""


class Queue:
    """A fleet, and sweeps of the program above."""

    def __init__(self, fleet):
        self.fleet = fleet
        (fleet.home / "program.py").write_text(PROGRAM)
        fleet.start_scheduler("--quarantine-ms", 1000)

    def worker(self, name, *options, slots=1):
        self.fleet.start_worker(name, "--slots", slots, "--allow-commands", "--trainer", "/bin/false", *options)
        self.fleet.until(lambda: any(w["name"] == name and w["connected"] for w in self.workers()), f"{name} is connected")

    def workers(self):
        return self.fleet.json("workers").get("workers", [])

    def submit(self, name, *options, rows=1, seeds=1, more="", factors=None):
        lines = factors or "rows:\n" + "\n".join(f"  - {{id: r{i}, label: r{i}, set: {{params.i: {i}}}}}" for i in range(rows))
        file = self.fleet.home / f"{name}.yaml"
        file.write_text(SWEEP.format(name=name, home=self.fleet.home, rows=lines, seeds=seeds, more=more))
        return self.fleet.json("submit", file, *options)

    def go(self, *names):
        for name in names:
            (self.fleet.home / f"go-{name}").touch()

    def summary(self, sweep):
        return self.fleet.json("show", sweep)["summary"]

    def count(self, sweep, state):
        return self.summary(sweep)["trials"].get(state, 0)

    def running(self, sweep):
        return sorted((t["row"], int(t["seed"])) for t in self.fleet.trials(sweep) if t["state"] == "TRIAL_STATE_RUNNING")

    def until_running(self, counts, what):
        self.fleet.until(lambda: all(len(self.running(sweep)) == n for sweep, n in counts.items()), what)


@contextlib.contextmanager
def queue(name):
    with Fleet(name) as fleet:
        yield Queue(fleet)


def fair_share():
    say("two owners share two slots, however many trials one of them has")
    with queue("fair") as q:
        q.worker("w", slots=2)
        q.submit("many", "--owner", "alice", rows=20)
        q.until_running({"many": 2}, "alice has both slots")
        q.submit("few", "--owner", "bob", rows=2)
        q.go("many-0-0")
        q.until_running({"many": 1, "few": 1}, "the next free slot is bob's")
        q.go("many-1-0")
        q.fleet.until(lambda: q.count("many", "completed") == 2, "alice's next ends")
        q.until_running({"many": 1, "few": 1}, "each has one")
        expect(q.running("few") == [("r0", 0)], "bob's first runs beside one of alice's")
        q.go("few-0-0")
        q.fleet.until(lambda: q.running("few") == [("r1", 0)], "bob's second follows his first")
        expect(len(q.running("many")) == 1, "and alice has the other slot, seventeen of hers wait")


def reservation():
    say("a trial of two slots is not starved by trials of one")
    with queue("reservation") as q:
        bin = q.fleet.home / "bin"
        bin.mkdir()
        (bin / "nvidia-smi").write_text("#!/bin/sh\necho '0, Pretended, 16000'\necho '1, Pretended, 16000'\n")
        (bin / "nvidia-smi").chmod(0o755)
        q.fleet.environment["PATH"] = f"{bin}:{q.fleet.environment['PATH']}"
        q.fleet.environment.pop("CUDA_VISIBLE_DEVICES", None)
        q.worker("w", slots=2)
        q.submit("ones", rows=10, more="resources: {gpus: 1}")
        q.until_running({"ones": 2}, "trials of one have both GPUs")
        q.submit("two", more="resources: {gpus: 2}")
        q.go("ones-0-0")
        q.fleet.until(lambda: q.count("ones", "completed") == 1, "one of them ends")
        q.fleet.until(lambda: "1 GPU free now" in q.fleet.trials("two")[0]["reason"] or "free" in q.fleet.trials("two")[0]["reason"],
                      "the trial of two says that a GPU is free")
        expect(len(q.running("ones")) == 1, "the free GPU is kept")
        q.go("ones-1-0")
        q.until_running({"ones": 0, "two": 1}, "and the trial of two has both as soon as there are two")


def labels():
    say("resources.where: labels, a list, and ! for others")
    with queue("labels") as q:
        q.worker("small", "--label", "gpu=a100")
        waits = q.submit("large", more='resources: {where: {gpu: [h100, h200]}}')
        expect(any("no worker with gpu=h100 or h200" in note for note in waits["notes"]), f"submit says so: {waits['notes']}")
        q.fleet.until(lambda: "no worker with gpu=h100 or h200: gpu is a100" in q.fleet.trials("large")[0]["reason"], "and so does the trial")
        typo = q.submit("typo", more="resources: {where: {gpus: h100}}")
        expect(any("did you mean 'gpu'?" in note for note in typo["notes"]), "a label that nobody has: the nearest is named")
        q.submit("others", more='resources: {where: {name: "!small"}}')
        q.go("large", "others")
        q.worker("big", "--label", "gpu=h100")
        q.fleet.wait_for("large")
        q.fleet.wait_for("others")
        expect({t["worker"] for s in ("large", "others") for t in q.fleet.trials(s)} == {"big"}, "they run where they may")
        expect("gpu=h100" in q.fleet.ablate("workers").stdout, "the list of workers shows the labels")


TRAINING = """
ablate: 1
name: {name}
base:
  model:  {{family: simple-vit, dim: 32, depth: 1, heads: 1, dim_head: 32, patch: 8}}
  data:   {{name: shapes}}
  recipe: {{use: cifar-lite, epochs: {epochs}, batch: 16}}
rows: [{{id: a, label: a, set: {{recipe.lr: {lr}}}}}]
"""


def preemption():
    if not (BIN / "ablate-trainer").exists():
        return say("no preemption: there is no ablate-trainer")
    say("a run of lower priority checkpoints and gives way")
    with queue("preemption") as q:
        fleet = q.fleet

        def submit(name, epochs, lr, *options):
            (fleet.home / f"{name}.yaml").write_text(TRAINING.format(name=name, epochs=epochs, lr=lr))
            fleet.ablate("submit", fleet.home / f"{name}.yaml", *options)

        fleet.start_worker("w", "--slots", 1, "--threads", 1)
        submit("low", 2000, 0.001)
        fleet.until(lambda: fleet.running("low"), "the trial of low priority trains")
        submit("high", 1, 0.002, "--priority", 10, "--preempt")
        fleet.wait_for("high")
        again = fleet.until(lambda: next((t for t in fleet.trials("low") if t["attempt"] == 2 and t["step"] > 0), None), "the other goes on")
        expect("resumed" in fleet.ablate("logs", again["run"]).stdout or again["step"] > 1, "from its checkpoint")
        expect(q.count("low", "failed") == 0, "nothing has failed")
        fleet.ablate("cancel", "low")


def drain():
    say("a drained worker finishes what it has and gets nothing more")
    with queue("drain") as q:
        q.worker("w")
        q.submit("s", rows=3)
        q.until_running({"s": 1}, "the first runs")
        q.fleet.ablate("workers", "drain", "w", "--reason", "new driver")
        q.go("s")
        q.fleet.until(lambda: q.count("s", "completed") == 1, "what ran has completed")
        q.fleet.until(lambda: all("new driver" in t["reason"] for t in q.fleet.trials("s") if t["state"] == "TRIAL_STATE_QUEUED"),
                      "the others say why they wait")
        expect(not q.running("s"), "and nothing runs")
        q.fleet.ablate("workers", "resume", "w")
        q.fleet.wait_for("s")


def quarantine():
    say("a worker on which everything fails that does well elsewhere gets one trial at a time")
    with queue("quarantine") as q:
        q.worker("good")
        q.submit("s", rows=20, more="retry: {max: 0}")
        q.go("s-0-0")
        q.fleet.until(lambda: q.count("s", "completed") == 1, "a trial completes on the good worker")
        q.fleet.environment["BROKEN_HOST"] = "1"
        q.worker("bad")
        del q.fleet.environment["BROKEN_HOST"]
        failed = set()

        def on_bad():
            return next((t["row"] for t in q.fleet.trials("s") if t["worker"] == "bad" and t["state"] == "TRIAL_STATE_RUNNING"
                         and t["row"] not in failed), None)

        for _ in range(5):
            row = q.fleet.until(on_bad, "the bad worker runs one")
            failed.add(row)
            q.go(f"s-{row[1:]}-0")
        bad = q.fleet.until(lambda: next((w for w in q.workers() if w.get("quarantine")), None), "a worker is in quarantine")
        expect(bad["name"] == "bad" and "5 groups do not divide 384" in bad["quarantine"], f"the bad one, and it says why: {bad['quarantine']}")
        expect("quarantine" in q.fleet.ablate("workers").stdout, "as the list of workers does")
        expect(q.count("s", "failed") <= 6 and q.count("s", "held") == 0, "five trials have paid for it and what had begun, and no level is held")

        def stays_for_longer():
            if row := on_bad():
                failed.add(row)
                q.go(f"s-{row[1:]}-0")
            return next((w for w in q.workers() if w["name"] == "bad" and w.get("quarantined_until", "") > bad["quarantined_until"]), None)

        longer = q.fleet.until(stays_for_longer, "it gets one trial after its back-off, which fails as well")
        expect(longer["quarantine"] != "", "it stays there for longer")
        q.fleet.stop("scheduler")
        q.fleet.start_scheduler("--quarantine-ms", 1000)
        expect(any(w["name"] == "bad" and w.get("quarantine") for w in q.workers()), "a restart keeps it")
        q.fleet.until(lambda: all(w["connected"] for w in q.workers()), "the workers are back")
        q.fleet.stop("bad")
        q.worker("bad")  # the machine was mended
        q.fleet.ablate("workers", "resume", "bad")
        expect(not any(w.get("quarantine") for w in q.workers()), "somebody ends it by hand")
        q.go("s")
        q.fleet.until(lambda: q.count("s", "completed") == 20 - q.count("s", "failed") and q.count("s", "failed") >= 6, "the others complete")


def broken_script():
    say("a script that is broken everywhere puts no worker into quarantine, and is held after ten failures")
    with queue("broken") as q:
        (q.fleet.home / "fail-s").touch()
        q.go("s")
        for name in ("one", "two", "three"):
            q.worker(name)
        q.submit("s", rows=40)
        q.fleet.until(lambda: q.summary("s")["state"] == "SWEEP_STATE_HELD", "the sweep is held")
        summary = q.summary("s")
        expect(10 <= summary["trials"]["failed"] <= 13, f"after about ten failures: {summary['trials']}")
        expect(summary["holds"][0].startswith("all trials of s fail: 5 groups do not divide 384"), f"and says why: {summary['holds']}")
        expect(not any(w.get("quarantine") for w in q.workers()), "no worker is blamed")
        expect("all trials of s fail" in q.fleet.ablate("ls").stdout, "ls says so")
        (q.fleet.home / "fail-s").unlink()
        q.fleet.ablate("retry", "s", "--held")
        q.fleet.until(lambda: q.count("s", "completed") >= 27, "what was held runs and completes")
        expect(not q.summary("s").get("holds"), "nothing is held any more")


def breaker():
    say("cells that share a level which always fails are held, the others go on")
    with queue("breaker") as q:
        q.worker("w")
        q.go("s")
        q.submit("s", factors="factors: {params.groups: [1, 8], params.i: [0, 1, 2, 3, 4, 5, 6, 7]}")
        q.fleet.until(lambda: q.summary("s")["state"] == "SWEEP_STATE_HELD", "nothing is left to run")
        summary = q.summary("s")
        expect(summary["trials"]["completed"] == 8, "every cell with groups=1 has completed")
        failed, held = summary["trials"]["failed"], summary["trials"].get("held", 0)
        expect(3 <= failed <= 5 and failed + held == 8, f"of those with groups=8 three have failed and what had begun, the others are held: {held}")
        why = "all cells with groups=8 fail: 5 groups do not divide 384 (3 of 3)"
        expect(summary["holds"] == [why], f"the sweep says why: {summary['holds']}")
        expect(all(t["reason"] == why for t in q.fleet.trials("s") if t["state"] == "TRIAL_STATE_HELD"), "and so does each of them")
        expect(any(why in note for note in q.fleet.json("table", "s")["notes"]), "and the table")
        for command in (["show", "s"], ["ls"], ["watch", "s"]):
            done = q.fleet.ablate(*command, check=False)
            expect(why in done.stdout, f"ablate {' '.join(command)} says so")
        q.submit("t", "--no-breaker", factors="factors: {params.groups: [1, 8], params.i: [0, 1, 2, 3, 4, 5, 6, 7]}")
        q.go("t")
        q.fleet.until(lambda: q.summary("t")["state"] == "SWEEP_STATE_FAILED", "without the breaker everything runs")
        expect(q.count("t", "failed") == 8, "and fails")


def canary():
    say("of a thousand trials one for each worker runs until one has got through")
    with queue("canary") as q:
        q.worker("one", slots=2)
        q.submit("s", rows=10, seeds=100)
        q.until_running({"s": 1}, "one runs on two slots")
        q.worker("two", slots=2)
        q.until_running({"s": 2}, "two on two workers")
        waits = q.fleet.until(lambda: {t["reason"] for t in q.fleet.trials("s") if t["state"] == "TRIAL_STATE_QUEUED"}, "the others wait")
        expect(waits == {"a few trials of its sweep run first: none has got through yet"}, f"for that reason: {waits}")
        q.go("s-0-0")
        q.until_running({"s": 4}, "when one has completed every slot is used")
        q.fleet.ablate("cancel", "s")

        (q.fleet.home / "fail-t").touch()
        q.go("t")
        q.submit("t", rows=10, seeds=100)
        q.fleet.until(lambda: q.summary("t")["state"] == "SWEEP_STATE_HELD", "when the first few all fail the others are held")
        summary = q.summary("t")
        expect(summary["trials"]["failed"] <= 5 and summary["trials"]["held"] >= 995, f"{summary['trials']}")
        expect(summary["holds"][0].startswith("all trials of t fail: 5 groups do not divide 384 (4 of 4)"), summary["holds"][0])


def main():
    only = os.environ.get("ONLY")
    for test in (fair_share, reservation, labels, preemption, drain, quarantine, broken_script, breaker, canary):
        if not only or test.__name__ in only.split(","):
            test()


main()
