#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What TLS and tokens cost between a worker and its scheduler: the same work through 127.0.0.1 in plain text and with TLS, in turns on the same
machine, since only what ran side by side can be compared where others use the processor too.

  bench/fleet/tls.py [--repetitions 5] [--trials 2000] [--points 1000000] [--work FOLDER]

  dispatch  trials of /bin/true, one worker with 2 slots: from the first lease to the last end
  ingest    metric points from a program's pipe to the committed row

Prints medians, and of the ratios (TLS to plain, turn by turn) the median with the lowest and highest; the same of the processor time of
scheduler and worker together, which others disturb less. Goals: dispatch at most 1.05, ingest at most 1.10. ABLATE_BENCH: folder bench/ of a
build [build/bench]."""
import argparse
import pathlib
import socket
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "orchestration"))

from home import Home, cpu_seconds, interrupt_on_signals, program  # noqa: E402
from stores import print_points  # noqa: E402


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def one(work, secured, argv, trials, slots, columns=None):
    """Seconds from the first lease to the last end, and of the processor."""
    with Home(work, "tls") as home:
        home.socket.parent.mkdir(mode=0o700, exist_ok=True)
        address = f"127.0.0.1:{free_port()}"
        scheduler = ["--store", home.store, "--listen", home.address, "--listen", address]
        worker = ["--scheduler", address, "--home", home.folder / "worker", "--name", "w", "--slots", slots, "--allow-commands"]
        if secured:
            home.ablate("init-fleet", "--name", "localhost", "--store", home.store, "--home", home.folder)
            fleet = home.folder / "fleet"
            scheduler += ["--tls-certificate", fleet / "server.crt", "--tls-key", fleet / "server.key"]
            worker += ["--ca", fleet / "ca.crt", "--join-token-file", fleet / "join.token"]
        serving = home.start("scheduler", [program("ablate-scheduler"), *scheduler])
        log = home.folder / "scheduler.log"
        home.until(lambda: b"is ready" in log.read_bytes(), "the scheduler is ready")
        home.ablate("submit", home.write_sweep("study", argv, trials, columns=columns), "--json")
        working = home.start("worker", [program("ablate-worker"), *worker])
        home.until(lambda: not home.any_open(), "all trials have ended", patience=600)
        begun, ended, lost = home.ask("SELECT MIN(leased_ms), MAX(ended_ms), SUM(state <> 'completed') FROM run")[0]
        if lost:
            raise RuntimeError(f"{lost} runs have not completed")
        return (ended - begun) / 1000, cpu_seconds(serving.pid) + cpu_seconds(working.pid)


def compare(what, unit, number, goal, repetitions, run):
    pairs = []
    for turn in range(repetitions):
        sides = {secured: run(secured) for secured in ((False, True) if turn % 2 == 0 else (True, False))}
        pairs.append((sides[False], sides[True]))
    for part, name in (0, "time"), (1, "processor"):
        ratios = sorted(tls[part] / plain[part] for plain, tls in pairs)
        plain, tls = (statistics.median(pair[side][part] for pair in pairs) / number * 1e6 for side in (0, 1))
        beside = f"   goal: at most {goal}" if part == 0 else ""
        print(f"{what:10} {name:10} plain {plain:9.1f} µs/{unit}   TLS {tls:9.1f} µs/{unit}   ratio {statistics.median(ratios):.3f} "
              f"({ratios[0]:.3f} to {ratios[-1]:.3f}, {repetitions} pairs){beside}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--points", type=int, default=1_000_000)
    parser.add_argument("--work", type=pathlib.Path)
    options = parser.parse_args()
    interrupt_on_signals()
    compare("dispatch", "trial", options.trials, 1.05, options.repetitions,
            lambda secured: one(options.work, secured, ["/bin/true"], options.trials, 2))
    with Home(options.work, "printed") as home:
        printed = home.folder / "points.jsonl"
        print_points(printed, options.points)
        compare("ingest", "point", options.points, 1.10, options.repetitions,
                lambda secured: one(options.work, secured, ["/bin/cat", str(printed)], 1, 1, "{name: loss, metric: train/loss}"))


if __name__ == "__main__":
    main()
