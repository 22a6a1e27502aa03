# SPDX-License-Identifier: Apache-2.0
"""The statistics of tables, from the sweep file through programs, store and scheduler to what is printed, against SciPy and statsmodels
(fixtures/table_statistics.json): unequal numbers of seeds, one seed, a seed that diverged, seeds that agree, pairs without one, baselines of
groups, factors with a combination that lacks a seed."""
import csv
import io
import json
import math
import pathlib
import sys

from fleet import Fleet, expect, say

FIXTURE = json.loads((pathlib.Path(__file__).parent / "fixtures/table_statistics.json").read_text())

# a seed without a value fails
PROGRAM = """
import json, sys
values, seed, row = sys.argv[1:]
values = json.loads(values)
value = values.get(row, values)[seed]
print(json.dumps({"event": "metric", "step": 1, "values": {"acc": float("nan") if value is None else value}}))
"""

FIELDS = {"difference": "difference", "g": "g"}
INTERVALS = {"": "interval", "difference_": "difference_interval", "g_": "g_interval"}


def submit(fleet, name, rows, table, seeds=5, params=None):
    program = fleet.home / "program.py"
    program.write_text(PROGRAM)
    sweep = {"ablate": 1, "name": name, "seeds": seeds, "command": {"argv": [sys.executable, str(program), "{params.values}", "{seed}", "lr={params.lr},depth={params.depth}"],
                                                                    "params": {"values": "{}", "lr": 0, "depth": 0} | (params or {})},
             "table": table | {"columns": [{"name": "acc", "metric": "acc", "better": "higher", "digits": 2, "see": 0.3}]}, **rows}
    (fleet.home / f"{name}.yaml").write_text(json.dumps(sweep))
    fleet.ablate("submit", fleet.home / f"{name}.yaml", "--no-breaker")  # rows of which most seeds fail
    fleet.wait_for(name)


def close(value, expected, what, bound=1e-7):
    if value is None or not math.isclose(value, expected, rel_tol=bound, abs_tol=1e-9):
        raise AssertionError(f"{what} is {value}: SciPy has {expected}")


def compare(cell, expected, what):
    """Every number, and none that SciPy has not."""
    said = cell.get("statistics", {})
    numbers = {"mean": cell.get("mean"), "sd": cell.get("sd"), "se": said.get("standard_error"), "p": cell.get("p"),
               "p_corrected": cell.get("p_corrected"), **{ours: said.get(theirs) for ours, theirs in FIELDS.items()}}
    for prefix, field in INTERVALS.items():
        for end in ("low", "high"):
            numbers[prefix + end] = said.get(field, {}).get(end)
    for name, value in numbers.items():
        if name in expected:
            # bounds of g go through a root of a distribution that SciPy computes otherwise
            close(value, expected[name], f"{what}: {name}", 1e-5 if name.startswith("g_") else 1e-7)
        elif name not in ("mean", "sd", "se") and value is not None:
            raise AssertionError(f"{what}: {name} is {value}, and cannot be known")
    if "p_corrected" in expected:
        differs = cell["comparison"]["verdict"] != "VERDICT_NOT_TOLD_APART"
        expect(differs == (expected["p_corrected"] < 0.05), f"{what}: the verdict is of the corrected p, {expected['p_corrected']:.3g}")


def tables(fleet):
    for sweep in FIXTURE["sweeps"]:
        name = sweep["name"]
        rows = [{"id": row, "set": {"params.values": json.dumps(values)}, **({"group": sweep["groups"][row]} if sweep["groups"] else {}),
                 **({"paper": {"acc": sweep["paper"][row]}} if sweep["paper"] else {})} for row, values in sweep["rows"].items()]
        submit(fleet, name, {"rows": rows}, {"baseline": sweep["baseline"], **({"compare": sweep["compare"]} if sweep["compare"] else {})},
               seeds=max(len(values) for values in sweep["rows"].values()))
        print(fleet.ablate("table", name, "--stats").stdout)
        table = fleet.json("table", name, "--stats")
        for row in table["rows"]:
            compare(row["cells"][0], sweep["expected"][row["id"]], f"{name}, row {row['id']}")
        say(f"ok: every number of {name} is SciPy's")
        stored = json.loads(fleet.ablate("table", name, "--stats", "--json", "--store", fleet.store).stdout)
        expect(stored == table, "the results file alone says the same")
        expect("statistics" not in fleet.json("table", name)["rows"][0]["cells"][0], "and nothing of it where it is not asked for")
        expect(table["compare"]["test"] == sweep["compare"].get("test", "welch"), f"the table says its test: {table['compare']['legend']}")
        yield name, sweep, {row["id"]: row["cells"][0] for row in table["rows"]}, table


