# SPDX-License-Identifier: Apache-2.0
"""A row that starts from the weights of another, and one that learns from it: trained after it, though the scheduler is killed in
between; from no other file, on the worker that has it; held where there is none, and found again by another sweep."""
import hashlib
import pathlib
import random
import sqlite3
import struct
import zlib

from fleet import Fleet, expect, say

SWEEP = """ablate: 1
name: {name}
base:
  model: {{preset: simple-vit-nano, patch: 8}}
  data: {{name: colours, image_size: 32, classes: 3}}
  recipe: {{use: demo, epochs: 1, batch: 20, eval_every: 1}}
rows:
  - {{id: fine, label: "fine-tuned", set: {{data.image_size: 48, recipe.lr: {fine_lr}}}, from: {{row: pre}}}}
  - {{id: finer, label: "and again", set: {{data.image_size: 48, recipe.lr: 1e-5}}, from: {{row: fine, take: last}}}}
  - {{id: pre, label: "on other images", set: {{data: {{name: shapes, classes: 10, train_images: 200, val_images: 50}}, recipe.epochs: {epochs}{lr}}}}}
  - {{id: t, label: "teacher", set: {{model.depth: 3}}}}
  - {{id: student, label: "distilled", set: {{recipe.distillation: hard}}, teacher: {{row: t}}}}
seeds: [0]
"""


def png(colour, side=32):
    """A square of noise around a colour."""
    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    chance = random.Random(str(colour))
    rows = b"".join(b"\0" + bytes(min(255, max(0, part + chance.randrange(-40, 40))) for _ in range(side) for part in colour[:3]) for _ in range(side))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def write_images(folder):
    for split, count in (("train", 20), ("val", 8)):
        for name, colour in (("red", (200, 60, 60)), ("green", (60, 200, 60)), ("blue", (60, 60, 200))):
            (folder / split / name).mkdir(parents=True)
            for i in range(count):
                (folder / split / name / f"{i}.png").write_bytes(png((*colour, split, i)))


