#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""openapi_test.py DASHBOARD_FIXTURE: what `GET /api` says is so. Every read's answers over the demo store have its schemas, and nothing that
these lack; parameters have the bounds that it says; and schemathesis, with a fixed seed, finds no other answer than those that it names."""
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import urllib.error
import urllib.parse
import urllib.request

from described import Described, jsonschema, schemathesis, schemathesis_finds

FIXTURE = sys.argv.pop(1)
LABEL = '<img src=x onerror="alert(1)">\u202e'


class Dashboard:
    """The fixture's server, over a store in which much has gone wrong."""

    def __init__(self, folder):
        self.program = subprocess.Popen([FIXTURE, str(pathlib.Path(folder) / "results.db")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.url = self.program.stdout.readline().strip().rstrip("/")
        for line in ("advance 200", "fail", "submit waiting", "diverge nan", "incomplete lines", "submit long", "lengthen long"):
            self.program.stdin.write(line + "\n")
            self.program.stdin.flush()
            self.program.stdout.readline()

    def close(self):
        self.program.stdin.close()
        self.program.stdout.close()
        self.program.wait()

    def get(self, path, parameters=()):
        """Status and content; JSON is parsed as strictly as it is defined."""
        target = self.url + path + ("?" + urllib.parse.urlencode(list(parameters)) if parameters else "")
        try:
            with urllib.request.urlopen(target, timeout=60) as reply:
                status, kind, content = reply.status, reply.headers.get_content_type(), reply.read()
        except urllib.error.HTTPError as error:
            with error:
                status, kind, content = error.code, error.headers.get_content_type(), error.read()
        return status, json.loads(content, parse_constant=self.fail_constant) if kind == "application/json" else content.decode()

    @staticmethod
    def fail_constant(name):
        raise ValueError(f"{name} is no JSON")


class OpenApi(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.dashboard = Dashboard(folder.name)
        cls.addClassCleanup(cls.dashboard.close)
        status, cls.document = cls.dashboard.get("/api")
        assert status == 200
        cls.reads = {path: item["get"] for path, item in cls.document["paths"].items() if "get" in item}

    def test_every_address_is_there_once_and_by_a_name_of_its_own(self):
        self.assertEqual(self.document["openapi"], "3.1.0")
        for path in ("/api", "/api/v1/sweeps", "/api/v1/sweeps/{sweep}/table", "/api/v1/runs/{run}", "/api/v1/runs/{run}/log", "/api/v1/events", "/api/v1/whoami"):
            self.assertIn(path, self.reads)
        names = [read["operationId"] for read in self.reads.values()]
        self.assertEqual(len(names), len(set(names)), names)
        for path, read in self.reads.items():
            in_path = [each["name"] for each in read.get("parameters", []) if each["in"] == "path"]
            self.assertEqual(re.findall(r"{(\w+)}", path), in_path)
            self.assertTrue(read["summary"], path)
            self.assertTrue(all(each["description"] for each in read.get("parameters", [])), path)

    def test_says_what_the_contract_says(self):
        schemas = self.document["components"]["schemas"]
        self.assertIn("The unit of work: rows by columns", schemas["Table"]["description"])
        self.assertEqual(schemas["Checkpoint"]["properties"]["run"]["description"],
                         "the run that wrote it; a worker may leave it 0 in its own batches")
        self.assertIn("- `SWEEP_STATE_HELD`: nothing waits or runs any more, and a trial is held", schemas["SweepState"]["description"])
        self.assertNotIn("finished", schemas["SweepSummary"]["required"])
        self.assertIn("created", schemas["SweepSummary"]["required"])

    @unittest.skipUnless(jsonschema, "no jsonschema: deploy/setup.sh --tests installs it")
    def test_every_answer_is_as_it_says(self):
        described = Described(self.document)
        answered = set()

        def ask(path, *parameters, status=200, **of_path):
            target = path
            for name, value in of_path.items():
                target = target.replace("{" + name + "}", urllib.parse.quote(str(value), safe=""))
            got, answer = self.dashboard.get(target, parameters)
            self.assertEqual(got, status, (target, parameters, answer))
            described.check("get", path, got, answer)
            if got == 200:
                answered.add(path)
            return answer

        for schema in self.document["components"]["schemas"].values():
            jsonschema.Draft202012Validator.check_schema(schema)
        ask("/api")
        sweeps = [sweep["name"] for sweep in ask("/api/v1/sweeps")["sweeps"]]
        self.assertGreaterEqual(len(sweeps), 5)
        ask("/api/v1/sweeps", ("first", 1), ("count", 1))
        pivoted = 0
        for sweep in sweeps:
            ask("/api/v1/sweeps/{sweep}", sweep=sweep)
            ask("/api/v1/sweeps/{sweep}/provenance", sweep=sweep)
            events = ask("/api/v1/sweeps/{sweep}/events", ("count", 5), sweep=sweep)
            if events["next"]:
                ask("/api/v1/sweeps/{sweep}/events", ("before", events["next"]), sweep=sweep)
            ask("/api/v1/sweeps/{sweep}/text", sweep=sweep)
            ask("/api/v1/sweeps/{sweep}/tuning", sweep=sweep, status=409)
            ask("/api/v1/sweeps/{sweep}/table", sweep=sweep)
            for factor in ask("/api/v1/sweeps/{sweep}/factors", sweep=sweep)["factors"]:
                ask("/api/v1/sweeps/{sweep}/table", ("pivot", factor["name"]), sweep=sweep)
                pivoted += 1
            table = ask("/api/v1/sweeps/{sweep}/table", ("statistics", 1), ("count", 50), sweep=sweep)
            for row in table["rows"]:
                for column in table["columns"]:
                    ask("/api/v1/sweeps/{sweep}/why", ("row", row["id"]), ("column", column["name"]), sweep=sweep)
            rows = [f"{sweep}/{row['id']}" for row in table["rows"]]
            ask("/api/v1/compare", ("a", rows[0]), ("b", rows[-1]), ("max_points", 20))
            ask("/api/v1/failures", ("sweep", sweep))
            for form in ("text", "markdown", "csv", "latex", "html"):
                ask("/api/v1/sweeps/{sweep}/printed", ("format", form), sweep=sweep)
        self.assertGreater(pivoted, 0)
        ask("/api/v1/compare", ("a", sweeps[0]), ("b", sweeps[-1]))
        ask("/api/v1/sweeps/{sweep}", sweep=LABEL, status=404)
        runs = [run["id"] for run in ask("/api/v1/runs")["runs"]]
        states = set()
        for run in runs:
            states.add(ask("/api/v1/runs/{run}", run=run)["summary"]["state"])
            ask("/api/v1/runs/{run}/probes", run=run)
            ask("/api/v1/runs/{run}/resources", run=run)
            ask("/api/v1/runs/{run}/log", run=run)
            ask("/api/v1/metrics", ("run", run), ("max_points", 50))
            ask("/api/v1/curves", ("run", run), ("width", 20), ("times", 1))
        self.assertLessEqual({"RUN_STATE_COMPLETED", "RUN_STATE_FAILED", "RUN_STATE_LOST", "RUN_STATE_RUNNING"}, states)
        points = [value for series in ask("/api/v1/metrics", *(("run", run) for run in runs))["series"] for value in series["series"]["values"]]
        self.assertIn("NaN", points)
        ask("/api/v1/compare", ("a", runs[0]), ("b", runs[-1]))
        ask("/api/v1/failures", ("since", 0))
        ask("/api/v1/search", ("query", "state:active"))
        for path in ("overview", "papers", "queue", "retention", "workers", "whoami"):
            ask("/api/v1/" + path)
        self.assertIn("demo", ask("/api/v1/papers/{paper}", ("table", "table-1"), ("scale", "demo"), paper="msf")["scales"])
        ask("/api/v1/papers/{paper}", ("table", "table-1"), paper=LABEL, status=404)
        # no sweep of the store is tuned; a stream has no end; no scheduler is there to say what sweep files have
        self.assertEqual(set(self.reads) - answered, {"/api/v1/sweeps/{sweep}/tuning", "/api/v1/events", "/api/v1/schema"})

    def test_parameters_are_what_it_says(self):
        values = {"sweep": "msf-sharing", "run": "1", "a": "1", "b": "2", "row": "orig", "column": "x", "paper": "msf", "table": "table-1"}

        def status(path, parameters):
            return self.dashboard.get(re.sub(r"{(\w+)}", lambda name: values[name[1]], path), parameters)

        for path, read in self.reads.items():
            of_query = [each for each in read.get("parameters", []) if each["in"] == "query"]
            needed = [(each["name"], values[each["name"]]) for each in of_query if each.get("required")]
            with self.subTest(path=path):
                for others in (needed, []):
                    got, error = status(path, [*others, ("no_such", "1")])
                    self.assertEqual((got, error["code"]), (400, "INVALID_ARGUMENT"))
                    self.assertIn("unknown parameter 'no_such'", error["message"])
                if needed:
                    got, error = status(path, [])
                    self.assertEqual(got, 400)
                    self.assertIn("is missing", error["message"])
            for each in of_query:
                name, schema = each["name"], each["schema"].get("items", each["schema"])
                others = [pair for pair in needed if pair[0] != name]
                with self.subTest(path=path, parameter=name):
                    if each["schema"]["type"] != "array":
                        got, error = status(path, [*others, *[(name, values.get(name, 1))] * 2])
                        self.assertEqual(got, 400)
                    if schema["type"] == "integer":
                        for out in (schema["minimum"] - 1, schema["maximum"] + 1, "", "1.0", "many"):
                            got, error = status(path, [*others, (name, out)])
                            self.assertEqual(got, 400)
                            self.assertIn(f"from {schema['minimum']} to {schema['maximum']}", error["message"])
                        for within in {schema["minimum"], schema["maximum"], schema.get("default", schema["minimum"])}:
                            got, error = status(path, [*others, (name, within)])
                            self.assertNotIn("is not a whole number", json.dumps(error) if got != 200 else "")
                    for choice in schema.get("enum", []):
                        self.assertEqual(status(path, [*others, (name, choice)])[0], 200)
                    if "enum" in schema:
                        self.assertEqual(status(path, [*others, (name, "none such")])[0], 400)

    @unittest.skipUnless(schemathesis, "no schemathesis: deploy/setup.sh --tests installs it")
    def test_schemathesis_finds_nothing_else(self):
        # what parameters have to do with each other (`after` and `first` of /sweeps, `from` and `to` of curves and resources), the words of a
        # search, the factors of a table, and where an answer goes on, no schema of one can say
        settings = "".join(f'[[operations]]\ninclude-name = "GET /api/v1/{path}"\nchecks.positive_data_acceptance.enabled = false\n'
                           for path in ("sweeps", "curves", "failures", "search", "sweeps/{sweep}/events", "sweeps/{sweep}/printed",
                                        "sweeps/{sweep}/table", "runs/{run}/resources"))
        # the stream has no end, and this dashboard has no scheduler that does anything: see described_actions_test.py
        found = schemathesis_finds(self.dashboard.url, settings, "--exclude-path-regex", "/api/v1/(events|actions/.*)")
        self.assertFalse(found, found)


if __name__ == "__main__":
    unittest.main(verbosity=2)
