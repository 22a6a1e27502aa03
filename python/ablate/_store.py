# SPDX-License-Identifier: Apache-2.0
"""Results in a notebook: a results file, read-only, or a service's HTTP API. Values are in base units, as the views of
docs/results-file.md have them, with all their digits."""
import contextlib
import math
import pathlib
import sqlite3
import threading
import warnings

from ._errors import Error, nearest
from ._service import Service

APPLICATION = 0x61626C31  # "abl1"
OLDEST_SQLITE = (3, 38)  # that has STRICT tables, and ->>
NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}

SAMPLES = """
SELECT st.row, st.seed, t.state, t.reason, run.id,
       CASE c.take WHEN 'best' THEN CASE c.better WHEN 'lower' THEN ms.min ELSE ms.max END WHEN 'min' THEN ms.min WHEN 'max' THEN ms.max
                   WHEN 'mean' THEN ms.sum / ms.finite ELSE COALESCE(ms.last, ms.last_kind) END,
       ms.last IS NULL, ms.run_id IS NOT NULL
FROM sweep_trial st JOIN trial t ON t.id = st.trial_id
JOIN sweep_column c ON c.sweep_id = st.sweep_id AND c.position = :position
LEFT JOIN run ON run.id = t.run_id AND t.state = 'completed'
LEFT JOIN metric m ON m.name = c.source
LEFT JOIN metric_summary ms ON ms.run_id = run.id AND ms.metric_id = m.id
WHERE st.sweep_id = :sweep ORDER BY st.row, st.seed_index"""

COUNTS = """
SELECT r.position, (SELECT value FROM model_count mc WHERE mc.model_hash = r.model_hash AND mode = c.source ORDER BY version DESC LIMIT 1)
FROM sweep_row r JOIN sweep_column c ON c.sweep_id = r.sweep_id AND c.position = :position
WHERE r.sweep_id = :sweep AND r.other_sweep = ''"""

SETTINGS = """
SELECT r.position, NULLIF(r.set_json ->> ('$."' || c.source || '"'), '')
FROM sweep_row r JOIN sweep_column c ON c.sweep_id = r.sweep_id AND c.position = :position
WHERE r.sweep_id = :sweep AND r.other_sweep = ''"""


def open(address, token=None, ca=None, frames=None):
    """A results file by its path, or a service by its address ("http://127.0.0.1:8571"; `token`: a file with one, `ca`: a file of
    certificates, where it wants them). `frames`: DataFrames of pandas (True), lists of dicts (False), or DataFrames where pandas is
    installed. Throws: Error where there is none, or something else."""
    if str(address).startswith(("http://", "https://")):
        return Store(Service(str(address), token, ca), frames)
    if token is not None or ca is not None:
        raise Error("token and ca are a service's: expected an address like https://HOST:8571")
    return Store(File(address), frames)


