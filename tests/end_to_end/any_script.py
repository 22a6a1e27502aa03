# SPDX-License-Identifier: Apache-2.0
"""Scripts that know nothing of ablate: the example of docs/any-script.md as it is printed; one that prints as timm's train.py does, writes a table
and a checkpoint as that does, dies of SIGTERM, is stopped and resumed; one for TensorBoard; and patterns that match nothing."""
import json
import re
import sqlite3
import sys

from fleet import SOURCE, Fleet, expect, say

# the lines, files and options of timm's train.py; an epoch each time that the gate has one more line
LIKE_TIMM = r"""
import argparse, csv, logging, os, pathlib, sys, time
flags = argparse.ArgumentParser()
flags.add_argument("--lr", type=float)
flags.add_argument("--output", type=pathlib.Path)
flags.add_argument("--resume", type=pathlib.Path)
flags.add_argument("gate", type=pathlib.Path)
args = flags.parse_args()
logging.basicConfig(level=logging.INFO, format="%(message)s")  # to stderr, as timm's
log = logging.info
output = args.output / time.strftime("%Y%m%d-%H%M%S-vit_tiny_patch16_224-224")
output.mkdir(parents=True)
start = int(args.resume.read_text()) + 1 if args.resume else 0
if args.resume:
    log(f"Loaded checkpoint '{args.resume}' (epoch {start - 1})")
for epoch in range(start, 6):
    for batch in range(3):
        log(f"Train: {epoch} [{batch:>4d}/3 ({50 * batch:>3.0f}%)]  Loss: {9 - epoch:#.3g} ({8 - epoch + batch:#.3g})  Time: 0.01s,  100.0/s  "
            f"(0.01s,  100.0/s)  LR: 1.000e-03  Data: 0.001 (0.001)")
    while len(args.gate.read_text()) <= epoch:
        time.sleep(0.01)
    for batch in range(2):
        log(f"Test: [{batch:>4d}/1]  Time: 0.010 (0.010)  Loss:  {7 - epoch:>7.3f} ({6 - epoch:>6.3f})  "
            f"Acc@1: {0.0:>7.3f} ({10 * epoch + batch:>7.3f})  Acc@5: {0.0:>7.3f} ({90.0:>7.3f})")
    with open(output / "summary.csv", "a", newline="") as file:
        table = csv.writer(file)
        if file.tell() == 0:
            table.writerow(["epoch", "train_loss", "eval_loss", "eval_top1", "lr"])
        table.writerow([epoch, 10 - epoch, 6 - epoch, 10 * epoch + 1, args.lr])
    part = output / "tmp.pth.tar"
    part.write_text(str(epoch))
    part.replace(output / "last.pth.tar")
log("*** Best metric: 51.0 (epoch 5)")
"""


def block(page, language):
    return re.search(rf"^```{language}\n(.*?)^```", page, re.DOTALL | re.MULTILINE).group(1)


def submit(fleet, name, command, metrics=("acc",)):
    file = fleet.home / f"{name}.yaml"
    columns = [{"name": metric.replace("/", "-"), "metric": metric, "take": "last", "better": "higher"} for metric in metrics]
    file.write_text(json.dumps({"ablate": 1, "name": name, "command": command, "rows": [{"id": "a"}], "table": {"columns": columns}}))
    fleet.ablate("submit", file)


def points(fleet, sweep, metric):
    """Of the newest run: (step, value)."""
    run = fleet.trials(sweep)[0]["run"]
    with sqlite3.connect(f"file:{fleet.store}?mode=ro", uri=True) as store:
        return store.execute("SELECT step, value FROM metric_point WHERE run = ? AND metric = ? ORDER BY step", (run, metric)).fetchall()


def log_of(fleet, sweep):
    return fleet.ablate("logs", str(fleet.trials(sweep)[0]["run"])).stdout


def documented(fleet):
    say("the example of the docs, as it is printed")
    page = (SOURCE / "docs/any-script.md").read_text()
    study = fleet.home / "study"
    study.mkdir()
    (study / "prints-only.yaml").write_text(block(page, "yaml"))
    (study / "train.py").write_text(block(page, "python"))
    fleet.ablate("validate", study / "prints-only.yaml")
    fleet.ablate("submit", study / "prints-only.yaml")
    fleet.wait_for("prints-only")
    table = fleet.json("table", "prints-only")
    print(fleet.ablate("table", "prints-only").stdout)
    expect(all(cell["n"] == 2 for row in table["rows"] for cell in row["cells"]), "both metrics of both seeds are in every cell")
    slow, fast = (row["cells"][0]["mean"] for row in table["rows"])
    expect(60 < slow < 70 < 95 < fast < 100, f"percents are as they are printed: {slow}, {fast}")


