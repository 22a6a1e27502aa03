# SPDX-License-Identifier: Apache-2.0
"""Each way in which a run may fail, once through the real programs: what `show` says of it, whose failure it is, and what its sweep's policy
makes of it. With a trainer also a training that diverges."""
import json
import re
import sqlite3

from fleet import BIN, Fleet, expect, say

PROGRAMS = {
    # name: (script, run in its run's folder), what else the sweep says
    "slow": ("exec sleep 600", {"limits": {"time": "1s"}, "retry": {"max": 5}}),
    "silent": ("echo begun; exec sleep 600", {"limits": {"stall": "1s"}, "retry": {"max": 1}}),
    "greedy": ("kill -KILL $$", {"retry": {"max": 5, "on": {"resources": 1}}}),
    "unlucky": ("[ -e ../been ] && exit 0; touch ../been; exit 75", {"retry": {"on": {"exit 75": "infrastructure"}}}),
    "flaky": ("[ -e ../been ] && exit 0; touch ../been; echo NCCL error 7: remote; exit 1",
              {"retry": {"max": 0, "on": {"log ^NCCL error [0-9]+": 1, "exit 1": 0}}}),
    "wild": ("""echo '{"event":"metric","step":1,"values":{"loss":0.5}}'; echo '{"event":"metric","step":2,"values":{"loss":NaN}}'
                exec sleep 600""", {"limits": {"nan": "fail"}, "retry": {"max": 5}}),
    "wordy": ("seq 1 100000", {"limits": {"log": "8KiB"}}),
}


def sweep_of(name, script, policy):
    return {"ablate": 1, "name": name, "command": {"argv": ["sh", "-c", script], "folder": "{run_dir}"}, "rows": [{"id": "a"}],
            "table": {"columns": [{"name": "loss", "metric": "loss"}]}, **policy}


def submit(fleet, sweep):
    file = fleet.home / f"{sweep['name']}.yaml"
    file.write_text(json.dumps(sweep))  # YAML's other spelling
    fleet.ablate("submit", file)


def runs(fleet, trial):
    """State, class and rule of each attempt."""
    with sqlite3.connect(f"file:{fleet.store}?mode=ro", uri=True) as store:
        return store.execute("SELECT state, failure, failure_rule FROM run WHERE trial_id = ? ORDER BY attempt", (trial["id"],)).fetchall()


def commands(fleet):
    for name, (script, policy) in PROGRAMS.items():
        submit(fleet, sweep_of(name, script, policy))
    trial = {}
    for name in PROGRAMS:
        fleet.wait_for(name)
        trial[name] = fleet.trials(name)[0]

    def ended(name, reason, attempts):
        one = trial[name]
        expect(re.search(reason, one["reason"]) and [tuple(a) for a in attempts] == runs(fleet, one),
               f"{name}: {one['reason'] or one['state']}; {runs(fleet, one)}")

    ended("slow", "^ran for longer than 1s, its limits.time", [("failed", "trial", "")])
    ended("silent", "^printed nothing for 1s, its limits.stall", [("failed", "trial", "")] * 2)
    ended("greedy", "^killed by SIGKILL .*perhaps out of memory", [("failed", "resources", "resources")] * 2)
    expect("(resources)" in fleet.ablate("show", "greedy").stdout, "show says whose failure it is")
    expect(trial["greedy"]["failure"] == "FAILURE_CLASS_RESOURCES", "and so does its JSON")
    ended("unlucky", "^$", [("lost", "infrastructure", "exit 75"), ("completed", "", "")])
    ended("flaky", "^$", [("failed", "trial", "log ^NCCL error [0-9]+"), ("completed", "", "")])
    ended("wild", "^loss is NaN at step 2, its limits.nan", [("failed", "trial", "")])
    log = fleet.ablate("logs", str(trial["wordy"]["run"])).stdout
    expect(len(log) < 10_000 and "left out here" in log and log.endswith("100000\n"), "a log is kept within its sweep's limit, without its middle")


def misspelt(fleet):
    file = fleet.home / "misspelt.yaml"
    file.write_text('ablate: 1\nname: m\ncommand: {argv: ["true"]}\nrows: [{id: a}]\nretry:\n  on: {resurces: 1}\n'
                    "table: {columns: [{name: loss, metric: loss}]}\n")
    done = fleet.ablate("validate", file, check=False)
    expect(done.returncode == 2 and "misspelt.yaml:6:8: retry.on.resurces: " in done.stdout + done.stderr and
           "did you mean 'resources'?" in done.stdout + done.stderr, "a misspelt kind of failure is named with its place and the nearest one")


def diverging(fleet):
    say("a training that diverges")
    submit(fleet, {"ablate": 1, "name": "diverging",
                   "base": {"model": {"family": "simple-vit", "dim": 32, "depth": 1, "heads": 2, "dim_head": 16, "patch": 8},
                            "data": {"name": "shapes", "train_images": 200, "val_images": 40},
                            "recipe": {"use": "demo", "epochs": 8, "batch": 20, "eval_every": 8, "optimiser": "sgd", "warmup": 0, "clip_norm": 0}},
                   "factors": {"recipe.lr": [0.01, 1e38]}, "retry": {"max": 3}})
    fleet.wait_for("diverging")
    good, bad = fleet.trials("diverging")
    expect(good["state"] == "TRIAL_STATE_COMPLETED", "the other row completes")
    said = re.match(r"^diverged: the training loss is not finite since step (\d+)$", bad["reason"])
    expect(said and bad["failure"] == "FAILURE_CLASS_TRIAL" and bad["attempt"] == 1, f"{bad['reason']}; it is not tried again")
    with sqlite3.connect(f"file:{fleet.store}?mode=ro", uri=True) as store:
        steps = [step for step, in store.execute("SELECT step FROM checkpoint WHERE run_id = ?", (bad["run"],))]
    expect(all(step < int(said.group(1)) for step in steps), f"no checkpoint is of bad weights: {steps}")
    expect("diverged: the training loss is not finite" in fleet.ablate("table", "diverging").stdout, "its cell says that it diverged")


def main():
    with Fleet("failures") as fleet:
        fleet.start_scheduler()
        fleet.start_worker("only", "--slots", 2, "--allow-commands")
        misspelt(fleet)
        commands(fleet)
        if (BIN / "ablate-trainer").exists():
            diverging(fleet)


main()
