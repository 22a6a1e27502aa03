# SPDX-License-Identifier: Apache-2.0
"""docs/from-timm.md, as it is printed, with a small model and a few images: timm's own train.py, unchanged, which is stopped and goes on (where
$ABLATE_TIMM names the folder that has it), and the script around timm."""
import csv
import os
import pathlib
import re
import sqlite3
import subprocess

from fleet import SOURCE, Fleet, expect, say
from pythons import install, path_of, python_with

EPOCHS = 40  # so many that it is stopped in their middle
IMAGES = """
import pathlib, random, sys
from PIL import Image
chance = random.Random(0)
for split, number in (("train", 12), ("val", 6)):
    for label, base in (("dark", 100), ("light", 150)):
        folder = pathlib.Path(sys.argv[1], split, label)
        folder.mkdir(parents=True)
        for i in range(number):
            Image.frombytes("RGB", (48, 48), bytes(base + chance.randrange(-90, 90) for _ in range(48 * 48 * 3))).save(folder / f"{i}.png")
"""
SMALL = ('--img-size, "32", --batch-size, "8", --workers, "1", --device, cpu, --warmup-epochs, "0", --cooldown-epochs, "0", --no-prefetcher, '
         "--experiment, small, ")


def blocks(heading, language, page="docs/from-timm.md"):
    return re.search(rf"^## {heading}$.*?^```{language}\n(.*?)^```", (SOURCE / page).read_text(), re.DOTALL | re.MULTILINE).group(1)


def changed(text, *changes):
    for before, after in changes:
        if before not in text:
            raise AssertionError(f"the page's block has no {before!r}")
        text = text.replace(before, after)
    return text


def filled(fleet, name):
    print(fleet.ablate("table", name).stdout)
    table = fleet.json("table", name)
    expect(all(cell["n"] == cell["of"] for row in table["rows"] for cell in row["cells"]), f"every cell of {name} is filled")
    return table


def own_train(fleet, python, folder):
    say(f"train.py of {folder}: with the lines beside it, and with nothing beside it")
    study = fleet.home / "timm"
    study.mkdir()
    small = ("epochs: 100", f"epochs: {EPOCHS}"), ("seeds: 3", "seeds: 1")
    (study / "trial.py").write_text(blocks("timm's train.py", "python"))
    (study / "timm-script.yaml").write_text(changed(
        blocks("timm's train.py", "yaml"), ("[python3, trial.py, train.py, ", f"[{python}, trial.py, {folder}/train.py, {SMALL}"),
        ("[vit_tiny_patch16_224, resnet18]", "[test_vit]"), ("vit_tiny_patch16_224", "test_vit"), ("classes: 10", "classes: 2"), *small))
    (study / "timm-alone.yaml").write_text(changed(
        blocks("timm's train.py", "yaml", "docs/any-script.md"), ("name: timm-script", "name: timm-alone"), ("[python3, train.py, ", f"[{python}, train.py, {SMALL}"),
        ("/home/me/pytorch-image-models", str(folder)), ("[0.001, 0.003]", "[0.01]"), ("vit_tiny_patch16_224", "test_vit"),
        ("epochs: 10}", f"epochs: {EPOCHS}" + "}"), ("seeds: 3", "seeds: 1"), ("--epochs, ", '--num-classes, "2", --epochs, ')))
    names = "timm-script", "timm-alone"
    for name in names:
        fleet.ablate("submit", study / f"{name}.yaml")

    def number(query, name):
        with sqlite3.connect(f"file:{fleet.store}?mode=ro", uri=True) as store:
            return store.execute(query, (name,)).fetchone()[0]

    told = ("SELECT COUNT(*) FROM checkpoint c JOIN run ON run.id = c.run_id JOIN trial_summary t ON t.trial = run.trial_id WHERE t.sweep = ?",
            # the worker takes the file as it is when the program has stopped
            "SELECT COUNT(*) / 2 FROM metric_point WHERE sweep = ? AND metric = 'val/loss'")
    for name, query in zip(names, told):
        fleet.until(lambda: number(query, name) > 0, f"{name} has a checkpoint")
        fleet.ablate("pause", name, "--stop-running")
        fleet.until(lambda: {t["state"] for t in fleet.trials(name)} == {"TRIAL_STATE_QUEUED"}, f"{name} is stopped")
        fleet.ablate("resume", name)
    for name in names:
        fleet.wait_for(name)
        table, trial = filled(fleet, name), fleet.trials(name)[0]
        expect(trial["attempt"] == 2, "it went on in a second attempt")
        summary = list(csv.DictReader(sorted(fleet.home.glob(f"runs/{trial['id']}/2/**/summary.csv"))[0].open()))
        top1 = table["rows"][0]["cells"][0]["mean"]
        expect(top1 == float(summary[-1]["eval_top1"]), f"its accuracy is that of timm's summary.csv: {top1}")
        with sqlite3.connect(f"file:{fleet.store}?mode=ro", uri=True) as store:
            steps = [step for step, in store.execute("SELECT step FROM metric_point WHERE sweep = ? AND metric = 'val/loss' AND newest ORDER BY step", (name,))]
        expect(len(steps) == EPOCHS and steps == list(range(steps[0], steps[0] + EPOCHS)) and len(summary) < EPOCHS,
               f"it has every epoch once, of which this attempt trained {len(summary)}")


def own_script(fleet, python):
    say("the script around timm")
    study = fleet.home / "own"
    study.mkdir()
    (study / "finetune.py").write_text(blocks("A script of your own", "python"))
    small = (("model: vit_tiny_patch16_224, size: 224", "model: test_vit, size: 32"), ("epochs: 10, batch: 64", "epochs: 2, batch: 8"),
             ("[0.0003, 0.001, 0.003]", "[0.001, 0.003]"))
    (study / "timm-finetune.yaml").write_text(changed(blocks("A script of your own", "yaml"), ("[python3, ", f"[{python}, "), *small, ("seeds: 3", "seeds: 1")))
    fleet.ablate("submit", study / "timm-finetune.yaml")
    fleet.wait_for("timm-finetune")
    table = filled(fleet, "timm-finetune")
    expect(all(50 <= row["cells"][0]["mean"] <= 100 for row in table["rows"]), "and is an accuracy in percent")
    alone = subprocess.run([python, "finetune.py", "--model=test_vit", "--size=32", "--epochs=1", "--batch=8"], cwd=study, capture_output=True, text=True,
                           env=dict(fleet.environment, ABLATE_DATA=str(fleet.home / "images")))
    expect(alone.returncode == 0 and alone.stdout.startswith("step 1  train/loss "), f"it runs alone: {alone.stdout.splitlines()[:1]}{alone.stderr[-2000:]}")


def main():
    python = python_with("torch", "timm", "torchvision", "PIL", "pip")
    with Fleet("timm") as fleet:
        fleet.environment.update(PYTHONPATH=path_of(install(python, fleet.home)), OMP_NUM_THREADS="1", HF_HUB_OFFLINE="1")
        subprocess.run([python, "-c", IMAGES, fleet.home / "images"], check=True)
        fleet.start_scheduler()
        fleet.start_worker("willing", "--slots", 2, "--allow-commands", "--data", f"imagenette={fleet.home / 'images'}")
        own_script(fleet, python)
        folder = os.environ.get("ABLATE_TIMM")
        if folder and (pathlib.Path(folder) / "train.py").is_file():
            own_train(fleet, python, pathlib.Path(folder).resolve())
        else:
            say("left out: timm's train.py, which no package has; ABLATE_TIMM=FOLDER of a checkout of timm tries it")


main()
