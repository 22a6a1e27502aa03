# SPDX-License-Identifier: Apache-2.0
"""A judge that never condemns is none: a results file in which all is well passes, and each kind of violation that is made in a copy of
it is found, and found as what it is."""
import json
import os
import pathlib
import shutil
import sqlite3
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "end_to_end"))
os.environ.setdefault("ABLATE_SOURCE", str(HERE.parent.parent))
os.environ.setdefault("ABLATE_BIN", str(HERE.parent.parent / "build" / "bin"))

from checker import Checker  # noqa: E402
from fleet import Fleet, expect, say  # noqa: E402
from work import COLUMNS  # noqa: E402

ROWS = [("quick", 4, 0, 0), ("steady", 12, 4, 0), ("chatty", 20, 0, 40), ("odd", 12, 4, 0), ("flaky", 3, 0, 0)]


def sweep(name, rows, records, retries):
    params = [{"kind": kind, "points": points, "pause_ms": 5, "checkpoints": checkpoints, "chatter": chatter, "tag": f"{name}-{i}"}
              for i, (kind, points, checkpoints, chatter) in enumerate(rows)]
    return {"ablate": 1, "name": name, "command": {"argv": [sys.executable, "-S", "-E", str(HERE / "trial.py"), str(records)], "folder": "/",
                                                   "version": "1", "reuse": True, "params": params[0]},
            "rows": [{"id": f"r{i}", "label": row["kind"], "set": {f"params.{k}": v for k, v in row.items()}} for i, row in enumerate(params)],
            "seeds": [0, 1], "retry": {"max": retries}, "table": {"columns": COLUMNS}}


def make_store(fleet, records):
    """A small results file with everything in it: resumed and failed runs, a run that was lost while it went on, points that are no numbers."""
    fleet.start_scheduler()
    fleet.start_worker("w", "--slots", 2, "--allow-commands", "--trainer", "/bin/false")
    submitted = {}
    for name, rows, retries in (("good", ROWS, 5), ("bad", [("fails", 2, 0, 0)], 1), ("long", [("steady", 400, 5, 0)], 5)):
        (fleet.home / f"{name}.yaml").write_text(json.dumps(sweep(name, rows, records, retries)))
        fleet.ablate("submit", fleet.home / f"{name}.yaml")
        submitted[name] = {"acknowledged": True, "trials": 2 * len(rows), "cancelled": False}
    fleet.until(lambda: fleet.running("long", step=30), "a long trial is in the middle")
    fleet.kill("w")
    fleet.start_worker("w", "--slots", 2, "--allow-commands", "--trainer", "/bin/false")
    for name in submitted:
        fleet.wait_for(name, 120)
    tables = {name: fleet.json("table", name) for name in submitted}
    fleet.stop("w")
    fleet.stop("scheduler")
    return submitted, tables


def of(kind, state="completed"):
    """A run of such a program, in SQL."""
    return (f"(SELECT run.id FROM run JOIN trial t ON t.id = run.trial_id WHERE t.config ->> '$.params.kind' = '{kind}' AND run.state = '{state}' "
            "ORDER BY run.id LIMIT 1)")


