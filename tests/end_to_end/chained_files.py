# SPDX-License-Identifier: Apache-2.0
"""Rows that take the weights of rows of other sweep files: found again where these were trained, trained along where they were not;
and the chains of a paper's table at the demo's scale, a teacher and a fine-tuning on larger images among them."""
import shutil

from fleet import SOURCE, Fleet, expect, say

BASE = """ablate: 1
name: {name}
base:
  model: {{preset: simple-vit-nano, patch: 8}}
  data: {{name: shapes, train_images: 200, val_images: 50}}
  recipe: {{use: demo, epochs: 1, batch: 20, eval_every: 1}}
rows:
{rows}
seeds: [0, 1]
"""


def rows_of(fleet, sweep):
    """Row and seed -> trial."""
    return {(trial["row"], int(trial.get("seed", 0))): trial for trial in fleet.trials(sweep)}


def states(fleet, sweep):
    return {trial["state"].removeprefix("TRIAL_STATE_").lower() for trial in fleet.trials(sweep)}


def other_files(fleet):
    def write(name, rows):
        file = fleet.home / f"{name}.yaml"
        file.write_text(BASE.format(name=name, rows=rows))
        return file

    pretrain = write("pretrain", "  - {id: t, set: {model.depth: 2}}\n  - {id: a, set: {recipe.lr: 1e-3}}\n  - {id: unused, set: {recipe.lr: 3e-3}}")
    fine = write("fine", "  - {id: b, set: {data.image_size: 48, recipe.lr: 1e-4}, from: {sweep: pretrain.yaml, row: a}}\n"
                 "  - {id: s, set: {recipe.distillation: hard}, teacher: {sweep: pretrain.yaml, row: t, seed: 1}}")
    plan = fleet.ablate("plan", fine).stdout
    expect("pretrain.yaml:a" in plan and "weights of" in plan, "a plan says whose weights rows take")
    checked = fleet.json("validate", fine)
    # rows a of two seeds and t of one, b and s of two each
    expect((checked["rows"], checked["trials"]) == (2, 7), f"of the other file only what is needed is trained: {checked}")
    fleet.ablate("submit", fine)
    pretrain.write_text(pretrain.read_text().replace("1e-3", "2e-3"))  # what is stored says itself what it starts from
    fleet.until(lambda: states(fleet, "fine") == {"completed"}, "all is trained")
    table = fleet.ablate("table", "fine").stdout
    expect("pretrain.yaml" not in table, "the table has the sweep's own rows alone")
    expect([row["id"] for row in fleet.json("table", "fine")["rows"]] == ["b", "s"], "which are two")
    own = rows_of(fleet, "fine")
    expect(("pretrain.yaml:t", 1) in own and ("pretrain.yaml:t", 0) not in own, "and of the teacher the one seed that teaches")
    again = fleet.ablate("submit", fine, check=False)
    expect(again.returncode != 0 and "already exists with different content" in again.stderr, "a file that changed below it makes it another sweep")
    pretrain.write_text(pretrain.read_text().replace("2e-3", "1e-3"))
    fleet.ablate("submit", fine)
    said = fleet.ablate("submit", pretrain).stdout
    say(said.strip().splitlines()[0])
    pretrained = rows_of(fleet, "pretrain")
    expect(pretrained["a", 0]["id"] == own["pretrain.yaml:a", 0]["id"], "a row trained for another sweep is its own sweep's, too")
    fleet.until(lambda: states(fleet, "pretrain") == {"completed"}, "which trains what was not needed")
    where = fleet.ablate("where", "fine/b/0").stdout
    expect("weights of   fine/pretrain.yaml:a/0" in where or "weights of   pretrain/a/0" in where, "people are told where weights came from")

    for text, wanted in (("{sweep: pretrain.yaml, row: aa}", "sweep pretrain.yaml has no row 'aa'; did you mean 'a'?"),
                         ("{sweep: pretrian.yaml, row: a}", "pretrian.yaml"), ("{sweep: msf/tabel-1, row: a}", "did you mean 'msf/table-1'?"),
                         ("{sweep: wrong.yaml, row: b}", "wait for each other"), ("{sweep: msf/table-7, row: orig}", "msf/table-7 has no row 'orig'")):
        wrong = write("wrong", f"  - {{id: b, from: {text}}}")
        refused = fleet.ablate("submit", wrong, check=False)
        lines = refused.stderr.strip().splitlines()
        expect(refused.returncode == 2 and len(lines) == 1 and f"{wrong}:8:" in lines[0] and wanted in lines[0], f"{text}: {lines}")


