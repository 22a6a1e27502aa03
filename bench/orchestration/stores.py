# SPDX-License-Identifier: Apache-2.0
"""What is there costs: ingest, restart, reads."""
import json
import random
import statistics
import subprocess
import sys
import time

from home import HERE, Home, built, cpu_seconds, run

READERS = 50
METRICS = ("train/loss", "train/top1", "lr", "images_per_s")


def make_store(home, sweeps, trials, completed, points, failed=0):
    """Through storage/, in place of a scheduler: `trials` of each sweep, rows by ten seeds."""
    seeds = min(10, trials)
    run([built("store_maker"), "sweeps", home.store, "--sweeps", sweeps, "--rows", trials // seeds, "--seeds", seeds, "--completed", completed,
         "--failed", failed, "--points", points])


# --- ingest ---

def print_points(file, points):
    """What a program that trains would print, in advance."""
    chance = random.Random(0)
    with open(file, "w") as out:
        for step in range(1, points // len(METRICS) + 1):
            out.write(json.dumps({"event": "metric", "step": step, "values": {name: chance.random() for name in METRICS}}) + "\n")


def ingest_once(bench, printed, pause=None):
    """Points a second from a program's pipe to the committed row of the last; with a `pause` between their questions, readers ask meanwhile.
    Returns: that, and how many answers and refusals they got in a second."""
    with Home(bench.work, "ingest") as home:
        home.up("--slots", 1, "--allow-commands")
        file = home.write_sweep("points", ["/bin/cat", str(printed)], 1, columns="{name: loss, metric: train/loss}")
        home.ablate("submit", file, "--json")
        answers = refusals = 0
        if pause is not None:
            readers = home.start("readers", [sys.executable, HERE / "readers.py", home.url, READERS, pause], stdout=subprocess.PIPE)
        home.until(lambda: not home.any_open(), f"{bench.points:,} points are stored", bench.limit)
        end = time.time()
        if pause is not None:
            readers.terminate()
            answers, refusals, seconds = json.loads(home.processes.pop("readers").communicate(timeout=60)[0])
            answers, refusals = answers / seconds, refusals / seconds
        begun, count = home.ask("SELECT (SELECT leased_ms FROM run), (SELECT SUM(count) FROM metric_summary)")[0]
        if count != bench.points // len(METRICS) * len(METRICS):
            raise RuntimeError(f"{count:,} points are there, {bench.points:,} were printed")
        return count / (end - begun / 1000), answers, refusals


def bare_loop(bench, rows_per_commit):
    with Home(bench.work, "bare") as home:
        return bench.points / float(run([built("store_maker"), "points", home.store, "--points", bench.points, "--metrics", len(METRICS),
                                         "--rows-per-commit", rows_per_commit]))


def ingest(bench, figures):
    bare, chain = "bare loop, {:,} rows a commit", "pipe to committed row"
    eager, calm = f"while {READERS} readers ask without a pause", f"while {READERS} readers ask ten times a second"
    sizes_of_commits = (1_000, 10_000, 100_000)
    with Home(bench.work, "printed") as home:
        printed = home.folder / "points.jsonl"
        print_points(printed, bench.points)
        for _ in range(bench.repetitions):
            for rows in sizes_of_commits:
                figures.add("ingest", bare.format(rows), "points/s", bench.points, bare_loop(bench, rows))
            figures.add("ingest", chain, "points/s", bench.points, ingest_once(bench, printed)[0])
            for case, pause in (calm, 0.1), (eager, 0):
                rate, answers, refusals = ingest_once(bench, printed, pause)
                figures.add("ingest", case, "points/s", bench.points, rate)
                figures.add("ingest", f"  answers, {'no' if pause == 0 else '0.1 s'} pause", "1/s", bench.points, answers)
                figures.add("ingest", f"  refusals, {'no' if pause == 0 else '0.1 s'} pause", "1/s", bench.points, refusals)
    best = max(sizes_of_commits, key=lambda rows: statistics.median(figures.of("ingest", bare.format(rows), bench.points)))
    figures.compare("ingest", f"chain / {bare.format(best)}, the quickest", chain, bare.format(best), "at least 0.8")
    for case in calm, eager:
        figures.compare("ingest", f"{case} / chain alone", case, chain, "at least 0.5")


# --- restart ---

def restart(bench, figures):
    """Half of the trials are completed, with all of the points; a worker is busy with the others when the scheduler is killed."""
    for size in bench.sizes:
        with Home(bench.work, "restart") as home:
            points = 2 * bench.points_of_trial  # of the half that has any
            make_store(home, 1, size, 0.5, points)
            for i in range(bench.repetitions):
                home.start_scheduler()
                busy = home.start_null_worker("--slots", 16, "--work-ms", 600, name="busy")  # too long to be leased ahead
                home.until(lambda: home.ask("SELECT COUNT(*) FROM run WHERE state IN ('leased', 'running')")[0][0] > 0, "trials run")
                time.sleep(0.2 if bench.quick else 1)
                home.kill("scheduler")
                home.end_of_null_worker(busy, "busy")
                begun = time.time()
                home.start_scheduler(wait=False)
                said = home.null_worker("--slots", 1, "--trials", 1, "--patience", bench.limit, name=f"next-{i}", patience=bench.limit)
                figures.add("restart", "until a worker is welcomed", "s", size, said["first_welcome"] - begun)
                figures.add("restart", "until a trial is assigned", "s", size, said["first_assign"] - begun)
                figures.add("restart", "  CPU of scheduler until then", "s", size, cpu_seconds(home.scheduler))
                home.stop("scheduler")
            figures.add("restart", "  points stored", "", size, home.ask("SELECT SUM(count) FROM metric_summary")[0][0])
    figures.remark("restart: killed by SIGKILL with runs under way, started again at once; goal 2 s with 100,000 trials and 10 million points")


# --- reads ---

def read_commands(home, sweep):
    return {"ls": ["ls"], "table": ["table", sweep], "show": ["show", sweep]}


def reads(bench, figures):
    """Whole commands, from their start until all of their output is read: on a terminal, and into a pipe, which is told everything."""
    for size in bench.sizes:
        shapes = {"one sweep": (1, size)}
        if size > 1000:
            shapes["sweeps of 1,000"] = (size // 1000, 1000)
        for shape, (sweeps, trials) in shapes.items():
            with Home(bench.work, "reads") as home:
                make_store(home, sweeps, trials, 0.9, bench.points_of_trial)
                sweep = f"made-{sweeps - 1}"
                measure_reads(bench, figures, home, f"{shape}, --store", sweep, size, ["--store", str(home.store)])
                home.start_scheduler()
                measure_reads(bench, figures, home, shape, sweep, size, [])
    with Home(bench.work, "start") as home:
        for _ in range(bench.repetitions):
            figures.add("reads", "ablate --version", "ms", 0, home.ablate("--version")[0] * 1e3)
    figures.remark("reads: 9 of 10 trials completed; goal below 100 ms on 100,000 trials")


def measure_reads(bench, figures, home, case, sweep, size, options):
    for name, command in read_commands(home, sweep).items():
        home.ablate(*command, *options)  # the first one warms the file
        for _ in range(bench.repetitions):
            figures.add("reads", f"{name}, {case}", "ms", size, home.ablate_on_terminal(*command, *options) * 1e3)
            if name == "show":
                figures.add("reads", f"{name} into a pipe, {case}", "ms", size, home.ablate(*command, *options)[0] * 1e3)


# --- compare ---

def compare(bench, figures):
    """Whole commands, from their start until all of their output is read, of a results file with so many trials in two sweeps."""
    for size in bench.sizes:
        with Home(bench.work, "compare") as home:
            make_store(home, 2, size // 2, 0.9, bench.points_of_trial)
            pairs = {"two rows": ("made-0/i=0", "made-0/i=1"), "rows of two sweeps": ("made-0/i=1", "made-1/i=1"), "two runs": ("1", "2"),
                     "two sweeps": ("made-0", "made-1")}
            for case, pair in pairs.items():
                for options, where in (["--json"], case), (["--curves", "--json"], f"{case}, with curves"):
                    home.ablate("compare", *pair, "--store", home.store, *options)  # the first one warms the file
                    for _ in range(bench.repetitions):
                        figures.add("compare", where, "ms", size, home.ablate("compare", *pair, "--store", home.store, *options)[0] * 1e3)
    figures.remark("compare: 9 of 10 trials completed, a file of two sweeps; goal below 150 ms on 100,000 trials")