METRIC = "(SELECT id FROM metric WHERE name = 'value')"
COMPLETED = "(SELECT MIN(id) FROM trial WHERE state = 'completed')"
SQL = [  # what is made, the kind that it is to be found as, and the statements that make it
    ("a trial completes twice", "twice", f"INSERT INTO transition (time_ms, trial_id, was, state, run_id, reason) VALUES (0, {COMPLETED}, 'running', 'completed', 1, '')"),
    ("two runs of a trial completed", "twice", f"UPDATE run SET state = 'completed' WHERE id = {of('flaky', 'failed')}"),
    ("a step that no trial may take", "path", f"INSERT INTO transition (time_ms, trial_id, was, state, run_id, reason) VALUES (0, {COMPLETED}, 'completed', 'queued', 1, '')"),
    ("transitions end elsewhere", "path", f"DELETE FROM transition WHERE id = (SELECT MAX(id) FROM transition WHERE trial_id = {COMPLETED})"),
    ("a lease is not told", "path", f"DELETE FROM transition WHERE trial_id = {COMPLETED} AND state = 'leased'"),
    ("a point is lost", "missing", f"DELETE FROM point WHERE run_id = {of('steady')} AND metric_id = {METRIC} AND step = 7"),
    ("a point in the middle of a run that did not complete is lost", "missing", f"DELETE FROM point WHERE run_id = {of('steady', 'lost')} AND step = 9"),
    ("a point is invented", "invented", f"INSERT INTO point (run_id, metric_id, step, value, time_ms) VALUES ({of('quick')}, {METRIC}, 99, 1, 0)"),
    ("a point has another value", "invented", f"UPDATE point SET value = value + 1 WHERE run_id = {of('quick')} AND metric_id = {METRIC} AND step = 2"),
    ("a point is of another attempt", "invented", f"UPDATE point SET value = 7 WHERE run_id = {of('steady')} AND metric_id <> {METRIC} AND step = 8"),
    ("a point that is no number has become one", "invented", f"UPDATE point SET value = 1, kind = NULL WHERE run_id = {of('odd')} AND metric_id = {METRIC} AND step = 3"),
    ("points said twice are not counted", "missing", f"UPDATE run SET repeated_points = 0 WHERE id = {of('odd')}"),
    ("a line of the log is lost", "missing", f"UPDATE log_chunk SET bytes = CAST(replace(CAST(bytes AS TEXT), 'at step 3 ', '') AS BLOB) WHERE run_id = {of('chatty')}"),
    *[(f"{field} of a summary is wrong", "summary", f"UPDATE metric_summary SET {field} = {field} + 1 WHERE run_id = {of('quick')} AND metric_id = {METRIC}")
      for field in ("count", "finite", "sum", "min", "max", "last", "last_step", "min_step", "max_step")],
    ("a summary is gone", "summary", f"DELETE FROM metric_summary WHERE run_id = {of('quick')} AND metric_id = {METRIC}"),
    ("a cell is not of its runs", "cell", f"UPDATE metric_summary SET last = last + 1 WHERE run_id = {of('steady')} AND metric_id = {METRIC}"),
    ("a trial is left in the queue", "lost", f"UPDATE trial SET state = 'queued' WHERE id = {COMPLETED}"),
    ("a run is left under way", "lost", f"UPDATE run SET state = 'running' WHERE id = {of('flaky', 'failed')}"),
    ("a sweep is lost", "lost", "DELETE FROM sweep WHERE name = 'bad'"),
    ("a sweep lacks a trial", "lost", "DELETE FROM sweep_trial WHERE (sweep_id, row, seed_index) = (SELECT sweep_id, row, seed_index FROM sweep_trial LIMIT 1)"),
    ("a trial failed that should not have", "lost", f"UPDATE trial SET state = 'failed', reason = 'exit code 1' WHERE id = {COMPLETED}"),
    ("a trial completed that should not have", "lost", "UPDATE trial SET state = 'completed' WHERE state = 'failed'"),
    ("a count of a sweep is off", "count", "UPDATE sweep_count SET completed = completed + 1, queued = queued - 1 WHERE sweep_id = 1"),
    ("failures are not counted", "count", "UPDATE trial SET failures = failures + 1 WHERE id = 1"),
    ("an attempt is left out", "count", f"UPDATE run SET attempt = attempt + 5 WHERE id = {of('flaky')}"),
    ("a trial names another run", "count", f"UPDATE trial SET run_id = run_id + 1 WHERE id = {COMPLETED}"),
    ("a run failed by what its program did not do", "failure", f"UPDATE run SET exit_code = 42 WHERE id = {of('flaky', 'failed')}"),
    ("a run was killed by nobody", "failure", f"UPDATE run SET exit_code = NULL, signal = 9 WHERE id = {of('fails', 'failed')}"),
    ("a failed run has another reason", "failure", f"UPDATE run SET reason = 'tired' WHERE id = {of('fails', 'failed')}"),
    ("a failure counts as one of the machine", "failure", f"UPDATE run SET failure = 'infrastructure' WHERE id = {of('fails', 'failed')}"),
    ("a trial gave up too early", "failure", "UPDATE trial SET max_retries = 9 WHERE state = 'failed'"),
    ("a run is lost without a reason", "failure", f"UPDATE run SET reason = '' WHERE id = {of('steady', 'lost')}"),
]