def sha256(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


def main():
    with Fleet("chains") as fleet:
        def write(name, epochs=6, lr="", fine_lr="1e-4"):
            file = fleet.home / f"{name}.yaml"
            file.write_text(SWEEP.format(name=name, epochs=epochs, lr=lr, fine_lr=fine_lr))
            return file

        def start_worker(name):
            fleet.start_worker(name, "--slots", 1, "--data", f"colours={fleet.home / 'images'}", runs=fleet.home / f"runs-{name}")

        def trials(sweep="chained"):
            return {trial["row"]: trial for trial in fleet.trials(sweep)}

        def state(row, sweep="chained"):
            return trials(sweep)[row]["state"].removeprefix("TRIAL_STATE_").lower()

        def checkpoints(row, best):
            with sqlite3.connect(f"file:{fleet.store}?mode=ro", uri=True) as store:
                return store.execute("SELECT CASE ? WHEN 1 THEN c.best ELSE c.path END, c.sha256, c.step FROM checkpoint c WHERE c.run_id = ?"
                                     " AND (? = 0 OR c.best <> '') ORDER BY c.step DESC LIMIT 1",
                                     (best, trials()[row]["run"], best)).fetchone()

        def given(row):
            with sqlite3.connect(f"file:{fleet.store}?mode=ro", uri=True) as store:
                return store.execute("SELECT source_run, step, sha256 FROM run_source WHERE run_id = ?", (trials()[row]["run"],)).fetchone()

        write_images(fleet.home / "images")
        fleet.start_scheduler("--depot-limit-mib", 0)  # without a depot: what is read is what lies there
        file = write("chained")
        plan = fleet.ablate("plan", file).stdout
        expect("weights of" in plan and "teacher t" in plan and "at most 3 trainings one after the other" in plan, "a plan shows the chains")
        fleet.ablate("submit", file)
        expect(trials()["fine"]["reason"] == "waits for row pre, seed 0 (queued)", "and what a trial waits for is said")
        # the first worker alone, so that the pretraining lies in its folder
        start_worker("first")
        fleet.until(lambda: trials()["pre"]["step"] >= 2, "the pretraining is under way")
        expect(trials()["fine"]["reason"].startswith("waits for row pre, seed 0 (running, ") or state("pre") == "completed", "with how far that is")
        expect(trials()["finer"]["reason"] == "waits for row fine, seed 0 (queued)", "each for the one before it")
        fleet.kill("scheduler")
        fleet.start_scheduler("--depot-limit-mib", 0)  # without a depot: what is read is what lies there
        start_worker("second")
        fleet.until(lambda: not any(state(row) in ("queued", "leased", "running") for row in trials()), "all rows are over")
        for row, trial in trials().items():
            say(f"{row}: {trial['state']} {trial['reason']}")
        expect(all(trial["state"] == "TRIAL_STATE_COMPLETED" for trial in trials().values()), "all rows are trained, though the scheduler was killed in between")
        for row, source, best in (("fine", "pre", 1), ("finer", "fine", 0), ("student", "t", 1)):
            path, digest, step = checkpoints(source, best)
            expect(given(row) == (trials()[source]["run"], step, digest), f"{row} was given the {'best' if best else 'last'} checkpoint of {source}")
            expect(sha256(path) == digest, "which lies there as it was")
        with sqlite3.connect(f"file:{fleet.store}?mode=ro", uri=True) as store:
            runs = store.execute("SELECT t.id, run.worker, run.state, run.reason FROM run JOIN trial t ON t.id = run.trial_id ORDER BY run.id").fetchall()
        for trial, worker, how, reason in runs:
            say(f"trial {trial} on {worker}: {how} {reason}")
        completed = {trial: worker for trial, worker, how, _ in runs if how == "completed"}
        pre = trials()["pre"]["id"]
        expect(completed[trials()["fine"]["id"]] == completed[pre], "the worker that has the file has fine-tuned it")

        where = fleet.ablate("where", "chained/fine/0").stdout
        expect("weights of   chained/pre/0  best: run 1, step" in where, "and people are told where its weights came from")
        why = fleet.ablate("why", "chained", "fine", "top1").stdout
        expect("began with the weights of" in why and "seed 0: the best of sweep chained, row pre, seed 0: run 1, step" in why,
               "and why a number that follows from them is what it is")
        hashes = [line for line in why.splitlines() if "weights" in line and line.split()[0].startswith("recipe.")]
        expect(hashes == [] or all("the best weights of chained/pre" in line for line in hashes), f"without a hash in a row's place: {hashes}")

        again = fleet.ablate("submit", write("again")).stdout
        expect(all(trial["state"] == "TRIAL_STATE_COMPLETED" for trial in trials("again").values()), "an equal chain of another sweep is found again by identity")
        expect("0 new" in again, "without training anything")

        # a source that fails holds what waits for it, and gives it back
        bad = write("bad", lr=", recipe.lr: 1e30", epochs=3)
        fleet.ablate("submit", bad)
        fleet.until(lambda: state("pre", "bad") == "failed", "a pretraining diverges")
        fleet.until(lambda: state("finer", "bad") == "held", "what needs it is held")
        expect("row pre, seed 0, whose weights it takes, failed: " in trials("bad")["fine"]["reason"], "with the reason of its source")
        expect("held" in fleet.ablate("show", "bad").stdout, "and people are told")
        fleet.ablate("retry", "bad", "--row", "finer")
        fleet.until(lambda: state("pre", "bad") == "failed" and state("finer", "bad") == "held", "which fails as before")

        # a worker that does not have the folder leaves the trial to the one that has
        fleet.stop("first")
        fleet.ablate("submit", write("moved", fine_lr="3e-4"))
        fleet.until(lambda: "worker second refused it: the checkpoint of row pre, seed 0, whose weights it takes, lies outside of" in trials("moved")["fine"]["reason"],
                    "a worker that cannot read the file refuses it")
        start_worker("first")
        fleet.until(lambda: state("fine", "moved") == "completed", "and the one that has it trains")

        # a file that is gone is never replaced by another
        path, _, _ = checkpoints("pre", 1)
        pathlib.Path(path).unlink()
        fleet.ablate("submit", write("more", fine_lr="2e-4"))
        fleet.until(lambda: "refused it: the checkpoint of row pre, seed 0, whose weights it takes, is gone" in trials("more")["fine"]["reason"],
                    "weights that are gone are said to be gone")
        expect(state("fine", "more") == "queued", "and nothing else is trained from")
        fleet.ablate("rerun", "more", "pre")
        fleet.until(lambda: state("finer", "more") == "completed", "once the source has run again the rest follows")
        with sqlite3.connect(f"file:{fleet.store}?mode=ro", uri=True) as store:
            source, = store.execute("SELECT source_run FROM run_source WHERE run_id = ?", (trials("more")["fine"]["run"],)).fetchone()
        expect(source == trials("more")["pre"]["run"], "from the new run")
        expect(state("fine") == "completed" and state("pre") == "completed", "and the other sweep keeps what it has")


main()
