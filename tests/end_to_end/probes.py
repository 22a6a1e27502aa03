# SPDX-License-Identifier: Apache-2.0
"""Probes of a sweep: its file asks for them, workers look into each trained model, and what they find stands in the table, with the run, over HTTP
and in a folder; a row that has nothing for a probe says so; a sweep that shares the trials and asks for more is filled by `ablate probe`; a
program of one's own says what it found by itself."""
import json
import sqlite3
import struct
import sys
import urllib.request

from fleet import SOURCE, Fleet, expect

SWEEP = """ablate: 1
name: {name}
base:
  model:  {{family: vit, dim: 32, depth: 2, heads: 2, patch: 8}}
  data:   {{name: shapes, train_images: 120, val_images: 60}}
  recipe: {{use: demo, epochs: 1}}
rows:
  - {{id: vit}}
  - {{id: xcit, set: {{model.family: xcit}}}}
probes: {probes}
table:
  columns: {columns}
"""

SCRIPT = """
import json, os, struct, zlib
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
png = b"\\x89PNG\\r\\n\\x1a\\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 3, 2, 8, 2, 0, 0, 0))
png += chunk(b"IDAT", zlib.compress(b"\\0" + bytes(9) + b"\\0" + bytes(9))) + chunk(b"IEND", b"")
open("dots.png", "wb").write(png)
print(json.dumps({"event": "metric", "step": 5, "values": {"acc": 50}}))
print(json.dumps({"event": "probe", "step": 5, "probe": "mine", "values": {"dots": 7, "odd": float("nan")},
                  "pictures": [{"name": "dots", "file": "dots.png"}, {"name": "passwd", "file": "/etc/passwd"}]}))
print(json.dumps({"event": "probe", "step": 5, "path": "/etc/passwd"}))
"""


def submit(fleet, name, probes, columns):
    file = fleet.home / f"{name}.yaml"
    file.write_text(SWEEP.format(name=name, probes=json.dumps(probes), columns=json.dumps([{"name": "top1", "metric": "val/top1"}, *columns])))
    fleet.ablate("submit", file)
    fleet.wait_for(name)
    return {trial["row"]: trial["run"] for trial in fleet.trials(name)}


def cells(fleet, sweep, column):
    table = fleet.json("table", sweep, "--long")
    at = [one["name"] for one in table["columns"]].index(column)
    return {row["id"]: row["cells"][at] for row in table["rows"]}


def get(fleet, path):
    url = next(line.split("dashboard at ")[1].strip() for line in (fleet.home / "scheduler.log").read_text().splitlines() if "dashboard at " in line)
    with urllib.request.urlopen(f"{url}api/v1/{path}", timeout=60) as answer:
        return json.load(answer)


def asked_for(fleet):
    norm = {"name": "norm", "probe": "feature-norms/last"}
    runs = submit(fleet, "first", ["feature-norms", {"name": "attention", "images": 2}, "class-attention"],
                  [norm, {"name": "entropy", "probe": "attention/entropy"}])
    found = cells(fleet, "first", "norm")
    expect(all(cell["n"] == 1 and cell["mean"] > 0 for cell in found.values()), f"each row has its norm: {found}")
    entropy = cells(fleet, "first", "entropy")
    expect(entropy["vit"]["n"] == 1, f"heads of the vit attend: {entropy['vit']}")
    expect(entropy["xcit"]["missing"].startswith("nothing to probe: "), f"an xcit has no such map, and says so: {entropy['xcit']['missing']}")
    stored = fleet.json("probe", runs["vit"])
    expect([one["probe"] for one in stored["probes"]] == ["attention", "class-attention", "feature-norms"], "all three are stored with the run")
    attention, class_attention, norms = stored["probes"]
    expect(attention["settings"]["images"] == 2 and len(attention["pictures"]) == 1 and attention["arrays"], "with arrays and a picture")
    expect(class_attention["missing"], f"what a vit has no blocks for: {class_attention['missing']}")
    expect(norms["values"]["last"] == found["vit"]["mean"], "the table has what was found, to the last digit")
    out = fleet.home / "found"
    fleet.ablate("probe", runs["vit"], "--out", out)
    png = next(out.glob("attention*.png")).read_bytes()
    width, height = struct.unpack(">II", png[16:24])
    expect((width, height) == (attention["pictures"][0]["width"], attention["pictures"][0]["height"]), "the picture comes out of the store")
    listed = get(fleet, f"runs/{runs['vit']}/probes")["probes"]
    expect(len(listed) == 3 and all("arrays" not in json.loads(one["found_json"]) for one in listed),
           "HTTP lists them without arrays")
    whole = get(fleet, f"runs/{runs['vit']}/probes?name=attention")["probes"][0]
    expect(whole["pictures"][0]["png"], "and gives one whole")
    return runs


