# SPDX-License-Identifier: Apache-2.0
"""A running service by its HTTP API (docs/http-api.md), with the answers of `_store.File`."""
import json
import math
import pathlib
import ssl
import urllib.error
import urllib.parse
import urllib.request

from ._errors import Error, nearest

PAGE = 500  # rows of an answer
RUNS_AT_ONCE = 100
NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def _number(value):
    """A number of protobuf's JSON: 64-bit whole ones and those that are not finite are texts there."""
    if isinstance(value, str):
        return NOT_FINITE[value] if value in NOT_FINITE else int(value)
    return value


class Service:
    def __init__(self, address, token, ca):
        self.address = address.rstrip("/")
        self._headers = {}
        try:
            if token is not None:
                self._headers["Authorization"] = f"Bearer {pathlib.Path(token).expanduser().read_text().strip()}"
            self._context = ssl.create_default_context(cafile=str(ca)) if ca is not None else None
        except (OSError, UnicodeDecodeError) as error:
            raise Error(f"{token if ca is None else ca}: {error}") from error
        self.get("sweeps", count=1)

    def close(self):
        pass

    def get(self, path, **parameters):
        query = urllib.parse.urlencode([(name, each) for name, value in parameters.items()
                                        for each in (value if isinstance(value, list) else [value])])
        url = f"{self.address}/api/v1/{path}{'?' if query else ''}{query}"
        try:
            request = urllib.request.Request(url, headers=self._headers)
            with urllib.request.urlopen(request, timeout=60, context=self._context) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            try:
                message = json.load(error)["message"]
            except (ValueError, KeyError, TypeError, OSError):
                message = f"{error.code} {error.reason}"
            raise Error(f"{self.address}: {message}") from error
        except ValueError as error:
            raise Error(f"{self.address}: no service of ablate: {error}") from error
        except OSError as error:
            raise Error(f"{self.address}: {getattr(error, 'reason', error)}") from error

    def _pages(self, path, **parameters):
        """An answer by its rows, some at a time."""
        first = 0
        while True:
            answer = self.get(path, first=first, count=PAGE, **parameters)
            yield answer
            first = answer.get("next", 0)
            if not answer.get("left_out") or not first:
                return

    def sweeps(self):
        names = ["sweep", "rows", "trials", "completed"]
        lines = []
        where = {}
        while True:
            answer = self.get("sweeps", count=PAGE, **where)
            for each in answer.get("sweeps", []):
                trials = each.get("trials", {})
                lines.append(dict(zip(names, (each["name"], each.get("rows", 0), trials.get("total", 0), trials.get("completed", 0)))))
            if not answer.get("next"):
                return names, lines
            where = {"after": answer["next"]}

    def _table(self, name):
        columns, rows = [], {}
        for answer in self._pages(f"sweeps/{urllib.parse.quote(name, safe='')}/table", long_form=1):
            columns = answer.get("columns", [])
            for row in answer.get("rows", []):
                rows.setdefault(row["id"], row)  # the baseline's is in every answer
        return columns, list(rows.values())

    def table(self, name):
        columns, rows = self._table(name)
        names = ["row", "label"] + ["group"] * any(row.get("group") for row in rows)
        lines = [{"row": row["id"], "label": row.get("label", ""), "group": row.get("group")} for row in rows]
        for place, column in enumerate(columns):
            cells = [row["cells"][place] for row in rows]
            key, kind = column["name"], column["kind"]
            if kind != "KIND_PRINTED":
                names.append(key)
            if kind == "KIND_METRIC":
                some = any(cell.get("diverged") for cell in cells)
                names += [f"{key}_sd", f"{key}_n"] + [f"{key}_diverged"] * some
            if any(cell.get("paper") for cell in cells):
                names.append(f"{key}_paper")
            for line, cell in zip(lines, cells):
                setting = None if cell.get("missing") else cell.get("text")
                line[key] = setting if kind == "KIND_SETTING" else _number(cell.get("mean"))
                line.update({f"{key}_sd": _number(cell.get("sd")), f"{key}_n": cell.get("n", 0), f"{key}_diverged": len(cell.get("diverged", [])),
                             f"{key}_paper": cell.get("paper") or None})
        return names, [{each: line.get(each) for each in names} for line in lines]

    def values(self, name):
        columns, rows = self._table(name)
        metrics = [(place, column["name"]) for place, column in enumerate(columns) if column["kind"] == "KIND_METRIC"]
        names, lines = ["row", "seed", "run"] + [column for _, column in metrics], []
        for row in rows:
            of_row = {}
            for place, column in metrics:
                for run in row["cells"][place].get("runs", []):
                    seed = _number(run.get("seed", 0))
                    of_row.setdefault(seed, {"row": row["id"], "seed": seed, "run": run["run"]})[column] = _number(run.get("value", 0.0))
            lines += [{each: line.get(each) for each in names} for line in of_row.values()]
        return names, lines

    def _trials(self, name):
        for answer in self._pages(f"sweeps/{urllib.parse.quote(name, safe='')}"):
            yield from answer.get("trials", [])

    def trials(self, name):
        names = ["row", "label", "seed", "state", "reason", "attempt", "worker", "step", "total_steps", "trial", "run"]
        lines = []
        for each in self._trials(name):
            line = {key: each.get(key) for key in names}
            line.update(state=each["state"].removeprefix("TRIAL_STATE_").lower(), seed=_number(each.get("seed", 0)), trial=each.get("id"))
            lines.append(line)
        return names, lines

    def curves(self, name, metric, row):
        trials = [each for each in self._trials(name) if row is None or each["row"] == row]
        if row is not None and not trials:
            raise Error(f"sweep '{name}' has no row '{row}'{nearest(row, {each['row'] for each in self._trials(name)})}")
        runs = {each["run"]: each for each in trials if each.get("run")}
        ids, lines = list(runs), []
        for begin in range(0, len(ids), RUNS_AT_ONCE):
            for of_run in self.get("metrics", run=ids[begin:begin + RUNS_AT_ONCE], name=metric).get("series", []):
                trial, series = runs[of_run["run"]], of_run.get("series", {})
                for step, value in zip(series.get("steps", []), series.get("values", [])):
                    lines.append({"row": trial["row"], "seed": _number(trial.get("seed", 0)), "run": of_run["run"], "step": step, "value": _number(value)})
        if not lines:
            raise Error(f"sweep '{name}' has no points of the metric '{metric}'")
        order = {each["row"]: place for place, each in reversed(list(enumerate(trials)))}
        lines.sort(key=lambda line: (order[line["row"]], line["seed"], line["step"]))
        return ["row", "seed", "run", "step", "value"], lines
