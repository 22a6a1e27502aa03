#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills, stops, cuts, fills and locks a scheduler and its workers while they execute sweeps, then judges what they have stored.

  ABLATE_BIN=build/bin python3 tests/chaos/chaos.py --kills 200 --seed 7

What is done is drawn from the seed; what comes of it depends on the machine too, so that the same seed is not the same run. Exit code 1: a
promise was broken; the results file, the logs and the programs' own records are left, and said where. docs/reliability.md says what is promised."""
import argparse
import collections
import contextlib
import json
import math
import os
import pathlib
import resource
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "end_to_end"))
os.environ.setdefault("ABLATE_SOURCE", str(HERE.parent.parent))
os.environ.setdefault("ABLATE_BIN", str(HERE.parent.parent / "build" / "bin"))

from checker import Checker  # noqa: E402
from faults import Faults  # noqa: E402
from fleet import BIN, say, with_mounts  # noqa: E402
from secured import SecuredWorld  # noqa: E402
from work import Work  # noqa: E402
from world import World, chance_of  # noqa: E402


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=50, help="processes that are ended with SIGKILL; other faults come on top [50]")
    parser.add_argument("--seed", type=int, default=1, help="of what is done, and when [1]")
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--fleet", type=int, metavar="N", help="N workers at addresses of their own, with TLS and tokens, and people with roles")
    parser.add_argument("--each", action="store_true", help="with --fleet: whatever is done to who may come in is done once at least")
    parser.add_argument("--train", action="store_true", help="also trains a little with our own trainer, where it is built")
    parser.add_argument("--interval", type=float, default=0.3, help="mean seconds between two faults [0.3]")
    parser.add_argument("--patience", type=float, default=900, help="seconds for what was begun to end, when nothing is done to it any more [900]")
    parser.add_argument("--keep", action="store_true", help="leave the results file, logs and records although all is well")
    given = parser.parse_args()
    given.workers = given.fleet or given.workers
    return given


class Recoveries:
    """How long it takes until the first trial takes a step again, as the results file says: of a worker's if the fault was a worker's.
    Counted from the moment from which on nothing is done any more to that worker, or to the scheduler, until then."""

    def __init__(self, world):
        self.world = world
        self.reader = None
        self.last_step, self.last_run = 0, 0
        self.workers = {}
        self.open = []  # (kind, worker or None, when it was over)
        self.times = collections.defaultdict(list)

    def note(self, kind, target, seconds):
        over = time.monotonic() + seconds
        if target:
            self.open = [(*fault[:2], max(fault[2], over)) if target in ("scheduler", fault[1]) else fault for fault in self.open]
        self.open.append((kind, target if target != "scheduler" else None, over))

    def look(self):
        if self.reader is None:
            self.reader = self.world.reader()
        if self.reader is None:
            return
        now = time.monotonic()
        try:
            for run, worker in self.reader.execute("SELECT id, worker FROM run WHERE id > ?", (self.last_run,)).fetchall():
                self.workers[run], self.last_run = worker, max(run, self.last_run)
            steps = self.reader.execute("SELECT id, run_id, state FROM transition WHERE id > ? ORDER BY id", (self.last_step,)).fetchall()
        except sqlite3.Error:
            self.reader.close()
            self.reader = None
            return
        if not steps:
            return
        self.last_step = steps[-1][0]
        seen = {self.workers.get(run) for _, run, state in steps if state in ("leased", "running", "completed", "failed")}
        for fault in [fault for fault in self.open if fault[2] < now and (fault[1] in seen or (fault[1] is None and seen))]:
            self.open.remove(fault)
            self.times[fault[0]].append(now - fault[2])


def states(world):
    reader = world.reader()
    if not reader:
        return {}
    try:
        return dict(reader.execute("SELECT state, COUNT(*) FROM trial GROUP BY state").fetchall())
    except sqlite3.Error:
        return {}
    finally:
        reader.close()


def progress(world, faults, work, kills, began):
    seconds = time.monotonic() - began
    done = states(world)
    rate = kills_of(world, faults) / seconds
    left = max(0, kills - kills_of(world, faults)) / rate if rate else 0
    say(f"{kills_of(world, faults)} of {kills} kills, {sum(world.counts.values())} faults, {len(work.sweeps)} sweeps, "
        f"{done.get('completed', 0)} trials completed, {done.get('queued', 0)} queued; {60 * rate:.0f} kills a minute, {left:.0f} s left")


def kills_of(world, faults):
    return faults.kills + sum(count for kind, count in world.counts.items() if kind.startswith("fail point") and kind.endswith("kill"))


