#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What queue, workers and store cost at 1, 10 and 100 times the work, through the real programs, beside xargs, HyperQueue and SQLite alone on
the same machine in the same run.

  bench/orchestration/bench.py PART…|all [--sizes 1000,10000,100000] [--repetitions 3] [--hq PYTHON] [--quick] [--json] [--work FOLDER]
  bench/orchestration/bench.py dispatch|ingest|latency|query|memory --rep K [--quick]     lines of JSON, as other orchestrators' benchmarks say them

  noop     trials of /bin/true, one worker with 2 slots: time and CPU a trial, also with 10 watchers and a dashboard; xargs, HyperQueue
  null     trials a second with a worker that starts no program, and how long it waits for an acknowledgement
  submit   `ablate submit`, and the scheduler's memory
  ingest   metric points from a program's pipe to the committed row, against a bare loop of inserts; also while 50 readers ask
  latency  from the start of `ablate submit --watch` to the first metric that it prints
  restart  a scheduler killed by SIGKILL, until it assigns again
  fleet    1,000 workers for 10 minutes: leases lost, the scheduler's CPU and memory
  reads    `ablate ls`, `table`, `show` as whole commands, through the scheduler and with --store
  compare  `ablate compare` of rows, runs and sweeps, with --store
  dashboard  every read of every page while points come in, of stores of four shapes (--stores), what a tab that is looked at costs, and what
             a person waits for in a headless chromium (needs `npm ci` in tests/web/browser); with --peers FOLDER beside MLflow, Optuna's
             dashboard and Aim, each on its own store of the same runs, in environments that are made in FOLDER
  idle     a scheduler with nothing to do, and trials queued

