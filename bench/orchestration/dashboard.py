# SPDX-License-Identifier: Apache-2.0
"""What a dashboard costs its server, while points come in: every read of its pages, and a tab that is looked at."""
import gzip
import http.client
import json
import statistics
import sys
import time
import urllib.parse

from home import HERE, Home, memory_mib
from stores import make_store

POINTS_A_SECOND = 10_000
ROWS = 200  # of a table at once, as the page has them


class Tab:
    """One connection of a browser."""

    def __init__(self, url):
        self.connection = http.client.HTTPConnection(urllib.parse.urlsplit(url).netloc, timeout=120)
        self.etags = {}
        self.bytes = 0

    def read(self, path, again=False):
        """Seconds until all of the answer is there, and its status. `again`: what is known already is named, and what changed is asked for."""
        headers = {"Accept-Encoding": "gzip"}
        if again and path in self.etags:
            headers |= {"A-IM": "json-patch", "If-None-Match": self.etags[path]}
        begun = time.perf_counter()
        self.connection.request("GET", f"/api/v1/{path}", headers=headers)
        answer = self.connection.getresponse()
        content = answer.read()
        took = time.perf_counter() - begun
        if answer.status not in (200, 226, 304):
            raise RuntimeError(f"{path}: {answer.status} {content[:200]!r}")
        self.etags[path] = answer.getheader("ETag")
        self.bytes += len(content)
        self.content = gzip.decompress(content) if answer.getheader("Content-Encoding") == "gzip" else content
        return took, answer.status


def page_of(sweep):
    """What the page of a sweep reads."""
    part = f"first=0&count={ROWS}"
    return [f"sweeps/{sweep}?{part}", f"sweeps/{sweep}/table?{part}&statistics=1&long_form=1"]


def reads_of(tab, sweep):
    """Each read of the pages, by a name."""
    detail, table = page_of(sweep)
    tab.read(f"runs?sweep={sweep}&limit=20")
    runs = [run["id"] for run in json.loads(tab.content)["runs"]]
    several = "&".join(f"run={run}" for run in runs)
    return {"sweeps": f"sweeps?first=0&count={ROWS}", "a sweep": detail, "its table": table, "its last rows": table.replace("first=0", "first=9999999"),
            "why a cell": f"sweeps/{sweep}/why?row=i%3D0&column=loss", "runs": f"runs?sweep={sweep}&limit=1000", "a run": f"runs/{runs[0]}",
            "curves of 20 runs": f"metrics?{several}&name=loss&max_points=500", "two rows": f"compare?a={sweep}/i%3D0&b={sweep}/i%3D1",
            "workers": "workers"}


def dashboard(bench, figures):
    """Reads one after the other, p95 of 40 each, of a store with so many trials in one sweep and in sweeps of 1,000."""
    for size in bench.sizes:
        shapes = {"one sweep": (1, size)} | ({"sweeps of 1,000": (size // 1000, 1000)} if size > 1000 else {})
        for shape, (sweeps, trials) in shapes.items():
            with Home(bench.work, "dashboard") as home:
                make_store(home, sweeps, trials, 1, bench.points_of_trial)
                home.up("--slots", 1, "--allow-commands")
                emit = [sys.executable, str(HERE / "emit.py"), str(POINTS_A_SECOND)]
                home.ablate("submit", home.write_sweep("growing", emit, 10, columns="{name: loss, metric: train/loss}"), "--json")
                home.until(lambda: home.ask("SELECT 1 FROM run WHERE state = 'running'"), "points come in")
                measure(bench, figures, home, shape, size, f"made-{sweeps - 1}")
    figures.remark(f"dashboard: measured while {POINTS_A_SECOND:,} points a second are stored; targets: p95 of each read under 100 ms, "
                   "under 50 kB/s for an open tab, under 300 MB for the scheduler")


def measure(bench, figures, home, shape, size, sweep):
    tab = Tab(home.url)
    for name, path in reads_of(tab, sweep).items():
        times = [tab.read(path)[0] for _ in range(10 if bench.quick else 40)]
        figures.add("dashboard", f"{name}, {shape}: p95", "ms", size, statistics.quantiles(times, n=20)[-1] * 1e3)
        figures.add("dashboard", f"  {name}, {shape}: whole", "kB", size, len(tab.content) / 1e3)
    seconds = 5 if bench.quick else 20
    for way, again in ("whole answers", False), ("what changed", True):
        looked = Tab(home.url)
        for path in page_of("growing"):
            looked.read(path, again)
        looked.bytes = 0
        for _ in range(seconds):
            for path in page_of("growing"):
                looked.read(path, again)
            time.sleep(1)
        figures.add("dashboard", f"a tab on a sweep that trains, {way}, {shape}", "kB/s", size, looked.bytes / seconds / 1e3)
    figures.add("dashboard", f"  most memory of the scheduler, {shape}", "MiB", size, memory_mib(home.scheduler, "VmHWM"))