class File:
    """A results file, open for reading. Any thread may use it, but only one at a time."""

    def __init__(self, path):
        self.path = pathlib.Path(path).expanduser().absolute()
        if not self.path.is_file():
            raise Error(f"{path}: {'not a file' if self.path.exists() else 'no such file'}; expected a results file of ablate")
        if sqlite3.sqlite_version_info < OLDEST_SQLITE:
            raise Error(f"this Python has SQLite {sqlite3.sqlite_version}; a results file needs {'.'.join(map(str, OLDEST_SQLITE))} or newer")
        self._lock = threading.Lock()
        self._connection = self._connect()

    def _connect(self):
        uri = self.path.as_uri()
        why = None
        for mode in ("?mode=ro", "?mode=ro&immutable=1"):
            # where nobody may write beside it, SQLite reads it only when told that nobody changes it: a file without a log
            if "immutable" in mode and pathlib.Path(f"{self.path}-wal").exists():
                break
            connection = sqlite3.connect(uri + mode, uri=True, timeout=20, check_same_thread=False, isolation_level=None)
            try:
                application = connection.execute("PRAGMA application_id").fetchone()[0]
                tables = connection.execute("SELECT COUNT(*) FROM sqlite_master WHERE name IN ('trial_summary', 'metric_point', 'table_cell')")
                if application != APPLICATION or tables.fetchone()[0] != 3:
                    connection.close()
                    raise Error(f"{self.path}: not a results file of ablate")
                return connection
            except sqlite3.DatabaseError as error:
                connection.close()
                why = error
                if not isinstance(error, sqlite3.OperationalError):
                    break
        raise Error(f"{self.path}: cannot be read as a results file: {why}") from why

    def close(self):
        with self._lock:
            self._connection.close()

    @contextlib.contextmanager
    def _snapshot(self):
        """All that is read inside is of one moment."""
        with self._lock:
            try:
                self._connection.execute("BEGIN")
                try:
                    yield self._connection
                finally:
                    self._connection.execute("ROLLBACK")
            except sqlite3.Error as error:
                raise Error(f"{self.path}: {error}") from error

    def sql(self, query, parameters=()):
        with self._snapshot() as connection:
            cursor = connection.execute(query, parameters)
            names = [each[0] for each in cursor.description or ()]
            return names, [dict(zip(names, line)) for line in cursor]

    def sweeps(self):
        return self.sql("SELECT name AS sweep, (SELECT COUNT(*) FROM sweep_row r WHERE r.sweep_id = s.id AND r.other_sweep = '') AS rows,"
                        " (SELECT COUNT(*) FROM sweep_trial st WHERE st.sweep_id = s.id) AS trials,"
                        " (SELECT COUNT(*) FROM sweep_trial st JOIN trial t ON t.id = st.trial_id WHERE st.sweep_id = s.id AND t.state = 'completed')"
                        " AS completed FROM sweep s ORDER BY id DESC")

    def _sweep(self, connection, name):
        found = connection.execute("SELECT id FROM sweep WHERE name = ?", (name,)).fetchone()
        if found is None:
            raise Error(f"no sweep '{name}' in {self.path}{nearest(name, [n for n, in connection.execute('SELECT name FROM sweep')])}")
        return found[0]

    def _columns(self, connection, sweep):
        return connection.execute("SELECT position, name, kind, source FROM sweep_column WHERE sweep_id = ? ORDER BY position", (sweep,)).fetchall()

    def table(self, name):
        with self._snapshot() as connection:
            sweep = self._sweep(connection, name)
            lines = {position: {"row": row, "label": label, "group": group or None} for position, row, label, group in connection.execute(
                "SELECT position, id, label, heading FROM sweep_row WHERE sweep_id = ? AND other_sweep = '' ORDER BY position", (sweep,))}
            names = ["row", "label"] + ["group"] * any(line["group"] for line in lines.values())
            left_out = []
            for position, column, kind, source in self._columns(connection, sweep):
                where = {"sweep": sweep, "position": position}
                papers = dict(connection.execute("SELECT row, printed FROM sweep_paper WHERE sweep_id = ? AND name = ?", (sweep, column)))
                if kind == "metric":
                    self._fill_metric(connection.execute(SAMPLES, where), source, column, lines, names)
                elif kind in ("count", "setting"):
                    names.append(column)
                    for row, value in connection.execute(COUNTS if kind == "count" else SETTINGS, where):
                        lines[row][column] = value
                elif kind == "expression":
                    left_out.append(column)
                if papers:
                    names.append(f"{column}_paper")
                    for row, printed in papers.items():
                        if row in lines:
                            lines[row][f"{column}_paper"] = printed
        if left_out:
            warnings.warn(f"columns of expressions are not in a results file, and left out: {', '.join(left_out)}"
                          " ('ablate table' and a service compute them)", stacklevel=3)
        return names, [{each: line.get(each) for each in names} for line in lines.values()]

    def _fill_metric(self, samples, source, column, lines, names):
        values, diverged = {}, {}
        for row, _, state, reason, _, value, last_is_none, reported in samples:
            if row not in lines:
                continue
            if reported:
                values.setdefault(row, []).append(math.nan if last_is_none or value is None or isinstance(value, str) else value)
            elif state == "failed" and _says_diverged(reason) and not _tells_of_the_machine(source):
                diverged[row] = diverged.get(row, 0) + 1
        for row, of_row in values.items():
            diverged[row] = diverged.get(row, 0) + sum(not math.isfinite(value) for value in of_row)
        some = any(diverged.values())
        names += [column, f"{column}_sd", f"{column}_n"] + [f"{column}_diverged"] * some
        for row, line in lines.items():
            of_row = values.get(row, [])
            mean, sd = _mean_sd(of_row) if of_row and not diverged.get(row) else (None, None)
            line.update({column: mean, f"{column}_sd": sd, f"{column}_n": len(of_row), f"{column}_diverged": diverged.get(row, 0)})

    def values(self, name):
        with self._snapshot() as connection:
            sweep = self._sweep(connection, name)
            rows = dict(connection.execute("SELECT position, id FROM sweep_row WHERE sweep_id = ? AND other_sweep = ''", (sweep,)))
            columns = [(position, column) for position, column, kind, _ in self._columns(connection, sweep) if kind == "metric"]
            lines = {}
            for position, column in columns:
                for row, seed, state, _, run, value, _, reported in connection.execute(SAMPLES, {"sweep": sweep, "position": position}):
                    if row in rows and state == "completed":
                        line = lines.setdefault((row, seed), {"row": rows[row], "seed": seed, "run": run})
                        if reported:
                            line[column] = math.nan if value is None else NOT_FINITE.get(value, value)
        names = ["row", "seed", "run"] + [column for _, column in columns]
        return names, [{each: line.get(each) for each in names} for line in lines.values()]

    def trials(self, name):
        with self._snapshot() as connection:
            self._sweep(connection, name)
            cursor = connection.execute("SELECT row, label, seed, state, reason, attempt, worker, step, total_steps, trial, run FROM trial_summary"
                                        " WHERE sweep = ?", (name,))
            names = [each[0] for each in cursor.description]
            return names, [dict(zip(names, line)) for line in cursor]

    def curves(self, name, metric, row):
        with self._snapshot() as connection:
            sweep = self._sweep(connection, name)
            if row is not None and not connection.execute("SELECT 1 FROM sweep_row WHERE sweep_id = ? AND id = ?", (sweep, row)).fetchone():
                known = [each for each, in connection.execute("SELECT id FROM sweep_row WHERE sweep_id = ?", (sweep,))]
                raise Error(f"sweep '{name}' has no row '{row}'{nearest(row, known)}")
            found = connection.execute(
                "SELECT p.row, p.seed, p.run, p.step, COALESCE(p.value, p.kind) FROM metric_point p WHERE sweep = :sweep AND metric = :metric AND newest"
                " AND (:row IS NULL OR row = :row) ORDER BY (SELECT position FROM sweep_row r WHERE r.sweep_id = :id AND r.id = p.row), seed, step",
                {"sweep": name, "metric": metric, "row": row, "id": sweep}).fetchall()
            if not found:
                self._expect_metric(connection, sweep, name, metric)
        names = ["row", "seed", "run", "step", "value"]
        return names, [dict(zip(names, (*line[:4], NOT_FINITE.get(line[4], line[4])))) for line in found]

    def _expect_metric(self, connection, sweep, name, metric):
        known = [each for each, in connection.execute(
            "SELECT DISTINCT m.name FROM sweep_trial st JOIN trial t ON t.id = st.trial_id JOIN metric_summary ms ON ms.run_id = t.run_id"
            " JOIN metric m ON m.id = ms.metric_id WHERE st.sweep_id = ?", (sweep,))]
        if metric not in known:
            raise Error(f"sweep '{name}' has no metric '{metric}'{nearest(metric, known)}")