Medians with the lowest and highest of the repetitions. Nothing is asserted: goals stand beside the numbers. Everything is in folders for
temporary files (--work: on which disk), which go at the end, also after Ctrl-C. ABLATE_BENCH: folder bench/ of a build [build/bench].
"""
import argparse
import json
import os
import pathlib
import statistics
import sys
import tempfile
import time
import traceback

import dashboard
import stores
import trials
from figures import Figures
from home import interrupt_on_signals, program
from server import built

PARTS = {"noop": trials.noop, "null": trials.null, "submit": trials.submit, "ingest": stores.ingest, "latency": trials.latency,
         "restart": stores.restart, "fleet": trials.fleet, "reads": stores.reads,
         "compare": stores.compare, "dashboard": dashboard.dashboard, "idle": trials.idle}
# What others call these, and which of our numbers theirs are comparable with: what -> (case, metric, unit).
STORES = ("runs", "sweep", "sweeps", "points")
AREAS = {
    "dispatch": ("noop", {"and to submit them": ("/bin/true, one worker, 2 slots, durable", "per_trial", "ms")}),
    "ingest": ("ingest", {"pipe to committed row": ("a program's pipe to the committed row", "rate", "rows/s")}),
    "latency": ("latency", {"a null trial: first metric": ("ablate submit --watch, a null trial", "first_metric", "ms"),
                            "ablate-trainer on the CPU: first metric": ("ablate submit --watch, ablate-trainer", "first_metric", "ms")}),
    "query": ("reads", {f"{name}, one sweep": (f"ablate {name}, whole command", "warm", "ms") for name in ("ls", "table", "show")}),
    "memory": ("idle", {"memory of scheduler": ("scheduler, trials queued", "rss", "MiB")}),
    "store": (None, {}),
}


def machine():
    """What a reader of the numbers needs to know of where they are from."""
    cpu = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "?")
    memory = int(open("/proc/meminfo").readline().split()[1]) / 2**20
    return {"cores": os.cpu_count(), "cpu": cpu, "memory_gib": round(memory, 1)}


def moment(work):
    """How the machine is now: what else it does, and how long the disk takes for a commit, change most of the numbers."""
    waits = []
    with tempfile.NamedTemporaryFile(dir=work) as file:
        for _ in range(101):
            file.write(b"x" * 4096)
            file.flush()
            begun = time.perf_counter()
            os.fsync(file.fileno())
            waits.append(time.perf_counter() - begun)
    return {"fsync_ms": round(statistics.median(waits) * 1e3, 3), "load": round(os.getloadavg()[0], 2)}


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="+", metavar="PART")
    parser.add_argument("--sizes", type=lambda text: [int(size) for size in text.split(",")], help="numbers of trials [1000,10000,100000]")
    parser.add_argument("--repetitions", type=int, help="[3]")
    parser.add_argument("--hq", type=pathlib.Path, metavar="PYTHON", help="of an environment that has the package hyperqueue")
    parser.add_argument("--quick", action="store_true", help="small sizes, once: to see that all of it works")
    parser.add_argument("--json", action="store_true", help="one object in place of tables")
    parser.add_argument("--work", type=pathlib.Path, help="where the folders for temporary files are made")
    parser.add_argument("--rep", type=int, help="number of this repetition, where others count them: one is made")
    parser.add_argument("--limit", type=float, default=900, help="seconds for one measurement; what is done by then counts [900]")
    parser.add_argument("--sessions", type=int, default=1, help="null: workers [1]")
    parser.add_argument("--slots", type=int, default=16, help="null: slots of each [16]")
    parser.add_argument("--points", type=int, help="ingest: of one run [2,000,000]")
    parser.add_argument("--points-of-trial", type=int, default=100, help="restart, reads: stored for each trial [100]")
    parser.add_argument("--fleet", type=int, help="fleet: workers [1000]")
    parser.add_argument("--minutes", type=float, help="fleet [10]")
    parser.add_argument("--stores", type=lambda text: text.split(","), default=list(STORES), help=f"dashboard: some of {','.join(STORES)} [all]")
    parser.add_argument("--no-browser", dest="browser", action="store_false", help="dashboard: of the server alone")
    parser.add_argument("--peers", type=pathlib.Path, metavar="FOLDER", help="dashboard: where the peers' environments are, or are made")
    parser.add_argument("--idle-seconds", type=float, help="idle: for each look [30]")
    options = parser.parse_args()
    known = AREAS if options.rep else [*PARTS, "all"]
    for part in options.parts:
        if part not in known:
            parser.error(f"unknown part '{part}': expected {', '.join(known)}")
    for store in options.stores:
        if store not in STORES:
            parser.error(f"unknown store '{store}': expected {', '.join(STORES)}")
    quick = options.quick
    if options.rep:  # what others measure
        options.sizes = options.sizes or {(True, True): [200], (True, False): [200, 1000], (False, True): [100], (False, False): [2000]}[
            options.parts == ["dispatch"], quick]
    options.sizes = options.sizes or ([100, 1000] if quick else [1000, 10_000, 100_000])
    options.repetitions = options.repetitions or (1 if quick or options.rep else 3)
    options.points = options.points or (200_000 if quick else 2_000_000)
    options.fleet = options.fleet or (100 if quick else 1000)
    options.minutes = options.minutes or (0.1 if quick else 10)
    options.idle_seconds = options.idle_seconds or (2 if quick else 30)
    options.parts = list(PARTS) if "all" in options.parts else options.parts
    return options


def say_as_others_do(area, options, figures):
    part, wanted = AREAS[area]
    if part is None:
        return
    PARTS[part](options, figures)
    for (of, what, _), sizes in figures.values.items():
        if of != part or what not in wanted:
            continue
        case, metric, unit = wanted[what]
        for size, values in sizes.items():
            line = {"area": area, "peer": "ablate", "case": case, "metric": metric, "value": round(statistics.median(values), 6),
                    "unit": unit, "rep": options.rep, "quick": options.quick, "load1": round(os.getloadavg()[0], 2)}
            print(json.dumps(line | ({"n": size} if size else {})), flush=True)


def main():
    options = parse()
    for name in "ablate", "ablate-scheduler", "ablate-worker":
        program(name)
    for name in "null_worker", "store_maker":
        built(name)
    interrupt_on_signals()
    figures = Figures()
    if options.rep:
        for area in options.parts:
            say_as_others_do(area, options, figures)
        return
    where, moments, code = machine(), {}, 0
    if not options.json:
        print(f"{where['cores']} cores, {where['cpu']}, {where['memory_gib']} GiB", flush=True)
    for part in options.parts:
        try:
            before = moment(options.work)
            PARTS[part](options, figures)
            after = moment(options.work)
        except KeyboardInterrupt:
            code, after = 130, before
            figures.remark("interrupted; the figures above are those from before")
        except Exception as error:  # an hour of figures is not thrown away
            traceback.print_exc()
            code, after = 1, before
            figures.remark(f"{part} failed ({error!r}); the figures above are those from before")
        moments[part] = {"before": before, "after": after}
        if not options.json and figures.parts(part):
            tables = "\n".join(map(figures.table, figures.parts(part)))
            print(f"\n{tables}fsync {before['fsync_ms']} ms before, {after['fsync_ms']} ms after; "
                  f"load {before['load']}, {after['load']}", flush=True)
        if code:
            break
    if options.json:
        print(json.dumps({"machine": where, "moments": moments} | figures.record()))
    else:
        print("\n" + "\n".join(figures.remarks))
    sys.exit(code)


if __name__ == "__main__":
    main()
