# SPDX-License-Identifier: Apache-2.0
"""Results in a notebook: `ablate.open` of a file and of a service give the numbers of `ablate table`, to the last digit, also while a scheduler
writes and where a seed diverged; and docs/notebook.ipynb, executed, has the outputs that it is printed with."""
import json
import os
import subprocess
import sys

from fleet import SOURCE, Fleet, expect, say
from pythons import python_with

sys.path.insert(0, str(SOURCE / "python"))
sys.dont_write_bytecode = True

SCRIPT = """
import ablate, math, random
params = ablate.params()
chance = random.Random(1000 * params.a + ablate.seed())
for step in range(1, 30):
    ablate.log(step, {"val/top1": 100 * chance.random(), "loss": math.nan if params.a == 2 and ablate.seed() == 1 else chance.random() / step,
                      "tiny": 1e-300 * chance.random()})
"""


def submit(fleet):
    (fleet.home / "train.py").write_text(SCRIPT)
    columns = [{"name": "acc", "metric": "val/top1", "take": "last"}, {"name": "best", "metric": "val/top1", "take": "best"},
               {"name": "mean", "metric": "val/top1", "take": "mean"}, {"name": "loss", "metric": "loss", "take": "last"},
               {"name": "least", "metric": "loss", "take": "min"}, {"name": "tiny", "metric": "tiny", "better": "higher", "take": "last"},
               {"name": "a", "setting": "params.a"}, {"name": "gain", "expression": "acc - baseline.acc", "better": "higher"}]
    (fleet.home / "numbers.yaml").write_text(json.dumps({
        "ablate": 1, "name": "numbers", "command": {"argv": [sys.executable, str(fleet.home / "train.py")], "params": {"a": 1}},
        "rows": [{"id": f"r{a}", "label": f"row {a}", "set": {"params.a": a}, "group": "odd" if a % 2 else "even", "paper": {"acc": f"{50 + a}.0"}}
                 for a in (1, 3, 2, 4)],
        "seeds": [0, 1, 2], "table": {"baseline": "r1", "columns": columns}}))
    fleet.ablate("submit", fleet.home / "numbers.yaml")
    fleet.wait_for("numbers")


def same_table(table, asked, of_service):
    """`asked`: what `ablate table --long --json` prints."""
    for line, row in zip(table, asked["rows"]):
        for column, cell in zip(asked["columns"], row["cells"]):
            name = column["name"]
            if column["kind"] == "KIND_EXPRESSION" and not of_service:
                continue
            wanted = cell["text"] if column["kind"] == "KIND_SETTING" else cell.get("mean")
            if line[name] != wanted:
                raise AssertionError(f"row {row['id']}, {name}: {line[name]!r} is not {wanted!r}")
            if column["kind"] == "KIND_METRIC" and (line[f"{name}_sd"], line[f"{name}_n"]) != (cell.get("sd"), cell.get("n", 0)):
                raise AssertionError(f"row {row['id']}, {name}: {line[f'{name}_sd']!r} of {line[f'{name}_n']} is not {cell.get('sd')!r} of {cell.get('n')}")
            if line.get(f"{name}_paper") != (cell.get("paper") or None):
                raise AssertionError(f"row {row['id']}, {name}: the paper's {line.get(f'{name}_paper')!r} is not {cell.get('paper')!r}")
    return [line["row"] for line in table] == [row["id"] for row in asked["rows"]]


def numbers(fleet, ablate):
    say("a file, while its scheduler runs, and the service")
    asked = fleet.json("table", "numbers", "--long")
    url = next(line.split("dashboard at ")[1].strip() for line in (fleet.home / "scheduler.log").read_text().splitlines() if "dashboard at " in line)
    file, service = ablate.open(fleet.store, frames=False), ablate.open(url, frames=False)
    expect(same_table(file.table("numbers"), asked, False), "the file's table has the digits of `ablate table --long --json`")
    expect(same_table(service.table("numbers"), asked, True), "the service's as well, with the expression")
    expect({k: v for k, v in file.table("numbers")[2].items() if k.startswith("loss")} == {"loss": None, "loss_sd": None, "loss_n": 3, "loss_diverged": 1},
           "the row with a seed that diverged has no mean, and says so")

    def strip(lines):  # NaN is not itself; the service does not have expressions in these
        return [{key: str(value) for key, value in line.items() if key != "gain"} for line in lines]

    for what, ask in (("table", lambda s: s.table("numbers")), ("values", lambda s: s.values("numbers")), ("trials", lambda s: s.trials("numbers")),
                      ("curves", lambda s: s.curves("numbers", "loss")), ("one row's curves", lambda s: s.curves("numbers", "val/top1", row="r3")),
                      ("sweeps", lambda s: s.sweeps())):
        one, other = strip(ask(file)), strip(ask(service))
        if one != other:
            first = next((pair for pair in zip(one, other) if pair[0] != pair[1]), (len(one), len(other)))
            raise AssertionError(f"{what}: the file has\n{first[0]}\nthe service\n{first[1]}")
        say(f"ok: {what}: {len(one)} lines, of the file and of the service the same")
    points = file.curves("numbers", "loss")
    expect(len(points) == 4 * 3 * 29 and sum(point["value"] != point["value"] for point in points) == 29, "curves have every point, NaN among them")
    for bad in (lambda: service.table("number"), lambda: service.curves("numbers", "los"), lambda: service.curves("numbers", "loss", row="r9"),
                lambda: ablate.open("http://127.0.0.1:1")):
        try:
            bad()
        except ablate.Error as error:
            expect("\n" not in str(error), str(error))
        else:
            raise AssertionError("expected an error")


def executed(python):
    say("docs/notebook.ipynb")
    environment = dict(os.environ, PYTHONPATH=str(SOURCE / "python"), PYTHONDONTWRITEBYTECODE="1")
    done = subprocess.run([python, SOURCE / "tests/end_to_end/notebook_run.py", SOURCE / "docs/notebook.ipynb"], env=environment, capture_output=True, text=True)
    expect(done.returncode == 0 and "1 pictures, 0 outputs are others" in done.stdout, f"{done.stdout}{done.stderr if done.returncode else ''}")


def main():
    import warnings
    warnings.simplefilter("ignore")  # that a file has no expressions
    import ablate
    with Fleet("notebook") as fleet:
        fleet.environment["PYTHONPATH"] = str(SOURCE / "python")
        fleet.start_scheduler()
        fleet.start_worker("willing", "--slots", 2, "--allow-commands")
        submit(fleet)
        numbers(fleet, ablate)
    executed(python_with("nbclient", "ipykernel", "pandas", "matplotlib", "jinja2"))


main()
