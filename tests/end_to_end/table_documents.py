# SPDX-License-Identifier: Apache-2.0
"""What tables say in documents: expressions, a pivot, differences to the paper, pictures, and 'ablate table --check' on a document, by the
scheduler and from the results file."""
import json
import sys

from fleet import Fleet, expect

PROGRAM = """
import json, sys
model, data, seed = sys.argv[1], sys.argv[2], int(sys.argv[3])
for step in (10, 20):
    acc = {"small": 60, "large": 70}[model] - (30 if data == "cifar100" else 0) + seed + step / 10
    print(json.dumps({"event": "metric", "step": step, "values": {"acc": acc, "loss": 2 if model == "small" else 0}}))
"""

SWEEP = """ablate: 1
name: study
command: {{argv: [{python}, {program}, "{{params.model}}", "{{params.data}}", "{{seed}}"], params: {{model: small, data: cifar10}}}}
factors:
  params.model: [small, large]
  params.data: [cifar10, cifar100]
exclude: [{{params.model: small, params.data: cifar100}}]
seeds: 2
table:
  baseline: model=small,data=cifar10
  pivot: {{by: params.data, columns: [acc]}}
  columns:
    - {{name: acc, metric: acc, better: higher, digits: 2}}
    - {{name: loss, metric: loss}}
    - {{name: gain, expression: acc - baseline.acc, digits: 1}}
    - {{name: ratio, expression: acc / loss, digits: 2}}
"""
MARKER = "<!-- ablate table study --format markdown -->"
LONG = "<!-- ablate table study --long --format markdown --columns value -->"


def main():
    with Fleet("documents") as fleet:
        program = fleet.home / "program.py"
        program.write_text(PROGRAM)
        (fleet.home / "study.yaml").write_text(SWEEP.format(python=json.dumps(sys.executable), program=json.dumps(str(program))))
        fleet.start_scheduler()
        fleet.start_worker("alice", "--slots", 2, "--allow-commands")
        fleet.ablate("submit", fleet.home / "study.yaml")
        fleet.wait_for("study")

        pivot = fleet.ablate("table", "study", "--format", "markdown").stdout
        long = fleet.ablate("table", "study", "--long", "--format", "markdown", "--columns", "value").stdout
        expect("cifar10" in pivot.splitlines()[0] and len([line for line in pivot.splitlines() if line.startswith("|")]) == 4,
               "the table has a line for each model")
        expect("62.50 ± 0.71" in pivot and "| – |" in pivot, "a combination that the sweep has not is empty")
        table = fleet.json("table", "study", "--long")
        cells = {row["id"]: row["cells"] for row in table["rows"]}
        expect(cells["model=large,data=cifar10"][2]["text"] == "10.0 ± 0.7", "an expression is computed seed by seed against the baseline")
        expect(cells["model=large,data=cifar10"][3]["missing"].endswith("division by zero"), "a division by zero is said")
        pivoted = fleet.json("table", "study")
        expect(pivoted["rows"][1]["cells"][1]["row"] == "model=large,data=cifar100", "a cell of a pivot says its row")

        document = fleet.home / "results.md"
        def text(pivot_lines, long_lines):
            lines = [line for line in pivot_lines.splitlines() if line.startswith("|")]
            more = [line for line in long_lines.splitlines() if line.startswith("|")]
            return "\n".join(["# Results", "", MARKER, *lines, "", "as we see", "", LONG, "", *more, "", "the end"]) + "\n"
        document.write_text(text(pivot, long))
        for where in ([], ["--store", fleet.store]):
            done = fleet.ablate("table", "--check", document, *where)
            expect("2 tables checked, all as the store has them" in done.stdout, f"a document that is right passes {where}")
        right = document.read_text()
        document.write_text(right.replace("62.50 ± 0.71", "63.50 ± 0.71", 1))
        done = fleet.ablate("table", "--check", document, "--store", fleet.store, check=False)
        expect(done.returncode == 1 and "results.md:6:" in done.stdout and ": row small, " in done.stdout and "has '63.50 ± 0.71', the store '62.50 ± 0.71'" in done.stdout,
               "a number that no longer follows has its line, row and column")
        found = json.loads(fleet.ablate("table", "--check", document, "--json", check=False).stdout)
        expect(found["differences"][0]["store_says"] == "62.50 ± 0.71", "and is there as JSON")
        expect(document.read_text() != right, "without --write nothing is written")
        fleet.ablate("table", "--check", document, "--write")
        expect(document.read_text() == right, "--write puts it right, and nothing else")

        for marker, said in ((MARKER.replace("study", "stuff"), "results.md:3: "), (MARKER.replace("--format", "--fromat"), "did you mean '--format'"),
                             ("<!-- nothing -->", "no table with a marker")):
            document.write_text(right.replace(MARKER, marker).replace(LONG, "<!-- -->"))
            done = fleet.ablate("table", "--check", document, check=False)
            expect(done.returncode == 2 and said in done.stderr and done.stderr.count("\n") == 1, f"one line says what is wrong: {done.stderr.strip()}")

        for plot in ("bars", "scatter", "curves"):
            picture = fleet.home / f"{plot}.svg"
            done = fleet.ablate("table", "study", "--plot", plot, *(["--x", "gain"] if plot == "scatter" else []), "-o", picture)
            again = fleet.ablate("table", "study", "--plot", plot, *(["--x", "gain"] if plot == "scatter" else []), "--store", fleet.store).stdout
            expect(picture.read_text().startswith("<svg") and picture.read_text() == again, f"{plot} are the same picture from scheduler and file")
        page = fleet.ablate("table", "study", "--format", "html").stdout
        expect("<caption>study</caption>" in page and 'scope="colgroup"' in page, "the table is a page")
        done = fleet.ablate("table", "study", "--plot", "bars", "--y", "ac", check=False)
        expect(done.returncode == 2 and "did you mean 'acc'" in done.stderr, "a column that is not there is named")


main()
