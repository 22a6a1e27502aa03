# SPDX-License-Identifier: Apache-2.0
"""Writes a results file of a version of the schema as SQL, vN.sql, and what tables, counts and curves are to say of it
when it was brought to the newest version, vN.expected: `make.py N`, once, when version N + 1 begins. A file that is there
is never written again: it stands for the files that people have.

What is in it: two sweeps that share trials; completed, failed, cancelled, held, running and queued ones; a second attempt;
points that are not finite; logs, checkpoints, pins, weights, counts. What is expected is computed here, from the lines
below, and not by what is to be tested.
"""
import json
import math
import pathlib
import re
import sqlite3
import statistics
import struct
import sys

HERE = pathlib.Path(__file__).parent
SCHEMA = sorted((HERE.parents[2] / "storage").glob("schema_v*.cc"))
HOUR = 3_600_000
BEGUN = 1_750_000_000_000
MASK = (1 << 64) - 1


def mixed(x):
    x = (x + 0x9e3779b97f4a7c15) & MASK
    x = ((x ^ (x >> 30)) * 0xbf58476d1ce4e5b9) & MASK
    x = ((x ^ (x >> 27)) * 0x94d049bb133111eb) & MASK
    return x ^ (x >> 31)


def digest_of(points):
    """As run.curves has it: storage/curves.cc."""
    total = 0
    for metric, step, value in points:
        if metric.startswith("time/"):
            continue
        name = 0xcbf29ce484222325
        for byte in metric.encode():
            name = ((name ^ byte) * 0x100000001b3) & MASK
        bits = struct.unpack("<Q", struct.pack("<d", 0.0 if value == 0 else value))[0]
        if math.isnan(value):
            bits = 0x7ff8000000000000
        total = (total + mixed(name ^ mixed(step ^ mixed(bits)))) & MASK
    return total - (1 << 64) if total >= 1 << 63 else total


class CurveDigest:
    def __init__(self):
        self.points = []

    def step(self, metric, step, value, kind):
        self.points.append((metric, step, float(kind.replace("Infinity", "inf")) if value is None else value))

    def finalize(self):
        return digest_of(self.points)


METRICS = ["val/top1", "train/loss", "time/step"]


def points_of(run, completed):
    """Some curves: those of run 3 diverge."""
    last = 4 if completed else 2
    points = []
    for step in range(1, last + 1):
        points.append(("val/top1", step * 10, 70 + run + step / 8))
        points.append(("train/loss", step * 10, math.nan if run == 3 and step == 4 else math.inf if run == 3 and step == 3 else 2 / (run + step)))
        points.append(("time/step", step * 10, 0.25))
    return points


ROWS = [("a", "Baseline", {"model.share": "QKV"}), ("b", "Größer & \"anders\"", {"model.share": "QQV"}), ("c", "", {"model.share": "QQQ"})]
# trial -> state, runs (state, attempt); of sweep `first` rows a, b, c with seeds 0 and 1; `second` shares row a
TRIALS = {1: ("completed", [(1, "lost"), (2, "completed")]), 2: ("completed", [(1, "completed")]), 3: ("completed", [(1, "completed")]),
          4: ("failed", [(1, "failed"), (2, "failed")]), 5: ("queued", []), 6: ("running", [(1, "running")]),
          7: ("cancelled", [(1, "stopped")]), 8: ("held", [(1, "lost")])}
CLAIMS = [("first", 0, 0, 1), ("first", 0, 1, 2), ("first", 1, 0, 3), ("first", 1, 1, 4), ("first", 2, 0, 5), ("first", 2, 1, 6),
          ("second", 0, 0, 1), ("second", 0, 1, 2), ("gone", 0, 0, 7), ("gone", 0, 1, 8)]
SWEEPS = {"first": (3, "active"), "second": (1, "paused"), "gone": (1, "cancelled")}


def last_run(trial):
    """Run numbers go up in the order of trials."""
    run = 0
    for number in sorted(TRIALS):
        run += len(TRIALS[number][1])
        if number == trial:
            return run if TRIALS[number][1] else None


def insert(db, table, **values):
    """What the table has a column for at this version."""
    known = {row[1] for row in db.execute(f"PRAGMA table_info({table})")}
    if not known:
        return
    values = {name: value for name, value in values.items() if name in known}
    db.execute(f"INSERT INTO {table} ({', '.join(values)}) VALUES ({', '.join('?' * len(values))})", list(values.values()))


def state_at(version, state):
    return "failed" if state == "held" and version < 4 else state  # there was none


