# SPDX-License-Identifier: Apache-2.0
"""Results side by side, out and in again: 'ablate compare', metrics.csv, every format of 'ablate export' and the same table from it in an
empty store, digit for digit. Parquet and TensorBoard itself where Python has pyarrow and tensorboard ($ABLATE_PYTHON, or this one); the report in a browser without network."""
import csv
import json
import os
import pathlib
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

from fleet import SOURCE, Fleet, expect, say

PROGRAM = """
import json, math, sys
variant, seed = sys.argv[1], int(sys.argv[2])
for step in range(1, 41):
    acc = 50 + (step if variant == "slow" else 30 + step / 10) / 3 + seed * 0.1
    loss = float("nan") if variant == "broken" and seed == 1 and step == 20 else math.exp(-step / 7) + seed / 3
    print(json.dumps({"event": "metric", "step": step, "values": {"val/acc": acc, "train, \\"loss\\"": loss}}))
"""
SWEEP = """ablate: 1
name: study
command: {{argv: [{python}, {program}, "{{params.variant}}", "{{seed}}"], params: {{variant: slow}}}}
rows:
  - {{id: base, label: "<b>Base</b> & co", set: {{}}, paper: {{acc: "61.13"}}}}
  - {{id: fast.2, label: Fast, set: {{params.variant: fast}}}}
  - {{id: broken, set: {{params.variant: broken}}}}
seeds: [2, 0, 1]
table:
  baseline: base
  columns:
    - {{name: acc, metric: val/acc, take: best, better: higher, digits: 4}}
    - {{name: mean, metric: val/acc, take: mean, better: higher}}
    - {{name: loss, metric: 'train, "loss"', take: min, better: lower}}
    - {{name: variant, setting: params.variant}}
    - {{name: gain, expression: acc - baseline.acc, digits: 3}}
"""


def python_with(module):
    """A Python that has a module, or nothing."""
    own = SOURCE / ".deps/python-packages/bin/python"  # deploy/setup.sh --tests makes it, where it can
    for python in filter(None, (os.environ.get("ABLATE_PYTHON"), str(own) if own.exists() else None, sys.executable)):
        if subprocess.run([python, "-c", f"import {module}"], capture_output=True).returncode == 0:
            return python
    return None


def look_at_comparisons(fleet):
    rows = fleet.json("compare", "study/base", "study/fast.2", "--curves")
    metric = rows["metrics"][0]
    expect(metric["column"] == "acc" and metric["family"] == 3 and metric["verdict"] == "VERDICT_WORSE", "two rows are compared by the table's columns")
    expect([(each["key"], each["a"], each["b"]) for each in rows["settings"]] == [("params.variant", '"slow"', '"fast"')],
           "what they run differently is named")
    crossing = metric["curves"]["crossings"]
    expect([(each["step"], each["higher"]) for each in crossing] == [(34, "a")], f"where the curves cross is said: {crossing}")
    expect(fleet.json("compare", "study/base", "study/fast.2", "--curves", "--store", fleet.store) == rows, "a results file says the same")
    text = fleet.ablate("compare", "study/base", "study/fast.2").stdout
    expect("corrected p" in text and "A is better" in text and "they cross at step 34 (A higher from there)" in text, "and so does the text")
    same = fleet.json("compare", "study", "study")
    expect(same["common"] == 3 and not same["settings"] and same["rows"][0]["metrics"][0]["why"] == "the same runs on both sides",
           "a sweep is the same as itself")
    wrong = fleet.ablate("compare", "study/base", "study/bse", check=False)
    expect(wrong.returncode == 2 and wrong.stderr == "error: sweep study has no row 'bse'; did you mean 'base'?\n", "a misspelt row is named")


def look_at_run_folders(fleet):
    trials = fleet.trials("study")
    for trial in trials:
        where = fleet.json("where", trial["run"])
        file = pathlib.Path(where["directory"]) / "metrics.csv"
        lines = list(csv.DictReader(file.open()))
        if len(lines) != 80 or [line["step"] for line in lines] != sorted((line["step"] for line in lines), key=int):
            raise AssertionError(f"{file}: {len(lines)} lines")
    expect(len(trials) == 9, "each run's folder has its points")


def numbers(table):
    """What a table says, to the last bit."""
    return [(row["id"], row["label"], [(cell.get("mean"), cell.get("sd"), cell["n"], cell["text"].replace(" ¶", ""), cell["paper"], cell.get("p_corrected"),
                                        [(run["seed"], run["value"]) for run in cell["runs"]]) for cell in row["cells"]]) for row in table["rows"]]


def content_of(store):
    """All that a results file has, as SQL."""
    db = sqlite3.connect(f"file:{store}?mode=ro", uri=True)
    try:
        return list(db.iterdump())
    finally:
        db.close()


