# SPDX-License-Identifier: Apache-2.0
"""Judges a results file by what the programs of its runs wrote about themselves. Everything has settled: nothing runs any more.

What a store must be, whatever happened to the programs around it:
  lost          every sweep that was acknowledged is there, with all of its trials; each of them ended as its program deserves
  path          transitions are steps that a trial may take, begin where it begins, and lead to the state that is stored
  twice         a trial completes once, one run of it, whose program came to its end; a run's program is started once
  overlap       no attempt begins before the one before it has ended; where that one's lease had run out, it may go on, and nothing of it counts
  invented      every point that is stored was said, by the attempt that it is stored of, or by the one that it went on from
  missing       of a completed run every point is stored, and its log; of others what is stored is what was said first
  summary       summaries are those of the points
  cell          the cells of tables are those of the completed runs
  count         the trials of a sweep by state, and what a trial says of its runs
  failure       a run that failed failed by what its program did; none failed by what was done to the programs around it
"""
import collections
import json
import math
import pathlib
import sqlite3

import trial as program

OVER = ("completed", "failed", "cancelled", "held")
STEPS = {
    "queued": {"leased", "running", "cancelled", "held"},  # to running, or leased: it was lost and had not ended
    "leased": {"running", "queued", "completed", "failed", "cancelled", "held"},
    "running": {"queued", "completed", "failed", "cancelled", "held"},
    "held": {"queued", "leased", "running", "cancelled"},
    "failed": {"queued"},
    "cancelled": {"queued"},
    "completed": set(),
}

Violation = collections.namedtuple("Violation", "kind text")


class Attempt:
    """One program, by its own record."""

    def __init__(self, lines):
        self.lines = lines
        start = lines[0]
        self.trial, self.attempt, self.pid, self.resumed = start["trial"], start["attempt"], start["pid"], start["resumed"]
        self.began, self.seen = start["ns"], lines[-1]["ns"]
        self.points = [(line["step"], line["values"]) for line in lines if line["what"] == "point"]
        self.repeated = sum(line["what"] == "repeated" for line in lines)
        self.stopped = any(line["what"] == "stopped" for line in lines)
        self.code = next((line["code"] for line in lines if line["what"] == "end"), None)


def read_records(folder):
    """(trial, attempt) -> its programs: one, if all is well."""
    found = collections.defaultdict(list)
    for file in sorted(pathlib.Path(folder).glob("*.jsonl")):
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        if lines:  # killed before its first word
            attempt = Attempt(lines)
            found[attempt.trial, attempt.attempt].append(attempt)
    return found


def number(value, kind):
    return value if kind is None else float(kind.replace("Infinity", "inf"))


def same(one, other):
    return one == other or (isinstance(one, float) and isinstance(other, float) and math.isnan(one) and math.isnan(other))


def near(one, other):
    return one is other is None or (one is not None and other is not None and math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12))


def summary_of(points):
    """Of {step: value}, as the table metric_summary has it."""
    steps = sorted(points)
    finite = [step for step in steps if math.isfinite(points[step])]
    least = min(finite, key=lambda step: (points[step], step), default=None)
    most = min(finite, key=lambda step: (-points[step], step), default=None)
    return {"count": len(steps), "finite": len(finite), "sum": math.fsum(points[step] for step in finite),
            "min": None if least is None else points[least], "max": None if most is None else points[most],
            "last": points[steps[-1]], "last_step": steps[-1], "min_step": least or 0, "max_step": most or 0}


def cell_of(column, summaries):
    """(n, mean, standard deviation) of the values that a column takes of these runs."""
    take = {"best": "min" if column["better"] == "lower" else "max"}.get(column["take"], column["take"])
    values = []
    for summary in summaries:
        value = summary["sum"] / summary["finite"] if take == "mean" and summary["finite"] else None if take == "mean" else summary[take]
        values.append(value if value is not None and math.isfinite(value) else None)
    if not values or None in values:
        return len(values), None, None
    mean = math.fsum(values) / len(values)
    deviation = math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (len(values) - 1)) if len(values) > 1 else None
    return len(values), mean, deviation


