# SPDX-License-Identifier: Apache-2.0
"""Plugins through the real programs: one that is swept beside what is built in, and those that lie about shapes, throw, crash, are of another
version or no plugin at all: one clear line each, and the service goes on."""
import json
import os
import pathlib
import random
import shutil
import struct
import subprocess

from fleet import BIN, Fleet, expect, say

PLUGINS = pathlib.Path(os.environ["ABLATE_PLUGINS"])
TINY = {"family": "vit", "dim": 32, "depth": 2, "heads": 2, "mlp_ratio": 2, "patch": 8}
BASE = {"model": TINY, "data": {"name": "shapes", "train_images": 200, "val_images": 40},
        "recipe": {"use": "demo", "epochs": 2, "batch": 20, "eval_every": 1}}


def trainer(*arguments, check=True, stdin="", formats=""):
    done = subprocess.run([str(BIN / "ablate-trainer"), *map(str, arguments)], input=stdin, capture_output=True, text=True, timeout=120,
                          env={**os.environ, "ABLATE_FORMATS": str(formats)})
    if check and done.returncode != 0:
        raise AssertionError(f"{arguments}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def described(name):
    return json.loads(trainer("plugin", PLUGINS / f"{name}.so", "--json").stdout)


def said(done):
    """The one line on stderr, of a command that found its input wrong."""
    lines = done.stderr.strip().splitlines()
    expect(len(lines) == 1, f"one line: {done.stderr!r}")
    return lines[0]


def alone(folder):
    say("what a plugin says of itself")
    linear = described("linear_attention")
    expect(linear["kind"] == "attention" and [key["name"] for key in linear["keys"]] == ["feature_map", "eps"], f"{linear}")
    expect(described("small_net")["keys"][0] == {"name": "width", "type": "whole number", "default": 8, "meaning": "Channels of both.",
                                                 "low": 1.0, "high": 512.0}, "a key has a type, a default and a range")
    text = subprocess.run([str(BIN / "ablate"), "plugin", str(PLUGINS / "linear_attention.so")], capture_output=True, text=True, check=True).stdout
    expect(f"sha256: {linear['sha256']}" in text and "\n    #   feature_map: elu  # text" in text and "number, at least 0; " in text and
           "\n    options" not in text, "ablate plugin prints what a sweep file needs: options that are left out have their defaults")

    say("what is no plugin, or none of this trainer's")
    wrong = folder / "wrong.so"
    wrong.write_bytes(b"#!/bin/sh\nexit 0\n")
    done = trainer("plugin", wrong, check=False)
    expect(done.returncode == 2 and "wrong.so is not a plugin; expected a shared library" in said(done), done.stderr)
    wrong.write_bytes((PLUGINS / "linear_attention.so").read_bytes()[:9000])
    done = trainer("plugin", wrong, check=False)
    expect(done.returncode == 2 and ("is not a plugin" in said(done) or "cannot be loaded" in said(done)), f"a file that was cut: {done.stderr}")
    done = trainer("plugin", folder / "missing.so", check=False)
    expect(done.returncode in (2, 3) and "missing.so" in said(done), f"{done.returncode} {done.stderr}")
    done = trainer("plugin", PLUGINS / "older.so", check=False)
    expect(done.returncode != 0 and "was built for ablate 0.0.1, headers 0123456789ab, PyTorch 2.11.0, GNU 12; this trainer is ablate" in said(done) and
           "build it again" in done.stderr, f"nothing of a file for another version runs: {done.stderr}")


def document(plugin, **options):
    return {**BASE, "model": {**TINY, "plugin": {"name": plugin, "sha256": described(plugin)["sha256"], "options": options}}, "seed": 0}


def counted(folder):
    say("counts, as a plan needs them")
    file = folder / "trial.json"
    at = lambda name: ("--plugin", f"{name}={PLUGINS}/{name}.so")
    file.write_text(json.dumps({**BASE, "seed": 0}))
    built_in = json.loads(trainer("describe", "--config", file, "--json").stdout)["counts"]
    file.write_text(json.dumps(document("linear_attention")))
    plugged = json.loads(trainer("describe", "--config", file, "--json", *at("linear_attention")).stdout)["counts"]
    expect(plugged["params.all"] == built_in["params.all"] and plugged["params.weights"] == built_in["params.weights"], "the same matrices")
    macs = [name for name in plugged if name.startswith("flops.")]
    expect(any(plugged[name] != built_in[name] for name in macs), f"and other work: {[(plugged[m], built_in[m]) for m in macs]}")

    say("two plugins in one program, one of which prints what it likes")
    net = {**BASE, "model": {"family": "plugin", "plugin": {"name": "small_net", "sha256": described("small_net")["sha256"]}}}
    lines = "".join(json.dumps(each) + "\n" for each in (document("linear_attention"), net, document("talkative"), {**BASE, "seed": 0}))
    done = trainer("describe", "--stdin", "--json", *at("linear_attention"), *at("small_net"), *at("talkative"), stdin=lines)
    answers = [json.loads(line)["counts"]["params.all"] for line in done.stdout.splitlines()]
    expect(answers[0] == plugged["params.all"] and answers[1] == 8 * 27 + 8 + 8 * 72 + 8 + 8 * 10 + 10 and answers[3] == built_in["params.all"],
           f"each is counted as itself, in order: {answers}")
    expect("a word on stdout" in done.stderr, "what a plugin prints is no answer")

    foreign = {**BASE, "model": {"family": "plugin", "plugin": {"name": "foreign_net", "sha256": described("foreign_net")["sha256"]}}}
    done = trainer("describe", "--stdin", "--json", *at("foreign_net"), stdin=json.dumps(foreign) + "\n")
    expect("its tensors are made on cpu, not on meta" in json.loads(done.stdout)["error"], f"what cannot be counted says why: {done.stdout}")

    say("what a trial's document may get wrong")
    def refused(text, *arguments, **changed):
        file.write_text(json.dumps(changed.get("document") or document("linear_attention", **changed)))
        done = trainer("describe", "--config", file, *arguments, check=False)
        expect(done.returncode == 2 and text in done.stderr, f"{text}: {done.returncode} {done.stderr}")
    refused("no file for the plugin linear_attention: start the worker or trainer with --plugin linear_attention=FILE")
    refused("model.plugin.options.feature_map: selu; expected elu or relu; did you mean 'elu'?", *at("linear_attention"), feature_map="selu")
    refused("model.plugin.options.ep: the plugin linear_attention has no such key; expected feature_map or eps; did you mean 'eps'?",
            *at("linear_attention"), ep=1)
    refused("model.plugin.options.eps: -1; expected a number, at least 0", *at("linear_attention"), eps=-1)
    other = document("linear_attention")
    other["model"]["plugin"]["sha256"] = "0" * 64
    refused("the trial wants " + "0" * 64, *at("linear_attention"), document=other)
    whole = document("small_net")
    refused("the plugin small_net is a whole model, and model.family vit takes an attention", *at("small_net"), document=whole)
    misspelt = document("linear_attention")
    misspelt["model"]["plugin"]["sha265"] = misspelt["model"]["plugin"].pop("sha256")
    refused("did you mean 'sha256'?", *at("linear_attention"), document=misspelt)
    refused("plugin is a key of vit and plugin, not of simple-vit", document={**other, "model": {**other["model"], "family": "simple-vit"}})


def swept(fleet):
    say("beside what is built in")
    plugin = lambda name, **options: {"name": name, "sha256": described(name)["sha256"], **({"options": options} if options else {})}
    rows = [
        {"id": "built-in", "set": {}},
        {"id": "elu", "set": {"model.plugin": plugin("linear_attention")}},
        {"id": "relu", "set": {"model.plugin": plugin("linear_attention", feature_map="relu")}},
        {"id": "misshapen", "set": {"model.plugin": plugin("misshapen")}},
        {"id": "nothing", "set": {"model.plugin": plugin("made_of_nothing")}},
        {"id": "start", "set": {"model.plugin": plugin("throwing", where="start")}},
        {"id": "forward", "set": {"model.plugin": plugin("throwing")}},
        {"id": "torch", "set": {"model.plugin": plugin("throwing", where="torch")}},
        {"id": "number", "set": {"model.plugin": plugin("throwing", where="number")}},
        {"id": "crashing", "set": {"model.plugin": plugin("crashing")}},
    ]
    sweep = {"ablate": 1, "name": "attentions", "base": BASE, "rows": rows, "retry": {"max": 0},
             "table": {"baseline": "built-in", "columns": [{"name": "loss", "metric": "val/loss"}, {"name": "params", "count": "params.all"}]}}
    file = fleet.home / "attentions.yaml"
    file.write_text(json.dumps(sweep))
    fleet.ablate("submit", file)
    fleet.wait_for("attentions")
    trials = {trial["row"]: trial for trial in fleet.trials("attentions")}
    for row in ("built-in", "elu", "relu"):
        expect(trials[row]["state"] == "TRIAL_STATE_COMPLETED", f"{row}: {trials[row]}")
    for row, reason in {
        "misshapen": "plugin misshapen, layer 1 returned one of shape [20, 16, 32], Float; expected a floating-point tensor of shape [20, 17, 32]",
        "nothing": "plugin made_of_nothing, layer 1: made no attention",
        "start": "plugin throwing, layer 1: no licence",
        "forward": "plugin throwing, layer 1: not today nor tomorrow",
        "torch": "plugin throwing, layer 1: ",
        "number": "plugin throwing, layer 1: threw what is no std::exception",
        "crashing": "SIGSEGV",
    }.items():
        why = trials[row]["reason"]
        expect(trials[row]["state"] == "TRIAL_STATE_FAILED" and reason in why and "\n" not in why, f"{row}: {why}")
    rows_of = {row["id"]: row for row in json.loads(fleet.ablate("table", "attentions", "--json").stdout)["rows"]}
    cells = lambda row: rows_of[row]["cells"]
    losses = [cells(row)[0]["mean"] for row in ("built-in", "elu", "relu")]
    expect(len(set(losses)) == 3, f"three attentions, three numbers: {losses}")
    expect(cells("elu")[1]["mean"] == cells("built-in")[1]["mean"], "counted through the scheduler")

    say("a model of PyTorch's own modules")
    foreign = {"ablate": 1, "name": "foreign", "base": {**BASE, "model": {"family": "plugin", "plugin": plugin("foreign_net")}}, "seeds": 1,
               "rows": [{"id": "a"}], "table": {"columns": [{"name": "acc", "metric": "val/top1"}]}}
    file.write_text(json.dumps(foreign))
    fleet.ablate("submit", file)
    fleet.wait_for("foreign")
    expect(fleet.trials("foreign")[0]["state"] == "TRIAL_STATE_COMPLETED", "it trains though it is not counted")

    say("a whole model, and a file that was exchanged")
    net = {"ablate": 1, "name": "net", "base": {**BASE, "model": {"family": "plugin", "plugin": plugin("small_net")}},
           "factors": {"model.plugin.options.width": [4, 16]}, "seeds": 1,
           "table": {"columns": [{"name": "acc", "metric": "val/top1"}, {"name": "params", "count": "params.all"}]}}
    file.write_text(json.dumps(net))
    fleet.ablate("submit", file)
    fleet.wait_for("net")
    counts = [row["cells"][1]["mean"] for row in json.loads(fleet.ablate("table", "net", "--json").stdout)["rows"]]
    expect(counts[0] < counts[1] and all(trial["state"] == "TRIAL_STATE_COMPLETED" for trial in fleet.trials("net")), f"two widths: {counts}")

    own = fleet.home / "plugins" / "small_net.so"
    shutil.copy(PLUGINS / "misshapen.so", own)
    net["name"], net["seeds"] = "later", [7]
    file.write_text(json.dumps(net))
    fleet.ablate("submit", file)
    fleet.until(lambda: "small_net" in fleet.ablate("why", "later", check=False).stdout + fleet.ablate("ls").stdout +
                json.dumps(fleet.trials("later")), "it is said what its trials wait for")
    expect(all(trial["state"] != "TRIAL_STATE_COMPLETED" for trial in fleet.trials("later")), "nothing runs with another file")
    shutil.copy(PLUGINS / "small_net.so", own)
    fleet.wait_for("later")
    expect(all(trial["state"] == "TRIAL_STATE_COMPLETED" for trial in fleet.trials("later")), "and it goes on when the file is back")


def save(file, kind, shape, data):
    """As numpy.save."""
    head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {tuple(shape)!r}, }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    file.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data)