def look_at_import(fleet, name, source, table, *options):
    """The same table in an empty store; and nothing new the second time."""
    store = fleet.home / f"{name}.db"
    said = json.loads(fleet.ablate("import", source, "--store", store, "--table", table, "--json", *options).stdout)
    expect((said["runs"], said["points"], said["sweep"]) == (9, 720, "study"), f"{name}: 9 runs with 720 points are imported")
    there = fleet.json("table", "study", "--store", store)
    ours = json.loads(table.read_text())
    if numbers(there) != numbers(ours):
        raise AssertionError(f"{name}: another table\n{numbers(there)}\n{numbers(ours)}")
    expect(any("imported from" in note and "not measured here" in note for note in there["notes"]), f"{name}: the same table, digit for digit, and marked")
    text = fleet.ablate("table", "study", "--store", store).stdout
    file = list(csv.DictReader(fleet.ablate("table", "study", "--store", store, "--format", "csv").stdout.splitlines()))
    expect(" ¶" in text and all(row["imported"] for row in file), f"{name}: the mark is in text and CSV")
    shown = fleet.json("show", "study", "--store", store)["trials"]
    expect(all(trial["reason"].startswith("imported from ") and trial["worker"] == "imported" for trial in shown), f"{name}: and in the list of trials")
    before = content_of(store)
    again = fleet.ablate("import", source, "--store", store, "--table", table, *options).stdout
    expect("nothing new: 9 runs are of sweep study there already" in again, f"{name}: a second time changes nothing")
    expect(fleet.json("table", "study", "--store", store) == there and content_of(store) == before, f"{name}: and every record stays")
    return store


def look_at_report(report):
    """In a browser without network."""
    browser = shutil.which("chromium")
    if not browser:
        return say("no chromium here: the report was not opened")
    alone = ["unshare", "--net"] if subprocess.run(["unshare", "--net", "true"], capture_output=True).returncode == 0 else []
    with tempfile.TemporaryDirectory() as profile:
        shown = subprocess.run([*alone, browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}", "--dump-dom", f"file://{report}"],
                               capture_output=True, text=True, timeout=120)
    expect(shown.returncode == 0 and shown.stdout.count("<svg") == 2 and "<td" in shown.stdout and "Fast" in shown.stdout,
           f"a browser opens the report {'without a network' if alone else ''}")


def look_at_tensorboard(python, folder):
    """What its own window asks its server for."""
    log = folder.parent / "tensorboard.log"
    with open(log, "wb") as said:
        server = subprocess.Popen([python, "-m", "tensorboard.main", "--logdir", folder, "--host", "127.0.0.1", "--port", "0", "--load_fast", "false"],
                                  stdout=said, stderr=said)
    try:
        deadline = time.monotonic() + 120
        while not (at := re.search(r"http://127.0.0.1:\d+", log.read_text())):
            if server.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"TensorBoard does not start: {log.read_text()[-2000:]}")
            time.sleep(0.2)

        def ask(path):
            with urllib.request.urlopen(f"{at.group()}/data/plugin/scalars/{path}", timeout=60) as answer:
                return json.load(answer)
        while len(tags := ask("tags")) < 9 and time.monotonic() < deadline:  # it reads folder after folder
            time.sleep(0.5)
        expect(len(tags) == 9 and all(set(of) == {"val/acc", 'train, "loss"'} for of in tags.values()), f"TensorBoard shows nine runs: {sorted(tags)}")
        run = next(name for name in sorted(tags) if name.startswith("base/"))
        points = ask("scalars?" + urllib.parse.urlencode({"run": run, "tag": "val/acc"}))
        expect(len(points) == 40 and [step for _, step, _ in points] == list(range(1, 41)), "with each point of a curve")
    finally:
        server.terminate()
        server.wait(30)