def make_trouble(world, faults, work, recoveries, given, chance):
    began = reported = time.monotonic()
    next_fault = began + 2
    while kills_of(world, faults) < given.kills or (faults.admission and faults.admission.left):
        now = time.monotonic()
        world.look_after()
        work.work()
        faults.work()
        recoveries.look()
        if now >= next_fault and kills_of(world, faults) < given.kills:
            faults.one()
            next_fault = now + chance.expovariate(1 / given.interval)
        if now - reported > 5:
            reported = now
            progress(world, faults, work, given.kills, began)
        if len(world.findings) > 20:
            say("too many findings: it ends here")
            break
        time.sleep(0.01)
    faults.end_all(lambda: (world.look_after(), recoveries.look()))
    world.set_clock(0)
    world.restart_calmly()
    return time.monotonic() - began


def settle(world, work, recoveries, patience):
    """Everything that was begun comes to its end. Returns: how long that took, and whether it did."""
    began, reported, released = time.monotonic(), "", 0
    while time.monotonic() - began < patience:
        world.look_after()
        recoveries.look()
        if work.settle() and world.all_alive() and world.answers():
            left = states(world)
            if left and not any(left.get(state) for state in ("queued", "leased", "running")):
                held = held_sweeps(world)
                if not held:
                    return time.monotonic() - began, True, released
                released += len(held)
                for name in held:
                    work.command(lambda code: None, "retry", name, "--held")
            open_now = {state: left[state] for state in ("queued", "leased", "running", "held") if left.get(state)}
            if f"{open_now}" != reported:
                reported = f"{open_now}"
                say(f"settling: {open_now}")
        time.sleep(0.05)
    return time.monotonic() - began, False, released


def held_sweeps(world):
    reader = world.reader()
    try:
        return [row[0] for row in reader.execute("SELECT DISTINCT s.name FROM sweep s JOIN sweep_trial st ON st.sweep_id = s.id JOIN trial t "
                                                 "ON t.id = st.trial_id WHERE t.state = 'held' AND st.withdrawn = 0 AND s.state = 'active'")]
    finally:
        reader.close()


def tables_of(world, names):
    tables = {}
    for name in names:
        done = world.ablate("table", name, "--json")
        if done.returncode != 0:
            world.find("command", f"ablate table {name}: exit code {done.returncode}: {done.stderr[:300]}")
        else:
            tables[name] = json.loads(done.stdout)
    return tables


VOLATILE = ("images_per_s", "memory_bytes", "time/")  # of a metric's name: what the machine made of it


def check_trained(world):
    """Our own trainer promises more: a trial that was killed, and went on from a checkpoint, has the points of one that never was, to the bit."""
    reader = world.reader()
    for trial, run, config in reader.execute("SELECT id, run_id, config FROM trial WHERE command_json = '' AND state = 'completed'").fetchall():
        folder = world.home / "undisturbed" / str(trial)
        folder.mkdir(parents=True)
        (folder / "config.json").write_text(config)
        environment = {name: value for name, value in os.environ.items() if name != "ABLATE_FAIL_POINTS"}
        done = subprocess.run([world.trainer, "train", "--config", folder / "config.json", "--run-dir", folder / "run", "--threads", "1",
                               "--device", "cpu"], env=environment, text=True, capture_output=True, timeout=600, stdin=subprocess.DEVNULL)
        undisturbed = {}
        for line in done.stdout.splitlines():
            with contextlib.suppress(ValueError):
                event = json.loads(line)
                if event.get("event") == "metric":
                    undisturbed.update({(name, event["step"]): value for name, value in event["values"].items() if not name.startswith(VOLATILE)})
        stored = {(name, step): value for name, step, value in reader.execute(
            "SELECT m.name, step, value FROM point JOIN metric m ON m.id = metric_id WHERE run_id = ?", (run,)) if not name.startswith(VOLATILE)}
        attempts = reader.execute("SELECT COUNT(*) FROM run WHERE trial_id = ?", (trial,)).fetchone()[0]
        if done.returncode != 0 or stored != undisturbed:
            world.find("trained", f"trial {trial} has {len(stored)} points after {attempts} attempts, undisturbed {len(undisturbed)}; different: "
                                  f"{sorted(set(stored.items()) ^ set(undisturbed.items()))[:4]} {done.stderr[-300:]}")
        else:
            say(f"trial {trial}, trained in {attempts} attempts, has the {len(stored)} points of an undisturbed training, to the bit")
    reader.close()


RAW = ("::at", "terminate called", "bad_alloc", "bad_function_call", "bad_optional", "Assertion", "Sanitizer", "runtime error:")


def read_logs(world):
    """What no program of ours should have to say, whatever happens to it."""
    for log in sorted((world.home / "logs").glob("*.log")):
        for line in log.read_text(errors="replace").splitlines():
            if any(word in line for word in RAW):
                world.find("log", f"{log.name}: {line[:300]}")