def like_timm(fleet):
    say("a script that prints and writes as timm's does, and dies of SIGTERM")
    script, gate = fleet.home / "like_timm.py", fleet.home / "gate"
    script.write_text(LIKE_TIMM)
    gate.write_text("...")
    mean = r"\( *(?<{}>[^)]+)\)"
    submit(fleet, "like-timm", {
        "argv": [sys.executable, str(script), "--lr={params.lr}", "--output", "{run_dir}/output", str(gate)], "params": {"lr": 0.5},
        "metrics": [{"file": "output/*/summary.csv", "names": {"eval_top1": "val/top1"}},
                    {"pattern": r"Train: (?<epoch>\d+) .*Loss: +\S+ " + mean.format("loss"), "split": "train"},
                    {"pattern": r"Test: .*Acc@1: +\S+ " + mean.format("top1"), "step": "last", "split": "log"}],
        "checkpoint": "output/*/last.pth.tar", "resume_argv": ["--resume", "{checkpoint}"]}, ["val/top1", "train/loss", "log/top1"])
    fleet.until(lambda: [step for step, _ in points(fleet, "like-timm", "val/top1")] == [0, 1, 2], "three epochs are in the table while it runs")
    fleet.until(lambda: "Train: 3 [   2/3" in log_of(fleet, "like-timm"), "the fourth has begun")
    fleet.ablate("pause", "like-timm", "--stop-running")
    fleet.until(lambda: fleet.trials("like-timm")[0]["state"] == "TRIAL_STATE_QUEUED", "it is paused")
    gate.write_text(".....")
    fleet.ablate("resume", "like-timm")
    fleet.until(lambda: "Train: 5 [   2/3" in log_of(fleet, "like-timm"), "it went on to the last epoch")
    say("and once more, its worker killed")
    first = fleet.trials("like-timm")[0]["run"]
    fleet.until(lambda: checkpoint_of(fleet, first) >= 4, "its checkpoint was seen while it ran")
    fleet.kill("worker")
    gate.write_text("......")
    fleet.start_worker("worker", "--slots", 2, "--allow-commands")
    fleet.wait_for("like-timm")
    print(fleet.ablate("table", "like-timm").stdout)
    log = log_of(fleet, "like-timm")
    expect("Loaded checkpoint" in log and "(epoch 4)" in log, "it was given the checkpoint of the epoch before")
    expect(points(fleet, "like-timm", "val/top1") == [(e, 10 * e + 1) for e in range(6)], "the table's points are all there, each once")
    expect(points(fleet, "like-timm", "log/top1") == [(e, 10 * e + 1) for e in range(6)], "the log's too: the last of each epoch")
    expect(points(fleet, "like-timm", "train/loss") == [(e, 10 - e) for e in range(6)], "of an epoch that was done again the whole one counts")
    trial = fleet.trials("like-timm")[0]
    written = (fleet.home / "runs" / str(trial["id"]) / str(trial["attempt"]) / "metrics.csv").read_text().splitlines()
    losses = [line.split(",") for line in written if ",train/loss," in line]
    expect([(int(step), float(value)) for step, _, value in losses] == [(e, 10 - e) for e in range(6)], "and so it stands in the run's folder")
    expect(trial["repeated_points"] == trial["refused_lines"] == 0, "nothing was said twice or refused")


def checkpoint_of(fleet, run):
    with sqlite3.connect(f"file:{fleet.store}?mode=ro", uri=True) as store:
        return store.execute("SELECT MAX(step) FROM checkpoint WHERE run_id = ?", (run,)).fetchone()[0] or -1


def tensorboard(fleet):
    say("a script that writes for TensorBoard")
    events = SOURCE / "tests/fuzz/corpus/event_file/scalars"
    submit(fleet, "events", {"argv": ["sh", "-c", f'mkdir "$ABLATE_RUN_DIR/runs" && cp {events} "$ABLATE_RUN_DIR/runs/events.out.tfevents.1"'],
                             "metrics": {"tensorboard": "runs"}})
    fleet.wait_for("events")
    expect(points(fleet, "events", "acc") == [(1, 0.1)], "its scalar is the metric")


def nothing_found(fleet):
    say("a pattern that matches nothing")
    submit(fleet, "nothing", {"argv": ["echo", "Epoch 1: accuracy 0.5"], "metrics": {"pattern": r"epoch (?<epoch>\d+) acc=(?<acc>\S+)"}})
    fleet.wait_for("nothing")
    trial = fleet.trials("nothing")[0]
    expect(trial["state"] == "TRIAL_STATE_FAILED" and trial["reason"].endswith("the line that looks nearest: 'Epoch 1: accuracy 0.5'"),
           f"fails the run: {trial['reason']}")


def main():
    with Fleet("any-script") as fleet:
        fleet.start_scheduler()
        fleet.start_worker("worker", "--slots", 2, "--allow-commands")
        documented(fleet)
        like_timm(fleet)
        tensorboard(fleet)
        nothing_found(fleet)


main()
