#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a fleet costs that has nothing to do: workers that have joined over TLS, and wait.

  bench/fleet/idle.py [--workers 1 10 100] [--seconds 60] [--work FOLDER]

Prints, of so many seconds, the processor time (user and system, /proc/PID/stat) of the scheduler and of all workers, in percent of one core, and
what the scheduler wrote to its disk (/proc/PID/io). Goal: ten workers and their scheduler under 2 % in all. ABLATE_BENCH: folder bench/ of a build [build/bench]."""
import argparse
import json
import pathlib
import statistics
import time

from secured import SecuredHome

from home import cpu_seconds, interrupt_on_signals, memory_mib

def written_kib(pid):
    lines = pathlib.Path(f"/proc/{pid}/io").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("write_bytes:")).split()[1]) / 1024


SETTLED = 10  # seconds after the last has joined, until what a start costs is over


def measure(work, count, seconds):
    with SecuredHome(work, "idle") as home:
        scheduler = home.start_scheduler()
        workers = [home.start_worker(f"w{number}", "--slots", 2) for number in range(count)]

        def connected():
            return json.loads(home.ablate("workers", "--json", "--scheduler", home.address)[1]).get("workers", [])
        home.until(lambda: sum(worker["connected"] for worker in connected()) == count, f"{count} workers are connected", patience=300, every=0.5)
        time.sleep(SETTLED)
        begun, wrote, before = time.monotonic(), written_kib(scheduler.pid), [cpu_seconds(process.pid) for process in (scheduler, *workers)]
        time.sleep(seconds)
        took = time.monotonic() - begun
        spent = [100 * (cpu_seconds(process.pid) - then) / took for process, then in zip((scheduler, *workers), before)]
        wrote = (written_kib(scheduler.pid) - wrote) / took
        return spent[0], spent[1:], wrote, memory_mib(scheduler.pid), statistics.median(memory_mib(worker.pid) for worker in workers)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 10, 100])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--work", type=pathlib.Path)
    options = parser.parse_args()
    interrupt_on_signals()
    for count in options.workers:
        scheduler, workers, wrote, its_memory, their_memory = measure(options.work, count, options.seconds)
        print(f"{count:4} worker{' ' if count == 1 else 's'}   scheduler {scheduler:6.3f} %   workers {sum(workers):6.3f} % "
              f"({sum(workers) / count:.3f} % each)   in all {scheduler + sum(workers):6.3f} % of a core   written {wrote:.1f} KiB/s   memory: scheduler {its_memory:.0f} MiB, "
              f"a worker {their_memory:.0f} MiB{'   goal: under 2 %' if count == 10 else ''}", flush=True)


if __name__ == "__main__":
    main()
