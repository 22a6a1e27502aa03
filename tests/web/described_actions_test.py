#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""described_actions_test.py DASHBOARD_FIXTURE SCHEDULER: what people do from a dashboard is as `GET /api` says, on a scheduler with a store
that may be changed. Each action is done once and its answer has its schema; then schemathesis, with a fixed seed, does whatever the schemas
of requests allow and what they do not, half of it to sweeps that there are, and afterwards the scheduler answers and the store is whole."""
import json
import pathlib
import re
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

from described import Described, jsonschema, schemathesis, schemathesis_finds

FIXTURE, SCHEDULER = sys.argv.pop(1), sys.argv.pop(1)
SWEEP = """ablate: 1
name: made
command: {{argv: ["true"], params: {{lr: 1}}, version: "1"}}
rows:
{rows}seeds: 2
table: {{columns: [{{name: acc, metric: val/top1}}]}}
"""


def sweep_file(*rows):
    return {"path": "made.yaml", "text": SWEEP.format(rows="".join(f"  - {{id: {row}, set: {{params.lr: {i}}}}}\n" for i, row in enumerate(rows)))}


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Scheduler:
    """Alone with the fixture's store: nothing trains, and nobody but the caller acts."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.store = self.folder / "results.db"
        subprocess.run([FIXTURE, str(self.store)], input="factors study\n", stdout=subprocess.DEVNULL, text=True, check=True)
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self.log = open(self.folder / "scheduler.log", "w")
        self.program = subprocess.Popen([SCHEDULER, "--store", str(self.store), "--listen", f"unix:{self.folder}/s.sock", "--http-port", str(port)],
                                        stdout=self.log, stderr=self.log)
        until = time.monotonic() + 60
        while not (self.folder / "s.sock").exists() or self.get("/healthz")[0] != 200:
            if self.program.poll() is not None or time.monotonic() > until:
                raise RuntimeError((self.folder / "scheduler.log").read_text())
            time.sleep(0.05)

    def close(self):
        self.program.terminate()
        self.program.wait()
        self.log.close()

    def _ask(self, request):
        try:
            with urllib.request.urlopen(request, timeout=60) as reply:
                status, kind, content = reply.status, reply.headers.get_content_type(), reply.read()
        except urllib.error.HTTPError as error:
            with error:
                status, kind, content = error.code, error.headers.get_content_type(), error.read()
        except OSError:  # it has not begun yet
            return 0, ""
        return status, json.loads(content) if kind == "application/json" else content.decode()

    def get(self, path):
        return self._ask(self.url + path)

    def act(self, name, request):
        headers = {"Content-Type": "application/json", "Sec-Fetch-Site": "same-origin"}
        return self._ask(urllib.request.Request(f"{self.url}/api/v1/actions/{name}", json.dumps(request).encode(), headers))


class Actions(unittest.TestCase):
    def setUp(self):
        folder = tempfile.mkdtemp(prefix="ablate-actions-")  # of mode 0700
        self.addCleanup(shutil.rmtree, folder, True)
        self.scheduler = Scheduler(folder)
        self.addCleanup(self.scheduler.close)
        self.document = self.scheduler.get("/api")[1]

    def expect_whole(self):
        """The scheduler answers, and its store has nothing that does not belong together."""
        self.assertEqual(self.scheduler.get("/healthz")[0], 200)
        self.assertIsNone(self.scheduler.program.poll())
        with sqlite3.connect(f"file:{self.scheduler.store}?mode=ro", uri=True) as store:
            self.assertEqual(store.execute("PRAGMA integrity_check").fetchall(), [("ok",)])
            self.assertEqual(store.execute("PRAGMA foreign_key_check").fetchall(), [])

    @unittest.skipUnless(jsonschema, "no jsonschema: deploy/setup.sh --tests installs it")
    def test_each_action_is_done_and_answered_as_it_says(self):
        described = Described(self.document)
        done = set()

        def act(name, /, **request):
            status, answer = self.scheduler.act(name, request)
            self.assertEqual(status, 200, (name, request, answer))
            path = f"/api/v1/actions/{name}"
            schema = self.document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]
            jsonschema.Draft202012Validator({"components": self.document["components"], **schema}).validate(request)
            described.check("post", path, status, answer)
            done.add(name)
            return answer

        self.assertEqual(act("Validate", file=sweep_file("a"))["problems"], [])
        self.assertEqual(act("Plan", file=sweep_file("a"))["trials"], 2)
        self.assertTrue(act("Submit", file=sweep_file("a"))["created"])
        act("ExtendSweep", file=sweep_file("a", "b"))
        self.assertEqual(act("AnnotateSweep", sweep="made", add_tags=["odd"], pinned=True)["tags"], ["odd"])
        self.assertEqual(act("AdjustSweep", sweep="made", priority=3)["priority"], 3)
        act("PauseSweep", sweep="made")
        act("ResumeSweep", sweep="made")
        act("CancelTrial", sweep="made", row="a", seed="1")
        self.assertEqual(act("RetrySweep", sweep="made", row="a")["retried"], 1)
        self.assertEqual(act("RenameSweep", sweep="made", name="renamed")["name"], "renamed")
        act("CancelSweep", sweep="renamed")
        self.assertEqual(act("DrainWorker", name="bench-2", reason="new driver")["workers"][0]["name"], "anvil-1")
        act("CreateToken", id="3f2a90c1d4e5", sha256="0" * 64, role="TOKEN_ROLE_VIEWER", name="vera")
        self.assertEqual([token["name"] for token in act("ListTokens")["tokens"]], ["vera"])
        act("RevokeToken", id="3f2a90c1d4e5")
        self.assertIn("CancelSweep", json.dumps(act("ListAudit", most=50)))
        offered = {path.rpartition("/")[2] for path in self.document["paths"] if "/actions/" in path}
        self.assertEqual(done, offered)
        self.expect_whole()

    @unittest.skipUnless(schemathesis, "no schemathesis: deploy/setup.sh --tests installs it")
    def test_schemathesis_does_nothing_that_it_does_not_say(self):
        known = {"sweep": ["study", "msf-sharing", "made"], "row": ["a", "orig"], "name": ["anvil-1", "bench-2", "made"]}
        self.assertEqual(self.scheduler.act("Submit", {"file": sweep_file("a", "b")})[0], 200)
        hooks = pathlib.Path(__file__).resolve().parent
        # which sweeps there are, and what may be done to one in its state, no schema can say
        found = schemathesis_finds(self.scheduler.url, "checks.positive_data_acceptance.enabled = false\n",
                                   "--include-path-regex", "/api/v1/actions/", "--header", "Sec-Fetch-Site: same-origin",
                                   environment={"SCHEMATHESIS_HOOKS": "known_names", "PYTHONPATH": str(hooks), "ABLATE_KNOWN": json.dumps(known)})
        self.assertFalse(found, found)
        self.expect_whole()
        lines = self.scheduler.act("ListAudit", {"most": 1000})[1]["lines"]
        succeeded = {re.sub(r" .*", "", line["what"]) for line in lines if line["outcome"] == "ok"}
        self.assertGreaterEqual(len(succeeded), 5, f"some of it was done: {sorted(succeeded)}")


if __name__ == "__main__":
    unittest.main(verbosity=2)