def filled_later(fleet, runs):
    more = submit(fleet, "second", ["feature-norms", "subspace-similarity"],
                  [{"name": "norm", "probe": "feature-norms/last"}, {"name": "qk", "probe": "subspace-similarity/query-key"}])
    expect(more == runs, "a sweep that asks for other probes shares the trials")
    found = cells(fleet, "second", "qk")
    expect(found["vit"]["text"] == "not probed" and found["vit"]["missing"] == "not probed; 'ablate probe second' does it", f"what nobody looked for: {found['vit']}")
    expect(fleet.json("show", "second")["summary"]["state"] == "SWEEP_STATE_COMPLETED", "no trial is to run again for it")
    other = submit(fleet, "third", [{"name": "feature-norms", "images": 3}], [{"name": "norm", "probe": "feature-norms/last"}])
    expect(other == runs and all(cell["text"] == "not probed" for cell in cells(fleet, "third", "norm").values()),
           "and no cell takes what was found with other settings")
    wrong = fleet.ablate("probe", "third", "--data-root", fleet.home, check=False)
    expect(wrong.returncode != 0, "images of somewhere else are refused")
    done = fleet.ablate("probe", "second")
    expect("2 runs probed" in done.stdout and f"vit/0 run {runs['vit']}: subspace-similarity" in done.stdout, done.stdout)
    found = cells(fleet, "second", "qk")
    expect(all(cell["n"] == 1 for cell in found.values()), f"then it is there: {[cell['text'] for cell in found.values()]}")
    expect("0 runs probed, 2 had all results already" in fleet.ablate("probe", "second").stdout, "and is not looked for again")
    wider = json.loads(fleet.ablate("probe", "second/vit/0", "accuracy-by-resolution", "--with", "accuracy-by-resolution.sizes=16,32", "--json").stdout)
    expect(wider["stored"] and {"top1-16", "top1-32"} <= set(wider["probes"][0]["values"]), f"one more of one run: {wider['probes'][0]['values']}")
    top1 = cells(fleet, "second", "top1")["vit"]["mean"]
    expect(wider["probes"][0]["values"]["top1-32"] == top1, f"at its own size it is the table's accuracy: {top1}")
    size = fleet.ablate("probe", "second/vit/0", "accuracy-by-resolution", "--with", "accuracy-by-resolution.sizes=0", check=False)
    expect(size.returncode == 2 and len(size.stderr.strip().splitlines()) == 1, size.stderr)


def of_ones_own(fleet):
    file = fleet.home / "own.yaml"
    script = fleet.home / "script.py"
    script.write_text(SCRIPT)
    file.write_text(json.dumps({"ablate": 1, "name": "own", "command": {"argv": [sys.executable, str(script)], "folder": "{run_dir}"}, "rows": [{"id": "a"}],
                                "table": {"columns": [{"name": "acc", "metric": "acc", "better": "higher"}, {"name": "dots", "probe": "mine/dots"}]}}))
    fleet.ablate("submit", file)
    fleet.wait_for("own")
    expect(cells(fleet, "own", "dots")["a"]["mean"] == 7, "a program says what it found")
    run = fleet.trials("own")[0]["run"]
    mine = fleet.json("probe", run)["probes"][0]
    expect([picture["name"] for picture in mine["pictures"]] == ["dots"] and mine["values"]["odd"] == "NaN", f"{mine}")
    expect("lies outside of the run's folder" in mine["notes"][0], mine["notes"][0])
    log = fleet.ablate("logs", run).stdout
    expect("[worker] probe result not kept: /etc/passwd lies outside of the run's folder" in log, log)
    refused = fleet.ablate("probe", run, "attention", check=False)
    expect(refused.returncode != 0 and "ran a custom command" in refused.stderr, refused.stderr)


def main():
    with Fleet("probes") as fleet:
        fleet.start_scheduler()
        fleet.start_worker("w", "--slots", 2, "--threads", 1, "--allow-commands")
        runs = asked_for(fleet)
        filled_later(fleet, runs)
        of_ones_own(fleet)
        fleet.stop("w")
        fleet.stop("scheduler")
        fleet.ablate("probe", runs["xcit"], "code-norms", check=False)
        stored = fleet.json("probe", runs["vit"], "--store", fleet.store)
        expect(len(stored["probes"]) == 5, "without a scheduler what is stored is read from the file")
        fleet.ablate("probe", runs["vit"], "feature-norms", "--with", "feature-norms.images=4", "--store", fleet.store)
        with sqlite3.connect(f"file:{fleet.store}?mode=ro", uri=True) as store:
            found, = store.execute("SELECT found ->> '$.settings.images' FROM probe WHERE run_id = ? AND name = 'feature-norms(images=4)'", (runs["vit"],)).fetchone()
        expect(found == 4, "and what is found is stored in it, beside what was found with other settings")
        expect(len(fleet.json("probe", runs["vit"], "--store", fleet.store)["probes"]) == 6, "nothing took another's place")


if __name__ == "__main__":
    main()
