#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long somebody waits for the first trial on a worker that Slurm has to start: a scheduler with TLS, a private Slurm of two nodes on this
machine (tests/end_to_end/private_slurm.py: needs root, slurmctld, slurmd and munge), no worker; a sweep is submitted.

  bench/fleet/slurm.py [--repetitions 5]

From `ablate submit` to the first word of the first trial's program, less what Slurm took from sbatch to the job's start (as Slurm says it, in
whole seconds), by parts:

  submit    the command itself, to its acknowledgement
  decide    until Slurm has the job
  Slurm     from there to the job's start
  start     until the worker is connected: its program, its token, TLS
  lease     until the trial's program has begun

Goal: at most 15 s without Slurm's part. ABLATE_BIN: folder of the programs [build/bin]."""
import argparse
import datetime
import json
import os
import pathlib
import statistics
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parent.parent
os.environ.setdefault("ABLATE_SOURCE", str(SOURCE))
os.environ.setdefault("ABLATE_BIN", str(SOURCE / "build" / "bin"))
sys.path[:0] = [str(SOURCE / "tests" / "end_to_end"), str(HERE.parent / "orchestration")]

from access import free_port  # noqa: E402
from fleet import BIN, Fleet  # noqa: E402
from private_slurm import Slurm, why_not  # noqa: E402

FLEET = """
scheduler: {scheduler}
ca: {home}/fleet/ca.crt
queues:
  cpu:
    launcher: slurm
    workers: {{max: 2}}
    time_limit: 1h
    idle_timeout: 1s
    cpus: 2
    slots: 2
    min_utilisation: 0
    allow_commands: true
    program: {program}
    home: {home}/pilots
"""
SWEEP = """
ablate: 1
name: {name}
command: {{argv: [sh, -c, "date +%s.%N > {home}/{name}.began"], params: {{i: 0}}, version: "{name}"}}
rows: [{{id: a}}]
seeds: 1
table: {{columns: [{{name: i, setting: params.i}}]}}
"""


def once(fleet, slurm, number):
    """Seconds of each part."""
    name = f"study-{number}"
    file, began = fleet.home / f"{name}.yaml", fleet.home / f"{name}.began"
    file.write_text(SWEEP.format(name=name, home=fleet.home))
    before = {pilot.name for pilot in fleet.home.glob("pilots/cpu-*")}
    begin = time.time()
    fleet.ablate("submit", file)
    submitted = time.time()
    fleet.until(lambda: began.exists() and began.read_text().endswith("\n"), "the first trial has begun")
    first_word = float(began.read_text())
    fleet.until(lambda: {pilot.name for pilot in fleet.home.glob("pilots/cpu-*")} - before, "a pilot is there")
    pilot = min({pilot.name for pilot in fleet.home.glob("pilots/cpu-*")} - before)
    facts = dict(word.split("=", 1) for word in slurm.run("scontrol", "show", "job", pilot.removeprefix("cpu-")).stdout.split() if "=" in word)
    asked, started = (datetime.datetime.fromisoformat(facts[what]).timestamp() for what in ("SubmitTime", "StartTime"))
    connected = connection_of(fleet, pilot)
    return {"submit": submitted - begin, "decide": max(0.0, asked - submitted), "Slurm": started - asked, "start": connected - started,
            "lease": first_word - connected, "in all": first_word - begin, "beyond Slurm": first_word - begin - (started - asked)}


def connection_of(fleet, worker):
    """When the scheduler welcomed it, by its log."""
    for line in (fleet.home / "scheduler.log").read_text().splitlines():
        if f"worker {worker} on " in line and "is connected" in line:
            return datetime.datetime.fromisoformat(line.split()[0]).timestamp()
    raise RuntimeError(f"{worker} has not connected")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=5)
    options = parser.parse_args()
    if why := why_not():
        print(f"slurm.py: {why}", file=sys.stderr)
        return 2
    with Fleet("bench-slurm") as fleet, Slurm(fleet) as slurm:
        address = f"127.0.0.1:{free_port()}"
        fleet.ablate("init-fleet", "--name", "gpu-head", "--store", fleet.store)
        (fleet.home / "fleet.yaml").write_text(FLEET.format(scheduler=address, program=BIN / "ablate-worker", home=fleet.home))
        fleet.start("scheduler", "ablate-scheduler", "--store", fleet.store, "--listen", fleet.address, "--listen", address, "--http-port", 0,
                    "--fleet", fleet.home / "fleet.yaml", "--tls-certificate", fleet.home / "fleet" / "server.crt", "--tls-key",
                    fleet.home / "fleet" / "server.key")
        fleet.until(fleet.listens, "the scheduler listens")
        found = []
        for number in range(options.repetitions):
            fleet.until(lambda: not any(queue.get("pilots") for queue in json.loads(fleet.ablate("fleet", "--json").stdout).get("queues", [])),
                        "no pilot is left")
            found.append(once(fleet, slurm, number))
            print("   ".join(f"{part} {seconds:.1f}" for part, seconds in found[-1].items()), "s", flush=True)
        print("median:", "   ".join(f"{part} {statistics.median(one[part] for one in found):.1f}" for part in found[0]), "s")
        beyond = [one["beyond Slurm"] for one in found]
        print(f"beyond Slurm's own delay: {min(beyond):.1f} to {max(beyond):.1f} s of {len(beyond)}   goal: at most 15 s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
