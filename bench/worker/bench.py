#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a worker costs while a run prints without end: its memory, its spool, and the gaps between its heartbeats, with the scheduler there, away
(stopped by SIGSTOP for --away seconds), and back. Prints the largest of each.

  bench/worker/bench.py [--mib 2048] [--away 30] [--log-limit-mib 64]

ABLATE_BIN: folder of the built programs (build/bin).
"""
import argparse
import json
import os
import pathlib
import signal
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parent.parent
os.environ.setdefault("ABLATE_SOURCE", str(SOURCE))
os.environ.setdefault("ABLATE_BIN", str(SOURCE / "build" / "bin"))
sys.path.insert(0, str(SOURCE / "tests" / "end_to_end"))
from fleet import Fleet

PROGRAM = """
import json, sys
line = b"y" * 79 + b"\\n"
for mib in range({mib}):
    sys.stdout.buffer.write(line * ((1 << 20) // len(line)))
    sys.stdout.buffer.flush()
    print(json.dumps({{"event": "metric", "step": mib + 1, "values": {{"printed": mib + 1}}}}), flush=True)
"""
SWEEP = """
ablate: 1
name: flood
command: {{argv: [python3, {program}], params: {{i: 0}}, version: "1"}}
rows: [{{id: a, label: a}}]
seeds: [0]
table: {{columns: [{{name: printed, metric: printed}}]}}
"""


def resident_mib(pid):
    fields = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in fields if line.startswith("VmRSS")).split()[1]) / 1024


def folder_mib(folder):
    total = 0
    for file in folder.rglob("*"):
        try:
            total += file.stat().st_size if file.is_file() else 0
        except FileNotFoundError:
            pass
    return total / 2**20


class Watch:
    """Measures a worker ten times a second and attributes each number to the current `phase`."""

    def __init__(self, fleet, name):
        self.fleet, self.name, self.phase, self.most, self.over = fleet, name, "idle", {}, False
        self.thread = threading.Thread(target=self.look)

    def look(self):
        while not self.over:
            memory, spool = resident_mib(self.fleet.processes[self.name].pid), folder_mib(self.fleet.home / self.name / "spool")
            before = self.most.get(self.phase, (0, 0))
            self.most[self.phase] = (max(before[0], memory), max(before[1], spool))
            time.sleep(0.1)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over = True
        self.thread.join()


def largest_gap(log):
    """Between two heartbeats that the scheduler got, in seconds, as `ablate workers` told them. The first may be from before it was away."""
    log = [time for time in log if time != log[0]]
    return max((later - earlier for earlier, later in zip(log, log[1:])), default=0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--mib", type=int, default=2048)
    parser.add_argument("--away", type=float, default=30)
    parser.add_argument("--log-limit-mib", type=int, default=64, help="as ablate-worker's: what is above it is not even spooled")
    options = parser.parse_args()
    with Fleet("flood") as fleet:
        fleet.start_scheduler()
        fleet.start_worker("w", "--slots", 1, "--allow-commands", "--trainer", "/bin/false", "--log-limit-mib", options.log_limit_mib)
        (fleet.home / "flood.py").write_text(PROGRAM.format(mib=options.mib))
        (fleet.home / "flood.yaml").write_text(SWEEP.format(program=json.dumps(str(fleet.home / "flood.py"))))

        def heartbeat():
            text = fleet.json("workers")["workers"][0]["last_heartbeat"]
            minutes, _, seconds = text.rstrip("Z").rpartition(":")
            return int(minutes[-2:]) * 60 + float(seconds)

        def printed():
            trial = fleet.trials("flood")[0]
            return trial["step"], trial["state"], trial["attempt"]

        beats = {"there": [], "back": []}
        with Watch(fleet, "w") as watch:
            time.sleep(1)
            watch.phase = "there"
            fleet.ablate("submit", fleet.home / "flood.yaml")
            while printed()[0] < min(100, options.mib // 4):
                beats["there"].append(heartbeat())
            watch.phase = "away"
            fleet.processes["scheduler"].send_signal(signal.SIGSTOP)
            time.sleep(options.away)
            fleet.processes["scheduler"].send_signal(signal.SIGCONT)
            watch.phase = "back"
            while printed()[1] in ("TRIAL_STATE_RUNNING", "TRIAL_STATE_LEASED", "TRIAL_STATE_QUEUED"):
                beats["back"].append(heartbeat())
        step, state, attempt = printed()
        print(f"{state}, {step} MiB printed, attempt {attempt}; heartbeats are due every 0.3 s")
        print(f"{'scheduler':10} {'memory, MiB':>12} {'spool, MiB':>11} {'between heartbeats, s':>22}")
        for phase, (memory, spool) in watch.most.items():
            gap = f"{largest_gap(beats[phase]):.2f}" if phase in beats else ""
            print(f"{phase:10} {memory:12.0f} {spool:11.1f} {gap:>22}")


main()