def fill(db, version):
    ids = {name: number + 1 for number, name in enumerate(SWEEPS)}
    if version >= 4:
        db.execute("UPDATE store SET id = '0123456789abcdef0123456789abcdef'")
    for name, (rows, state) in SWEEPS.items():
        sweep = ids[name]
        insert(db, "sweep", id=sweep, name=name, file=f"/sweeps/{name}.yaml", text=f"name: {name}\n", canonical=json.dumps({"name": name}),
               canonical_hash=f"c-{name}", baseline="a", paper_heading="paper", state=state, state_ms=BEGUN, priority=sweep, created_ms=BEGUN + sweep,
               owner="ada")
        for position, (row, label, settings) in enumerate(ROWS[:rows]):
            insert(db, "sweep_row", sweep_id=sweep, position=position, id=row, label=label, set_json=json.dumps(settings), config_hash=f"h{row}",
                   model_hash=f"m{row}")
            insert(db, "sweep_paper", sweep_id=sweep, row=position, name="acc", printed=f"7{position}.5 ± 0.1")
        for position, (column, kind, source, take, unit, better) in enumerate(
                [("acc", "metric", "val/top1", "last", "percent", "higher"), ("best", "metric", "train/loss", "best", "", "lower"),
                 ("loss", "metric", "train/loss", "last", "", "lower"), ("params", "count", "params.weights", "last", "million", "lower"),
                 ("share", "setting", "model.share", "last", "", "none")]):
            insert(db, "sweep_column", sweep_id=sweep, position=position, name=column, heading=column, kind=kind, source=source, take=take,
                   unit=unit, better=better, digits=2)
        for position, seed in enumerate([0, 1]):
            insert(db, "sweep_seed", sweep_id=sweep, position=position, seed=seed)
    for row, _, _ in ROWS:
        insert(db, "model_count", model_hash=f"m{row}", version=1, mode="params.weights", value=1e6 * ord(row))
    for number, metric in enumerate(METRICS):
        insert(db, "metric", id=number + 1, name=metric)
    shape = None
    if version >= 7:
        insert(db, "shape", id=1, waiting="no worker has the data cifar10", demand=json.dumps(
            {"command": False, "data": "cifar10", "gpus": 1, "result_version": 1, "weights": {}}, separators=(",", ":")))
        shape = 1
    for trial, (state, runs) in TRIALS.items():
        insert(db, "trial", id=trial, config_hash=f"t{trial}", result_version=1, due_version=1, data_fingerprint="f1" if runs else "", reusable=1,
               config=json.dumps({"seed": trial % 2, "recipe": {"epochs": 1}}), seed=(trial + 1) % 2, data="cifar10", command_json="", gpus=1,
               max_retries=1, state="queued", shape_id=shape)
    run = 0
    for trial, (state, runs) in TRIALS.items():
        for attempt, run_state in runs:
            run += 1
            under_way = run_state == "running"
            points = points_of(run, run_state == "completed")
            insert(db, "run", id=run, trial_id=trial, attempt=attempt, state=run_state, worker="gpu-01", host="gpu-01", directory=f"/runs/{trial}/{attempt}",
                   reason="" if run_state in ("completed", "running") else f"because of {run_state}", environment_json='{"device":"cpu"}',
                   leased_ms=BEGUN + run * HOUR, started_ms=BEGUN + run * HOUR + 1, ended_ms=None if under_way else BEGUN + run * HOUR + 1000,
                   lease_expires_ms=10_000, step=points[-1][1], total_steps=40, last_seq=3, log_bytes=7, exit_code=1 if run_state == "failed" else None,
                   resumed_from_run=run - 1 if attempt > 1 and run_state == "completed" else None, resumed_from_step=20 if attempt > 1 else None,
                   token=f"token{run}", curves=digest_of(points), slots="[0]" if under_way else "[]")
            insert(db, "log_chunk", run_id=run, offset=0, bytes=f"run {run:>2}\n".encode())
            insert(db, "checkpoint", run_id=run, step=20, host="gpu-01", path=f"/runs/{trial}/{attempt}/checkpoint-20.safetensors", sha256="ab" * 32)
            for metric, step, value in points:
                kind = None if math.isfinite(value) else "NaN" if math.isnan(value) else "Infinity"
                insert(db, "point", run_id=run, metric_id=METRICS.index(metric) + 1, step=step, value=value if kind is None else None, kind=kind,
                       time_ms=BEGUN + run * HOUR + step)
            for number, metric in enumerate(METRICS):
                values = [(step, value) for name, step, value in points if name == metric]
                finite = [(value, step) for step, value in values if math.isfinite(value)]
                last = values[-1][1]
                insert(db, "metric_summary", run_id=run, metric_id=number + 1, count=len(values), finite=len(finite), sum=sum(v for v, _ in finite),
                       min=min(finite)[0], max=max(finite)[0], last=last if math.isfinite(last) else None,
                       last_kind=None if math.isfinite(last) else "NaN" if math.isnan(last) else "Infinity", last_step=values[-1][0],
                       best=min(finite)[0], best_step=min(finite)[1], min_step=min(finite)[1], max_step=min(s for v, s in finite if v == max(finite)[0]))
    insert(db, "data_pin", data="cifar10", fingerprint="f1", run_id=1)
    insert(db, "trial_weights", trial_id=8, name="deit", sha256="")
    insert(db, "weights_pin", name="deit", sha256="cd" * 32, run_id=last_run(8))
    slots = [{"index": 0, "kind": "cpu", "name": "cpu"}]
    if version < 6:
        slots[0]["run"] = last_run(6)
    insert(db, "worker", name="gpu-01", host="gpu-01", instance="i", version="0.1", slots_json=json.dumps(slots), data_json='["cifar10"]',
           result_version=1, allows_commands=1, connected=0, last_heartbeat_ms=BEGUN, trouble="")
    for sweep, row, seed_index, trial in CLAIMS:
        completed_lacks = 0
        insert(db, "sweep_trial", sweep_id=ids[sweep], row=row, seed_index=seed_index, seed=seed_index, trial_id=trial,
               withdrawn=1 if sweep == "gone" else 0, unfilled=completed_lacks)
    for trial, (state, runs) in TRIALS.items():
        state = state_at(version, state)
        ended = state not in ("queued", "leased", "running")
        db.execute("UPDATE trial SET state = ?, attempt = ?, run_id = ?, finished_ms = ?, reason = ? WHERE id = ?",
                   (state, len(runs), last_run(trial), BEGUN + trial * HOUR if ended else None, "it exited with 1" if state == "failed" else "", trial))
    if version >= 7:  # with the times at which this ran
        db.execute("UPDATE transition SET time_ms = ? + id", (BEGUN,))