def what_cannot_be_said(cells):
    why = {row: (cell.get("statistics", {}).get("why_no_interval"), cell.get("statistics", {}).get("why_no_test")) for row, cell in cells.items()}
    expect(why["one"] == ("one seed", "n = 1 and 5: a test needs two seeds on both sides"), f"one seed is one seed: {why['one']}")
    expect(why["lost"] == ("seed 3 diverged", "seed 3 diverged"), "a seed that diverged leaves nothing to be said of the others")
    expect("mean" not in cells["lost"] and "diverged" in cells["lost"]["text"], "and no mean of them")
    expect(why["equal"] == ("all seeds gave the same value", ""), "seeds that agree have no interval")
    expect(cells["b"]["comparison"]["family"] == 5, "what cannot be tested is not counted")
    expect(cells["near"]["statistics"]["more_seeds"] > 0, f"near needs more seeds to see 0.3: {cells['near']['statistics']['lines'][-1]}")


def factors(fleet):
    made = FIXTURE["factors"]
    submit(fleet, "factors", {"factors": {f"params.{factor}": levels for factor, levels in made["levels"].items()}},
           {"baseline": next(iter(made["rows"]))}, seeds=3, params={"values": json.dumps(made["rows"])})
    print(fleet.ablate("table", "factors", "--stats").stdout)
    [said] = fleet.json("table", "factors", "--stats")["factor_analyses"]
    for effect in said["effects"]:
        key = ",".join(effect["factors"])
        for field, value in made["effects"][key].items():
            close(effect[field], value, f"{field} of {key}")
    close(said["residual"], made["residual"], "residual")
    expect(said["residual_df"] == made["residual_df"] and len(said["effects"]) == 3, "the analysis of variance is statsmodels' of Type II")


def spreadsheet(fleet, cells):
    lines = {line["row"]: line for line in csv.DictReader(io.StringIO(fleet.ablate("table", "welch", "--stats", "--format", "csv").stdout))}
    expect(all(math.isclose(float(lines["b"][f"acc_{name}"]), cells["b"]["statistics"][field][end]) for name, field, end in
               (("low", "interval", "low"), ("difference_high", "difference_interval", "high"), ("g_low", "g_interval", "low"))),
           "CSV has the same with all digits")
    expect(float(lines["b"]["acc_p_corrected"]) == cells["b"]["p_corrected"] and lines["one"]["acc_p"] == "", "and an empty field where nothing is known")


def main():
    with Fleet("statistics") as fleet:
        fleet.start_scheduler()
        fleet.start_worker("willing", "--slots", 4, "--allow-commands")
        for name, sweep, cells, table in tables(fleet):
            if name == "welch":
                what_cannot_be_said(cells)
                [said] = table["paper_agreement"]
                close(said["tau"], sweep["agreement"]["tau"], "Kendall's tau-b")
                expect([said[field] for field in ("rows", "signs", "same_signs")] == [sweep["agreement"][field] for field in ("rows", "signs", "same_signs")],
                       "agreement with the paper's signs")
                close(said["same_share_interval"]["low"], sweep["agreement"]["low"], "its interval")
                spreadsheet(fleet, cells)
            if name == "paired":
                said = cells["c"]["statistics"]
                expect(said["unpaired"] == ["2"] and said["compared"] == 4, "a seed that one side alone has is left out, and said")
                other = json.loads((fleet.home / "paired.yaml").read_text())
                other["table"]["compare"] = {"test": "welch"}
                (fleet.home / "other.yaml").write_text(json.dumps(other))
                refused = fleet.ablate("submit", fleet.home / "other.yaml", check=False)
                expect(refused.returncode == 2 and "table.compare.test" in refused.stderr, "how cells are compared cannot be changed afterwards")
        factors(fleet)


if __name__ == "__main__":
    main()