def main():
    with Fleet("in-and-out") as fleet:
        program = fleet.home / "program.py"
        program.write_text(PROGRAM)
        (fleet.home / "study.yaml").write_text(SWEEP.format(python=json.dumps(sys.executable), program=json.dumps(str(program))))
        fleet.start_scheduler()
        fleet.start_worker("alice", "--slots", 2, "--allow-commands")
        fleet.ablate("submit", fleet.home / "study.yaml")
        fleet.wait_for("study")
        look_at_comparisons(fleet)
        look_at_run_folders(fleet)

        table = fleet.home / "table.json"
        table.write_text(fleet.ablate("table", "study", "--json").stdout)
        out = fleet.home / "out"
        out.mkdir()
        for format, name in ("csv", "points.csv"), ("jsonl", "points.jsonl"), ("tensorboard", "events"), ("html", "report.html"):
            fleet.ablate("export", "study", "--format", format, "-o", out / name)
        refused = fleet.ablate("export", "study", "--format", "tensorboard", "-o", out / "events", check=False)
        expect(refused.returncode == 2 and "is there already" in refused.stderr, "a folder that is there is left alone")
        expect(sorted(path.name for path in out.iterdir()) == ["events", "points.csv", "points.jsonl", "report.html"], "no half file is left")
        page = (out / "report.html").read_text()
        expect("<b>Base</b>" not in page and "&lt;b&gt;Base&lt;/b&gt; &amp; co" in page, "labels are text in the report")
        expect(page.count("<svg") == 2 and "params" in page and not re.search(r"""(src|href)=|url\(|@import|<script""", page),
               "the report has curves and configurations, and asks for nothing from elsewhere")
        look_at_report(out / "report.html")
        full = fleet.ablate("export", "study", "-o", "/dev/full", check=False)
        expect(full.returncode != 0, "what cannot be written is said")

        would = fleet.ablate("import", out / "points.csv", "--store", fleet.store, "--prefix", "old-", "--dry-run").stdout
        expect("would import 720 points of 9 runs into sweep study" in would, "a dry run is said while a scheduler runs")
        for name in list(fleet.processes):
            fleet.stop(name)
        look_at_import(fleet, "csv", out / "points.csv", table)
        look_at_import(fleet, "jsonl", out / "points.jsonl", table)
        look_at_import(fleet, "tensorboard", out / "events", table)
        if python := python_with("pyarrow"):
            fleet.environment["ABLATE_PYTHON"] = python
            fleet.ablate("export", "study", "--format", "parquet", "-o", out / "points.parquet")
            look_at_import(fleet, "parquet", out / "points.parquet", table)
        else:
            missing = fleet.ablate("export", "study", "--format", "parquet", "-o", out / "points.parquet", check=False)
            expect(missing.returncode == 2 and "needs pyarrow" in missing.stderr and not (out / "points.parquet").exists(), "without pyarrow that is said")
        if python := python_with("tensorboard"):
            script = """
import sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
reader = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0}); reader.Reload()
points = [(e.step, round(e.value, 3)) for e in reader.Scalars("val/acc")]; print(len(points), points[0])"""
            folder = next((out / "events" / "base").iterdir())
            said = subprocess.run([python, "-c", script, folder], capture_output=True, text=True, check=True).stdout
            expect(said.startswith("40 (1, 50."), f"TensorBoard reads the event files: {said.strip()}")
            look_at_tensorboard(python, out / "events")
        else:
            say("no tensorboard here: its reader was not asked")

        # beside trained rows
        mixed = fleet.ablate("import", out / "points.csv", "--store", fleet.store, check=False)
        expect(mixed.returncode == 2 and "row base of sweep study is trained here" in mixed.stderr, "no imported value mixes with a trained row's")
        fleet.ablate("import", out / "points.csv", "--store", fleet.store, "--prefix", "old-")
        both = fleet.json("table", "study", "--store", fleet.store)
        rows = {row["id"]: row for row in both["rows"]}
        expect(list(rows) == ["base", "fast.2", "broken", "old-base", "old-fast.2", "old-broken"], "imported rows stand beside the trained ones")
        expect(rows["old-base"]["cells"][0]["mean"] == rows["base"]["cells"][0]["mean"] and rows["old-base"]["imported"] == "points.csv"
               and not rows["base"]["imported"], "with their values, and marked")
        changed = out / "changed.csv"
        changed.write_text((out / "points.csv").read_text().replace(",40,", ",41,", 1))
        other = fleet.ablate("import", changed, "--store", fleet.store, "--prefix", "old-", check=False)
        expect(other.returncode == 2 and "was imported before with other points" in other.stderr, "other points of the same run are refused")
        cut = out / "cut.csv"
        cut.write_text((out / "points.csv").read_text().rsplit(",", 1)[0])
        empty = fleet.home / "empty.db"
        wrong = fleet.ablate("import", cut, "--store", empty, check=False)
        expect(wrong.returncode == 2 and "cut.csv:721:" in wrong.stderr and "8 fields; expected 9" in wrong.stderr, "a file that is cut off names its line")
        would = fleet.ablate("import", out / "points.csv", "--store", empty, "--dry-run").stdout
        expect("would import 720 points of 9 runs into the new sweep study" in would, "a dry run says what would come")
        expect(not list(fleet.home.glob("empty.db*")), "and neither leaves a results file behind")
        fleet.start_scheduler()
        again = fleet.ablate("rerun", "study", "old-base", check=False)
        expect(again.returncode == 2 and "imported from points.csv: there is nothing here to run it with" in again.stderr, "what was imported is not run again")
        side = fleet.json("compare", "study/base", "study/old-base")
        expect(side["metrics"][0]["difference"] == 0 and "study/old-base was imported from points.csv, not measured here" in side["notes"],
               "trained and imported rows are compared, and that is said")
        fleet.stop("scheduler")
        shutil.rmtree(out)


if __name__ == "__main__":
    main()