def paper_at_demo_scale(fleet):
    """Three rows of XCiT's Table 1: as it is, distilled, and distilled with patches of 8 and fine-tuned on larger images."""
    folder = fleet.home / "xcit"
    shutil.copytree(SOURCE / "sweeps/papers/xcit", folder)
    for name in ("scales.yaml", "teacher-demo.yaml"):
        text = (folder / name).read_text()
        (folder / name).write_text(text.replace("train_images: 5000, val_images: 1000", "train_images: 300, val_images: 100"))
    lines = (folder / "table-1.yaml").read_text().splitlines(keepends=True)
    kept = [line for line in lines if not line.startswith("  - {id: ") or line.startswith("  - {id: xcit-n12")]
    (folder / "table-1.yaml").write_text("".join(kept).replace("seeds: [0, 1, 2]", "seeds: [0]"))
    plan = fleet.ablate("plan", folder / "table-1.yaml", "--scale", "demo").stdout
    expect("teacher-demo.yaml:regnety" in plan and "distilled-p8.yaml:xcit-n12-p8-distilled" in plan, "the plan has the chains of the scale")
    expect("at most 3 trainings one after the other" in plan, "teacher, distilled, fine-tuned")
    fleet.ablate("submit", folder / "table-1.yaml", "--scale", "demo")
    sweep = "xcit-table-1-demo"
    fleet.until(lambda: not states(fleet, sweep) & {"queued", "leased", "running"}, "the table is trained")
    for trial in fleet.trials(sweep):
        say(f"{trial['row']}: {trial['state']} {trial.get('reason', '')}")
    expect(states(fleet, sweep) == {"completed"}, "every row of it")
    rows = {row["id"]: row for row in fleet.json("table", sweep)["rows"]}
    expect(list(rows) == ["xcit-n12", "xcit-n12-distilled", "xcit-n12-p8-384-distilled"], "the table is the paper's")
    expect(all("mean" in cell or "text" in cell for cell in rows["xcit-n12-p8-384-distilled"]["cells"]), "with a value for the fine-tuned row")


def ended_sources(fleet):
    """What becomes of a chain whose source is cancelled by its own sweep, runs again, or comes from an archive without its weights."""
    pretrain, fine = fleet.home / "pretrain.yaml", fleet.home / "fine.yaml"
    other = fleet.home / "other.yaml"
    other.write_text(fine.read_text().replace("name: fine", "name: other").replace("recipe.lr: 1e-4", "recipe.lr: 2e-4"))
    pretrain.write_text(pretrain.read_text().replace("1e-3", "4e-3"))
    fleet.stop("one")
    fleet.ablate("submit", other)
    fleet.ablate("cancel", "other")
    expect(not any(trial["reason"] for trial in fleet.trials("other") if trial["state"] == "TRIAL_STATE_CANCELLED"), "what is cancelled is held by nothing")
    said = fleet.ablate("retry", "other", "--row", "b").stdout
    expect(said.startswith("4 trials requeued"), f"a row that is retried has its sources trained: {said.strip()}")
    fleet.start_worker("one", "--slots", 2)
    fleet.until(lambda: rows_of(fleet, "other")["b", 1]["state"] == "TRIAL_STATE_COMPLETED", "which is done")

    fleet.stop("one")
    fleet.stop("scheduler")
    fleet.ablate("archive", "other", "-o", fleet.home / "archive.db", "--store", fleet.store)
    fleet.store = fleet.home / "elsewhere.db"
    fleet.ablate("import", fleet.home / "archive.db", "--store", fleet.store)
    shutil.rmtree(fleet.home / "runs")
    fleet.start_scheduler()
    fleet.start_worker("one", "--slots", 2)
    other.write_text(other.read_text().replace("name: other", "name: more").replace("recipe.lr: 2e-4", "recipe.lr: 3e-4"))
    fleet.ablate("submit", other)
    wanted = "'ablate rerun' of that row trains it again"
    fleet.until(lambda: wanted in rows_of(fleet, "more")["b", 0]["reason"], "a source that came without its weights is told, with what to do")
    fleet.ablate("rerun", "more", "pretrain.yaml:a")
    fleet.until(lambda: all(rows_of(fleet, "more")["b", seed]["state"] == "TRIAL_STATE_COMPLETED" for seed in (0, 1)), "and then the chain goes on")


def main():
    with Fleet("chained-files") as fleet:
        fleet.start_scheduler()
        fleet.start_worker("one", "--slots", 2)
        other_files(fleet)
        paper_at_demo_scale(fleet)
        ended_sources(fleet)


main()