class Store:
    """Results as DataFrames of pandas, or as lists of dicts. What is asked for is read anew each time."""

    def __init__(self, source, frames=None):
        self._source = source
        if frames is None:
            with contextlib.suppress(ImportError):
                import pandas
                frames = pandas is not None
        self._frames = bool(frames)

    def close(self):
        self._source.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _shown(self, answer):
        names, lines = answer
        if not self._frames:
            return lines
        import pandas
        return pandas.DataFrame(lines, columns=names)

    def sweeps(self):
        """`sweep rows trials completed`, the newest first."""
        return self._shown(self._source.sweeps())

    def table(self, sweep):
        """A line for each row of the sweep's table: `row label`, `group` where rows have one, and for each column NAME: `NAME`, of a
        metric the mean over the seeds; `NAME_sd`, `NAME_n`, `NAME_diverged` where a seed diverged (there is no mean then), `NAME_paper`,
        the paper's value as printed."""
        return self._shown(self._source.table(sweep))

    def values(self, sweep):
        """What the table's means are of: a line for each completed trial, `row seed run` and a column for each metric's."""
        return self._shown(self._source.values(sweep))

    def trials(self, sweep):
        """Where each trial stands: `row label seed state reason attempt worker step total_steps trial run`."""
        return self._shown(self._source.trials(sweep))

    def curves(self, sweep, metric, row=None):
        """The points of a metric, of the newest run of each trial: `row seed run step value`; of one row, or of all."""
        return self._shown(self._source.curves(sweep, metric, row))

    def sql(self, query, parameters=()):
        """What a query of a results file gives; docs/results-file.md has its views."""
        if not isinstance(self._source, File):
            raise Error("sql: a service answers no SQL; open the results file")
        return self._shown(self._source.sql(query, parameters))


def _mean_sd(values):
    """By the rule of statistics/mean_sd.cc, so that the digits are those of `ablate table`."""
    total = 0.0  # not sum(), which is compensated from Python 3.12 on
    for value in values:
        total += value
    mean = total / len(values)
    if len(values) < 2:
        return mean, None
    largest = max(abs(value - mean) for value in values)
    scale = 1 - math.frexp(largest)[1] if largest > 0 and math.isfinite(largest) else 0
    squares = 0.0
    for value in values:
        deviation = math.ldexp(value - mean, scale)
        squares += deviation * deviation
    return mean, math.ldexp(math.sqrt(squares / (len(values) - 1)), -scale)


def _says_diverged(reason):
    reason = reason or ""
    return reason.startswith("diverged") or reason.endswith("its limits.nan") or " is not finite " in reason


def _tells_of_the_machine(metric):
    return metric.startswith("time/") or metric in ("images_per_s", "memory_bytes")