class Checker:
    def __init__(self, store, records, submitted, killed=(), tables=None):
        """`submitted`: name -> {"acknowledged", "trials", "cancelled"}; `killed`: (trial, attempt) of programs that somebody killed;
        `tables`: name -> what `ablate table --json` says."""
        self.db = sqlite3.connect(f"file:{store}?mode=ro", uri=True)
        self.db.row_factory = sqlite3.Row
        self.submitted, self.killed, self.tables = submitted, set(map(tuple, killed)), tables or {}
        self.violations = []
        self.programs = read_records(records)
        self.trials = {row["id"]: row for row in self.rows("SELECT * FROM trial")}
        self.runs = {row["id"]: row for row in self.rows("SELECT * FROM run ORDER BY id")}
        self.classes = any("failure" in run.keys() and run["failure"] for run in self.runs.values())
        self.runs_of = collections.defaultdict(list)
        for run in self.runs.values():
            self.runs_of[run["trial_id"]].append(run)
        self.transitions = collections.defaultdict(list)
        for row in self.rows("SELECT * FROM transition ORDER BY id"):
            self.transitions[row["trial_id"]].append(row)
        self.configs = {}
        for trial in self.trials.values():
            document = json.loads(trial["config"])
            if "params" in document:
                self.configs[trial["id"]] = document
        self.points = collections.defaultdict(lambda: collections.defaultdict(dict))
        for row in self.rows("SELECT run_id, m.name, step, value, kind FROM point JOIN metric m ON m.id = metric_id"):
            self.points[row["run_id"]][row["name"]][row["step"]] = number(row["value"], row["kind"])

    def rows(self, sql, *values):
        return self.db.execute(sql, values).fetchall()

    def blame(self, kind, text):
        self.violations.append(Violation(kind, text))

    def check(self):
        """All of it. Returns: what is wrong; nothing is what is hoped for."""
        if damage := [row[0] for row in self.rows("PRAGMA integrity_check") if row[0] != "ok"]:
            self.blame("damage", f"the results file is damaged: {damage[0]}")
        self.check_sweeps()
        for trial in self.trials.values():
            self.check_path(trial)
            self.check_trial(trial)
            if trial["id"] not in self.configs and trial["state"] != "completed":
                self.blame("lost", f"trial {trial['id']} of our trainer is {trial['state']}: {trial['reason']}")
            if trial["id"] in self.configs:
                self.check_end(trial)
                self.check_overlap(trial)
                for run in self.runs_of[trial["id"]]:
                    self.check_run(trial, run)
        self.check_summaries()
        self.check_cells()
        return self.violations

    # --- sweeps ---

    def check_sweeps(self):
        stored = {row["name"]: row for row in self.rows("SELECT * FROM sweep")}
        for name, sweep in self.submitted.items():
            if name not in stored:
                if sweep["acknowledged"]:
                    self.blame("lost", f"sweep {name} was acknowledged and is not stored")
                continue
            claims = self.rows("SELECT COUNT(*) FROM sweep_trial st JOIN trial t ON t.id = st.trial_id WHERE sweep_id = ?", stored[name]["id"])[0][0]
            if claims != sweep["trials"]:
                self.blame("lost", f"sweep {name} has {claims} trials, {sweep['trials']} were submitted")
        for name in stored.keys() - self.submitted.keys():
            self.blame("lost", f"sweep {name} is stored, and nobody submitted it")
        unwithdrawn = ("queued", "leased", "running", "held")
        for sweep in stored.values():
            count = collections.Counter()
            for row in self.rows("SELECT t.state, st.withdrawn, st.unfilled FROM sweep_trial st JOIN trial t ON t.id = st.trial_id "
                                 "WHERE sweep_id = ?", sweep["id"]):
                count["cancelled" if row["withdrawn"] and row["state"] in unwithdrawn else row["state"]] += 1
                count["unfilled"] += row["state"] == "completed" and row["unfilled"] > 0
            kept = self.rows("SELECT * FROM sweep_count WHERE sweep_id = ?", sweep["id"])[0]
            for state in (*STEPS, "unfilled"):
                if kept[state] != count[state]:
                    self.blame("count", f"sweep {sweep['name']}: sweep_count has {kept[state]} {state}, there are {count[state]}")

    # --- trials ---

    def check_path(self, trial):
        state, run = "queued", 0
        for step in self.transitions[trial["id"]]:
            what = f"trial {trial['id']}: {step['was']} -> {step['state']} (transition {step['id']})"
            if step["was"] != state:
                self.blame("path", f"{what}, but it was {state}")
            if step["state"] not in STEPS[step["was"]]:
                self.blame("path", f"{what} is no step that a trial may take")
            new = step["run_id"] or 0
            if step["was"] in ("queued", "held") and step["state"] in ("leased", "running"):
                returned = new == run and run in self.runs  # its worker came back with it before anybody had taken it
                if new <= run and not returned:
                    self.blame("path", f"{what} is of run {new}, which is no newer than {run}")
                if new > run and step["state"] == "running":
                    self.blame("path", f"{what}: run {new} was never leased")
            state, run = step["state"], max(run, new)
        if state != trial["state"]:
            self.blame("path", f"trial {trial['id']} is {trial['state']}; its transitions end in {state}")
        if sum(step["state"] == "completed" for step in self.transitions[trial["id"]]) > 1:
            self.blame("twice", f"trial {trial['id']} became completed more than once")

    def check_trial(self, trial):
        runs = self.runs_of[trial["id"]]
        if trial["state"] not in OVER:
            self.blame("lost", f"trial {trial['id']} is still {trial['state']}")
        for run in runs:
            if run["state"] in ("leased", "running"):
                self.blame("lost", f"run {run['id']} of trial {trial['id']} is still {run['state']}")
        completed = [run["id"] for run in runs if run["state"] == "completed"]
        if len(completed) > 1:
            self.blame("twice", f"trial {trial['id']} has {len(completed)} completed runs: {completed}")
        if (trial["state"] == "completed") != bool(completed):
            self.blame("twice", f"trial {trial['id']} is {trial['state']}, and has {len(completed)} completed runs")
        attempts = [run["attempt"] for run in runs]
        if attempts != list(range(1, len(runs) + 1)) or trial["attempt"] != len(runs):
            self.blame("count", f"trial {trial['id']} is at attempt {trial['attempt']}; its runs are attempts {attempts}")
        if runs and trial["run_id"] != runs[-1]["id"]:
            self.blame("count", f"trial {trial['id']} names run {trial['run_id']} as its newest, which is {runs[-1]['id']}")

    def check_end(self, trial):
        """Whether it ended as its program deserves."""
        kind = self.configs[trial["id"]]["params"]["kind"]
        claims = self.rows("SELECT s.name, st.withdrawn FROM sweep_trial st JOIN sweep s ON s.id = st.sweep_id WHERE trial_id = ?", trial["id"])
        may_be_cancelled = any(self.submitted.get(row["name"], {}).get("cancelled") for row in claims)
        deserved = "failed" if kind == "fails" else "completed"
        if trial["state"] == "cancelled" and may_be_cancelled and all(row["withdrawn"] for row in claims):
            return
        if trial["state"] in OVER and trial["state"] != deserved:
            self.blame("lost", f"trial {trial['id']} ({kind}) is {trial['state']} ({trial['reason']}); its program earned {deserved}")
        # who asks for it again after its end gives it its retries anew
        again = [step["run_id"] or 0 for step in self.transitions[trial["id"]]
                 if step["was"] in ("cancelled", "failed", "held") and step["state"] == "queued"]
        failures = [run for run in self.runs_of[trial["id"]] if run["state"] == "failed" and run["id"] > max(again, default=0)]
        if trial["state"] == "failed" and len(failures) <= trial["max_retries"]:
            self.blame("failure", f"trial {trial['id']} failed after {len(failures)} failures; it has {trial['max_retries']} retries")
        if trial["failures"] != len(failures):
            self.blame("count", f"trial {trial['id']} counts {trial['failures']} failures, {len(failures)} of its runs failed")

    def check_overlap(self, trial):
        before = None
        for run in self.runs_of[trial["id"]]:
            programs = self.programs.get((trial["id"], run["attempt"]), [])
            if len(programs) > 1:
                self.blame("twice", f"run {run['id']} of trial {trial['id']} was executed {len(programs)} times")
            if not programs:
                continue
            if before and programs[0].began < before[1].seen:
                stored, _ = before
                ran_out = stored["state"] == "lost" and stored["reason"].startswith("lease expired")
                if not ran_out:
                    self.blame("overlap", f"run {run['id']} of trial {trial['id']} began {(before[1].seen - programs[0].began) / 1e6:.0f} ms before "
                                          f"the end of run {stored['id']}, which is {stored['state']} ({stored['reason']})")
            before = run, max(programs, key=lambda one: one.seen)

    # --- runs ---

    def check_run(self, trial, run):
        document = self.configs[trial["id"]]
        params, seed = document["params"], document["seed"]
        programs = self.programs.get((trial["id"], run["attempt"]), [])
        ran = programs[0] if programs else None
        what = f"run {run['id']} of trial {trial['id']} ({params['kind']})"
        stored = self.points[run["id"]]
        resumed = run["resumed_from_step"] or 0
        if stored and not ran:
            return self.blame("invented", f"{what} has points, and was never executed")
        before = self.points[run["resumed_from_run"]] if resumed else {}
        said = collections.defaultdict(dict)
        order = []
        for step, values in ran.points if ran else []:
            order.append(step)
            for name, value in values.items():
                said[name].setdefault(step, value)
        for name, points in stored.items():
            for step, value in points.items():
                of = before.get(name, {}) if step <= resumed else said[name]
                if step not in of:
                    self.blame("invented", f"{what}: {name} at step {step} is stored, and was not said")
                elif not same(of[step], value):
                    self.blame("invented", f"{what}: {name} at step {step} is {value}, {of[step]} was said")
        for step, value in stored.get("value", {}).items():
            if not same(value, program.value(params["tag"], seed, step, params["kind"])):
                self.blame("invented", f"{what}: value at step {step} is {value}, of which this trial knows nothing")
        for name in ("value", "attempt"):
            there = stored.get(name, {})
            if resumed and set(range(1, resumed + 1)) - there.keys() and run["state"] == "completed":
                self.blame("missing", f"{what}: went on from step {resumed}, and lacks {name} of steps before")
            own = [step in there for step in order]
            if run["state"] == "completed":
                if lacking := [step for step, is_there in zip(order, own) if not is_there]:
                    self.blame("missing", f"{what}: {name} of {len(lacking)} steps was said and is not stored, {lacking[0]} first")
            elif own != sorted(own, reverse=True):
                self.blame("missing", f"{what}: {name} is stored of steps after one of which it is not")
        self.check_how_it_ended(what, params, run, ran)
        if run["state"] == "completed":
            self.check_completed(what, params, run, ran, stored)

    def check_how_it_ended(self, what, params, run, ran):
        by_itself = False
        if run["state"] == "failed":
            by_itself = ran and ran.code and run["exit_code"] == ran.code and params["kind"] in ("fails", "flaky")
            by_a_kill = (run["trial_id"], run["attempt"]) in self.killed and run["signal"] == 9  # perhaps before its first word
            if not by_itself and not by_a_kill:
                self.blame("failure", f"{what} failed ({run['reason']}); its program ended with {ran.code if ran else 'no start'}, "
                                      f"and nobody killed it")
            if by_itself and f"exit code {ran.code}" not in run["reason"]:
                self.blame("failure", f"{what} failed with exit code {ran.code}; the reason is '{run['reason']}'")
        of = {"failed": "trial" if by_itself else "resources", "lost": "infrastructure"}.get(run["state"], "")
        if self.classes and run["failure"] != of:
            self.blame("failure", f"{what} is {run['state']} ({run['reason']}): it counts as '{run['failure']}', not as '{of}'")
        if run["state"] in ("lost", "stopped") and not run["reason"]:
            self.blame("failure", f"{what} is {run['state']}, without a reason")

    def check_completed(self, what, params, run, ran, stored):
        if not ran or ran.code != 0 or ran.stopped or params["kind"] == "fails":
            self.blame("twice", f"{what} is completed; its program ended with {ran.code if ran else 'no start'}"
                                f"{' when asked to stop' if ran and ran.stopped else ''}")
        if len(stored.get("value", {})) != params["points"]:
            self.blame("missing", f"{what} is completed with {len(stored.get('value', {}))} of {params['points']} points")
        if ran and run["repeated_points"] < ran.repeated:
            self.blame("missing", f"{what}: {ran.repeated} points were said twice, {run['repeated_points']} are counted")
        if ran and params["chatter"]:
            chunks = self.rows("SELECT bytes FROM log_chunk WHERE run_id = ? ORDER BY offset", run["id"])
            log = b"".join(row["bytes"] for row in chunks).decode(errors="replace")
            told = [line.split(" ·")[0] for line in log.splitlines() if line.startswith(f"{params['tag']} at step ")]
            if told != [f"{params['tag']} at step {step}" for step, _ in ran.points]:
                self.blame("missing", f"{what} printed {len(ran.points)} lines, its log has {len(told)}")

    # --- what is kept of points ---

    def check_summaries(self):
        kept = collections.defaultdict(dict)
        for row in self.rows("SELECT s.*, m.name FROM metric_summary s JOIN metric m ON m.id = metric_id"):
            kept[row["run_id"]][row["name"]] = row
        for run in self.runs:
            if kept[run].keys() != self.points[run].keys():
                self.blame("summary", f"run {run} has points of {sorted(self.points[run])}, summaries of {sorted(kept[run])}")
            for name in kept[run].keys() & self.points[run].keys():
                expected = summary_of(self.points[run][name])
                for field, value in expected.items():
                    found = number(kept[run][name]["last"], kept[run][name]["last_kind"]) if field == "last" else kept[run][name][field]
                    if not (near(found, value) if field == "sum" else same(found, value)):
                        self.blame("summary", f"run {run}: {field} of {name} is {found}, its points say {value}")

    def check_cells(self):
        columns = collections.defaultdict(list)
        for row in self.rows("SELECT s.name AS sweep, c.* FROM sweep_column c JOIN sweep s ON s.id = c.sweep_id "
                             "WHERE c.kind = 'metric' ORDER BY c.position"):
            columns[row["sweep"]].append(row)
        values = collections.defaultdict(list)
        for row in self.rows("SELECT s.name, r.id AS row, t.run_id FROM sweep_trial st JOIN sweep s ON s.id = st.sweep_id JOIN sweep_row r "
                             "ON r.sweep_id = s.id AND r.position = st.row JOIN trial t ON t.id = st.trial_id WHERE t.state = 'completed'"):
            values[row["name"], row["row"]].append(self.points[row["run_id"]])

        def expected(sweep, row, column, printed=False):
            """`printed`: in a table that people read, where a run that ended with what is no number leaves the row without a mean, whatever
            the column takes (docs/statistics.md)."""
            summaries = [summary_of(points[column["source"]]) for points in values[sweep, row] if points.get(column["source"])]
            if printed and not all(math.isfinite(summary["last"]) for summary in summaries):
                return len(summaries), None, None
            return cell_of(column, summaries)

        for cell in self.rows("SELECT * FROM table_cell"):
            column = next((c for c in columns[cell["sweep"]] if c["name"] == cell["column"]), None)
            if column is not None:
                self.compare_cell(f"table_cell: sweep {cell['sweep']}, row {cell['row']}, {cell['column']}",
                                  (cell["n"], cell["mean"], cell["sd"]), expected(cell["sweep"], cell["row"], column))
        for sweep, table in self.tables.items():
            names = [column["name"] for column in table["columns"]]
            for row in table.get("rows", []):
                for name, cell in zip(names, row["cells"]):
                    column = next((c for c in columns[sweep] if c["name"] == name), None)
                    if column is None:
                        continue
                    shown = cell.get("n", 0), *(cell.get(k) if isinstance(cell.get(k), (int, float)) else None for k in ("mean", "sd"))
                    value = expected(sweep, row["id"], column, printed=True)
                    what = f"ablate table: sweep {sweep}, row {row['id']}, {name}"
                    if value[1] is None and shown[1] is not None:
                        self.blame("cell", f"{what}: a mean, {shown[1]}, though a run of it ended with what is no number")
                    self.compare_cell(what, shown, value)

    def compare_cell(self, what, found, value):
        n, mean, deviation = value
        same_mean = mean is None or near(found[1], mean)  # of runs that diverged it may say more
        if found[0] != n or not same_mean or (deviation is not None and mean is not None and not near(found[2], deviation)):
            self.blame("cell", f"{what}: n, mean and s.d. are {found}, the runs say {value}")
