# SPDX-License-Identifier: Apache-2.0
"""A number and where it comes from: submitted in a folder of git, asked with `why`, archived, read and merged elsewhere, run again."""
import hashlib
import json
import shutil
import subprocess
import sys

from fleet import BIN, Fleet, expect, say, skip

SWEEP = """ablate: 1
name: traced
base:
  model: {family: simple-vit, dim: 32, depth: 1, heads: 2, dim_head: 16, patch: 8}
  data: {name: shapes}
  recipe: {use: cifar-lite, epochs: 1}
rows:
  - {id: a, label: plain, paper: {acc: "61.13"}}
  - {id: b, label: faster, set: {recipe.lr: 0.005}}
seeds: [0, 1]
table:
  baseline: a
  columns:
    - {name: acc, metric: val/top1, take: best}
    - {name: params, count: params.weights}
    - {name: rate, setting: recipe.lr}
"""
COMMAND = """ablate: 1
name: own
command: {argv: [python3, train.py, "{seed}"], version: "1", reuse: true}
rows: [{id: only}]
seeds: 2
table: {columns: [{name: acc, metric: acc}]}
"""


def git(folder, *arguments):
    subprocess.run(["git", "-C", str(folder), "-c", "user.name=T", "-c", "user.email=t@t", *arguments], check=True, capture_output=True)


def study_in_git(fleet):
    study = fleet.home / "study"
    study.mkdir()
    (study / "traced.yaml").write_text(SWEEP)
    (study / "own.yaml").write_text(COMMAND)
    (study / "train.py").write_text("print('first')\n")
    git(study, "init", "-q", "-b", "main")
    git(study, "remote", "add", "origin", "https://eve:secret@example.org/study.git?token=hidden")
    git(study, "add", ".")
    git(study, "commit", "-q", "-m", "one")
    (study / "train.py").write_text("import json\nprint(json.dumps({'event': 'metric', 'step': 1, 'values': {'acc': 0.5}}))\n")
    (study / "notes\nof two lines.txt").write_text("not for the store: a-secret-of-the-notes")
    return study


def provenance(fleet, name):
    found = fleet.json("show", name, "--provenance")["provenance"]
    expect(len(found) == 1, f"{name} says once where it comes from")
    return found[0]