def print_verdict(given, world, faults, work, recoveries, violations, seconds, settled, checked):
    print(f"\nchaos: seed {given.seed}, {kills_of(world, faults)} kills, {sum(world.counts.values())} faults in {seconds:.0f} s; "
          f"settled in {settled:.0f} s")
    print(f"  {len(work.sweeps)} sweeps, {checked['trials']} trials, {checked['runs']} runs, {checked['programs']} programs, "
          f"{checked['points']} points, {checked['transitions']} transitions\n  trials {checked['states']}\n  runs {checked['run_states']}")
    print(f"\n  {'fault':50} {'times':>6}   recovery: median, 95th percentile, longest")
    for kind in sorted(world.counts, key=lambda kind: (kind.startswith("fail point"), -world.counts[kind])):
        print(f"  {kind:50} {world.counts[kind]:6}   {spread(recoveries.times.get(kind, []))}")
    if faults.admission:
        print("\n  what was heard by whom" + "".join(f"\n  {count:6}  {who}: {line}" for (who, line), count in sorted(faults.admission.heard.items())))
    everything = [value for times in recoveries.times.values() for value in times]
    print(f"  {'all of which a recovery was seen':50} {len(everything):6}   {spread(everything)}")
    print()
    for kind, text in [*world.findings, *violations][:60]:
        print(f"  VIOLATION {kind}: {text}")
    count = len(world.findings) + len(violations)
    print(f"verdict: {count} violation{'' if count == 1 else 's'}", flush=True)


def spread(times):
    times = sorted(times)
    return f"{statistics.median(times):7.2f} {times[math.ceil(0.95 * len(times)) - 1]:7.2f} {times[-1]:7.2f} s" if times else ""


def count_all(checker):
    return {"trials": len(checker.trials), "runs": len(checker.runs), "programs": sum(map(len, checker.programs.values())),
            "points": sum(len(points) for names in checker.points.values() for points in names.values()),
            "transitions": sum(map(len, checker.transitions.values())),
            "states": dict(collections.Counter(trial["state"] for trial in checker.trials.values())),
            "run_states": dict(collections.Counter(run["state"] for run in checker.runs.values()))}


def main():
    given = options()
    mounts = with_mounts()  # may begin this program again: first
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    shim, stranger = (pathlib.Path(os.environ.get(name, BIN / file)) for name, file in
                      (("CHAOS_CLOCK_SHIM", "../tests/libchaos_clock.so"), ("CHAOS_STRANGER", "../tests/chaos_stranger")))
    home = pathlib.Path(tempfile.mkdtemp(prefix="ablate-chaos-"))
    trainer = pathlib.Path(os.environ.get("CHAOS_TRAINER", BIN / "ablate-trainer"))
    world = (SecuredWorld if given.fleet else World)(home, given.workers, chance_of(given.seed, "world"), mounts, shim if shim.exists() else None,
                                                     trainer if given.train and trainer.exists() else None)
    left_out = [what for what, there in (("full disks (no tmpfs may be mounted here)", mounts), ("clock jumps (no shim)", shim.exists()),
                                         ("workers of another protocol", stranger.exists()), ("trainings", world.trainer)) if not there]
    say(f"in {home}: a scheduler, {len(world.workers())} workers{'; left out: ' + ', '.join(left_out) if left_out else ''}")
    recoveries = Recoveries(world)
    work = Work(world, chance_of(given.seed, "work"), enough=12 * given.workers)
    faults = Faults(world, chance_of(given.seed, "faults"), recoveries.note, str(stranger) if stranger.exists() else None)
    world.note = recoveries.note
    if given.fleet and given.each:
        faults.admission.plan_all()
    violations, keep = [], True
    try:
        seconds = make_trouble(world, faults, work, recoveries, given, chance_of(given.seed, "times"))
        settled, is_over, released = settle(world, work, recoveries, given.patience)
        if not is_over:
            world.find("settle", f"not everything came to its end within {given.patience:.0f} s: {states(world)}")
        if released:
            say(f"{released} sweeps had trials held, which were released with 'ablate retry --held'")
        tables = tables_of(world, [name for name, sweep in work.sweeps.items() if sweep["acknowledged"]][:300]) if is_over else {}
        if world.trainer and is_over:
            check_trained(world)
        world.end()
        read_logs(world)
        if given.fleet:
            world.check_tokens()
        if alive := world.programs():
            world.find("overlap", f"programs of trials outlive everything: {alive}")
        checker = Checker(world.store, world.records, work.sweeps, world.killed, tables)
        violations = checker.check()
        print_verdict(given, world, faults, work, recoveries, violations, seconds, settled, count_all(checker))
        keep = given.keep or bool(violations or world.findings)
        (home / "submitted.json").write_text(json.dumps({"sweeps": work.sweeps, "killed": sorted(world.killed), "tables": tables}))
    finally:
        if keep:
            say(f"left for a look: {home}")
        with contextlib.suppress(Exception):
            world.end()
        world.leave(keep)
    return 1 if violations or world.findings else 0


if __name__ == "__main__":
    sys.exit(main())