def number(value):
    return "-" if value is None else f"{value:.6g}"


def expected(version):
    lines = []
    for name in SWEEPS:
        counts = {}
        for sweep, row, seed, trial in CLAIMS:
            if sweep != name:
                continue
            state = state_at(version, TRIALS[trial][0])
            if name == "gone" and state in ("queued", "leased", "running", "held"):
                state = "cancelled"
            counts[state] = counts.get(state, 0) + 1
        lines.append(f"sweep {name} {SWEEPS[name][1]}: " + " ".join(f"{state}={counts[state]}" for state in sorted(counts)))
    for sweep in SWEEPS:
        for position, (row, _, settings) in enumerate(ROWS[:SWEEPS[sweep][0]]):
            trials = [trial for name, place, _, trial in CLAIMS if name == sweep and place == position]
            runs = [last_run(trial) for trial in trials if TRIALS[trial][0] == "completed"]
            for column in ("acc", "best", "loss"):
                metric = "val/top1" if column == "acc" else "train/loss"
                values, diverged = [], 0
                for run in runs:
                    curve = [value for name, _, value in points_of(run, True) if name == metric]
                    finite = [value for value in curve if math.isfinite(value)]
                    values.append(min(finite) if column == "best" else curve[-1])
                    diverged += len(finite) < len(curve) if column == "best" else not math.isfinite(curve[-1])
                whole = values and all(math.isfinite(value) for value in values)
                mean = statistics.fmean(values) if whole else None
                sd = statistics.stdev(values) if whole and len(values) > 1 else None
                lines.append(f"cell {sweep}/{row}/{column}: n={len(values)} mean={number(mean)} sd={number(sd)} diverged={diverged}")
            lines.append(f"cell {sweep}/{row}/params: n=1 mean={number(1e6 * ord(row))} sd=- diverged=0")
            lines.append(f"cell {sweep}/{row}/share: {settings['model.share']}")
    run = 0
    for trial, (_, runs) in TRIALS.items():
        for attempt, state in runs:
            run += 1
            points = points_of(run, state == "completed")
            lines.append(f"run {run}: trial {trial}, attempt {attempt}, {state}, {len(points)} points, curves {digest_of(points)}, log 'run {run:>2}'")
    for run in (3, 4):
        for metric, step, value in sorted(points_of(run, True)):
            lines.append(f"point {run} {metric} {step}: {number(value) if math.isfinite(value) else 'NaN' if math.isnan(value) else 'Infinity'}")
    return "\n".join(lines) + "\n"


def main():
    if len(sys.argv) != 2 or not sys.argv[1].isdigit():
        sys.exit("usage: make.py VERSION")
    version = int(sys.argv[1])
    steps = {int(n): sql for n, sql in re.findall(r'kSchemaV(\d+) = R"sql\((.*?)\)sql"', "".join(file.read_text() for file in SCHEMA), re.S)}
    if version not in steps:
        sys.exit(f"no version {version}: there are 1 to {max(steps)}")
    target = HERE / f"v{version}.sql"
    if target.exists():
        sys.exit(f"{target} is there: a frozen file is never written again")
    db = sqlite3.connect(":memory:")
    db.create_aggregate("curve_digest", 4, CurveDigest)
    for step in range(1, version + 1):
        db.executescript(steps[step])
    fill(db, version)
    db.commit()
    assert not db.execute("PRAGMA foreign_key_check").fetchall()
    text = "\n".join(line for line in db.iterdump()) + f"\nPRAGMA application_id = {0x61626c31};\nPRAGMA user_version = {version};\n"
    target.write_text(text)
    (HERE / f"v{version}.expected").write_text(expected(version))
    print(f"{target}: {len(text)} bytes")


if __name__ == "__main__":
    main()
