# SPDX-License-Identifier: Apache-2.0
"""A worker stopped for longer than a lease goes on with its runs; a results file restored under live runs ends those alone."""
import signal
import sqlite3
import time

from fleet import Fleet, expect, say

SWEEP = """ablate: 1
name: patient
command:
  argv:
    - python3
    - -c
    - |
      import json, pathlib, time
      def say(step, acc):
          print(json.dumps({"event": "metric", "step": step, "values": {"acc": acc}}), flush=True)
      step = 0
      while step < 100 or step < 3000 and not pathlib.Path("go").exists():  # as long as the test looks, on any machine
          step += 1
          say(step, step % 100)
          time.sleep(0.2)
      say(step + 1, 100)
      print(json.dumps({"event": "end", "status": "completed"}))
rows: [{id: a, label: a}, {id: b, label: b}]
seeds: [0]
table: {columns: [{name: acc, metric: acc}]}
"""


def batches(store):
    """The newest batch that a results file holds of each of the two runs."""
    with sqlite3.connect(f"file:{store}?mode=ro", uri=True) as reader:
        return [number for number, in reader.execute("SELECT last_seq FROM run WHERE id <= 2 ORDER BY id")]


def main():
    with Fleet("silent") as fleet:
        file = fleet.home / "patient.yaml"
        file.write_text(SWEEP)
        fleet.start_scheduler()
        fleet.start_worker("w", "--slots", 2, "--allow-commands")
        fleet.ablate("submit", file)

        def all_in(state, step=0):
            trials = fleet.trials("patient")
            return trials if all(t["state"] == f"TRIAL_STATE_{state}" and t["step"] >= step for t in trials) else None

        fleet.until(lambda: all_in("RUNNING", 3), "both run")
        fleet.processes["w"].send_signal(signal.SIGSTOP)
        fleet.until(lambda: all_in("QUEUED"), "their leases run out")
        fleet.processes["w"].send_signal(signal.SIGCONT)
        trials = fleet.until(lambda: all_in("RUNNING"), "both run again", 60)
        expect(all(t["attempt"] == 1 for t in trials), "the runs that nobody had taken go on")

        say("a copy of the results file is put in its place")
        with sqlite3.connect(fleet.store) as store, sqlite3.connect(fleet.home / "copy.db") as copy:
            store.backup(copy)
        copied = batches(fleet.home / "copy.db")
        # The newest batch may still be on its way to the worker: those before it are acknowledged, and gone from its disk.
        fleet.until(lambda: all(now >= then + 3 for now, then in zip(batches(fleet.store), copied)), "both went on and were acknowledged")
        fleet.stop("scheduler")
        (fleet.home / "copy.db").rename(fleet.store)
        fleet.start_scheduler()
        fleet.until(lambda: all_in("RUNNING") and all(t["attempt"] == 2 for t in fleet.trials("patient")), "both run anew", 60)
        (fleet.home / "go").touch()
        log = (fleet.home / "scheduler.log").read_text()
        expect("older than the run" in log, "the scheduler says why the first attempts ended")
        connections = log[log.rindex("is ready"):].count("is connected")
        time.sleep(2)
        log = (fleet.home / "scheduler.log").read_text()
        expect(log[log.rindex("is ready"):].count("is connected") == connections, "and the worker stays connected")
        fleet.wait_for("patient")
        expect(all_in("COMPLETED", 100), "both complete")
        table = fleet.json("table", "patient")
        expect(all(row["cells"][0]["mean"] == 100 for row in table["rows"]), "with their own numbers")


main()