def arrays(folder):
    """Bright and dark images of 8 × 8 pixels."""
    folder.mkdir()
    draw = random.Random(1)
    (folder / "classes.txt").write_text("dark\nbright\n")
    for split, images in (("train", 200), ("val", 40)):
        labels = [i % 2 for i in range(images)]
        save(folder / f"{split}_images.npy", "|u1", (images, 8, 8, 3), bytes(draw.randrange(128) + 127 * label for label in labels for _ in range(192)))
        save(folder / f"{split}_labels.npy", "<i8", (images,), struct.pack(f"<{images}q", *labels))
    return folder


def own_data(fleet):
    say("a data set in a format of one's own")
    folder = arrays(fleet.home / "arrays")
    flag = ("--format", PLUGINS / "numpy_arrays.so")
    done = fleet.ablate("data", "check", "--root", folder, check=False)
    expect(done.returncode == 2 and "holds no data set of a known format" in done.stderr, f"without it nobody knows: {done.stderr}")
    report = json.loads(fleet.ablate("data", "check", "--root", folder, "--json", *flag).stdout)
    expect(report["classes"] == ["dark", "bright"] and report["splits"]["train"]["images"] == 200 and not report["damaged"], f"{report}")
    packed = fleet.home / "arrays.abldata"
    fleet.ablate("data", "pack", "--root", folder, "--output", packed, "--raw", *flag)

    bad = fleet.home / "bad"
    bad.mkdir()
    for lie, text in {"throws": "data: the format bad: nothing here", "label": "invalid label of training image 0; expected 0 to 1, got 2"}.items():
        (bad / "lie").write_text(lie)
        done = fleet.ablate("data", "check", "--root", bad, "--format", PLUGINS / "bad_format.so", check=False)
        expect(done.returncode == 2 and text in said(done), f"{lie}: {done.stderr}")
    for lie, text in {"number": "threw what is no std::exception", "short": "an image of 8 × 8 pixels in 3 bytes; expected 192", "file": ""}.items():
        (bad / "lie").write_text(lie)
        done = fleet.ablate("data", "check", "--root", bad, "--format", PLUGINS / "bad_format.so", check=False)
        expect(done.returncode == 1 and "8 of 8 images cannot be decoded" in done.stdout and text in done.stdout, f"{lie}: {done.stdout}{done.stderr}")
    (bad / "lie").write_text("away")
    trial = fleet.home / "away.json"
    trial.write_text(json.dumps({**BASE, "data": {"name": "bad", "classes": 2, "image_size": 8, "damaged": "skip"}, "seed": 0}))
    done = trainer("train", "--config", trial, "--run-dir", fleet.home / "away", "--data-root", bad, "--json", check=False, formats=PLUGINS / "bad_format.so")
    end = json.loads(done.stdout.splitlines()[-1])
    expect((end["status"], end["retryable"]) == ("failed", True) and "data: the format bad: shard 3: Stale file handle" in end["reason"],
           f"an image that cannot be read is not one that is left out: {done.stdout}")
    done = fleet.ablate("data", "check", "--root", bad, "--format", PLUGINS / "debug_format.so", check=False)
    expect(done.returncode == 2 and "libstdc++ in debug mode (_GLIBCXX_DEBUG); this trainer is" in said(done), f"other containers: {done.stderr}")
    done = fleet.ablate("data", "check", "--root", bad, "--format", PLUGINS / "small_net.so", check=False)
    expect(done.returncode == 2 and "is not a plugin; expected a shared library that was built with ABLATE_DATA_FORMAT" in said(done), done.stderr)

    say("and trained on, as it is and packed")
    fleet.start_worker("own", "--slots", 1, "--label", "data=own", "--data", f"arrays={folder}", "--data", f"packed={packed}", *flag,
                       "--plugin", f"small_net={PLUGINS}/small_net.so")
    net = {"family": "plugin", "plugin": {"name": "small_net", "sha256": described("small_net")["sha256"]}}
    for name in ("arrays", "packed"):
        sweep = {"ablate": 1, "name": name, "resources": {"where": {"data": "own"}}, "base": {**BASE, "model": net, "data": {"name": name, "image_size": 8, "classes": 2}},
                 "seeds": 1,
                 "rows": [{"id": "a"}], "table": {"columns": [{"name": "acc", "metric": "val/top1"}]}}
        file = fleet.home / f"{name}.yaml"
        file.write_text(json.dumps(sweep))
        fleet.ablate("submit", file)
        fleet.wait_for(name)
    means = [json.loads(fleet.ablate("table", name, "--json").stdout)["rows"][0]["cells"][0]["mean"] for name in ("arrays", "packed")]
    expect(means[0] == means[1] and means[0] > 60, f"the same accuracy from both: {means}")


def main():
    with Fleet("plugins") as fleet:
        own = fleet.home / "plugins"
        own.mkdir()
        for file in PLUGINS.glob("*.so"):
            shutil.copy(file, own)
        alone(fleet.home)
        counted(fleet.home)
        flags = [word for file in sorted(own.glob("*.so")) for word in ("--plugin", f"{file.stem}={file}")]
        fleet.start_scheduler(*flags)
        fleet.start_worker("only", "--slots", 2, *flags)
        swept(fleet)
        own_data(fleet)
        say("done")


main()