def where_it_comes_from(fleet, study):
    commit = subprocess.run(["git", "-C", str(study), "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()
    own = provenance(fleet, "own")
    found = own["git"]
    expect(found["commit"] == commit and found["branch"] == "main" and found["dirty"], "commit, branch, and that something was changed")
    expect("+import json" in found["diff"] and hashlib.sha256(found["diff"].encode()).hexdigest() == found["diff_sha256"],
           "the diff, with its digest")
    untracked = found["untracked"]
    expect([(f["name"], f["bytes"]) for f in untracked] == [("notes\nof two lines.txt", "40")], "untracked files by name and size")
    expect(found["remote"] == "https://example.org/study.git", "the remote without user, password and token")
    expect(own["python"] == "python3" and (own["packages"] or own["packages_missing"]), "the packages of the command's Python")
    everything = json.dumps(own)
    expect("secret" not in everything and "hidden" not in everything, "and no secret")
    text = fleet.ablate("show", "own", "--provenance").stdout
    expect(commit in text and "+import json" in text, "people read the same")

    say("folders of which git knows nothing, or too little")
    environment = dict(fleet.environment)
    for name, prepare, wanted in (("bare", lambda folder: None, "no git repository"),
                                  ("fresh", lambda folder: git(folder, "init", "-q"), None),
                                  ("detached", lambda folder: (git(folder, "init", "-q"), git(folder, "add", "."), git(folder, "commit", "-qm", "x"),
                                                               git(folder, "checkout", "-q", "--detach")), None)):
        folder = fleet.home / name
        folder.mkdir()
        (folder / "sweep.yaml").write_text(COMMAND.replace("name: own", f"name: {name}").replace("python3", "sh"))
        prepare(folder)
        fleet.ablate("submit", folder / "sweep.yaml")
        seen = provenance(fleet, name)
        if wanted:
            expect(seen["git_missing"] == wanted, f"{name}: {wanted}")
        elif name == "fresh":
            expect(seen["git"]["commit"] == "" and seen["git"]["dirty"], "fresh: nothing is committed yet")
        else:
            expect(seen["git"]["branch"] == "" and len(seen["git"]["commit"]) == 40 and not seen["git"]["dirty"], "detached: a commit without a branch")
    environment["PATH"] = str(fleet.home / "empty")
    (fleet.home / "bare" / "no-git.yaml").write_text(COMMAND.replace("name: own", "name: no-git"))
    done = subprocess.run([str(BIN / "ablate"), "submit", str(fleet.home / "bare" / "no-git.yaml")], env=environment, capture_output=True, text=True)
    expect(done.returncode == 0 and "git" in provenance(fleet, "no-git")["git_missing"], "without git a sweep is submitted, and says so")
    (fleet.home / "bare" / "silent.yaml").write_text(COMMAND.replace("name: own", "name: silent"))
    fleet.ablate("submit", fleet.home / "bare" / "silent.yaml", "--no-provenance")
    expect(fleet.json("show", "silent", "--provenance")["provenance"] == [], "--no-provenance records nothing")
    for name in ("bare", "fresh", "detached", "no-git", "silent"):
        fleet.ablate("cancel", name)


def why(fleet):
    cell = fleet.json("why", "traced", "b", "acc")
    expect([v["seed"] for v in cell["values"]] == ["0", "1"] and all("value" in v for v in cell["values"]), "a value for each seed")
    mean = sum(v["value"] for v in cell["values"]) / 2
    expect(abs(mean - cell["cell"]["mean"]) < 1e-9, "whose mean the cell is")
    expect([d["key"] for d in cell["differences"]] == ["recipe.lr"], "what its row changes against the baseline")
    expect(cell["values"][0]["run"]["config_hash"] and cell["values"][0]["run"]["data_fingerprint"] == "shapes-1", "what it ran on which data")
    expect(cell["provenance"][0]["git"]["commit"], "and the commit")
    text = fleet.ablate("why", "traced/b/acc").stdout
    for words in ("best (highest) val/top1", "recipe.lr", "differs from the baseline a", "threads", "commit ", "shapes-1"):
        expect(words in text, f"people read of {words!r}")
    expect("counted without training" in fleet.ablate("why", "traced", "a", "params").stdout, "a count says what it is")
    expect("as the sweep file sets it" in fleet.ablate("why", "traced", "a", "rate").stdout, "a setting says where it stands")
    for arguments, words in ((("traced", "c", "acc"), "no row 'c'"), (("traced", "a", "ac"), "did you mean 'acc'"), (("traced",), "expected SWEEP ROW COLUMN")):
        refused = fleet.ablate("why", *arguments, check=False)
        expect(refused.returncode == 2 and words in refused.stderr, f"{'/'.join(arguments)}: {words}")
    missing = fleet.json("why", "own", "only", "acc")
    expect(all(v["missing"] for v in missing["values"]), "a cell without values says why for each seed")


def main():
    if not (BIN / "ablate-trainer").exists():
        skip("no ablate-trainer")
    with Fleet("traced") as fleet:
        fleet.start_scheduler()
        study = study_in_git(fleet)
        for name in ("traced", "own"):
            fleet.ablate("submit", study / f"{name}.yaml")
        where_it_comes_from(fleet, study)
        fleet.start_worker("one", "--slots", 2)
        fleet.wait_for("traced")
        fleet.until(lambda: any("allow-commands" in t["reason"] for t in fleet.trials("own")), "the command waits for a worker")
        why(fleet)

        say("an archive, while the scheduler runs")
        table = fleet.ablate("table", "traced", "--format", "csv").stdout
        archive = fleet.home / "traced.db"
        made = fleet.json("archive", "traced", "-o", archive, "--store", fleet.store)
        expect(made["completed"] == 4 and made["bytes"] == archive.stat().st_size < 400_000, f"is small: {made['bytes']} bytes")
        fleet.ablate("archive", "traced", "-o", fleet.home / "again.db", "--store", fleet.store)
        expect((fleet.home / "again.db").read_bytes() == archive.read_bytes(), "is the same to the byte the second time")
        expect(fleet.ablate("archive", "traced", "-o", archive, "--store", fleet.store, check=False).returncode == 2, "replaces no file by itself")
        expect(fleet.ablate("table", "traced", "--store", archive, "--format", "csv").stdout == table, "has the same table")
        expect(fleet.json("why", "traced/b/acc", "--store", archive)["provenance"][0]["git"]["commit"], "and the same answers")
        exported = fleet.ablate("export", "traced", "--store", archive)
        expect("thinned" in exported.stderr, "and says that its points are thinned")

        say("elsewhere")
        home = fleet.home / "elsewhere"
        environment = dict(fleet.environment, ABLATE_HOME=str(home))
        del environment["ABLATE_SCHEDULER"]

        def elsewhere(*arguments, check=True):
            done = subprocess.run([str(BIN / "ablate"), *map(str, arguments)], env=environment, capture_output=True, text=True, timeout=120)
            if check and done.returncode != 0:
                raise AssertionError(f"{arguments}: {done.returncode}\n{done.stdout}{done.stderr}")
            return done

        merged = json.loads(elsewhere("import", archive, "--json").stdout)
        expect(merged["new_trials"] == 4 and merged["sweeps"] == ["traced"], "its sweep and trials are there")
        again = json.loads(elsewhere("import", archive, "--json").stdout)
        expect(again["new_trials"] == again["filled"] == again["runs"] == 0 and again["there"] == 4, "and nothing twice")
        expect(elsewhere("table", "traced", "--format", "csv").stdout == table, "the table is the same")
        more = fleet.home / "more.yaml"
        more.write_text(SWEEP.replace("name: traced", "name: more").replace("seeds: [0, 1]", "seeds: [0, 1, 2]"))
        plan = json.loads(elsewhere("plan", more, "--json").stdout)
        expect(plan["trials"] == 6 and plan["stored"] == 4, "what was trained there is not trained again")
        expect("not a copy of a whole results file" in elsewhere("restore", archive, check=False).stderr, "restore names import")
        shutil.copy(archive, fleet.home / "broken.db")
        with open(fleet.home / "broken.db", "r+b") as file:
            file.truncate(5000)
        expect(elsewhere("import", fleet.home / "broken.db", check=False).returncode != 0, "half an archive is refused")
        expect(elsewhere("table", "traced", "--format", "csv").stdout == table, "and harms nothing")

        say("run again")
        verified = fleet.json("verify", "--sweep", "traced", "--sample", 2)
        expect(verified["as_promised"] and all(t["verdict"] == "same" and t["weights"] for t in verified["trials"]), "a sample is the same to the bit")
        done = fleet.ablate("verify", "--sweep", "traced", "--sample", 1, "--store", archive)
        expect("1 of 1 the same to the bit" in done.stdout, "against the archive too")
        changed = fleet.home / "changed.db"
        shutil.copy(archive, changed)
        subprocess.run([sys.executable, "-c", "import sqlite3,sys; db=sqlite3.connect(sys.argv[1]); "
                        "db.execute(\"UPDATE archive SET digest = ''\"); db.execute(\"UPDATE point SET value = value + 1 WHERE metric_id = (SELECT id FROM metric WHERE name='val/top1')\"); db.commit()",
                        str(changed)], check=True)
        wrong = fleet.ablate("verify", "--sweep", "traced", "--sample", 1, "--store", changed, check=False)
        expect(wrong.returncode == 1 and "val/top1 at step" in wrong.stdout, "a number that was changed is found: exit code 1")
        other = fleet.home / "other-cpu.db"
        shutil.copy(archive, other)
        subprocess.run([sys.executable, "-c", "import sqlite3,sys; db=sqlite3.connect(sys.argv[1]); db.execute(\"UPDATE archive SET digest = ''\"); "
                        "db.execute(\"UPDATE run SET environment_json = json_set(environment_json, '$.instructions', 'another')\"); "
                        "db.execute(\"UPDATE point SET value = value * 1.0000001 WHERE metric_id = (SELECT id FROM metric WHERE name='train/loss')\"); db.commit()",
                        str(other)], check=True)
        elsewhere_trained = fleet.ablate("verify", "--sweep", "traced", "--sample", 1, "--store", other)
        for words in ("the same in the table's digits", "differs by", "need not be the same: instructions: \"another\" then"):
            expect(words in elsewhere_trained.stdout, f"a run of another processor may differ, and it says by how much and why: {words}")
        again = fleet.ablate("reproduce", study / "traced.yaml", "--verify")
        expect("the same to the bit" in again.stdout, "reproduce --verify runs a sample again")
    say("done")


if __name__ == "__main__":
    sys.exit(main())