def edit_record(records, wanted, change):
    """Changes the lines of the first record for which `wanted` holds."""
    for file in sorted(records.glob("*.jsonl")):
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        if wanted(lines):
            return change(file, lines)
    raise AssertionError("no such record")


def rewrite(file, lines):
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))


def execute_twice(file, lines):
    trial, attempt, pid = file.stem.split("-")
    rewrite(file.with_name(f"{trial}-{attempt}-{int(pid) + 1}.jsonl"), lines)


def make_earlier(file, lines):
    lines[0]["ns"] -= 10**12
    rewrite(file, lines)


def end_with(code):
    def change(file, lines):
        lines[-1]["code"] = code
        rewrite(file, lines)
    return change


RECORDS = [
    ("a program is executed twice", "twice", lambda lines: True, execute_twice),
    ("an attempt begins before the one before it has ended", "overlap", lambda lines: lines[0]["attempt"] == 2, make_earlier),
    ("a completed run's program ended with an error", "twice", lambda lines: lines[-1].get("code") == 0, end_with(1)),
    ("a completed run's program did not come to its end", "twice", lambda lines: lines[-1].get("code") == 0, lambda file, lines: rewrite(file, lines[:-1])),
    ("a completed run said more than is stored", "missing", lambda lines: lines[-1].get("code") == 0,
     lambda file, lines: rewrite(file, [*lines[:-1], {"what": "point", "ns": lines[-1]["ns"], "step": 999, "values": {"value": 0.5, "attempt": 1}}, lines[-1]])),
    ("a run that was not executed has points", "invented", lambda lines: lines[-1].get("code") == 0 and len(lines) > 3, lambda file, lines: file.unlink()),
]


def main():
    with Fleet("checker") as fleet:
        records = fleet.home / "records"
        records.mkdir()
        submitted, tables = make_store(fleet, records)

        def found(store, of_records=records, sweeps=submitted, shown=tables):
            return Checker(store, of_records, sweeps, (), shown).check()

        well = found(fleet.store)
        expect(not well, f"a results file in which all is well passes: {well}")
        copy = fleet.home / "copy.db"

        def expect_found(what, kind, violations):
            expect(any(violation.kind == kind for violation in violations), f"{what}: {[tuple(v) for v in violations if v.kind == kind][:1] or violations[:3]}")

        for what, kind, statement in SQL:
            with sqlite3.connect(fleet.store) as store, sqlite3.connect(copy) as db:
                store.backup(db)
                for (trigger,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
                    db.execute(f"DROP TRIGGER {trigger}")
                changed = db.execute(statement).rowcount
            db.close()
            expect(changed > 0, f"made: {what}")
            expect_found(what, kind, found(copy))
            copy.unlink()
        for what, kind, wanted, change in RECORDS:
            other = pathlib.Path(tempfile.mkdtemp(dir=fleet.home)) / "records"
            shutil.copytree(records, other)
            edit_record(other, wanted, change)
            expect_found(what, kind, found(fleet.store, of_records=other))
        expect_found("nobody submitted a sweep", "lost", found(fleet.store, sweeps={name: submitted[name] for name in ("good", "bad")}))
        wrong = json.loads(json.dumps(tables))
        wrong["good"]["rows"][0]["cells"][0]["mean"] += 1e-3
        expect_found("a table shows another mean", "cell", found(fleet.store, shown=wrong))
        say(f"{len(SQL) + len(RECORDS) + 2} violations were made, and found")


main()
